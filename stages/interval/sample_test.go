package interval

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// errorLaws are laws of cheap minus exact values.
var errorLaws = []struct {
	name string
	draw func(r *rand.Rand, y float64) float64
}{
	{"a constant", func(*rand.Rand, float64) float64 { return 0.3 }},
	{"noise in proportion to the value", func(r *rand.Rand, y float64) float64 {
		return 0.2 * y * r.NormFloat64()
	}},
	{"Student's t of 3 degrees", func(r *rand.Rand, _ float64) float64 { return 0.1 * student(r, 3) }},
	{"Student's t of 2 degrees", func(r *rand.Rand, _ float64) float64 { return 0.04 * student(r, 2) }},
	{"correlated with the value", func(r *rand.Rand, y float64) float64 {
		return -0.3*y + 0.02*r.NormFloat64()
	}},
}

func student(r *rand.Rand, free int) float64 {
	sum := 0.0
	for range free {
		z := r.NormFloat64()
		sum += z * z
	}
	return r.NormFloat64() / math.Sqrt(sum/float64(free))
}

// measured draws exact values and measures them in two phases, the second of the size that the pilot asks
// for and at least the pilot's.
func measured(r *rand.Rand, y []float64, pilot int, law func(*rand.Rand, float64) float64) Sample {
	s := Sample{Cheap: make([]float64, len(y)), Exact: y, Phases: make([]Phase, len(y))}
	for i := range y {
		s.Cheap[i] = y[i] + law(r, y[i])
	}
	order := r.Perm(len(y))
	for _, i := range order[:pilot] {
		s.Phases[i] = Pilot
	}
	n := Needed(pilot, len(y)-pilot, s.Ratio(Pilot), 0.02)
	for _, i := range order[pilot : pilot+max(n, pilot)] {
		s.Phases[i] = Second
	}
	return s
}

// TestSampleCoverage simulates experiments of known truth: intervals of items that were measured in two
// phases hold the mean as often as those of exact values of all, within two of 100, whatever the error of the
// cheap ones, and estimates are right on average.
func TestSampleCoverage(t *testing.T) {
	const experiments, items, pilot = 700, 250, 32
	for _, d := range drawn[:2] {
		for _, law := range errorLaws {
			t.Run(d.name+" with "+law.name, func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(7, 8))
				full, sampled, exact, wider := 0, 0, 0, 0.0
				var off []float64
				for range experiments {
					y := sample(r, items, d.draw)
					mean, low, high := Mean(y)
					if low <= d.mean && d.mean <= high {
						full++
					}
					s := measured(r, y, pilot, law.draw)
					estimate, from, to := s.Mean()
					if from <= d.mean && d.mean <= to {
						sampled++
					}
					for _, p := range s.Phases {
						if p != Cheap {
							exact++
						}
					}
					off, wider = append(off, estimate-mean), wider+(to-from)/(high-low)/experiments
				}
				points := 100 * float64(sampled-full) / experiments
				bias, low, high := Mean(off)
				t.Logf("%.1f of 100, full %.1f; wider by %.3f with %.2f in full; bias %.5f",
					100*float64(sampled)/experiments, 100*float64(full)/experiments, wider,
					float64(exact)/experiments/items, bias)
				if math.Abs(points) > 2 {
					t.Errorf("of 100 intervals %.1f more hold the mean than of exact values", points)
				}
				if slack := (high - low) / 2; math.Abs(bias) > 2*slack+1e-12 {
					t.Errorf("the estimate is off by %v ± %v on average", bias, slack)
				}
				// The variance of t with 2 degrees is infinite: no pilot knows it.
				if !(wider < 1.04) && law.name != "Student's t of 2 degrees" {
					t.Errorf("intervals are wider by the factor %.3f", wider)
				}
			})
		}
	}
}

// TestSampleIsUnbiased enumerates all samples of a few items: the mean of the estimates is that of the exact
// values, and their variance the formula's, without any rounding of chance.
func TestSampleIsUnbiased(t *testing.T) {
	x, y := []float64{1, 2, 4, 8, 16, 5, 0}, []float64{9, 1, 0, 7, 20, 4, -30}
	var means, conditional, bootstrap []float64
	for a := range y {
		for b := range a {
			// The size of the second phase depends on the pilot.
			n := 2 + int(math.Abs(y[a]-x[a]+y[b]-x[b]))%3
			var of, resampled []float64
			for chosen := range 1 << len(y) {
				s := Sample{Cheap: x, Exact: y, Phases: make([]Phase, len(y))}
				count := 0
				for i := range y {
					if chosen>>i&1 == 1 {
						s.Phases[i] = Second
						count++
					}
				}
				if count != n || chosen>>a&1 == 1 || chosen>>b&1 == 1 {
					continue
				}
				s.Phases[a], s.Phases[b] = Pilot, Pilot
				mean, _, _ := s.Mean()
				of = append(of, mean)
				variance := 0.0 // of a sum of n items drawn with replacement
				for _, e := range s.Errors() {
					variance += e * e
				}
				resampled = append(resampled, variance)
			}
			center, _, _ := Mean(of)
			means = append(means, center)
			var d []float64
			for i := range y {
				if i != a && i != b {
					d = append(d, y[i]-x[i])
				}
			}
			rest, size := float64(len(d)), float64(len(y))
			want := rest / size * rest / size * (1/float64(n) - 1/rest) * squares(d) / (rest - 1)
			conditional = append(conditional, squares(of)/float64(len(of))-want)
			mean, _, _ := Mean(resampled)
			bootstrap = append(bootstrap, mean-want)
		}
	}
	truth, _, _ := Mean(y)
	for i := range means {
		if math.Abs(means[i]-truth) > 1e-12 || math.Abs(conditional[i]) > 1e-12 ||
			math.Abs(bootstrap[i]) > 1e-12 {
			t.Errorf("pilot %d: the estimate's mean is %v, want %v; its variance is off by %v, that of "+
				"resamples by %v", i, means[i], truth, conditional[i], bootstrap[i])
		}
	}
}

// TestSampleVariance compares the interval's variance and growth with the formula of Sample.
func TestSampleVariance(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	s := measured(r, sample(r, 4000, (*rand.Rand).NormFloat64), 500, func(r *rand.Rand, y float64) float64 {
		return 0.3*r.NormFloat64() - 0.1*y
	})
	mean, low, high := s.Mean()
	got := s.deviations(mean, float64(len(s.Exact))).spread()
	others, second, _ := s.strata()
	n, rest := 4000.0, float64(others)
	want := 1/n + rest/n*rest/n*(1/float64(second)-1/rest)*(0.09+0.01)
	if math.Abs(got/want-1) > 0.03 {
		t.Errorf("the variance is %v, want %v", got, want)
	}
	if wide := (high - low) / 2 / 1.96 / math.Sqrt(want); math.Abs(wide-1) > 0.02 {
		t.Errorf("the interval is %v times as wide as the variance says", wide)
	}
	if g := s.Growth(); math.Abs(g-(math.Sqrt(want*n)-1)) > 0.005 || g > 0.02 {
		t.Errorf("it grew by %v", g)
	}
}

func TestSampleRules(t *testing.T) {
	nan := math.NaN()
	y := []float64{3, 1, nan, 4}
	whole := Sample{Cheap: []float64{9, 9, 9, 9}, Exact: y, Phases: []Phase{Pilot, Second, Pilot, Second}}
	mean, low, high := whole.Mean()
	wantMean, wantLow, wantHigh := Mean(y)
	if got, want := fmt.Sprint(mean, low, high), fmt.Sprint(wantMean, wantLow, wantHigh); got != want {
		t.Errorf("all exact: %s, want %s", got, want)
	}
	if math.IsNaN(y[2]) == false || whole.Growth() != 0 {
		t.Errorf("exact values changed: %v", y)
	}
	// The exact measurement decides what is defined.
	s := Sample{Cheap: []float64{1, nan, 5, 5}, Exact: []float64{nan, 2, 5, 5},
		Phases: []Phase{Second, Second, Cheap, Cheap}}
	if mean, _, _ := s.Mean(); mean != ((1-2*1)+2*2+5+5)/float64((1-2)+2+1+1) {
		t.Errorf("the mean is %v", mean)
	}
	for _, p := range [][]Phase{{Cheap, Cheap, Cheap, Cheap}, {Pilot, Pilot, Cheap, Cheap}} {
		s.Phases = p
		if mean, low, high := s.Mean(); !math.IsNaN(mean) || !math.IsNaN(low) || !math.IsNaN(high) {
			t.Errorf("%v: %v [%v, %v]", p, mean, low, high)
		}
	}
	if n := Needed(20, 1000, 0, 0.02); n != 0 {
		t.Errorf("no difference needs %d", n)
	}
	if n := Needed(20, 1000, math.Inf(1), 0.02); n != 1000 {
		t.Errorf("differences of constant values need %d", n)
	}
	for _, ratio := range []float64{1e-3, 0.01, 0.1, 1, 10} {
		n := Needed(1000, 100_000, ratio, 0.02)
		g, less := growth(101_000, 100_000, n, ratio*1.002), growth(101_000, 100_000, n-1, ratio*1.002)
		if g > 0.02 || less < 0.02 {
			t.Errorf("ratio %v: %d items grow by %v", ratio, n, g)
		}
	}
}

// A phase with a lone item widens an interval on both sides alike, and where the estimated number of defined
// values isn't positive there is no mean.
func TestSampleOfFew(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		s := Sample{}
		for i := range 4 + r.IntN(12) {
			p := Second
			switch i {
			case 0:
				p = Cheap
			case 1:
				p = Pilot
			}
			y := math.Round(2*r.NormFloat64()) / 4
			x := y + math.Round(2*r.NormFloat64())/8
			if r.IntN(4) == 0 {
				x = math.NaN()
			}
			if r.IntN(4) == 0 {
				y = math.NaN()
			}
			s.Cheap, s.Exact, s.Phases = append(s.Cheap, x), append(s.Exact, y), append(s.Phases, p)
		}
		mean, low, high := s.Mean()
		if math.IsNaN(mean) && math.IsNaN(low) && math.IsNaN(high) {
			continue
		}
		if math.IsInf(mean, 0) || !(low <= mean && mean <= high) {
			t.Fatalf("%v [%v, %v] of %+v", mean, low, high, s)
		}
	}
	two := Sample{Cheap: []float64{1, 0, 0, 0}, Exact: []float64{1, 0, 0, 0}, Phases: []Phase{0, 1, 2, 2}}
	two.Cheap[0] = 5
	mean, low, high := two.Mean()
	if off := (high - mean) - (mean - low); math.Abs(off) > 0.1*(high-low) {
		t.Errorf("a lone item moves the interval: %v [%v, %v]", mean, low, high)
	}
}
