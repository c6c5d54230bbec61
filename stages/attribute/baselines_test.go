package attribute

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/stagetest"
)

// comparing are the methods that compare images with those on the port baselines, at a layer.
func comparing(layer, baseline string) map[string]struct {
	stage  stages.Stage
	params any
} {
	return map[string]struct {
		stage  stages.Stage
		params any
	}{
		"integrated-gradients": {IntegratedGradients, &IntegratedGradientsParams{plain(tappedAt(layer)), 64,
			"gauss-legendre", baseline}},
		"deeplift": {DeepLIFT, &DeepLIFTParams{tappedAt(layer), "paper", baseline}},
	}
}

// baselineItems returns baselines [3,32,32], one an item.
func baselineItems(images ...[]float32) []stages.Data {
	var payloads [][]byte
	for _, x := range images {
		payloads = append(payloads, stages.NewTensor(x, 3, 32, 32).Encode())
	}
	return []stages.Data{stagetest.Items(nil, payloads...)}
}

// TestBaselinesOfParameters checks that images on the port give the bytes of the baseline that the parameter
// names, where they are that baseline.
func TestBaselinesOfParameters(t *testing.T) {
	const size = 3 * 32 * 32
	black := make([]float32, size)
	middle := slices.Repeat([]float32{0.5}, size) // with preset half, zeros after normalisation
	for _, tt := range []struct {
		preset, baseline string
		image            []float32
	}{{"half", "zero", middle}, {"half", "black", black}, {"imagenet", "black", black}} {
		in := officialInput(t, "smallcnn", "smallcnn_io", tt.preset)
		for _, layer := range []string{"input", "middle"} {
			for name, m := range comparing(layer, tt.baseline) {
				if name == "integrated-gradients" && layer != "input" && tt.baseline == "zero" {
					continue // zeros of the layer, not its value for an image
				}
				want := stagetest.Run(t, m.stage, m.params, in).Payloads
				in["baselines"] = baselineItems(tt.image, tt.image)
				got := stagetest.Run(t, m.stage, comparing(layer, "zero")[name].params, in).Payloads
				delete(in, "baselines")
				for _, port := range []string{"maps", "completeness"} {
					if !slices.EqualFunc(got[port], want[port], bytes.Equal) {
						t.Errorf("%s at %s, preset %s: %s of the images %s are others than those of the "+
							"parameter", name, layer, tt.preset, port, tt.baseline)
					}
				}
			}
		}
	}
}

// TestBaselinesComplete checks that maps sum to the difference of the answers to each image and its own
// baseline, and that the port completeness has what is left over.
func TestBaselinesComplete(t *testing.T) {
	in := officialInput(t, "gapcnn", "smallcnn_io", "unit")
	r := rand.New(rand.NewPCG(3, 4))
	references := make([][]float32, 2)
	for i := range references {
		references[i] = make([]float32, 3*32*32)
		for k := range references[i] {
			references[i][k] = r.Float32()
		}
	}
	for _, layer := range []string{"input", "final"} {
		for name, m := range comparing(layer, "zero") {
			if p, ok := m.params.(*IntegratedGradientsParams); ok {
				p.Steps = 1000 // noise is far from an image, and kinks lie between
			}
			p := unreduced().Common
			want := make([]float64, 2)
			for i := range want {
				want[i] = answerTo(t, in, p, i, tensor(t, payload(t, in["images"][0], i))) - answerTo(t, in,
					p, i, references[i])
			}
			in["baselines"] = baselineItems(references...)
			got := stagetest.Run(t, m.stage, m.params, in).Payloads
			delete(in, "baselines")
			for i, b := range got["completeness"] {
				excess, err := stages.ScalarOf(b)
				if err != nil {
					t.Fatal(err)
				}
				if !(math.Abs(excess) <= 5e-3*max(1, math.Abs(want[i]))) {
					t.Errorf("%s at %s, item %d: %v is left over of %v", name, layer, i, excess, want[i])
				}
				if layer != "input" {
					continue // enlarging changes the sum
				}
				sum := 0.0
				for _, v := range tensor(t, got["maps"][i]) {
					sum += float64(v)
				}
				if !(math.Abs(sum-excess-want[i]) <= 1e-4*max(1, math.Abs(want[i]))) {
					t.Errorf("%s, item %d: the map sums to %v with %v left over, want %v", name, i, sum,
						excess, want[i])
				}
			}
		}
	}
}

// TestBaselinesBits checks that an item's bytes don't depend on the baselines of those that it is computed
// with.
func TestBaselinesBits(t *testing.T) {
	for net, io := range map[string]string{"smallcnn": "smallcnn_io", "timm_vit_op17": "timm_vit_io"} {
		in := officialInput(t, net, io, "unit")
		const size = 3 * 32 * 32
		shades := make([][]float32, 3)
		for k := range shades {
			shades[k] = make([]float32, size)
			for i := range shades[k] {
				shades[k][i] = float32((i*(k+2))%17) / 17
			}
		}
		in["baselines"] = baselineItems(shades[0], shades[0], shades[1], shades[0], shades[2])
		for _, port := range []string{"images", "targets", "labels"} {
			var five [][]byte
			for i := range 5 {
				five = append(five, payload(t, in[port][0], i%2))
			}
			in[port] = []stages.Data{stagetest.Items(nil, five...)}
		}
		layers, ports := []string{"input", "middle"}, []string{"maps", "completeness"}
		if net != "smallcnn" { // which takes long
			layers, ports = layers[:1], ports[:1]
		}
		for _, layer := range layers {
			for name, m := range stagetest.SampleOf(t, 3, comparing(layer, "zero")) {
				if p, ok := m.params.(*IntegratedGradientsParams); ok {
					p.Steps = 5
				}
				maps := stagetest.Run(t, m.stage, m.params, in).Payloads["maps"]
				if bytes.Equal(maps[0], maps[2]) || bytes.Equal(maps[0], maps[4]) {
					t.Errorf("%s at %s of %s: one image has one map for two baselines", name, layer, net)
				}
				for _, port := range ports {
					modeltest.InvariantStage(t, m.stage, m.params, port, in)
				}
			}
		}
	}
}

// TestBaselinesRefuse checks the errors if a baseline is set twice, or doesn't fit.
func TestBaselinesRefuse(t *testing.T) {
	wired := func(port string) bool { return port == "baselines" }
	in := officialInput(t, "smallcnn", "smallcnn_io", "unit")
	small := stages.NewTensor(make([]uint8, 3*4), 3, 2, 2).Encode()
	in["baselines"] = []stages.Data{stagetest.Items(nil, small, small)}
	for name, m := range comparing("input", "black") {
		if err := m.stage.Check(m.params, wired); err == nil || !strings.Contains(err.Error(),
			"baseline is black, but the port baselines is wired") {
			t.Errorf("%s: a baseline that is given twice gives %v", name, err)
		}
		if err := m.stage.Check(comparing("input", "zero")[name].params, wired); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		const want = `item "item-0": port baselines: an image of 2×2 pixels doesn't fit the model's 32×32`
		if _, err := stagetest.Try(m.stage, m.params, in); err == nil || err.Error() != want {
			t.Errorf("%s: a small baseline gives %v", name, err)
		}
	}
}
