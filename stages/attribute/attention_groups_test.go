package attribute

import (
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// TestSharedAttention checks that methods of attention make together, byte for byte, what each makes alone,
// by one program: with one forward pass an image, one backward pass for all that read the derivative, and
// that of LeGrad, whose answers are the blocks' own.
func TestSharedAttention(t *testing.T) {
	head := RawAttention.NewParams().(*RawAttentionParams)
	head.Head = 0
	derivative := []sharer{
		{&AttentionRollout, AttentionRollout.NewParams()},
		{&RawAttention, RawAttention.NewParams()},
		{&RawAttention, head},
		{&GenericAttention, GenericAttention.NewParams()},
		{&GradECLIP, GradECLIP.NewParams()},
	}
	formed := append(derivative[:len(derivative):len(derivative)], sharer{&LeGrad, LeGrad.NewParams()})
	relevant := append(formed[:len(formed):len(formed)], sharer{&TIBAV, TIBAV.NewParams()})
	for name, in := range map[string]map[string][]stages.Data{
		"timm": officialInput(t, "timm_vit_op17", "timm_vit_io", "unit"),
		"vit":  pathInput(t, "vit", 0),
	} {
		for backward, methods := range map[int][]sharer{1: derivative, 2: formed, 3: relevant} {
			slot := shared(t, in, methods, 1)
			images := in["images"][0].Items.Len()
			if slot.forward != images || slot.backward != backward*images {
				t.Errorf("%s, %d methods: %d forward and %d backward passes of %d images, want %d and %d",
					name, len(methods), slot.forward, slot.backward, images, images, backward*images)
			}
		}
	}
}

// TestSharedAttentionTargets checks the same of methods that explain different classes, and of one that is
// the same for all.
func TestSharedAttentionTargets(t *testing.T) {
	methods := []sharer{{&AttentionRollout, AttentionRollout.NewParams()}}
	for _, target := range []string{"7", "3"} {
		p := GenericAttention.NewParams().(*GenericAttentionParams)
		p.Target = target
		methods = append(methods, sharer{&GenericAttention, p})
	}
	shared(t, officialInput(t, "timm_vit_op17", "timm_vit_io", "unit"), methods, 2)
}

// TestSharedAttentionQuestions checks the same of methods with different backward passes and outputs, which
// share what asks for the same derivative.
func TestSharedAttentionQuestions(t *testing.T) {
	probable := GenericAttention.NewParams().(*GenericAttentionParams)
	probable.Output = "probability"
	by := Balanced{relevance.Balanced()}
	methods := []sharer{
		{&GenericAttention, GenericAttention.NewParams()},
		{&GenericAttention, &GenericAttentionParams{Common: common(), Balanced: by}},
		{&GradECLIP, &GradECLIPParams{Common: common(), Balanced: by}},
		{&AttentionRollout, AttentionRollout.NewParams()},
		{&GenericAttention, probable},
		{&LeGrad, LeGrad.NewParams()},
	}
	shared(t, officialInput(t, "timm_vit_op17", "timm_vit_io", "unit"), methods, 3)
}

// TestSharedAttentionOfProbabilities checks the same of a model that ends with a softmax, before which a
// balanced backward pass starts, so that maps are those of the model without it.
func TestSharedAttentionOfProbabilities(t *testing.T) {
	by := Balanced{relevance.Balanced()}
	methods := []sharer{
		{&GradECLIP, &GradECLIPParams{Common: common(), Balanced: by}},
		{&GenericAttention, &GenericAttentionParams{Common: common(), Balanced: by}},
	}
	scores, in := pathInput(t, "vit", 0), pathInput(t, "vit", 0)
	in["model"] = []stages.Data{
		withSoftmax(t, filepath.Join("..", "..", "experiments", "quickstart", "vit.onnx"), "half")}
	shared(t, in, methods, 1)
	for _, m := range methods {
		got, want := mapsOf(t, *m.stage, m.params, in)[0], mapsOf(t, *m.stage, m.params, scores)[0]
		near(t, m.stage.Name, singles(got), singles(want), 1e-5)
	}
}
