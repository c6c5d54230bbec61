package attribute

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// deeplift32 is the tolerance of multipliers that official code computed in float32: quotients of small
// differences.
const deeplift32 = 1e-5

// TestOfficialDeepLIFT holds DeepLIFT against captum's, for two references, and what is left over against
// captum's too.
func TestOfficialDeepLIFT(t *testing.T) {
	for _, file := range []string{"smallcnn_img0", "smallcnn_img2", "gapcnn_img1"} {
		a := read(t, "captum", file+".npz")
		model := modeltest.Official(t, file[:len(file)-len("_img0")], 0)
		for prefix, target := range map[string]string{"t": "target", "u": "target2"} {
			for key, baseline := range map[string]float32{"_deeplift_rescale": 0,
				"_deeplift_rescale_base0p3": 0.3} {
				in := officialImage(model, a["x"].Float32s(), a[target].Int64s()[0])
				if baseline != 0 {
					reference := stages.NewTensor(slices.Repeat([]float32{baseline}, 3*32*32), 3, 32, 32)
					in["baselines"] = []stages.Data{stagetest.Items(nil, reference.Encode())}
				}
				p := &DeepLIFTParams{Tapped: unreduced(), Variant: "official", Baseline: "zero"}
				r := stagetest.Run(t, DeepLIFT, p, in)
				got := map[string][]byte{"maps": r.Payloads["maps"][0],
					"completeness": r.Payloads["completeness"][0]}
				near(t, file+" "+prefix+key, tensor(t, got["maps"]), a[prefix+key].Float32s(), deeplift32)
				if delta, ok := a[prefix+"_deeplift_delta"]; ok && baseline == 0 {
					excess, err := stages.ScalarOf(got["completeness"])
					if want := float64(delta.Float32s()[0]); err != nil || !(math.Abs(excess-want) <= 1e-4) {
						t.Errorf("%s %s: %v is left over, want %v (%v)", file, prefix, excess, want, err)
					}
				}
			}
		}
	}
}

// TestDeepLIFTIsComplete checks that attributions sum to the difference of the answers on nets of every kind,
// at layers, for either reference and output, where no pool takes part.
func TestDeepLIFTIsComplete(t *testing.T) {
	for net, io := range map[string]string{"gapcnn": "smallcnn_io",
		"timm_resnet_basic_bn": "timm_resnet_basic_io", "timm_vit_op13": "timm_vit_io",
		"timm_vit_op17": "timm_vit_io"} {
		in := officialInput(t, net, io, "imagenet")
		for _, layer := range []string{"input", "middle", "final"} {
			for _, baseline := range []string{"zero", "black"} {
				for _, output := range []string{"logit", "probability"} {
					if output == "probability" && (layer == "middle" || baseline == "black") {
						continue
					}
					p := &DeepLIFTParams{Tapped: tappedAt(layer), Variant: "paper", Baseline: baseline}
					p.Output = output
					r := stagetest.Run(t, DeepLIFT, p, in)
					for i, b := range r.Payloads["completeness"] {
						excess, err := stages.ScalarOf(b)
						if err != nil || !(math.Abs(excess) <= 1e-4) { // answers differ by 1 to 50
							t.Errorf("%s at %s, baseline %s, %s, item %d: %v is left over (%v)", net, layer,
								baseline, output, i, excess, err)
						}
					}
				}
			}
		}
	}
}

// TestDeepLIFTOfPools checks that its rule for pools leaves less over than derivatives.
func TestDeepLIFTOfPools(t *testing.T) {
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	total := map[string]float64{}
	for _, variant := range []string{"paper", "official"} {
		r := stagetest.Run(t, DeepLIFT, &DeepLIFTParams{Tapped: tapped(), Variant: variant, Baseline: "zero"},
			in)
		for _, b := range r.Payloads["completeness"] {
			excess, err := stages.ScalarOf(b)
			if err != nil {
				t.Fatal(err)
			}
			total[variant] += math.Abs(excess)
		}
	}
	if !(total["paper"] < 0.1*total["official"]) {
		t.Errorf("left over: %v", total)
	}
}

// TestDeepLIFTBits checks that maps don't depend on batches and threads, nor on the rest of the batch. The
// last net is so large that there are numbers in places in which kernels treat them otherwise.
func TestDeepLIFTBits(t *testing.T) {
	for net, io := range map[string]string{"smallcnn": "smallcnn_io", "timm_vit_op17": "timm_vit_io"} {
		modeltest.InvariantStage(t, DeepLIFT, DeepLIFT.NewParams(), "maps", officialInput(t, net, io, "unit"))
	}
	if len(stagetest.Sample(t, 3, []string{"the last net"})) == 0 {
		return
	}
	const size = 3 * 224 * 224
	images := make([][]byte, 2)
	for k := range images {
		pixels := make([]uint8, size)
		for i := range pixels {
			pixels[i] = uint8(i * (i + 7*k) >> (3 + k%3))
		}
		images[k] = stages.NewTensor(pixels, 3, 224, 224).Encode()
	}
	targets := slices.Repeat([][]byte{stages.NewTensor([]int64{3}, 1).Encode()}, len(images))
	modeltest.InvariantStage(t, DeepLIFT, DeepLIFT.NewParams(), "maps", map[string][]stages.Data{
		"model": {modeltest.Model(t, model.ONNXParams{Path: filepath.Join(modeltest.Data(t), "models",
			"imagenet_vit_tiny_patch16_224.onnx"), Preset: "half"})},
		"images":  {stagetest.Items(nil, images...)},
		"targets": {stagetest.Items(nil, targets...)},
	})
}
