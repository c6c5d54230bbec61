package perturb

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/model"
)

// TestOfficialBlur compares the kernel with gkern of the official code, for the sigmas of the MAS and the
// RISE authors, and the blurred image with theirs: blur_kernel.npz.
func TestOfficialBlur(t *testing.T) {
	a := golden.Arrays(t, filepath.Join(golden.Dir(t), "mas_rise", "blur_kernel.npz"))
	for key, sigma := range map[string]float64{"gkern_11_11": 11, "gkern_11_5": 5} {
		k := kernel(11, sigma)
		for i, want := range a[key].Float64s() {
			if got := k[i/11] * k[i%11]; !(math.Abs(got-want) <= 1e-8) {
				t.Errorf("%s: entry %d is %v, want %v", key, i, got, want)
			}
		}
	}
	x, want := a["x"].Float32s(), a["blur_11_11"].Float32s()
	got := make([]float32, len(x))
	const n = 32 * 32
	for c := range 3 {
		blur(x[c*n:(c+1)*n], got[c*n:(c+1)*n], 32, 32, kernel(11, 11))
	}
	if len(want) != 3*n {
		t.Fatalf("the official image has %d values", len(want))
	}
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-6) {
			t.Fatalf("value %d of the blurred image is %v, want %v", i, got[i], want[i])
		}
	}
}

// TestOfficialMeanSubstrate runs insertion and deletion from pixels with the substrate mean, and compares
// with the official monotone curves: mean_R101 of baselines_smallcnn_img2.npz.
func TestOfficialMeanSubstrate(t *testing.T) {
	dir := golden.Dir(t)
	a := golden.Arrays(t, filepath.Join(dir, "mas_rise", "baselines_smallcnn_img2.npz"))
	io := golden.Arrays(t, filepath.Join(dir, "models", "smallcnn_io.npz"))
	const n = 3 * 32 * 32
	for i, want := range a["x"].Float32s() {
		if io["x"].Float32s()[2*n+i] != want {
			t.Fatal("the files are of different images")
		}
	}
	net := modeltest.Model(t,
		model.ONNXParams{Path: filepath.Join(dir, "models", "smallcnn.onnx"), Preset: "imagenet"})
	x := npy.Array{DType: "f4", Shape: []int{3, 32, 32}, Raw: io["img01"].Raw[2*4*n : 3*4*n]}
	order := make([]int64, 32*32)
	for place, i := range metric.Order(a["saliency"].Float64s()) {
		order[place] = int64(i)
	}
	for _, tt := range []struct {
		stage  stages.Stage
		params any
		key    string
	}{
		{Insertion, &InsertionParams{with(defaults("mean"), 32)}, "ins"},
		{Deletion, &DeletionParams{with(defaults("mean"), 32)}, "del"},
	} {
		curve := decode(t, run(t, tt.stage, tt.params, net, x, order, -1).Payloads["curves"][0])
		got := monotone(curve[:len(curve)/3], tt.key == "ins")
		for k, want := range a["mean_R101_"+tt.key+"_mr"].Float64s() {
			if d := math.Abs(got[k] - want); !(d <= 1e-5) {
				t.Errorf("%s: point %d is %v, want %v", tt.key, k, got[k], want)
			}
		}
	}
}
