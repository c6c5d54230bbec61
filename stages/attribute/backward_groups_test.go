package attribute

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// recordingSlot is a slot that notes what is kept on it, and counts passes.
type recordingSlot struct {
	stages.Slot
	keys              map[string]bool
	forward, backward int
}

func (*recordingSlot) Compiled(int, time.Duration) {}

func (s *recordingSlot) Passed(forward, backward int) {
	s.forward += forward
	s.backward += backward
}

func (s *recordingSlot) Keep(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error) {
	s.keys[key] = true
	return s.Slot.Keep(key, weight, make)
}

// Share does the same.
func (s *recordingSlot) Share(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error) {
	return s.Keep(key, weight, make)
}

// A sharer is a method with parameters.
type sharer struct {
	stage  *stages.Stage
	params any
}

// TestSharedForward checks that methods that share forward passes make the outputs, byte for byte, that each
// makes alone, and that few programs answer all of them.
func TestSharedForward(t *testing.T) {
	other := Saliency.NewParams().(*SaliencyParams)
	other.Target = "7"
	contrast := AbsLRP.NewParams().(*AbsLRPParams)
	contrast.Contrast = "two-passes"
	methods := []sharer{
		{&AbsLRP, AbsLRP.NewParams()},
		{&AbsLRP, contrast},
		{&CLRP, CLRP.NewParams()},
		{&CRAP, CRAP.NewParams()},
		{&Deconvolution, Deconvolution.NewParams()},
		{&GradCAM, GradCAM.NewParams()},
		{&GuidedBackprop, GuidedBackprop.NewParams()},
		{&GuidedGradCAM, GuidedGradCAM.NewParams()},
		{&InputXGradient, InputXGradient.NewParams()},
		{&LRPAlphaBeta, LRPAlphaBeta.NewParams()},
		{&LRPEpsilon, LRPEpsilon.NewParams()},
		{&LRPZPlus, LRPZPlus.NewParams()},
		{&RAP, RAP.NewParams()},
		{&Saliency, Saliency.NewParams()},
		{&Saliency, other},
	}
	for net, most := range map[string]int{
		"smallcnn":              3, // for class 7, for relative propagation, for all others
		"timm_resnet_basic2_bn": 4, // and for layer-wise relevance, which looks at branches
	} {
		t.Run(net,
			func(t *testing.T) { shared(t, officialInput(t, net, "smallcnn_io", "unit"), methods, most) })
	}
}

// TestSharedBalances checks the same of a gradient by several backward passes.
func TestSharedBalances(t *testing.T) {
	methods := []sharer{{&AttnLRP, AttnLRP.NewParams()}, {&CPLRP, CPLRP.NewParams()}}
	for _, b := range []relevance.Balance{{}, relevance.Balanced(), relevance.AttnLRP()} {
		p, q := InputXGradient.NewParams().(*InputXGradientParams), GradCAM.NewParams().(*GradCAMParams)
		p.Backward, q.Backward = b, b
		methods = append(methods, sharer{&InputXGradient, p}, sharer{&GradCAM, q})
	}
	in := pathInput(t, "vit", 0)
	for net, backward := range map[string]int{"vit": 8, "vgg": 4} { // which has no attention and no norms
		in["model"] = pathInput(t, net, 0)["model"]
		slot := shared(t, in, methods, 1)
		images := in["images"][0].Items.Len()
		if slot.forward != images || slot.backward != backward*images {
			t.Errorf("%s: %d forward and %d backward passes of %d images, want %d of each", net, slot.forward,
				slot.backward, images, backward)
		}
	}
}

// TestEqualImages checks the same of images that are equal: a data set may have one twice, under two labels.
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
	methods := []sharer{
		{&GuidedGradCAM, GuidedGradCAM.NewParams()},
		{&InputXGradient, InputXGradient.NewParams()},
		{&Saliency, Saliency.NewParams()},
	}
	shared(t, in, methods, 2)
}

// TestSharedTargets checks the same of one method with several targets, whose passes can't share a forward
// pass and have one program.
func TestSharedTargets(t *testing.T) {
	methods := []sharer{{&Saliency, Saliency.NewParams()}}
	for _, target := range []string{"7", "3"} {
		p := Saliency.NewParams().(*SaliencyParams)
		p.Target = target
		methods = append(methods, sharer{&Saliency, p})
	}
	shared(t, officialInput(t, "smallcnn", "smallcnn_io", "unit"), methods, 1)
}

// shared runs methods at once, and holds that no more programs than so many answer them, and that each makes
// the bytes that it makes alone. It returns the slot on which they ran.
func shared(t *testing.T, in map[string][]stages.Data, methods []sharer, most int) *recordingSlot {
	t.Helper()
	slot := &recordingSlot{Slot: stagetest.NewSlot(), keys: map[string]bool{}}
	var parts []stages.Part
	for _, m := range methods {
		e, err := stagetest.Env(m.stage, in)
		if err != nil {
			t.Fatal(err)
		}
		e.Slot, e.Batch = slot, 2
		parts = append(parts, stages.Part{Params: m.params, Env: e})
	}
	if err := methods[0].stage.Shared.Run(t.Context(), parts); err != nil {
		t.Fatal(err)
	}
	for k, m := range methods {
		want := stagetest.Run(t, *m.stage, m.params, in)
		for _, o := range parts[k].Env.Outputs {
			if !bytes.Equal(o.Data, want.Payloads[o.Port][o.Call]) {
				t.Errorf("%s makes other %s of image %d than alone", m.stage.Name, o.Port, o.Call)
			}
		}
		if len(parts[k].Env.Outputs) == 0 {
			t.Errorf("%s makes nothing", m.stage.Name)
		}
	}
	programs := 0
	for key := range slot.keys {
		if strings.HasPrefix(key, "program ") {
			programs++
		}
	}
	if programs > most {
		t.Errorf("%d programs were asked, want %d: %v", programs, most, slot.keys)
	}
	return slot
}
