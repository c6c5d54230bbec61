package attribute

import (
	"fmt"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/stagetest"
)

// attention32 is the tolerance of what official code computed of attention in float32.
const attention32 = 2e-6

// tibav32 is the tolerance of relevance that denominators near zero amplify: an independent NumPy computation
// lies as far from the official one.
const tibav32 = 5e-3

// pixels32 are the tolerances of what such relevance becomes at the pixels of each image. In the second one a
// query times a key is a thousandth of its summands: there an independent float32 computation moves by up to
// 9e-3 of the largest value, and by 2.6e-3 in the median, when the tokens are moved by half their last digit.
var pixels32 = []float64{tibav32, 1.5e-2, tibav32}

// TestOfficialAttention holds the methods that look at attention against the code of Chefer et al., whose
// models are the same as timm's.
func TestOfficialAttention(t *testing.T) {
	rollout := func(normalise bool) *AttentionRolloutParams {
		return &AttentionRolloutParams{Common: common(), Normalise: normalise, Order: "last-first"}
	}
	tibav := func(form string) *TIBAVParams { return &TIBAVParams{Common: common(), Form: form} }
	for _, tt := range []struct {
		key       string
		stage     stages.Stage
		params    any
		target    string
		tolerance float64
	}{
		{"t_last_layer_attn", RawAttention, &RawAttentionParams{common(), -1, -1}, "target", attention32},
		{"u_last_layer_attn", RawAttention, &RawAttentionParams{common(), -1, -1}, "target2", attention32},
		{"rollout", AttentionRollout, rollout(true), "target", attention32},
		{"rollout_unnormalised_from_ViT_LRP", AttentionRollout, rollout(false), "target", attention32},
		{"t_tibav", TIBAV, tibav("attribution"), "target", tibav32},
		{"u_tibav", TIBAV, tibav("attribution"), "target2", tibav32},
		{"t_lrp_rollout", TIBAV, tibav("rollout"), "target", tibav32},
		{"u_lrp_rollout", TIBAV, tibav("rollout"), "target2", tibav32},
		{"t_last_layer_lrp", TIBAV, tibav("last-layer"), "target", tibav32},
		{"u_last_layer_lrp", TIBAV, tibav("last-layer"), "target2", tibav32},
	} {
		patches(t, "timm_vit_op17", "vit_img", tt.key, tt.stage, tt.params, tt.target, tt.tolerance)
	}
	for _, net := range []string{"timm_vit_op13", "timm_vit_op17"} {
		patches(t, net, "vit_img", "t_lrp_full", TIBAV, tibav("full"), "target", pixels32...)
		patches(t, net, "vit_img", "u_lrp_full", TIBAV, tibav("full"), "target2", pixels32...)
	}
}

// TestOfficialTransitionAttention holds transition attention against the code of MAS, with and without
// integration, for two classes, and enlarged as there.
func TestOfficialTransitionAttention(t *testing.T) {
	for _, tt := range []struct {
		net, key     string
		steps, start int
		target       string
	}{
		{"timm_vit_op17", "tam_start0_steps20", 20, 0, ""},
		{"timm_vit_op13", "tam_start0_steps20", 20, 0, ""},
		// The nets have no block 4; the numbers are those of beginning with block 1.
		{"timm_vit_op17", "tam_start4_default", 20, 1, ""},
		{"timm_vit_op17", "tam_no_integral", 1, 0, ""},
		{"timm_vit_op17", "tam_target2", 20, 0, "target2"},
		{"timm_vit_op17", "tam_upsampled_x8", 20, 0, ""},
	} {
		p := &TransitionAttentionParams{Common: common(), Steps: tt.steps, Start: tt.start}
		patches(t, tt.net, "tam_img", tt.key, TransitionAttention, p, tt.target, attention32)
	}
	patches(t, "timm_vit_op17", "tam_img", "raw_attn", RawAttention,
		&RawAttentionParams{common(), -1, -1}, "", attention32)
}

// patches holds the maps of three images against one number for each patch of 8 × 8 pixels, or against maps,
// with one tolerance or one for each image. Without the name of a target the predicted class is explained.
func patches(t *testing.T, net, files, key string, s stages.Stage, params any, target string,
	tolerances ...float64) {
	t.Helper()
	var images, targets [][]byte
	var want []npy.Array
	for k := range 3 {
		a := read(t, "vit_attention", fmt.Sprintf("%s%d.npz", files, k))
		class := int64(program.Predicted(a["logits"].Float32s()))
		if target != "" {
			class = a[target].Int64s()[0]
		}
		images = append(images, stages.NewTensor(a["x"].Float32s(), 3, 32, 32).Encode())
		targets = append(targets, stages.NewTensor([]int64{class}, 1).Encode())
		want = append(want, a[key])
	}
	got := mapsOf(t, s, params, map[string][]stages.Data{
		"model":   {modeltest.Official(t, net, 0)},
		"images":  {stagetest.Items(nil, images...)},
		"targets": {stagetest.Items(nil, targets...)},
	})
	for k, w := range want {
		whole := w.Float32s()
		if len(whole) == 16 {
			whole = singles(resized(doubles(whole), 4, 4, 32, 32, "bilinear"))
		}
		near(t, fmt.Sprintf("%s, image %d, %s", net, k, key), singles(got[k]), whole,
			tolerances[k%len(tolerances)])
	}
}
