package attribute

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// asked is a slot that notes what is kept on it.
type asked struct {
	stages.Slot
	keys map[string]bool
	left *leftovers
}

func (s *asked) Keep(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error) {
	s.keys[key] = true
	c, err := s.Slot.Keep(key, weight, make)
	if l, ok := c.(*leftovers); ok {
		s.left = l
	}
	return c, err
}

// TestTogether holds that methods side by side on one slot make the maps, byte for
// byte, that each makes alone; that one program answers all their questions but those
// of another class; and that no answer is left lying.
func TestTogether(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	other := Saliency.NewParams().(*SaliencyParams)
	other.Target = "7"
	cells := []stages.Beside{
		{Stage: &Deconvolution, Params: Deconvolution.NewParams()},
		{Stage: &GradCAM, Params: GradCAM.NewParams()},
		{Stage: &GuidedBackprop, Params: GuidedBackprop.NewParams()},
		{Stage: &GuidedGradCAM, Params: GuidedGradCAM.NewParams()},
		{Stage: &InputXGradient, Params: InputXGradient.NewParams()},
		{Stage: &Saliency, Params: Saliency.NewParams()},
		{Stage: &Saliency, Params: other},
	}
	slot := &asked{Slot: stagetest.NewSlot(), keys: map[string]bool{}}
	for i, c := range cells {
		want := stagetest.Run(t, *c.Stage, c.Params, in)
		e, err := stagetest.Env(c.Stage, in)
		if err != nil {
			t.Fatal(err)
		}
		e.Slot, e.Beside, e.Batch = slot, cells[i+1:], 2
		if err := c.Stage.Run(context.Background(), c.Params, e); err != nil {
			t.Fatal(err)
		}
		for k, o := range e.Outputs {
			if !bytes.Equal(o.Data, want.Payloads["maps"][k]) {
				t.Errorf("%s makes another map of image %d than alone", c.Stage.Name, k)
			}
		}
	}
	programs := 0
	for key := range slot.keys {
		if strings.HasPrefix(key, "program gradient") {
			programs++
		}
	}
	if programs != 2 {
		t.Errorf("%d programs were asked, want one for class 7 and one for all others: %v", programs, slot.keys)
	}
	if n := len(slot.left.found); n != 0 {
		t.Errorf("%d answers were left lying", n)
	}
}
