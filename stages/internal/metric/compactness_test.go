package metric

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/golden"
)

// The numbers of compactness.npz, in the order of testdata/compactness.py.
const (
	quantusSparseness = iota
	quantusComplexity
	quantusEffective
	scipyHistogram
	scipyMSTC
	scipyPoints
	scipyComponents
	quantusAUC
	sklearnAUC
	sklearnAP
	quantusTopK
	quantusInfluence
	quantusLocalisation
	heatByPixels
	heatByRelevance
)

// A peerCase is a map with its mask and the numbers of other libraries.
type peerCase struct {
	name          string
	values        []float64
	mask          []uint8
	height, width int
	numbers       []float64
}

// peerCases reads the maps of compactness.npz.
func peerCases(t *testing.T) (cases []peerCase) {
	t.Helper()
	arrays := golden.Arrays(t, "testdata/compactness.npz")
	for key := range arrays {
		name, ok := strings.CutSuffix(key, ".numbers")
		if !ok {
			continue
		}
		m := arrays[name+".map"]
		c := peerCase{name: name, values: m.Float64s(), height: m.Shape[0], width: m.Shape[1],
			numbers: arrays[key].Float64s()}
		for _, v := range arrays[name+".mask"].Int64s() {
			c.mask = append(c.mask, uint8(v))
		}
		cases = append(cases, c)
	}
	if len(cases) != 32 {
		t.Fatalf("%d cases, want 32", len(cases))
	}
	return cases
}

func magnitudes(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = math.Abs(v)
	}
	return out
}

func positives(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = max(v, 0)
	}
	return out
}

// near reports whether two numbers agree within a tolerance relative to their size, or are both NaN.
func near(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance*max(1, math.Abs(b)) || math.IsNaN(a) && math.IsNaN(b)
}

// TestGoldenCompactness compares with Quantus 0.6.0 and scipy 1.17.1. Quantus adds 1e-7 to each value of a
// map whose largest is 1 before it takes the Gini index, and 1e-12 inside the logarithm of the entropy; maps
// of equal values it refuses.
func TestGoldenCompactness(t *testing.T) {
	for _, c := range peerCases(t) {
		a := magnitudes(c.values)
		n, total, largest := float64(len(a)), 0.0, slices.Max(a)
		for _, v := range a {
			total += v / largest
		}
		for what, x := range map[string][2]float64{
			"Sparseness":          {Gini(a) * total / (total + n*1e-7), c.numbers[quantusSparseness]},
			"EffectiveComplexity": {float64(Exceeding(a, 1e-5)), c.numbers[quantusEffective]},
			"histogram's entropy": {HistogramEntropy(c.values, 100), c.numbers[scipyHistogram]},
		} {
			if math.IsNaN(x[1]) && c.name == "constant" {
				continue
			}
			if !near(x[0], x[1], 1e-11) {
				t.Errorf("%s, %s: %v, want %v", c.name, what, x[0], x[1])
			}
		}
		// Of each term p·ln p, 1e-12 inside the logarithm takes at most as much.
		if d := Entropy(a) - c.numbers[quantusComplexity]; d < -1e-12 || d > n*1e-12+1e-12 {
			t.Errorf("%s, Complexity: %v, and Quantus %v", c.name, Entropy(a), c.numbers[quantusComplexity])
		}
	}
}

// TestQuantusCompactnessDiffers checks that the numbers of Quantus 0.6.0 which differ from ours are those of
// the reasons given for them: the count of pixels depends on the other maps of a batch, since one maximum
// divides all of them; a map without relevance has an index; and with signs the entropy is none.
func TestQuantusCompactnessDiffers(t *testing.T) {
	arrays := golden.Arrays(t, "testdata/compactness.npz")
	maps := arrays["defects.map"].Float64s()
	one := func(i int) []float64 { return magnitudes(maps[i*64 : (i+1)*64]) }
	batch := arrays["defects.effective"].Float64s()
	for i, factor := range []float64{1, 1e-3, 1e-6, 1} {
		ours := Exceeding(one(i), 1e-5)
		scaled := one(i)
		for k := range scaled {
			scaled[k] *= factor
		}
		if alone := Exceeding(scaled, 1e-5); alone != ours {
			t.Errorf("map %d: %d pixels, and %d of it times %v", i, ours, alone, factor)
		}
		if i == 2 && (batch[i] != 0 || ours < 60) {
			t.Errorf("map %d: Quantus counts %v in its batch, we %d: has each map its own maximum now?", i,
				batch[i], ours)
		}
	}
	ours := Gini(make([]float64, 64))
	if zero := arrays["defects.sparseness"].Float64s()[1]; math.Abs(zero) > 1e-12 || !math.IsNaN(ours) {
		t.Errorf("a map of zeros: Quantus %v, we %v", zero, ours)
	}
	for i, signed := range arrays["defects.signed"].Float64s() {
		if !math.IsNaN(signed) || math.IsNaN(Entropy(one(i))) {
			t.Errorf("map %d with signs: Quantus %v, we %v", i, signed, Entropy(one(i)))
		}
	}
}

// TestCompactnessByHand checks cases computed by hand.
func TestCompactnessByHand(t *testing.T) {
	half := math.Ln2
	for _, tt := range []struct {
		what      string
		got, want float64
	}{
		{"Gini of equal values", Gini([]float64{2, 2, 2, 2}), 0},
		{"Gini of one value", Gini([]float64{0, 0, 3, 0}), 0.75},
		{"Gini of two", Gini([]float64{0, 1, 0, 1}), 0.5},
		{"Gini of 1, 3", Gini([]float64{3, 1}), 0.25}, // (−1·1 + 1·3) / (2·4)
		{"Gini of zeros", Gini([]float64{0, 0}), nan},
		{"entropy of equal values", Entropy([]float64{1, 1}), half},
		{"entropy of one value", Entropy([]float64{0, 5, 0}), 0},
		{"entropy of ¼ and ¾", Entropy([]float64{1, 3}), 2*half - 0.75*math.Log(3)},
		{"entropy of zeros", Entropy([]float64{0, 0}), nan},
		{"histogram of equal values", HistogramEntropy([]float64{-1, -1, -1}, 10), 0},
		{"histogram of both ends", HistogramEntropy([]float64{-1, 1, -1, 1}, 10), half},
		// Bins [0,1) and [1,2]: the edge 1 is in the upper one.
		{"histogram with an edge", HistogramEntropy([]float64{0, 1, 2, 2}, 2), 2*half - 0.75*math.Log(3)},
		// NumPy's edges are multiples of the width: 0.3 is below three times 0.1, and 29 times 0.01 is 0.29,
		// though 0.29 by 0.01 is below 29.
		{"histogram rounded down", HistogramEntropy([]float64{0, 0.3, 0.25, 1}, 10), 1.5 * half},
		{"histogram rounded up", HistogramEntropy([]float64{0, 0.29, 0.295, 1}, 100), 1.5 * half},
		{"pixels above a half", float64(Exceeding([]float64{1, 2, 3, 4}, 0.5)), 2},
		{"pixels above zero", float64(Exceeding([]float64{0, 0, 3, 4}, 0)), 2},
		{"median", Quantile([]float64{1, 2, 10, 20}, 0.5), 6},
		{"quantile 0.9 of two", Quantile([]float64{1, 2}, 0.9), 1.9},
		{"largest", Quantile([]float64{1, 2}, 1), 2},
	} {
		if !near(tt.got, tt.want, 1e-15) {
			t.Errorf("%s: %v, want %v", tt.what, tt.got, tt.want)
		}
	}
}

// TestCompactnessLaws checks on random maps that the scale and the order of pixels don't matter, and that
// moving relevance from a smaller value to a larger one raises the Gini index and lowers the entropy.
func TestCompactnessLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 1))
	for range 300 {
		n := 2 + r.IntN(40)
		a := make([]float64, n)
		for i := range a {
			a[i] = math.Abs(r.NormFloat64())
		}
		other := slices.Clone(a)
		r.Shuffle(n, func(i, k int) { other[i], other[k] = other[k], other[i] })
		factor := math.Exp(r.NormFloat64() * 5)
		for i := range other {
			other[i] *= factor
		}
		for what, x := range map[string][2]float64{
			"Gini": {Gini(a), Gini(other)}, "entropy": {Entropy(a), Entropy(other)},
			"pixels": {float64(Exceeding(a, 0.1)), float64(Exceeding(other, 0.1))},
		} {
			if !near(x[0], x[1], 1e-12) {
				t.Errorf("%s of a map: %v, shuffled and scaled %v", what, x[0], x[1])
			}
		}
		if g, e := Gini(a), Entropy(a); g < 0 || g > 1-1/float64(n)+1e-12 || e < 0 ||
			e > math.Log(float64(n))+1e-12 {
			t.Errorf("Gini %v and entropy %v of %d pixels", g, e, n)
		}
		i, k := r.IntN(n), r.IntN(n)
		if a[i] > a[k] {
			i, k = k, i
		}
		if i == k || a[i] == 0 {
			continue
		}
		moved := slices.Clone(a)
		moved[i], moved[k] = 0.5*a[i], a[k]+0.5*a[i]
		if Gini(moved) < Gini(a)-1e-12 || Entropy(moved) > Entropy(a)+1e-12 {
			t.Errorf("relevance moved to a larger value: Gini %v from %v, entropy %v from %v", Gini(moved),
				Gini(a), Entropy(moved), Entropy(a))
		}
	}
}
