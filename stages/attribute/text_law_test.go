package attribute

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// textMethods are the methods that take texts, with parameters that suit them.
var textMethods = []struct {
	stage  stages.Stage
	params any
}{
	{Saliency, nil}, {InputXGradient, nil}, {GuidedBackprop, nil}, {Deconvolution, nil},
	{SmoothGrad, &SmoothGradParams{plain(tapped()), Copies{3, 0.15, "range"}, "square"}},
	{VarGrad, &VarGradParams{plain(tapped()), Copies{3, 0.15, "range"}}},
	{IntegratedGradients, &IntegratedGradientsParams{plain(tapped()), 5, "gauss-legendre", "mask"}},
	{IDG, &IDGParams{plain(tapped()), "paper", 5, "zero"}},
	{IDGI, &IDGIParams{plain(tapped()), 5, "pad"}},
	{LeftIG, &LeftIGParams{plain(tapped()), 5, 0.9, "mask"}},
	{GuidedIG, &GuidedIGParams{plain(tapped()), "paper", 10, 0.25, 0.02, "zero"}},
	{DeepLIFT, &DeepLIFTParams{tapped(), "paper", "mask"}},
	{LRPEpsilon, nil}, {LRPGamma, nil}, {LRPZPlus, nil}, {LRPAlphaBeta, nil}, {LRPComposite, nil},
	{CLRP, nil}, {AbsLRP, nil}, {RAP, nil}, {CRAP, nil},
	{RawAttention, nil}, {AttentionRollout, nil}, {TIBAV, nil}, {GenericAttention, nil},
	{TIBAV, &TIBAVParams{Common: common(), Form: "full"}},
	{TransitionAttention, &TransitionAttentionParams{Common: common(), Steps: 3}},
	{Occlusion, leaveOneOut("zero")}, {Occlusion, leaveOneOut("mask")},
	{PartitionSHAP, &PartitionSHAPParams{common(), Hidden{"mask", 1}, 40, 5, "pixels"}},
	{GradCAM, nil}, {GradCAMPlusPlus, nil}, {HiResCAM, nil}, {LayerCAM, nil}, {AblationCAM, nil},
	{XGradCAM, nil}, {GradCAMElementwise, nil}, {RefineCAM, nil}, {EigenCAM, nil},
	{GuidedGradCAM, nil},
	{Random, nil}, {Constant, nil},
}

// TestTextsAlone checks that the map of a text doesn't depend on the other texts, their order or the batch:
// all texts, in reverse order, and one alone have the same bytes, and none is undefined.
func TestTextsAlone(t *testing.T) {
	for _, file := range stagetest.Sample(t, 6, []string{"bert.dynamo", "fixed.own", "distilbert.optimum",
		"roberta.optimum", "deberta.optimum", "mpnet.trace"}) {
		c := readText(t, file)
		for _, m := range textMethods {
			if file == "fixed.own" && m.stage.Name == TIBAV.Name {
				continue // it has no rule for a normalisation of single nodes
			}
			r, err := stagetest.Try(m.stage, m.params, c.in)
			if err != nil {
				t.Errorf("%s: %s: %v", file, m.stage.Name, err)
				continue
			}
			all := r.Payloads["maps"]
			back := stagetest.Run(t, m.stage, m.params, c.reversed(t)).Payloads["maps"]
			slices.Reverse(back)
			for i, b := range all {
				values, err := stages.DecodeTensor(b)
				if err != nil || values.Undefined() > 0 || values.Len() != len(c.texts[i].IDs) {
					t.Errorf("%s: %s, text %d: %v, %d undefined values of %d", file, m.stage.Name, i, err,
						values.Undefined(), values.Len())
				}
				if !slices.Equal(b, back[i]) {
					t.Errorf("%s: %s: the map of text %d differs in another order", file, m.stage.Name, i)
				}
			}
			alone := stagetest.Run(t, m.stage, m.params, c.only(t, 4)).Payloads["maps"][0]
			if !slices.Equal(alone, all[4]) {
				t.Errorf("%s: %s: the map of a text alone differs", file, m.stage.Name)
			}
		}
	}
}

// TestNoiseOfPadding checks that no noise of a longer text stays in the padding of a shorter one, where no
// attention mask hides it.
func TestNoiseOfPadding(t *testing.T) {
	c := readText(t, "bytes.own")
	for _, m := range textMethods {
		if m.stage.Name != SmoothGrad.Name && m.stage.Name != VarGrad.Name {
			continue
		}
		all := stagetest.Run(t, m.stage, m.params, c.in).Payloads["maps"]
		back := stagetest.Run(t, m.stage, m.params, c.reversed(t)).Payloads["maps"]
		slices.Reverse(back)
		for i, b := range all {
			if !slices.Equal(b, back[i]) {
				t.Errorf("%s: the map of text %d differs in another order", m.stage.Name, i)
			}
		}
	}
}

// notingSlot notes what is shared on it.
type notingSlot struct {
	stages.Slot
	keys map[string]bool
}

func (s notingSlot) Share(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error) {
	s.keys[key] = true
	return s.Slot.Share(key, weight, make)
}

// TestKeysOfLengths checks that keys of methods have the programs of short texts and of the longest, which
// the compiler may treat otherwise; and one where the model takes one length.
func TestKeysOfLengths(t *testing.T) {
	for file, want := range map[string]int{"bert.trace": 2, "bag.own": 2, "fixed.own": 1} {
		c := readText(t, file)
		e, err := stagetest.Env(&Saliency, c.in)
		if err != nil {
			t.Fatal(err)
		}
		slot := notingSlot{stagetest.NewSlot(), map[string]bool{}}
		e.Slot = slot
		if _, err := Saliency.Program(t.Context(), Saliency.NewParams(), e); err != nil {
			t.Fatal(err)
		}
		lengths := 0
		for key := range slot.keys {
			if strings.HasPrefix(key, "graph batch ") {
				lengths++
			}
		}
		if lengths != want {
			t.Errorf("%s: graphs of %d lengths are compiled, want %d: %v", file, lengths, want, slot.keys)
		}
	}
}

// reversed returns the inputs with the texts in reverse order.
func (c textCase) reversed(t *testing.T) map[string][]stages.Data {
	t.Helper()
	out := map[string][]stages.Data{"model": c.in["model"]}
	for _, port := range []string{"images", "targets"} {
		d := c.in[port][0]
		var payloads [][]byte
		for i := range d.Items.Len() {
			b, err := d.Load(i)
			if err != nil {
				t.Fatal(err)
			}
			payloads = append(payloads, b)
		}
		slices.Reverse(payloads)
		out[port] = []stages.Data{stagetest.Items(d.Facts, payloads...)}
	}
	return out
}
