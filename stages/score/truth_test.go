package score

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// truthOf runs score/truth on one map and one truth of height × width values.
func truthOf(t *testing.T, values string, height int, a, truth []float64, segments []uint32) [4]float64 {
	t.Helper()
	width := len(a) / height
	in := map[string][]stages.Data{
		"maps":  {stagetest.Items(nil, stages.NewTensor(a, height, width).Encode())},
		"truth": {stagetest.Items(nil, stages.NewTensor(truth, height, width).Encode())},
	}
	if segments != nil {
		in["segments"] = []stages.Data{stagetest.Items(nil,
			stages.NewTensor(segments, height, width).Encode())}
	}
	r := stagetest.Run(t, Truth, &TruthParams{Values: values}, in)
	var out [4]float64
	for k, port := range []string{"cosine", "sign", "rank", "error"} {
		x, err := stages.DecodeTensor(r.Payloads[port][0])
		if err != nil {
			t.Fatal(err)
		}
		out[k] = x.Float64s()[0]
	}
	return out
}

func closeTo(a, b float64) bool { return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) < 1e-12 }

// TestTruthByHand has numbers computed by hand: cosine, sign, rank and error.
func TestTruthByHand(t *testing.T) {
	for _, tc := range []struct {
		name, values string
		a, truth     []float64
		segments     []uint32
		want         [4]float64
	}{
		{"the truth", "signed", []float64{3, 0, 0, -4}, []float64{3, 0, 0, -4}, nil, [4]float64{1, 1, 1, 0}},
		{"twice the truth", "signed", []float64{6, 0, 0, -8}, []float64{3, 0, 0, -4}, nil,
			[4]float64{1, 1, 1, 1}},
		{"its negative", "signed", []float64{-3, 0, 0, 4}, []float64{3, 0, 0, -4}, nil,
			[4]float64{-1, 0, -1, 2}},
		{"its magnitude", "signed", []float64{3, 0, 0, 4}, []float64{3, 0, 0, -4}, nil,
			// ranks 3 1.5 1.5 4 and 4 2.5 2.5 1: Σ of products of deviations −1.5/4.5
			[4]float64{-7.0 / 25, 0.5, -1.0 / 3, 8.0 / 5}},
		{"magnitudes", "magnitude", []float64{3, 0, 0, 4}, []float64{3, 0, 0, -4}, nil,
			[4]float64{1, 0.5, 1, 0}},
		{"elsewhere", "signed", []float64{0, 1, 0, 0}, []float64{1, 0, 0, 0}, nil,
			[4]float64{0, 0, -1.0 / 3, math.Sqrt2}},
		{"rounding", "signed", []float64{4, -1e-9, 1e-9, -4}, []float64{4, 0, 0, -4}, nil,
			[4]float64{1, 1, 1, math.Sqrt(2e-18 / 32)}},
		{"a sign of rounding", "signed", []float64{4, 4e-7}, []float64{4, 3}, nil,
			[4]float64{(16 + 12e-7) / 4 / 5, 0.5, 1, (3 - 4e-7) / 5}},
		{"constant map", "signed", []float64{1, 1, 1, 1}, []float64{3, 1, 0, 0}, nil,
			[4]float64{4 / math.Sqrt(40), 1, nan, math.Sqrt(6.0 / 10)}},
		{"zero map", "signed", []float64{0, 0}, []float64{3, 4}, nil, [4]float64{nan, 0, nan, 1}},
		{"zero truth", "signed", []float64{3, 4}, []float64{0, 0}, nil, [4]float64{nan, nan, nan, nan}},
		{"not a number", "signed", []float64{nan, 4}, []float64{3, 4}, nil, [4]float64{nan, nan, nan, nan}},
		{"infinite", "signed", []float64{math.Inf(1), 4}, []float64{3, 4}, nil,
			[4]float64{nan, nan, nan, nan}},
		{"infinite truth", "signed", []float64{3, 4}, []float64{math.Inf(1), 4}, nil,
			[4]float64{nan, nan, nan, nan}},
		{"truth not a number", "signed", []float64{3, 4}, []float64{nan, 4}, nil,
			[4]float64{nan, nan, nan, nan}},
		{"tiny", "signed", []float64{3e-300, 4e-300}, []float64{3, 4}, nil, [4]float64{1, 1, 1, 1}},
		{"segments", "signed", []float64{5, -2, 1, -5}, []float64{2, 1, -2, -2}, []uint32{7, 7, 2, 2},
			[4]float64{1, 1, 1, 0}},
		{"magnitudes of segments", "magnitude", []float64{5, -2, 1, -5}, []float64{1, 2, 2, 2},
			[]uint32{7, 7, 2, 2}, [4]float64{1, 0.5, 1, 0}},
	} {
		got := truthOf(t, tc.values, 1, tc.a, tc.truth, tc.segments)
		for k, name := range []string{"cosine", "sign", "rank", "error"} {
			if !closeTo(got[k], tc.want[k]) {
				t.Errorf("%s: %s is %v, want %v", tc.name, name, got[k], tc.want[k])
			}
		}
	}
}

// TestTruthLaws checks that cosine, sign and rank ignore the map's scale and the order of pixels, that rank
// ignores every rising function, that the least error of a multiple is √(1 − cosine²), and that random maps
// score 0, ½ and 0 on average.
func TestTruthLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	drawn := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = r.NormFloat64()
		}
		return out
	}
	var mean [3]float64
	const times, n = 200, 60
	for range times {
		a, truth := drawn(n), drawn(n)
		clear(truth[:10])
		got := truthOf(t, "signed", 6, a, truth, nil)
		scaled, whole, cubed := slices.Clone(a), make([]float64, n), make([]float64, n)
		for i, k := range r.Perm(n) {
			scaled[i] *= 37
			whole[i] = float64(k - n/2)
			cubed[i] = whole[i] * whole[i] * whole[i]
		}
		order := r.Perm(n)
		moved, movedTruth := make([]float64, n), make([]float64, n)
		for i, k := range order {
			moved[i], movedTruth[i] = a[k], truth[k]
		}
		other := truthOf(t, "signed", 6, scaled, truth, nil)
		again := truthOf(t, "signed", 4, moved, movedTruth, nil)
		for k := range 3 {
			if !closeTo(got[k], other[k]) || !closeTo(got[k], again[k]) {
				t.Errorf("number %d is %v, scaled %v, in another order %v", k, got[k], other[k], again[k])
			}
			mean[k] += got[k] / times
		}
		one, three := truthOf(t, "signed", 6, whole, truth, nil), truthOf(t, "signed", 6, cubed, truth, nil)
		if !closeTo(one[2], three[2]) {
			t.Errorf("the rank is %v, of cubes %v", one[2], three[2])
		}
		var at, aa float64
		for i := range a {
			at, aa = at+a[i]*truth[i], aa+a[i]*a[i]
		}
		for i := range a {
			scaled[i] = a[i] * at / aa
		}
		if x := truthOf(t, "signed", 6, scaled, truth, nil); !closeTo(x[3], math.Sqrt(1-got[0]*got[0])) {
			t.Errorf("the error at the best scale is %v, of cosine %v", x[3], got[0])
		}
	}
	for k, want := range []float64{0, 0.5, 0} {
		if math.Abs(mean[k]-want) > 0.05 {
			t.Errorf("number %d of random maps is %v on average, want about %v", k, mean[k], want)
		}
	}
}

// TestTruthRefuses checks that maps and segments of other sizes are errors.
func TestTruthRefuses(t *testing.T) {
	two, three := stages.NewTensor([]float64{1, 2}, 1, 2).Encode(),
		stages.NewTensor([]float64{1, 2, 3}, 1, 3).Encode()
	segments := stages.NewTensor([]uint32{1, 2, 3}, 1, 3).Encode()
	for _, in := range []map[string][]stages.Data{
		{"maps": {stagetest.Items(nil, two)}, "truth": {stagetest.Items(nil, three)}},
		{"maps": {stagetest.Items(nil, two)}, "truth": {stagetest.Items(nil, two)},
			"segments": {stagetest.Items(nil, segments)}},
	} {
		if _, err := stagetest.Try(Truth, Truth.NewParams(), in); err == nil {
			t.Error("sizes that differ aren't refused")
		}
	}
}
