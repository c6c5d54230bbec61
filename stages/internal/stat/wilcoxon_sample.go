package stat

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/runexp/runexp/stages/interval"
)

// WilcoxonOf is [Wilcoxon] for the exact differences of all items, where only some were measured exactly: the
// signed-rank test with ranks that are estimated as means are, see [interval.Sample]. Where all items were
// measured exactly it is Wilcoxon's.
//
// The signed-rank statistic is a mean over pairs of items, Tukey's Walsh averages: without zeros
// Σᵢ sign(yᵢ)·rank|yᵢ| = Σ_{i≤j} sign(yᵢ + yⱼ). So it is a function of the distribution of y alone,
// U = ∬ sign(u + v) dF(u) dF(v), and F is what the difference estimator estimates, of any set of values: each
// exact value of the pilot counts 1/N, each cheap one of the others 1/N, and with weight N₁/n each of the
// second phase is exchanged for its exact value. A value's influence is 2·h(u), h(u) = ∫ sign(u + v) dF(v)
// (Hájek's projection; Hoeffding, Annals of Mathematical Statistics 1948). Under the hypothesis that
// differences are symmetric about 0 the variance of U has two parts, as that of [interval.Sample]: that of
// the full test, 4/N·∫q², where q(u) is the share of smaller magnitudes, and the sample's,
// 4·(N₁/N)²·(1/n − 1/N₁)·Var(h(y) − h(x)). Of U over its root the distribution is Student's t with the
// degrees of freedom of Welch and Satterthwaite, of which the first part has infinitely many. Zeros are
// dropped, pairs of an item with itself are left out. P is NaN without two items of the second phase.
//
// Numbers of items and sums of ranks are the estimates of those of all items; of pairs of an item with itself
// the sum is Σ sign(yᵢ).
func WilcoxonOf(s interval.Sample) SignedRank {
	if s.Whole() {
		return Wilcoxon(slices.DeleteFunc(slices.Clone(s.Exact), math.IsNaN))
	}
	m := newMeasure(s)
	if m.second < 2 {
		return SignedRank{N: len(m.points), Plus: math.NaN(), Minus: math.NaN(), P: math.NaN()}
	}
	n := float64(len(s.Phases))
	u := m.statistic(s)
	defined := n * m.meanOf(func(float64) float64 { return 1 })
	signs := n * m.meanOf(func(v float64) float64 { return float64(sign(v)) })
	ranks := max(0, defined*(defined+1)/2)
	balance := min(max(u*n*(n-1)/2+signs, -ranks), ranks)
	return SignedRank{N: int(math.Round(defined)), Zeros: int(math.Round(s.Defined() - defined)),
		Plus: (ranks + balance) / 2, Minus: (ranks - balance) / 2, P: m.p(s, u)}
}

// p returns the p-value of U.
func (m *measure) p(s interval.Sample, u float64) float64 {
	n, others, second := float64(len(s.Phases)), float64(m.others), float64(m.second)
	full := 4 / n * m.meanOf(m.squared)
	mean, squares := 0.0, 0.0
	var exchange []float64
	for i, p := range s.Phases {
		if p == Second {
			exchange = append(exchange, m.projection(s.Exact[i])-m.projection(s.Cheap[i]))
			mean += exchange[len(exchange)-1] / second
		}
	}
	for _, e := range exchange {
		squares += float64((e - mean) * (e - mean))
	}
	sampled := 4 * others / n * others / n * (1/second - 1/others) * squares / (second - 1)
	variance := max(0, full) + sampled
	if variance == 0 {
		return 1 // all differences are 0
	}
	z := math.Abs(u) / math.Sqrt(variance)
	free := (second - 1) * (variance / sampled) * (variance / sampled)
	if free > 1e6 {
		return min(1, 2*distuv.UnitNormal.CDF(-z))
	}
	return min(1, 2*distuv.StudentsT{Mu: 0, Sigma: 1, Nu: free}.CDF(-z))
}

// Second is short for the phase.
const Second = interval.Second

// A measure is an estimated distribution of differences other than 0, whose masses may be negative.
type measure struct {
	others, second int
	points         []point // by value
	below          []float64
	magnitudes     []point // by magnitude
	smallerMass    []float64
}

type point struct{ value, mass float64 }

func newMeasure(s interval.Sample) *measure {
	m := &measure{}
	for _, p := range s.Phases {
		if p != interval.Pilot {
			m.others++
		}
		if p == Second {
			m.second++
		}
	}
	each := func(v, mass float64) {
		if v != 0 && !math.IsNaN(v) {
			m.points = append(m.points, point{v, mass})
			m.magnitudes = append(m.magnitudes, point{math.Abs(v), mass})
		}
	}
	for i := range s.Phases {
		for _, p := range m.of(s, i) {
			each(p.value, p.mass)
		}
	}
	m.below, m.smallerMass = cumulated(m.points), cumulated(m.magnitudes)
	return m
}

// of returns the masses of an item.
func (m *measure) of(s interval.Sample, i int) []point {
	one := 1 / float64(len(s.Phases))
	switch s.Phases[i] {
	case interval.Pilot:
		return []point{{s.Exact[i], one}}
	case Second:
		weight := float64(m.others) / float64(m.second) * one
		return []point{{s.Cheap[i], one - weight}, {s.Exact[i], weight}}
	}
	return []point{{s.Cheap[i], one}}
}

// cumulated sorts points and returns the masses before each, and of all.
func cumulated(points []point) []float64 {
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.value, b.value) })
	sums := make([]float64, len(points)+1)
	for i, p := range points {
		sums[i+1] = sums[i] + p.mass
	}
	return sums
}

// share returns the mass of smaller points than v, with half the mass at v.
func share(points []point, sums []float64, v float64) float64 {
	find := func(p point, v float64) int { return cmp.Compare(p.value, v) }
	from, equal := slices.BinarySearchFunc(points, v, find)
	to := from
	if equal {
		to, _ = slices.BinarySearchFunc(points, math.Nextafter(v, math.Inf(1)), find)
	}
	return (sums[from] + sums[to]) / 2
}

// projection returns ∫ sign(u + v) dF(v): the mass above −u less that below.
func (m *measure) projection(u float64) float64 {
	if u == 0 || math.IsNaN(u) {
		return 0
	}
	return m.below[len(m.points)] - 2*share(m.points, m.below, -u)
}

// smaller returns the mass of smaller magnitudes than u's.
func (m *measure) smaller(u float64) float64 { return share(m.magnitudes, m.smallerMass, math.Abs(u)) }

func (m *measure) squared(u float64) float64 { return m.smaller(u) * m.smaller(u) }

func sign(x float64) int { return cmp.Compare(x, 0) }

// meanOf returns ∫ f dF.
func (m *measure) meanOf(f func(u float64) float64) (sum float64) {
	for _, p := range m.points {
		sum += float64(p.mass * f(p.value))
	}
	return sum
}

// statistic returns ∬ sign(u + v) over pairs of two items.
func (m *measure) statistic(s interval.Sample) float64 {
	sum := m.meanOf(m.projection)
	for i := range s.Phases {
		own := m.of(s, i)
		for _, p := range own {
			for _, q := range own {
				if both := p.value * q.value; both < 0 || both > 0 {
					sum -= float64(float64(sign(p.value+q.value)) * p.mass * q.mass)
				}
			}
		}
	}
	n := float64(len(s.Phases))
	return sum * n / (n - 1)
}

// RankRatio is for the signed-rank statistic what [interval.Sample.Ratio] is for means: the variance of the
// difference that an exact value makes to a cheap one's projection, over that of the full test, by the
// pilot's items; 0 without a difference, infinite where all exact values are 0.
func RankRatio(s interval.Sample) float64 {
	pilot := interval.Sample{}
	for i, p := range s.Phases {
		if d := s.Exact[i] - s.Cheap[i]; p == interval.Pilot && !math.IsNaN(d) {
			pilot.Cheap, pilot.Exact = append(pilot.Cheap, s.Cheap[i]), append(pilot.Exact, s.Exact[i])
			pilot.Phases = append(pilot.Phases, p)
		}
	}
	m, mean, squares := newMeasure(pilot), 0.0, 0.0
	n := float64(len(pilot.Phases))
	exchange := func(i int) float64 { return m.projection(pilot.Exact[i]) - m.projection(pilot.Cheap[i]) }
	for i := range pilot.Phases {
		mean += exchange(i) / n
	}
	for i := range pilot.Phases {
		squares += float64((exchange(i) - mean) * (exchange(i) - mean))
	}
	if squares == 0 {
		return 0
	}
	return squares / (n - 1) / m.meanOf(m.squared)
}
