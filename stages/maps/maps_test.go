package maps

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/stagetest"
)

// changed runs a stage on one map.
func changed(t *testing.T, s stages.Stage, params any, m stages.Tensor) stages.Tensor {
	t.Helper()
	r := stagetest.Run(t, s, params, map[string][]stages.Data{"maps": {stagetest.Items(nil, m.Encode())}})
	got, err := stages.DecodeTensor(r.Payloads["maps"][0])
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// close fails unless got is want within a tolerance of want's largest magnitude.
func close(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	largest, apart := 0.0, 0.0
	for i := range want {
		largest = math.Max(largest, math.Abs(want[i]))
		apart = math.Max(apart, math.Abs(got[i]-want[i]))
	}
	if !(apart <= tolerance*largest) {
		t.Errorf("%s: largest deviation %g of values up to %g", what, apart, largest)
	}
}

func read(t *testing.T, path ...string) map[string]npy.Array {
	t.Helper()
	a := golden.Arrays(t, filepath.Join(append([]string{golden.Dir(t)}, path...)...))
	return a
}

// TestOfficialSmooth holds smoothing against torchvision's blur and against a convolution with zeros around.
func TestOfficialSmooth(t *testing.T) {
	a := read(t, "smoothing", "gauss.npz")
	m := stages.NewTensor(a["a"].Float32s(), 64, 64)
	for _, k := range []int{9, 17, 33, 63} {
		p := SmoothParams{Kernel: k}
		close(t, fmt.Sprintf("kernel %d", k), p.weights(), a[fmt.Sprintf("kernel_K%d", k)].Float64s(), 1e-6)
		for _, p.Padding = range []string{"reflect", "zero"} {
			key := fmt.Sprintf("%s_K%d", p.Padding, k)
			got := changed(t, Smooth, &p, m)
			if got.DType != stages.F32 {
				t.Errorf("single precision became %v", got.DType)
			}
			close(t, key, got.Float64s(), a[key].Float64s(), 1e-5) // of sums in which large values cancel
		}
	}
}

// TestSmoothIsAConvolution holds both paddings against a sum over the whole kernel, for maps that aren't
// square, of several channels and smaller than the kernel.
func TestSmoothIsAConvolution(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const c, h, w = 2, 4, 7
	v := make([]float64, c*h*w)
	for i := range v {
		v[i] = r.NormFloat64()
	}
	fold := func(i, n int) int { // reflects until it is inside
		for i < 0 || i >= n {
			if i < 0 {
				i = -i
			} else {
				i = 2*(n-1) - i
			}
		}
		return i
	}
	for _, kernel := range []int{1, 3, 21} {
		for _, padding := range []string{"reflect", "zero"} {
			p := SmoothParams{Kernel: kernel, Sigma: 1.7, Padding: padding}
			want, total := make([]float64, len(v)), 0.0
			for dy := -kernel / 2; dy <= kernel/2; dy++ {
				for dx := -kernel / 2; dx <= kernel/2; dx++ {
					weight := math.Exp(-float64(dx*dx+dy*dy) / (2 * 1.7 * 1.7))
					total += weight
					for i := range v {
						y, x := i/w%h+dy, i%w+dx
						if padding == "zero" && (y < 0 || y >= h || x < 0 || x >= w) {
							continue
						}
						want[i] += weight * v[i/(h*w)*h*w+fold(y, h)*w+fold(x, w)]
					}
				}
			}
			for i := range want {
				want[i] /= total
			}
			close(t, fmt.Sprintf("kernel %d, %s", kernel, padding),
				changed(t, Smooth, &p, stages.NewTensor(v, c, h, w)).Float64s(), want, 1e-12)
		}
	}
	one := changed(t, Smooth, &SmoothParams{Kernel: 5, Padding: "reflect"},
		stages.NewTensor([]float64{2, 4}, 1, 2)).Float64s()
	if !(math.Abs(one[0]+one[1]-6) <= 0.5) || one[0] >= one[1] {
		t.Errorf("a row of 2 and 4 becomes %v", one)
	}
}

func TestSmoothRefuses(t *testing.T) {
	if err := (SmoothParams{Kernel: 4}).Validate(); err == nil ||
		!strings.Contains(err.Error(), "no pixel in the middle") {
		t.Errorf("got %v", err)
	}
}

// TestSmoothShare checks that shares of the paper's 448 pixels are its kernels, and that a share smooths as
// the kernel of that side does.
func TestSmoothShare(t *testing.T) {
	for share, want := range map[float64][2]int{
		0.0201: {9, 3}, 0.038: {17, 5}, 0.288: {129, 37}, 0.574: {257, 73}, 0.5: {225, 65}, 1: {449, 129},
	} {
		p := SmoothParams{Kernel: 4, Share: share}
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		if got := [2]int{p.side(448, 500), p.side(200, 128)}; got != want {
			t.Errorf("share %g: kernels of %v, want %v", share, got, want)
		}
	}
	if got := (SmoothParams{Kernel: 5}).side(448, 448); got != 5 {
		t.Errorf("without a share the kernel is %d", got)
	}
	r := rand.New(rand.NewPCG(3, 4))
	v := make([]float64, 12*9)
	for i := range v {
		v[i] = r.NormFloat64()
	}
	m := stages.NewTensor(v, 12, 9)
	got := changed(t, Smooth, &SmoothParams{Kernel: 1, Share: 0.6, Padding: "reflect"}, m)
	want := changed(t, Smooth, &SmoothParams{Kernel: 5, Padding: "reflect"}, m)
	if d := cmp.Diff(want.Float64s(), got.Float64s()); d != "" {
		t.Error(d)
	}
	got = changed(t, Smooth, &SmoothParams{Kernel: 1, Padding: "zero"}, m)
	if d := cmp.Diff(v, got.Float64s()); d != "" {
		t.Errorf("a kernel of one pixel changes maps: %s", d)
	}
}

func TestReduce(t *testing.T) {
	m := stages.NewTensor([]float32{1, -2, -3, -4}, 2, 1, 2)
	for how, want := range map[metric.Reduction][]float32{
		"sum": {-2, -6}, "abs-sum": {2, 6}, "sum-abs": {4, 6}, "max-abs": {3, 4}, "mean": {-1, -3},
	} {
		got := changed(t, Reduce, &ReduceParams{how}, m)
		if d := cmp.Diff(want, got.Float32s()); d != "" || len(got.Shape) != 2 || got.DType != stages.F32 {
			t.Errorf("%s: shape %v of %v: %s", how, got.Shape, got.DType, d)
		}
	}
	got := changed(t, Reduce, &ReduceParams{"abs-sum"}, stages.NewTensor([]float64{1, -2}, 1, 2))
	if d := cmp.Diff([]float64{1, 2}, got.Float64s()); d != "" {
		t.Errorf("one channel: %s", d)
	}
}

// chw returns official arrays [H,W,C] as maps [C,H,W].
func chw(v []float64, channels int) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i%channels*(len(v)/channels)+i/channels] = x
	}
	return out
}

// TestOfficialVariations holds offsets and noise against the sensitivity test of the code of MAS, with its
// noise.
func TestOfficialVariations(t *testing.T) {
	a := read(t, "sensitivity", "variations.npz")
	m := stages.NewTensor(chw(a["attr"].Float64s(), 3), 3, 16, 16)
	of := func(key string, k int) []float64 { return a[key].Float64s()[k*256 : (k+1)*256] }
	close(t, "no change", changed(t, Reduce, &ReduceParams{"abs-sum"}, m).Float64s(), of("constant", 0),
		1e-12)
	for k, amount := range []float64{0.05, 0.1, 0.25, 0.5} {
		p := &OffsetParams{amount, "max", "abs-sum"}
		close(t, fmt.Sprintf("offset %v", amount), changed(t, Offset, p, m).Float64s(), of("constant", k+1),
			1e-12)
	}
	for k, amount := range []float64{0.005, 0.01, 0.02, 0.03} {
		f, err := fieldOf(m)
		if err != nil {
			t.Fatal(err)
		}
		unit := chw(a["unit_noise"].Float64s()[k*768:(k+1)*768], 3)
		i := -1
		noisy := NoiseParams{Amount: amount, Of: "max-abs-sum"}.add(f, func() float64 { i++; return unit[i] })
		close(t, fmt.Sprintf("noise %v", amount), noisy.reduced("abs-sum").values, of("uniform", k+1), 1e-12)
	}
}

// TestPositive checks that values below 0 become 0, and an undefined one is undefined.
func TestPositive(t *testing.T) {
	got := changed(t, Positive, nil, stages.NewTensor([]float32{-3, 0, 2, float32(math.NaN())}, 2, 1, 2))
	v := got.Float64s()
	if v[0] != 0 || v[1] != 0 || v[2] != 2 || !math.IsNaN(v[3]) || !slices.Equal(got.Shape, []int{2, 1, 2}) {
		t.Errorf("%v of shape %v", v, got.Shape)
	}
}

// TestSign checks that each value of each channel keeps its sign, and an undefined one is undefined.
func TestSign(t *testing.T) {
	got := changed(t, Sign, nil, stages.NewTensor([]float32{-3, 0, 1e-30, float32(math.NaN())}, 2, 1, 2))
	v := got.Float64s()
	if v[0] != -1 || v[1] != 0 || v[2] != 1 || !math.IsNaN(v[3]) || !slices.Equal(got.Shape, []int{2, 1, 2}) {
		t.Errorf("%v of shape %v", v, got.Shape)
	}
}

// TestOffsetKeepsTheOrder checks that offsets change neither order nor differences.
func TestOffsetKeepsTheOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	v := make([]float32, 500)
	for i := range v {
		v[i] = float32(math.Round(r.NormFloat64()*40) / 7)
	}
	m := stages.NewTensor(v, 20, 25)
	before := rank(m.Float64s(), nil, false)
	for _, p := range []OffsetParams{{0.3, "max", "none"}, {1e3, "absolute", "none"}, {-7, "max-abs", "none"},
		{2, "max-abs-sum", "sum"}} {
		got := changed(t, Offset, &p, m)
		if got.DType != stages.F64 {
			t.Fatalf("%+v: written as %v", p, got.DType)
		}
		after := rank(got.Float64s(), nil, false)
		if d := cmp.Diff(before, after); d != "" {
			t.Errorf("%+v changes the order: %s", p, d)
		}
	}
	small := stages.NewTensor([]float64{-4, 3}, 1, 2)
	for of, want := range map[string]float64{"absolute": 0.5, "max": 1.5, "max-abs": 2, "max-abs-sum": 2} {
		got := changed(t, Offset, &OffsetParams{0.5, of, "none"}, small).Float64s()
		if got[0] != -4+want || got[1] != 3+want {
			t.Errorf("half of %s: %v, want %v added", of, got, want)
		}
	}
}

// TestOffsetCountsMergedPixels: an offset so large that rounding makes distinct values equal is reported.
func TestOffsetCountsMergedPixels(t *testing.T) {
	m := stages.NewTensor([]float64{1, 1 + 0x1p-40, 1 + 0x1p-39, 2}, 2, 2)
	for amount, want := range map[float64]string{0: "", 1: "",
		0x1p30: `item "item-0": 2 pixels became equal to others: scores of their order may change`} {
		r := stagetest.Run(t, Offset, &OffsetParams{amount, "absolute", "none"},
			map[string][]stages.Data{"maps": {stagetest.Items(nil, m.Encode())}})
		if got := strings.Join(r.Warnings, "; "); got != want {
			t.Errorf("an offset of %v: %q, want %q", amount, got, want)
		}
	}
}

// TestNoise holds what noise depends on, and its width.
func TestNoise(t *testing.T) {
	run := func(p NoiseParams, seed uint64, maps ...stages.Tensor) [][]float64 {
		t.Helper()
		var payloads [][]byte
		for _, m := range maps {
			payloads = append(payloads, m.Encode())
		}
		e, err := stagetest.Env(&Noise, map[string][]stages.Data{"maps": {stagetest.Items(nil, payloads...)}})
		if err != nil {
			t.Fatal(err)
		}
		e.Seed = seed
		if err := Noise.Run(t.Context(), &p, e); err != nil {
			t.Fatal(err)
		}
		var out [][]float64
		for _, o := range e.Outputs {
			m, err := stages.DecodeTensor(o.Data)
			if err != nil || m.DType != stages.F64 {
				t.Fatal(m.DType, err)
			}
			out = append(out, m.Float64s())
		}
		return out
	}
	zeros, ones := make([]float64, 4000), make([]float64, 4000)
	for i := range ones {
		ones[i] = 1
	}
	a, b := stages.NewTensor(zeros, 40, 100), stages.NewTensor(ones, 40, 100)
	uniform := NoiseParams{2, "absolute", "uniform"}
	both, swapped, other := run(uniform, 1, a, b), run(uniform, 1, b, a), run(uniform, 2, a)
	if cmp.Diff(both[0], swapped[1]) != "" || cmp.Diff(both[1], swapped[0]) != "" {
		t.Error("noise depends on the order of maps")
	}
	if both[0][0] == other[0][0] || both[0][0] == both[1][0]-1 {
		t.Error("noise is the same for another seed, or another map")
	}
	for name, tt := range map[string]struct {
		p                    NoiseParams
		low, high, mean, std float64
	}{
		"uniform": {uniform, 0, 2, 1, 2 / math.Sqrt(12)},
		"normal":  {NoiseParams{2, "absolute", "normal"}, -11, 11, 0, 2},
	} {
		mean, square := 0.0, 0.0
		for _, v := range run(tt.p, 1, a)[0] {
			if v < tt.low || v > tt.high {
				t.Fatalf("%s: %v", name, v)
			}
			mean += v / 4000
			square += v * v / 4000
		}
		if std := math.Sqrt(square - mean*mean); !(math.Abs(mean-tt.mean) <= 0.15) ||
			!(math.Abs(std-tt.std) <= 0.1) {
			t.Errorf("%s: mean %v, deviation %v", name, mean, std)
		}
	}
	half := run(NoiseParams{1, "absolute", "uniform"}, 1, a)[0]
	for i, v := range both[0] {
		if v != 2*half[i] {
			t.Fatal("two widths aren't the same noise in two sizes")
		}
	}
}

func TestUpsample(t *testing.T) {
	in := map[string][]stages.Data{
		"maps": {stagetest.Items(nil, stages.NewTensor([]float32{0, 4, 8, 12, 1, 1, 1, 1}, 2, 2,
			2).Encode())},
		"images": {stagetest.Items(nil, stages.NewTensor(make([]uint8, 24), 3, 2, 4).Encode())},
	}
	for how, want := range map[string][]float32{
		"nearest":  {0, 0, 4, 4, 8, 8, 12, 12, 1, 1, 1, 1, 1, 1, 1, 1},
		"bilinear": {0, 1, 3, 4, 8, 9, 11, 12, 1, 1, 1, 1, 1, 1, 1, 1},
	} {
		m, err := stages.DecodeTensor(stagetest.Run(t, Upsample, &UpsampleParams{how},
			in).Payloads["maps"][0])
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, m.Float32s()); d != "" || cmp.Diff([]int{2, 2, 4}, m.Shape) != "" {
			t.Errorf("%s: shape %v: %s", how, m.Shape, d)
		}
	}
}

// TestOfficialUpsample holds both ways against captum's, which are PyTorch's.
func TestOfficialUpsample(t *testing.T) {
	a := read(t, "captum", "interpolate.npz")
	for _, how := range []string{"nearest", "bilinear"} {
		for _, size := range []int{28, 32} {
			f := field{a["a"].Float64s(), 2, 7, 7, false}.resized(size, size, how)
			close(t, fmt.Sprintf("%s to %d", how, size), f.values,
				a[fmt.Sprintf("%s_%d", how, size)].Float64s(), 1e-6)
		}
	}
}

func TestMapsRefuseVectors(t *testing.T) {
	vector := []stages.Data{stagetest.Items(nil, stages.NewTensor([]float32{1}, 1).Encode())}
	for _, s := range []stages.Stage{Smooth, Reduce, Offset, Noise, Upsample} {
		_, err := stagetest.Try(s, nil, map[string][]stages.Data{"maps": vector, "images": vector})
		if err == nil || !strings.Contains(err.Error(), "neither [H,W] nor [C,H,W]") {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}
