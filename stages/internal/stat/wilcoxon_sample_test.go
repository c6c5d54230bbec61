package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/interval"
)

// phased measures items in two phases, at random.
func phased(r *rand.Rand, x, y []float64, pilot, second int) interval.Sample {
	s := interval.Sample{Cheap: x, Exact: y, Phases: make([]interval.Phase, len(y))}
	for k, i := range r.Perm(len(y))[:pilot+second] {
		s.Phases[i] = interval.Pilot
		if k >= pilot {
			s.Phases[i] = Second
		}
	}
	return s
}

// TestWilcoxonOfLoops compares with sums over all pairs, as WilcoxonOf's documentation has them.
func TestWilcoxonOfLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		x, y := make([]float64, 60), make([]float64, 60)
		for i := range y {
			y[i] = math.Round(4*r.NormFloat64() + 1) // with ties and zeros
			x[i] = y[i] + math.Round(r.NormFloat64())
		}
		x[3], y[4] = math.NaN(), math.NaN()
		s := phased(r, x, y, 8, 20)
		if got, want := WilcoxonOf(s).P, loops(s); math.Abs(got-want) > 1e-9 {
			t.Errorf("p is %v, want %v", got, want)
		}
	}
}

// loops is WilcoxonOf in O(N²).
func loops(s interval.Sample) float64 {
	type mass struct {
		item int
		v, m float64
	}
	var all []mass
	n, pilot, second := float64(len(s.Phases)), 0., 0.
	for _, p := range s.Phases {
		switch p {
		case interval.Pilot:
			pilot++
		case Second:
			second++
		}
	}
	rest := n - pilot
	for i, p := range s.Phases {
		switch p {
		case interval.Pilot:
			all = append(all, mass{i, s.Exact[i], 1 / n})
		case interval.Cheap:
			all = append(all, mass{i, s.Cheap[i], 1 / n})
		case Second:
			all = append(all, mass{i, s.Cheap[i], 1/n - rest/second/n},
				mass{i, s.Exact[i], rest / second / n})
		}
	}
	sign := func(x float64) float64 {
		if x == 0 {
			return 0
		}
		return math.Copysign(1, x)
	}
	none := func(v float64) bool { return v == 0 || math.IsNaN(v) }
	u, full := 0., 0.
	for _, a := range all {
		if none(a.v) {
			continue
		}
		smaller := 0.
		for _, b := range all {
			if none(b.v) {
				continue
			}
			if a.item != b.item {
				u += a.m * b.m * sign(a.v+b.v) * n / (n - 1)
			}
			smaller += b.m * (1 + sign(math.Abs(a.v)-math.Abs(b.v))) / 2
		}
		full += 4 / n * a.m * smaller * smaller
	}
	h := func(v float64) (sum float64) {
		for _, b := range all {
			if !none(b.v) && !none(v) {
				sum += b.m * sign(v+b.v)
			}
		}
		return sum
	}
	mean, squares := 0., 0.
	for i, p := range s.Phases {
		if p == Second {
			e := h(s.Exact[i]) - h(s.Cheap[i])
			mean, squares = mean+e/second, squares+e*e
		}
	}
	sampled := 4 * (rest / n) * (rest / n) * (1/second - 1/rest) * (squares - second*mean*mean) / (second - 1)
	z := u / math.Sqrt(full+sampled)
	return studentTail(math.Abs(z), (second-1)*math.Pow((full+sampled)/sampled, 2))
}

// studentTail integrates the density of Student's t outside ±z.
func studentTail(z, free float64) float64 {
	a, _ := math.Lgamma((free + 1) / 2)
	b, _ := math.Lgamma(free / 2)
	c := math.Exp(a-b) / math.Sqrt(free*math.Pi)
	const steps = 200_000
	sum := 0.
	for k := range steps { // Simpson's rule on [0, z]
		w := 2.
		if k%2 == 1 {
			w = 4
		} else if k == 0 {
			w = 1
		}
		x := z * float64(k) / steps
		sum += w * c * math.Pow(1+x*x/free, -(free+1)/2)
	}
	sum += c * math.Pow(1+z*z/free, -(free+1)/2)
	return 1 - 2*sum*z/steps/3
}

// TestWilcoxonOfLevel simulates experiments in which exact differences are symmetric about 0, and cheap ones
// aren't: the test rejects as often as the signed-rank test of all exact ones, within two of 100, and nearly
// as often where they are shifted.
func TestWilcoxonOfLevel(t *testing.T) {
	laws := map[string]func(r *rand.Rand, y float64) float64{
		"a constant": func(*rand.Rand, float64) float64 { return 0.5 },
		"in proportion to the value": func(r *rand.Rand, y float64) float64 {
			return 0.4 * y * r.NormFloat64()
		},
		"of heavy tails": func(r *rand.Rand, _ float64) float64 {
			return 0.1 * r.NormFloat64() / r.Float64()
		},
		"correlated with the value": func(r *rand.Rand, y float64) float64 { return 0.3 * math.Abs(y) },
		"that only moves positive ones": func(r *rand.Rand, y float64) float64 {
			return max(0, y) * r.ExpFloat64()
		},
	}
	const experiments, items = 1000, 200
	for name, law := range laws {
		for _, shift := range []float64{0, 0.25} {
			r, full, sampled := rand.New(rand.NewPCG(5, 6)), 0, 0
			for range experiments {
				x, y := make([]float64, items), make([]float64, items)
				for i := range y {
					y[i] = shift + r.NormFloat64()*(0.5+r.Float64())
					x[i] = y[i] + law(r, y[i])
				}
				if Wilcoxon(y).P <= 0.05 {
					full++
				}
				if WilcoxonOf(phased(r, x, y, 30, 85)).P <= 0.05 {
					sampled++
				}
			}
			a, b := 100*float64(full)/experiments, 100*float64(sampled)/experiments
			text := fmt.Sprintf("an error %s, shift %v: rejects in %.1f of 100, the full test in %.1f", name,
				shift, b, a)
			t.Log(text)
			if shift == 0 && math.Abs(a-b) > 2 || shift > 0 && b < a-15 {
				t.Error(text)
			}
		}
	}
}

// Without an error the estimated numbers, sums of ranks and effects are those of all items, with ties and
// zeros.
func TestWilcoxonOfRanks(t *testing.T) {
	r, nan := rand.New(rand.NewPCG(8, 1)), math.NaN()
	for range 20 {
		y := make([]float64, 60)
		for i := range y {
			y[i] = math.Round(4*r.NormFloat64() + 1)
		}
		s := phased(r, slices.Concat(y, []float64{nan}), slices.Concat(y, []float64{nan}), 10, 20)
		got, want := WilcoxonOf(s), Wilcoxon(y)
		if got.N != want.N || got.Zeros != want.Zeros || math.Abs(got.Plus-want.Plus) > 1e-9 ||
			math.Abs(got.Minus-want.Minus) > 1e-9 || math.Abs(got.Effect()-want.Effect()) > 1e-12 {
			t.Errorf("the ranks are %+v, want %+v", got, want)
		}
		if a, b := CohenDOf(s), CohenD(y); math.Abs(a-b) > 1e-12 {
			t.Errorf("the effect is %v, want %v", a, b)
		}
	}
}

// Estimated effects are on average those of all exact differences, which those of cheap ones aren't.
func TestWilcoxonOfEffect(t *testing.T) {
	const experiments, items = 20, 500
	r := rand.New(rand.NewPCG(8, 2))
	var rank, size [3]float64 // estimated, exact, cheap
	for range experiments {
		x, y := make([]float64, items), make([]float64, items)
		for i := range y {
			y[i] = r.NormFloat64() + 0.3
			x[i] = y[i] + 0.3 + 0.2*r.NormFloat64()
		}
		s := phased(r, x, y, 50, 150)
		for i, of := range []SignedRank{WilcoxonOf(s), Wilcoxon(y), Wilcoxon(x)} {
			rank[i] += of.Effect() / experiments
		}
		for i, of := range []float64{CohenDOf(s), CohenD(y), CohenD(x)} {
			size[i] += of / experiments
		}
	}
	for name, of := range map[string][3]float64{"rank-biserial": rank, "d_z": size} {
		if math.Abs(of[0]-of[1]) > 0.015 || math.Abs(of[2]-of[1]) < 0.2 {
			t.Errorf("%s is %v, of exact differences %v, of cheap ones %v", name, of[0], of[1], of[2])
		}
	}
}

func TestWilcoxonOfRules(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	y := make([]float64, 80)
	for i := range y {
		y[i] = r.NormFloat64() + 0.2
	}
	s := phased(r, y, y, 20, 60)
	if got, want := WilcoxonOf(s).P, Wilcoxon(y).P; got != want {
		t.Errorf("all exact: p is %v, want %v", got, want)
	}
	s = phased(r, y, y, 20, 20) // without an error it is the full test
	if got, want := WilcoxonOf(s).P, Wilcoxon(y).P; math.Abs(math.Log(got/want)) > 0.05 {
		t.Errorf("no error: p is %v, want about %v", got, want)
	}
	zero := make([]float64, 80)
	if p := WilcoxonOf(phased(r, zero, zero, 20, 20)).P; p != 1 {
		t.Errorf("all 0: p is %v", p)
	}
	for i := range y {
		y[i] = 1 + r.Float64()
	}
	if p := WilcoxonOf(phased(r, y, y, 20, 20)).P; p > 1e-10 || p == 0 {
		t.Errorf("a unanimous lead: p is %v", p)
	}
	if p := WilcoxonOf(phased(r, y, y, 20, 1)).P; !math.IsNaN(p) {
		t.Errorf("one item: p is %v", p)
	}
}
