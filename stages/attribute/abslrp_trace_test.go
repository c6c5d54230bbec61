package attribute

import (
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// officialTraces says which values of our graphs official modules passed relevance to. What several modules
// give to one value is their sum there. Block 0's softmax_attention isn't among them: before it the code has
// a Dropout, which no file has, and divides there too, h/(h + 10⁻⁹). Where attention is 10⁻⁵ that takes 10⁻⁴
// away, and softmax's rule gives most of the relevance to such places; without the factor, in float64, the
// code's own numbers deviate by as much as ours, 1.1e-5, and with it by 7e-7.
var officialTraces = map[string][]struct {
	value  string
	traces []string
}{
	"smallcnn": {
		{"/relu4/Relu_output_0", []string{"000_fc2"}},
		{"/fc1/Gemm_output_0", []string{"001_relu4"}},
		{"/flat/Flatten_output_0", []string{"002_fc1"}},
		{"/relu3/Relu_output_0", []string{"003_flat"}},
		{"/conv3/Conv_output_0", []string{"004_relu3"}},
		{"/pool2/MaxPool_output_0", []string{"005_conv3"}},
		{"/relu2/Relu_output_0", []string{"006_pool2"}},
		{"/conv2/Conv_output_0", []string{"007_relu2"}},
		{"/pool1/MaxPool_output_0", []string{"008_conv2"}},
		{"/relu1/Relu_output_0", []string{"009_pool1"}},
		{"/conv1/Conv_output_0", []string{"010_relu1"}},
		{"", []string{"011_conv1"}},
	},
	"timm_resnet_basic_bn": {
		{"/global_pool/flatten/Flatten_output_0", []string{"000_fc"}},
		{"/layer4/layer4.0/act2/Relu_output_0", []string{"002_global_pool.pool"}},
		{"/layer4/layer4.0/bn2/BatchNormalization_output_0", []string{"005_layer4.0.residual_addition_in0"}},
		{"/layer4/layer4.0/downsample/downsample.0/Conv_output_0", []string{"006_layer4.0.downsample.1"}},
		{"/layer3/layer3.0/act2/Relu_output_0", []string{"007_layer4.0.downsample.0", "015_layer4.0.conv1"}},
		{"/layer3/layer3.0/bn2/BatchNormalization_output_0", []string{"019_layer3.0.residual_addition_in0"}},
		{"/layer2/layer2.0/act2/Relu_output_0", []string{"021_layer3.0.downsample.0", "029_layer3.0.conv1"}},
		{"/layer2/layer2.0/act1/Relu_output_0", []string{"038_layer2.0.conv2"}},
		{"/layer1/layer1.0/act2/Relu_output_0", []string{"035_layer2.0.downsample.0", "043_layer2.0.conv1"}},
		{"/layer1/layer1.0/conv2/Conv_output_0", []string{"051_layer1.0.bn2"}},
		{"/layer1/layer1.0/downsample/downsample.0/Conv_output_0", []string{"048_layer1.0.downsample.1"}},
		{"/maxpool/MaxPool_output_0", []string{"059_layer1"}},
		{"/act1/Relu_output_0", []string{"060_maxpool"}},
		{"/conv1/Conv_output_0", []string{"062_bn1"}},
		{"", []string{"063_conv1"}},
	},
	"timm_resnet_basic2_bn": {
		{"/global_pool/flatten/Flatten_output_0", []string{"000_fc"}},
		{"/layer2/layer2.1/Add_output_0", []string{"032_layer2.1.act2"}},
		{"/layer2/layer2.1/bn2/BatchNormalization_output_0", []string{"033_layer2.1.residual_addition_in0"}},
		{"/layer2/layer2.0/act2/Relu_output_0", []string{"033_layer2.1.residual_addition_in1",
			"040_layer2.1.conv1"}},
		{"/layer1/layer1.0/act2/Relu_output_0", []string{"065_layer1.1"}},
		{"/maxpool/MaxPool_output_0", []string{"079_layer1"}},
		{"", []string{"083_conv1"}},
	},
	"timm_vit_op17": {
		{"/Gather_1_output_0", []string{"000_head"}},
		{"/norm/LayerNormalization_output_0", []string{"003_cls_pool"}},
		{"/blocks/blocks.2/Add_1_output_0", []string{"004_norm_layer"}},
		{"/blocks/blocks.2/mlp/fc2/Add_output_0", []string{"005_blocks.2.residual_addition2_in0"}},
		{"/blocks/blocks.2/mlp/act/Mul_1_output_0", []string{"009_blocks.2.mlp.fc2"}},
		{"/blocks/blocks.2/mlp/fc1/Add_output_0", []string{"012_blocks.2.mlp.act"}},
		{"/blocks/blocks.2/norm2/LayerNormalization_output_0", []string{"013_blocks.2.mlp.fc1"}},
		{"/blocks/blocks.2/Add_output_0", []string{"005_blocks.2.residual_addition2_in1",
			"015_blocks.2.norm_layer2"}},
		{"/blocks/blocks.2/attn/Softmax_output_0", []string{"021_blocks.2.attn.attention_v_multiply_in0"}},
		{"/blocks/blocks.2/attn/Squeeze_2_output_0", []string{"021_blocks.2.attn.attention_v_multiply_in1"}},
		{"/blocks/blocks.2/attn/MatMul_output_0", []string{"023_blocks.2.attn.softmax_attention"}},
		{"/blocks/blocks.2/attn/Mul_output_0", []string{"024_blocks.2.attn.qk_multiply_in0"}},
		{"/blocks/blocks.2/norm1/LayerNormalization_output_0", []string{"027_blocks.2.attn.qkv"}},
		{"/blocks/blocks.1/Add_1_output_0", []string{"031_blocks.2"}},
		{"/blocks/blocks.1/mlp/fc2/Add_output_0", []string{"032_blocks.1.residual_addition2_in0"}},
		{"/blocks/blocks.1/mlp/fc1/Add_output_0", []string{"039_blocks.1.mlp.act"}},
		{"/blocks/blocks.1/attn/Softmax_output_0", []string{"048_blocks.1.attn.attention_v_multiply_in0"}},
		{"/blocks/blocks.1/attn/Squeeze_2_output_0", []string{"048_blocks.1.attn.attention_v_multiply_in1"}},
		{"/blocks/blocks.1/attn/MatMul_output_0", []string{"050_blocks.1.attn.softmax_attention"}},
		{"/blocks/blocks.1/norm1/LayerNormalization_output_0", []string{"054_blocks.1.attn.qkv"}},
		{"/blocks/blocks.0/Add_1_output_0", []string{"058_blocks.1"}},
		{"/blocks/blocks.0/mlp/fc2/Add_output_0", []string{"059_blocks.0.residual_addition2_in0"}},
		{"/blocks/blocks.0/mlp/fc1/Add_output_0", []string{"066_blocks.0.mlp.act"}},
		{"/blocks/blocks.0/norm2/LayerNormalization_output_0", []string{"067_blocks.0.mlp.fc1"}},
		{"/blocks/blocks.0/Add_output_0", []string{"059_blocks.0.residual_addition2_in1",
			"069_blocks.0.norm_layer2"}},
		{"/blocks/blocks.0/attn/Softmax_output_0", []string{"075_blocks.0.attn.attention_v_multiply_in0"}},
		{"/blocks/blocks.0/attn/Squeeze_2_output_0", []string{"075_blocks.0.attn.attention_v_multiply_in1"}},
		{"/blocks/blocks.0/norm1/LayerNormalization_output_0", []string{"081_blocks.0.attn.qkv"}},
		{"/Add_output_0", []string{"085_blocks.0"}},
		{"/Concat_1_output_0", []string{"089_position_embed_in0"}},
		{"/patch_embed/proj/Conv_output_0", []string{"090_patch_embed.norm"}},
		{"", []string{"091_patch_embed.proj"}},
	},
}

// trace32 is the tolerance of what arrives at few elements, where errors of the class scores, which it is
// divided by, don't average out.
const trace32 = 5e-6

// TestOfficialAbsLRPTraces holds what arrives at values all over the nets against what the modules of the
// code of December 2024 passed on there.
func TestOfficialAbsLRPTraces(t *testing.T) {
	for file, nets := range officialAbsLRP {
		a := read(t, "abslrp", file+".npz")
		net := nets[len(nets)-1]
		if len(officialTraces[net]) == 0 {
			t.Errorf("%s has no traces to look at", net)
		}
		model := modeltest.Official(t, net, 0)
		e, err := stagetest.Env(&AbsLRP, officialImage(model, a["x"].Float32s()[:3*32*32],
			a["target"].Int64s()[0]))
		if err != nil {
			t.Fatal(err)
		}
		n, err := program.Load(e)
		if err != nil {
			t.Fatal(err)
		}
		rules := relevance.AbsLRP{Variant: relevance.AbsLRPOfficial, MaxPool: relevance.MaxPoolAuto,
			Ablation: relevance.AblationNone}
		for _, tt := range officialTraces[net] {
			g, err := n.Gradient(t.Context(), e.Slot, lower.Question{Layer: tt.value,
				Rules: rules.Policy()}, 1)
			if err != nil {
				t.Errorf("%s %q: %v", net, tt.value, err)
				continue
			}
			g.Explain(0, program.Target{Class: int(a["target"].Int64s()[0]), Minus: -1})
			copy(g.Image(0), a["x"].Float32s())
			if err := g.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := make([]float32, len(g.Gradient(0)))
			for _, trace := range tt.traces {
				part, ok := a["trace_"+trace]
				if !ok || part.Len() != len(want) {
					t.Fatalf("%s: trace %s isn't of the form of %q", net, trace, tt.value)
				}
				for i, v := range part.Float32s() {
					want[i] += v
				}
			}
			apart(t, net+" "+tt.value, g.Gradient(0), want, trace32)
		}
	}
}

// TestOfficialAbsLRPAblations holds the ablations against the code of December 2024 with what they say
// deleted.
func TestOfficialAbsLRPAblations(t *testing.T) {
	a := read(t, "abslrp", "timm_vit_ablations.npz")
	for _, net := range officialAbsLRP["timm_vit"] {
		model := modeltest.Official(t, net, 0)
		for ablation, key := range map[string]string{
			"none": "rel_full", "values-only": "rel_value_only", "queries-keys-only": "rel_query_key_only",
			"patch": "rel_patch_pixels",
		} {
			p := absLRP("official", "variant")
			p.Ablation = ablation
			if ablation == "patch" {
				p.Reduce = "sum"
			}
			for i, m := range absLRPMaps(t, model, p, a["x"], a["target"]) {
				apart(t, net+" "+key, m, a[key].Float32s()[i*len(m):(i+1)*len(m)], difference32)
			}
		}
	}
}
