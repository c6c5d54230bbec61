package perturb

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/stagetest"
)

// normalised32 is the tolerance for curves that the official code divides by the difference of their ends,
// about 0.2.
const normalised32 = 1e-5

// official32 is the tolerance for a probability that the official code computed in float32, with other
// convolution kernels. The rounding error of a sum of K terms is about √K·u of its size, u = 2⁻²⁴; smallcnn's
// layers have 27, 72, 108, 1024 and 32 terms, together √1263·u = 36·u, and the difference of two codes √2
// times that, 50·u. This is the expected error of one logit; the maximum over thousands of points may be
// twice as large. A softmax has the slope p·(1 − p), with either sign for the other logits, and rounds its
// exponential, its sum and its quotient. The tolerance is therefore smaller near 0 and 1.
func official32(p, logit float64) float64 {
	const u = 0x1p-24
	return 2*p*(1-p)*2*50*u*(1+math.Abs(logit)) + 8*u*p
}

// TestOfficialRISECurves compares insertion and deletion with the raw curves of the official code, for the
// pixel orders in its files.
func TestOfficialRISECurves(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(golden.Dir(t), "mas_rise", "*_step*.npz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no official curves: %v", err)
	}
	files = append(files, filepath.Join(golden.Dir(t), "mas_rise", "edge_zero_image_smallcnn.npz"))
	worst := 0.0
	for _, file := range files {
		a := golden.Arrays(t, file)
		name := strings.TrimSuffix(filepath.Base(file), ".npz")
		net, _, _ := strings.Cut(strings.TrimPrefix(name, "edge_zero_image_"), "_")
		size := a["saliency"].Shape[0]
		if size == 64 {
			net = "gapcnn_dyn"
		}
		model := modeltest.Official(t, net, size*(size/64))
		step := int(a["step"].Int64s()[0])
		for _, tt := range []struct {
			stage  stages.Stage
			params any
			key    string
		}{
			{Insertion, &InsertionParams{with(defaults("blur"), step)}, "ins"},
			{Deletion, &DeletionParams{with(defaults("zero"), step)}, "del"},
		} {
			r := run(t, tt.stage, tt.params, model, a["x"], a["order"].Int64s(), -1)
			curve := decode(t, r.Payloads["curves"][0])
			points := len(curve) / 3
			got, tolerance := curve[:points], make([]float64, points)
			for k, p := range got {
				tolerance[k] = official32(p, curve[points+k])
			}
			want := a[tt.key+"_rise_raw"].Float64s()
			if want == nil {
				for k := range tolerance {
					tolerance[k] = normalised32
				}
				// The larger net's files contain only the curves after MAS: normalised between their ends,
				// clipped, and made monotone.
				got, want = monotone(got, tt.key == "ins"), a[tt.key+"_mr"].Float64s()
			}
			if len(got) != len(want) {
				t.Fatalf("%s %s: %d points, want %d", name, tt.key, len(got), len(want))
			}
			for k := range want {
				d := math.Abs(got[k] - want[k])
				worst = math.Max(worst, d/tolerance[k])
				if !(d <= tolerance[k]) {
					t.Errorf("%s %s: point %d is %v, want %v ± %.2g", name, tt.key, k, got[k], want[k],
						tolerance[k])
					break
				}
			}
			if s := r.Facts["curves"]["step_pixels"]; s != fmt.Sprint(step) {
				t.Errorf("%s: the fact step_pixels is %q, want %d", name, s, step)
			}
		}
	}
	t.Logf("largest deviation %.2g of what float32 allows, over %d files", worst, len(files))
}

func with(p Params, step int) Params {
	p.Step = step
	return p
}

// monotone is step 3 of the definition of MAS.
func monotone(raw []float64, insert bool) []float64 {
	out := make([]float64, len(raw))
	base, orig := raw[len(raw)-1], raw[0]
	if insert {
		base, orig = raw[0], raw[len(raw)-1]
	}
	best := 1.0
	if insert {
		best = 0
	}
	for k, v := range raw {
		v = (v - base) / (orig - base)
		// NaN, which occurs if the ends are equal, changes nothing.
		if insert && v > best {
			best = math.Min(v, 1)
		}
		if !insert && v < best {
			best = math.Max(v, 0)
		}
		out[k] = best
	}
	return out
}

// run runs a perturbation stage on one image, replacing pixels in the given order. The target is the
// prediction; label is wired if it isn't negative.
func run(t *testing.T, s stages.Stage, params any, model stages.Data, x npy.Array, order []int64,
	label int) stagetest.Result {
	t.Helper()
	ranks := make([]uint32, len(order))
	for place, pixel := range order {
		ranks[pixel] = uint32(place)
	}
	h, w := x.Shape[len(x.Shape)-2], x.Shape[len(x.Shape)-1]
	image := stages.NewTensor(x.Float32s(), 3, h, w)
	in := map[string][]stages.Data{
		"model":   {model},
		"images":  {stagetest.Items(nil, image.Encode())},
		"maps":    {stagetest.Items(nil, stages.NewTensor(ranks, h, w).Encode())},
		"targets": {predicted(t, model, image)},
	}
	if label >= 0 {
		in["labels"] = []stages.Data{stagetest.Items(nil,
			stages.NewTensor([]int64{int64(label)}, 1).Encode())}
	}
	return stagetest.Run(t, s, params, in)
}

func predicted(t *testing.T, model stages.Data, image stages.Tensor) stages.Data {
	t.Helper()
	r := stagetest.Run(t, modeltest.Predict, nil, map[string][]stages.Data{
		"model": {model}, "images": {stagetest.Items(nil, image.Encode())},
	})
	return stagetest.Items(nil, r.Payloads["targets"][0])
}

func decode(t *testing.T, payload []byte) []float64 {
	t.Helper()
	v, err := stages.DecodeTensor(payload)
	if err != nil {
		t.Fatal(err)
	}
	return v.Float64s()
}
