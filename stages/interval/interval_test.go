package interval

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestMean compares with scipy.stats.bootstrap on the same resamples; testdata/bca.py made the file.
func TestMean(t *testing.T) {
	b, err := os.ReadFile("testdata/bca.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		X         []float64
		Low, High float64
	}
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) < 6 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		_, low, high := Mean(c.X)
		if !(math.Abs(low-c.Low) <= 1e-12) || !(math.Abs(high-c.High) <= 1e-12) {
			t.Errorf("%d values: [%v, %v], scipy has [%v, %v]", len(c.X), low, high, c.Low, c.High)
		}
	}
}

func TestMeanRules(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		x    []float64
		want [3]float64
	}{
		{nil, [3]float64{nan, nan, nan}},
		{[]float64{nan}, [3]float64{nan, nan, nan}},
		{[]float64{3, nan}, [3]float64{3, nan, nan}},
		{[]float64{0.1, 0.1, 0.1, nan}, [3]float64{0.1, 0.1, 0.1}},
		{[]float64{1, inf}, [3]float64{inf, nan, nan}},
		{[]float64{inf, -inf}, [3]float64{nan, nan, nan}},
		{[]float64{2, 7}, [3]float64{4.5, 2, 7}}, // nothing is beyond the outermost resamples
	} {
		mean, low, high := Mean(c.x)
		if got := [3]float64{mean, low, high}; fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%v: %v, want %v", c.x, got, c.want)
		}
	}
	for _, a := range []float64{-1, 0, 1} {
		if low, high := bca([]float64{1, 2, 3, 4}, a, 2); math.IsNaN(low) || math.IsNaN(high) || low > high {
			t.Errorf("resamples on one side, acceleration %v: [%v, %v]", a, low, high)
		}
	}
}

// Distributions of scores with their true means.
var drawn = []struct {
	name string
	mean float64
	draw func(r *rand.Rand) float64
}{
	{"normal", 0, (*rand.Rand).NormFloat64},
	{"exponential", 1, (*rand.Rand).ExpFloat64},
	{"a square of a uniform share", 1.0 / 3, func(r *rand.Rand) float64 { u := r.Float64(); return u * u }},
	{"a hit rate of 0.2", 0.2, func(r *rand.Rand) float64 {
		if r.Float64() < 0.2 {
			return 1
		}
		return 0
	}},
	{"log-normal, σ = 0.5", math.Exp(0.125), func(r *rand.Rand) float64 {
		return math.Exp(r.NormFloat64() / 2)
	}},
	{"log-normal, σ = 1", math.Exp(0.5), func(r *rand.Rand) float64 { return math.Exp(r.NormFloat64()) }},
}

func sample(r *rand.Rand, n int, draw func(*rand.Rand) float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = draw(r)
	}
	return x
}

// coverage returns how often of 100 times intervals of n values hold the true mean, over so many experiments.
func coverage(experiments, n int, mean float64, draw func(*rand.Rand) float64) float64 {
	r, held := rand.New(rand.NewPCG(uint64(n), 5)), 0
	for range experiments {
		if _, low, high := Mean(sample(r, n, draw)); low <= mean && mean <= high {
			held++
		}
	}
	return float64(held) / float64(experiments) * 100
}

// TestCoverage simulates experiments of known truth: intervals hold it as often as they say, for scores of
// any shape from 100 images on, and for fewer as often as Small says.
func TestCoverage(t *testing.T) {
	for _, d := range drawn {
		for _, n := range []int{100, 2 * smooth} {
			if c := coverage(1000, n, d.mean, d.draw); !(c >= 93 && c <= 97) {
				t.Errorf("%s, %d values: %.1f of 100 intervals hold the mean, want 93 to 97", d.name, n, c)
			}
		}
	}
	small := map[string]float64{}
	for _, d := range drawn {
		if slices.Contains([]string{"normal", "exponential", "log-normal, σ = 1"}, d.name) {
			small[d.name] = coverage(10_000, 24, d.mean, d.draw)
		}
	}
	of5 := fmt.Sprintf("of 5 they hold it in %.0f, %.0f and %.0f, and in %.0f where scores are 0 or 1",
		coverage(10_000, 5, 0, (*rand.Rand).NormFloat64), coverage(10_000, 5, 1, (*rand.Rand).ExpFloat64),
		coverage(10_000, 5, math.Exp(0.5), func(r *rand.Rand) float64 { return math.Exp(r.NormFloat64()) }),
		coverage(10_000, 5, 0.85, func(r *rand.Rand) float64 { return math.Floor(r.Float64() + 0.85) }))
	if !strings.Contains(strings.ReplaceAll(Small, "\n", " "), of5) {
		t.Errorf("Small isn't what is measured: %s", of5)
	}
	want := fmt.Sprintf("in %.0f of 100\nsimulated experiments where scores are normal, in %.0f where "+
		"exponential, and in %.0f\nwhere log-normal", small["normal"], small["exponential"],
		small["log-normal, σ = 1"])
	if !strings.Contains(Small, want) {
		t.Errorf("Small isn't what is measured: %s", want)
	}
}

func BenchmarkMean(b *testing.B) {
	for _, n := range []int{24, 500, 50_000} {
		x := sample(rand.New(rand.NewPCG(1, 1)), n, (*rand.Rand).ExpFloat64)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				Mean(x)
			}
		})
	}
	x := make([]float64, 50_000)
	x[0] = 1
	b.Run("one hit of 50000", func(b *testing.B) {
		for b.Loop() {
			Mean(x)
		}
	})
}

// TestExpansion compares the expansion with so many resamples that they have hardly any noise: 2000 have a
// standard error of 0.06 deviations there.
func TestExpansion(t *testing.T) {
	for _, d := range drawn {
		if d.name == "a hit rate of 0.2" {
			continue // its resampled means are whole hits, 0.1 deviations apart
		}
		x := sample(rand.New(rand.NewPCG(3, 4)), smooth+1, d.draw)
		mean, low, high := Mean(x)
		var two, three float64
		for i := range x {
			x[i] -= mean
			two += x[i] * x[i]
			three += x[i] * x[i] * x[i]
		}
		n := float64(len(x))
		deviation, a := math.Sqrt(two)/n, three/math.Pow(two, 1.5)/6
		const z = 1.9667 // Student's with 500 degrees of freedom, times √(501/500)
		wantLow, wantHigh := bca(resampled(x, 100_000), a, z)
		offs := map[string]float64{"low": low - mean - wantLow, "high": high - mean - wantHigh}
		for end, off := range offs {
			if !(math.Abs(off) <= 0.03*deviation) {
				t.Errorf("%s: the %s end is %.3f deviations off", d.name, end, off/deviation)
			}
		}
	}
}
