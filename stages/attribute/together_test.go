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

// Share does the same.
func (s *asked) Share(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error) {
	return s.Keep(key, weight, make)
}

// TestTogether checks that methods side by side on one slot make the outputs, byte for
// byte, that each makes alone; that few programs answer all their questions; and that no
// answer is left lying.
func TestTogether(t *testing.T) {
	other := Saliency.NewParams().(*SaliencyParams)
	other.Target = "7"
	contrast := AbsLRP.NewParams().(*AbsLRPParams)
	contrast.Contrast = "two-passes"
	cells := []stages.Beside{
		{Stage: &AbsLRP, Params: AbsLRP.NewParams()},
		{Stage: &AbsLRP, Params: contrast},
		{Stage: &CLRP, Params: CLRP.NewParams()},
		{Stage: &CRAP, Params: CRAP.NewParams()},
		{Stage: &Deconvolution, Params: Deconvolution.NewParams()},
		{Stage: &GradCAM, Params: GradCAM.NewParams()},
		{Stage: &GuidedBackprop, Params: GuidedBackprop.NewParams()},
		{Stage: &GuidedGradCAM, Params: GuidedGradCAM.NewParams()},
		{Stage: &InputXGradient, Params: InputXGradient.NewParams()},
		{Stage: &LRPAlphaBeta, Params: LRPAlphaBeta.NewParams()},
		{Stage: &LRPEpsilon, Params: LRPEpsilon.NewParams()},
		{Stage: &LRPZPlus, Params: LRPZPlus.NewParams()},
		{Stage: &RAP, Params: RAP.NewParams()},
		{Stage: &Saliency, Params: Saliency.NewParams()},
		{Stage: &Saliency, Params: other},
	}
	for net, most := range map[string]int{
		"smallcnn":              3, // for class 7, for relative propagation, for all others
		"timm_resnet_basic2_bn": 4, // and for layer-wise relevance, which looks at branches
	} {
		t.Run(net, func(t *testing.T) { sideBySide(t, officialInput(t, net, "smallcnn_io", "unit"), cells, most) })
	}
}

// TestEqualImages holds the same of images that are equal: a data set may have one twice,
// under two labels.
func TestEqualImages(t *testing.T) {
	in := officialInput(t, "timm_resnet_basic2_bn", "smallcnn_io", "unit")
	for _, port := range []string{"images", "targets"} {
		first, err := in[port][0].Load(0)
		if err != nil {
			t.Fatal(err)
		}
		in[port] = []stages.Data{stagetest.Items(nil, first, first, first)}
	}
	delete(in, "labels")
	cells := []stages.Beside{
		{Stage: &GuidedGradCAM, Params: GuidedGradCAM.NewParams()},
		{Stage: &InputXGradient, Params: InputXGradient.NewParams()},
		{Stage: &Saliency, Params: Saliency.NewParams()},
	}
	sideBySide(t, in, cells, 2)
}

// sideBySide runs cells on one slot, and holds that no more programs than so many go
// back.
func sideBySide(t *testing.T, in map[string][]stages.Data, cells []stages.Beside, most int) {
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
		for _, o := range e.Outputs {
			if !bytes.Equal(o.Data, want.Payloads[o.Port][o.Call]) {
				t.Errorf("%s makes other %s of image %d than alone", c.Stage.Name, o.Port, o.Call)
			}
		}
	}
	programs := 0
	for key := range slot.keys {
		if strings.HasPrefix(key, "program gradient") {
			programs++
		}
	}
	if programs > most {
		t.Errorf("%d programs were asked, want %d: %v", programs, most, slot.keys)
	}
	if n := len(slot.left.found); n != 0 {
		t.Errorf("%d answers were left lying", n)
	}
}

// TestLeftLying checks that answers for a stage that never came do no harm to what comes
// later: of the same image, of it twice, and of others between.
func TestLeftLying(t *testing.T) {
	all := officialInput(t, "timm_resnet_basic2_bn", "smallcnn_io", "unit")
	at := func(items ...int) map[string][]stages.Data {
		in := map[string][]stages.Data{"model": all["model"]}
		for _, port := range []string{"images", "targets"} {
			var payloads [][]byte
			for _, i := range items {
				b, err := all[port][0].Load(i)
				if err != nil {
					t.Fatal(err)
				}
				payloads = append(payloads, b)
			}
			in[port] = []stages.Data{stagetest.Items(nil, payloads...)}
		}
		return in
	}
	saliency := stages.Beside{Stage: &Saliency, Params: Saliency.NewParams()}
	guided := stages.Beside{Stage: &GuidedBackprop, Params: GuidedBackprop.NewParams()}
	slot := stagetest.NewSlot()
	run := func(c stages.Beside, beside []stages.Beside, items ...int) {
		in := at(items...)
		want := stagetest.Run(t, *c.Stage, c.Params, in)
		e, err := stagetest.Env(c.Stage, in)
		if err != nil {
			t.Fatal(err)
		}
		e.Slot, e.Beside, e.Batch = slot, beside, 1
		if err := c.Stage.Run(context.Background(), c.Params, e); err != nil {
			t.Fatalf("%s of %v: %v", c.Stage.Name, items, err)
		}
		for _, o := range e.Outputs {
			if !bytes.Equal(o.Data, want.Payloads[o.Port][o.Call]) {
				t.Errorf("%s of %v makes other %s of call %d than alone", c.Stage.Name, items, o.Port, o.Call)
			}
		}
	}
	run(guided, []stages.Beside{saliency}, 0) // and saliency doesn't come
	run(saliency, nil, 0, 1, 1)
	run(saliency, nil, 0)
	run(guided, []stages.Beside{saliency}, 0)
	run(saliency, nil, 0, 0)
}
