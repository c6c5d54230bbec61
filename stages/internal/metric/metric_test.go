package metric

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/runexp/runexp/stages"
)

func TestArea(t *testing.T) {
	for _, c := range []struct {
		curve []float64
		want  float64
	}{
		{[]float64{0, 1}, 0.5},
		{[]float64{1, 1, 1}, 1},
		{[]float64{0, 1, 0}, 0.5},
		{[]float64{0, 0, 1, 1}, 0.5},
		{[]float64{1, nan, 1}, nan},
		{[]float64{1}, nan},
		{nil, nan},
	} {
		if got := Area(c.curve); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("Area(%v) = %v, want %v", c.curve, got, c.want)
		}
	}
}

func TestValues(t *testing.T) {
	m := stages.NewTensor([]float32{1, -2, 3, -4, 5, 6}, 3, 1, 2) // sums over channels: 9, 0
	flat := stages.NewTensor([]float64{-1, 2}, 1, 2)
	for _, c := range []struct {
		t    stages.Tensor
		how  string
		want []float64
	}{
		{m, Magnitude, []float64{9, 0}},
		{m, Signed, []float64{9, 0}},
		{flat, Magnitude, []float64{1, 2}},
		{flat, Signed, []float64{-1, 2}},
		{flat, Positive, []float64{0, 2}},
	} {
		v, h, w, err := Values(c.t, c.how)
		if err != nil || h != 1 || w != 2 || !slices.Equal(v, c.want) {
			t.Errorf("Values(%v, %s) = %v, %d, %d, %v; want %v", c.t.Shape, c.how, v, h, w, err, c.want)
		}
	}
	for _, shape := range [][]int{{2}, {1, 1, 1, 2}, {0, 1, 2}} {
		n := 2
		if shape[0] == 0 {
			n = 0
		}
		if _, _, _, err := Values(stages.NewTensor(make([]float32, n), shape...), Signed); err == nil {
			t.Errorf("a map of shape %v is accepted", shape)
		}
	}
	if _, _, _, err := Values(flat, "loudness"); err == nil {
		t.Error(`"loudness" is accepted`)
	}
}

// TestOrder compares with the standard library's stable sort on many ties.
func TestOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		values := make([]float64, r.IntN(60))
		for i := range values {
			values[i] = float64(r.IntN(5) - 2)
			switch r.IntN(12) {
			case 0:
				values[i] = nan
			case 1:
				values[i] = math.Copysign(0, -1)
			case 2:
				values[i] = math.Inf(1 - 2*r.IntN(2))
			}
		}
		want := make([]int, len(values))
		for i := range want {
			want[i] = i
		}
		key := func(i int) float64 {
			if math.IsNaN(values[i]) {
				return -math.MaxFloat64 // the only value between −∞ and the rest
			}
			return values[i]
		}
		sort.SliceStable(want, func(a, b int) bool { return key(want[a]) > key(want[b]) })
		// NaN stands behind −∞, which the key can't say.
		slices.SortStableFunc(want,
			func(a, b int) int { return bit(math.IsNaN(values[a])) - bit(math.IsNaN(values[b])) })
		got := Order(values)
		if !slices.Equal(got, want) {
			t.Fatalf("Order(%v) = %v, want %v", values, got, want)
		}
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestMonotone(t *testing.T) {
	for _, c := range []struct {
		name    string
		raw     []float64
		p       Protocol
		want    []float64
		defined bool
	}{
		{"rises", []float64{0.2, 0.4, 0.3, 0.6}, Insertion, []float64{0, 0.5, 0.5, 1}, true},
		{"overshoots", []float64{0.2, 0.9, 0.1, 0.6}, Insertion, []float64{0, 1, 1, 1}, true},
		{"falls", []float64{0.6, 0.4, 0.5, 0.2}, Deletion, []float64{1, 0.5, 0.5, 0}, true},
		{"blurred beats original", []float64{0.6, 0.4, 0.2}, Insertion, []float64{0, 0.5, 1}, true},
		{"no difference", []float64{0.5, 0.7, 0.5}, Insertion, []float64{0, 1, 1}, false},
		{"no difference, deletion", []float64{0.5, 0.7, 0.5}, Deletion, []float64{1, 1, 1}, false},
		{"flat", []float64{0.5, 0.5, 0.5}, Insertion, []float64{0, 0, 0}, false},
		{"not a number", []float64{0, nan, 1}, Insertion, []float64{0, 0, 1}, false},
	} {
		got, defined := MonotoneOf(c.raw, c.p)
		if defined != c.defined {
			t.Errorf("%s: defined %v", c.name, defined)
		}
		for k := range c.want {
			if !(math.Abs(got[k]-c.want[k]) <= 1e-12) || math.IsNaN(got[k]) {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
	if mr, defined := Monotone([]float64{0.5, 0.7}, 0.6, 0.6, Insertion); defined ||
		!slices.Equal(mr, []float64{0, 1}) {
		t.Errorf("equal ends away from the curve: %v, defined %v", mr, defined)
	}
	if _, defined := MonotoneOf(nil, Insertion); defined {
		t.Error("a curve without points is defined")
	}
}

// TestPenaliseLaws: aligned responses cost nothing, curves span [0,1], and the deletion of the mirrored
// responses mirrors the insertion.
func TestPenaliseLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		n := 2 + r.IntN(20)
		response, density := make([]float64, n), make([]float64, n)
		mirrored, mirroredDensity := make([]float64, n), make([]float64, n)
		for k := range n {
			response[k], density[k] = r.Float64(), r.Float64()*1.2-0.1
			mirrored[k], mirroredDensity[k] = 1-response[k], 1-density[k]
		}
		curve, penalty, defined := Penalise(response, density, Insertion)
		other, _, _ := Penalise(mirrored, mirroredDensity, Deletion)
		for k := range n {
			if curve[k] < 0 || curve[k] > 1 || penalty[k] < 0 {
				t.Fatalf("curve %v, penalty %v", curve, penalty)
			}
			if !(math.Abs(curve[k]+other[k]-1) <= 1e-9) {
				t.Fatalf("insertion %v, mirrored deletion %v", curve, other)
			}
		}
		if defined && (slices.Min(curve) != 0 || slices.Max(curve) != 1) {
			t.Fatalf("curve %v doesn't span [0,1]", curve)
		}
		_, penalty, _ = Penalise(response, response, Deletion)
		if slices.Max(penalty) != 0 {
			t.Fatalf("equal responses cost %v", penalty)
		}
	}
	for _, p := range []Protocol{Insertion, Deletion} {
		curve, _, defined := Penalise([]float64{0, 0, 0}, []float64{0, nan, nan}, p)
		if defined || Area(curve) != 0.5 {
			t.Errorf("%s: an undefined curve is defined %v, area %v, want 1/2", p, defined, Area(curve))
		}
	}
}

func TestDensityResponse(t *testing.T) {
	values := []float64{1, 4, 2, 3}
	order := Order(values)
	got := DensityResponse(values, order, 3, Insertion)
	if want := []float64{0, 0.9, 1}; len(got) != Points(4, 3) || !(math.Abs(got[1]-want[1]) <= 1e-12) ||
		!(math.Abs(got[2]-1) <= 1e-12) {
		t.Errorf("insertion %v, want %v", got, want)
	}
	got = DensityResponse(values, order, 1, Deletion)
	if want := []float64{1, 0.6, 0.3, 0.1, 0}; len(got) != Points(4, 1) ||
		!(math.Abs(got[3]-want[3]) <= 1e-12) {
		t.Errorf("deletion %v, want %v", got, want)
	}
	got = DensityResponse(make([]float64, 4), order, 2, Insertion)
	if got[0] != 0 || !math.IsNaN(got[1]) {
		t.Errorf("a zero map has %v", got)
	}
}

func TestMassAccuracy(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		values []float64
		mask   []uint8
		want   float64
	}{
		{[]float64{1, 2, 5}, []uint8{0, 1, 0}, 0.25},
		{[]float64{1, 2, 5}, []uint8{1, 1, 1}, 1},
		{[]float64{1, 2, 5}, []uint8{0, 0, 0}, 0},
		{[]float64{1, 2, 5}, []uint8{0, 0, 254}, 0.625},
		{[]float64{1, 2, 5}, []uint8{0, 0, stages.Ignored}, 0},
		{[]float64{0, 0, 0}, []uint8{1, 0, 1}, nan},
		{[]float64{nan, 1, 1}, []uint8{0, 1, 1}, nan},
		{[]float64{inf, 1, 1}, []uint8{0, 1, 1}, nan},
	} {
		if got := MassAccuracy(c.values, c.mask); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("MassAccuracy(%v, %v) = %v, want %v", c.values, c.mask, got, c.want)
		}
	}
}

func BenchmarkOrder(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	values := make([]float64, 224*224)
	for i := range values {
		values[i] = r.NormFloat64()
	}
	for b.Loop() {
		Order(values)
	}
}
