package attribute

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/stagetest"
)

func read(t *testing.T, path ...string) map[string]npy.Array {
	t.Helper()
	a := golden.Arrays(t, filepath.Join(append([]string{golden.Dir(t)}, path...)...))
	return a
}

// near fails unless got is want within a tolerance relative to want's largest magnitude.
func near(t *testing.T, what string, got, want []float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	largest, apart := 0.0, 0.0
	for i := range want {
		largest = math.Max(largest, math.Abs(float64(want[i])))
		apart = math.Max(apart, math.Abs(float64(got[i])-float64(want[i])))
		if math.IsNaN(float64(got[i])) {
			apart = math.NaN()
			break
		}
	}
	if !(apart <= tolerance*largest) {
		t.Errorf("%s: largest deviation %g of values up to %g", what, apart, largest)
	}
}

// oneMap runs an attribution stage on one image and returns its map's values.
func oneMap(t *testing.T, s stages.Stage, params any, model stages.Data, x []float32, shape []int,
	target int64) []float32 {
	t.Helper()
	r := stagetest.Run(t, s, params, map[string][]stages.Data{
		"model":   {model},
		"images":  {stagetest.Items(nil, stages.NewTensor(x, shape...).Encode())},
		"targets": {stagetest.Items(nil, stages.NewTensor([]int64{target}, 1).Encode())},
	})
	m, err := stages.DecodeTensor(r.Payloads["maps"][0])
	if err != nil {
		t.Fatal(err)
	}
	return m.Float32s()
}

// official32 is the tolerance of differences between logits that official code computed in float32, with
// convolution kernels that lose a few more digits: an independent NumPy computation over ONNX Runtime lies
// 1.2e-5 from captum's map and 1e-7 from ours.
const official32 = 2e-5

// TestOfficialOcclusion holds occlusion against captum's.
func TestOfficialOcclusion(t *testing.T) {
	for _, file := range []string{"smallcnn_img0", "smallcnn_img2", "gapcnn_img1"} {
		a := read(t, "captum", file+".npz")
		model := modeltest.Official(t, file[:len(file)-len("_img0")], 0)
		for prefix, target := range map[string]string{"t": "target", "u": "target2"} {
			for _, w := range [][2]int{{8, 4}, {5, 2}} {
				key := fmt.Sprintf("%s_occlusion_k%d_s%d", prefix, w[0], w[1])
				want, ok := a[key]
				if !ok {
					t.Fatalf("%s has no %s", file, key)
				}
				p := &OcclusionParams{Tapped: tapped(), Variant: "paper", Window: picture.Square(w[0]),
					Stride: picture.Square(w[1]), Baseline: "zero"}
				got := oneMap(t, Occlusion, p, model, a["x"].Float32s(), []int{3, 32, 32},
					a[target].Int64s()[0])
				for c := range 3 { // the same in every channel
					near(t, file+" "+key, got, want.Float32s()[c*1024:(c+1)*1024], official32)
				}
			}
		}
	}
}

// TestOfficialRISEMasks holds the enlarging of grids against the official masks.
func TestOfficialRISEMasks(t *testing.T) {
	a := read(t, "rise_attr", "rise_attr.npz")
	for k := range 4 {
		grid, mask := a[fmt.Sprintf("grid%d", k)], a[fmt.Sprintf("mask%d", k)]
		m := riseMasks{cells: grid.Shape[1], height: mask.Shape[1], width: mask.Shape[2],
			grids: grid.Float32s()}
		shifts := a[fmt.Sprintf("shift%d", k)].Int64s()
		got := make([]float32, m.height*m.width)
		for n := range grid.Shape[0] {
			m.shifts = append(m.shifts, [2]int{int(shifts[2*n]), int(shifts[2*n+1])})
			m.render(n, got)
			near(t, fmt.Sprintf("mask %d of set %d", n, k), got, mask.Float32s()[n*len(got):(n+1)*len(got)],
				1e-7)
		}
		// The whole enlarged grid: what a larger image would cut from it.
		up := a[fmt.Sprintf("up%d", k)]
		whole := make([]float32, up.Len())
		rows, columns := m.taps(up.Shape[0], 0, up.Shape[0]), m.taps(up.Shape[1], 0, up.Shape[1])
		m.mix(0, rows, columns, whole)
		near(t, fmt.Sprintf("grid 0 of set %d, enlarged", k), whole, up.Float32s(), 1e-7)
	}
}

// TestOfficialRISE holds the weighted sum against the official map of every class, with the official masks.
func TestOfficialRISE(t *testing.T) {
	a := read(t, "rise_attr", "rise_attr.npz")
	model := modeltest.Official(t, "smallcnn", 0)
	masks := a["full_masks"].Float32s()
	for class := range 10 {
		got := riseWith(t, model, a["full_x"], masks, 0.5, class)
		near(t, fmt.Sprintf("class %d", class), got, a["full_saliency"].Float32s()[class*1024:(class+1)*1024],
			1e-5)
	}
}

// riseWith returns the RISE map for given masks.
func riseWith(t *testing.T, model stages.Data, x npy.Array, masks []float32, p float64, class int) []float32 {
	t.Helper()
	params := RISEParams{Tapped: probable(), P: p}
	params.Target = fmt.Sprint(class)
	size := x.Shape[len(x.Shape)-1]
	e, err := stagetest.Env(&RISE, map[string][]stages.Data{
		"model": {model},
		"images": {stagetest.Items(nil, stages.NewTensor(x.Float32s()[:3*size*size], 3, size,
			size).Encode())},
	})
	if err != nil {
		t.Fatal(err)
	}
	n, err := program.Load(e)
	if err != nil {
		t.Fatal(err)
	}
	count := len(masks) / (size * size)
	v, err := params.view(context.Background(), e, n, "zero", func(int, int) int { return count })
	if err != nil {
		t.Fatal(err)
	}
	sums, err := params.accumulate(context.Background(), e, n, v, count, func(k int, mask []float32) {
		copy(mask, masks[k*len(mask):(k+1)*len(mask)])
	})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, size*size)
	for i, v := range sums[0] {
		out[i] = float32(v / float64(count) / p)
	}
	return out
}
