package interval

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Phase says whether an item was measured exactly, and in which phase of two.
type Phase uint8

const (
	Cheap  Phase = iota // measured cheaply alone
	Pilot               // measured exactly, too, to fix the size of the second phase
	Second              // measured exactly, too, in the second phase
)

// A Sample is values of N items that were measured cheaply, of which some were measured exactly, too: double
// sampling (Neyman, "Contribution to the Theory of Sampling Human Populations", JASA 1938; Cochran,
// "Sampling Techniques", 3rd edition, 1977, chapter 12). The items are themselves independent draws of a
// population, whose mean is to be known. n₀ of them, the pilot, are a simple random sample without
// replacement. Their differences fix n, and the second phase is a simple random sample of n of the
// N₁ = N − n₀ others. With x the cheap value of an item, y the exact one and d = y − x, the estimator is
//
//	θ = (Σ_pilot y + Σ_others x + N₁·d̄)/N,   d̄ the mean of d over the second phase,
//
// the difference estimator of survey sampling (Cochran 1977, section 7.2 with slope 1; Särndal, Swensson and
// Wretman, "Model Assisted Survey Sampling", 1992, section 6.3), which prediction-powered inference found
// again (Angelopoulos, Bates, Fannjiang, Jordan and Zrnic, Science 2023; there the items measured exactly
// aren't among the others, and the two parts are independent). The pilot is known exactly: given
// the pilot n is a constant, d̄ is a mean over a simple random sample, and so θ has the expectation of ȳ, the
// mean of the exact values of all N, whatever the cheap ones are. To pool pilot and second phase would bias
// it, because n depends on the pilot's differences.
//
// Its variance: θ = ȳ + (N₁/N)·(d̄ − D̄) with D̄ the mean of d over the N₁. Given the items, the second term
// has mean 0, so that it doesn't covary with ȳ, and the variance of a mean over a sample without replacement:
//
//	Var θ = σ²_y/N + (N₁/N)²·(1/n − 1/N₁)·σ²_d.
//
// The first is the variance of the full measurement, the second the price of the cheap one. The covariance of
// the mean of x and d̄ over common items is in it: σ²_y = σ²_x + 2·σ_xd + σ²_d. The same is the sum over
// three independent strata, pilot, second phase and rest, each with independent items of which y/N,
// (x + d·N₁/n)/N and x/N are added up. Of these the variance is estimated, and the interval bootstrapped.
//
// Values are NaN where undefined, and each measurement has its own such items. θ is then the ratio of the
// estimated sum over defined exact values to their estimated number, whose variance is that of its linear
// part (Cochran 1977, section 6.4).
type Sample struct {
	Cheap  []float64 // of all N items
	Exact  []float64 // of the same; read where Phases aren't Cheap
	Phases []Phase   // nil: Exact is of all items, and Cheap isn't read
}

// Whole reports whether all items were measured exactly.
func (s Sample) Whole() bool { return !slices.Contains(s.Phases, Cheap) }

// Len returns the number of items with a defined value: a cheap one if there are any.
func (s Sample) Len() (n int) {
	values := s.Exact
	if !s.Whole() {
		values = s.Cheap
	}
	for _, v := range values {
		if !math.IsNaN(v) {
			n++
		}
	}
	return n
}

// Measured returns the number of items that were measured exactly.
func (s Sample) Measured() (n int) {
	if s.Phases == nil {
		return len(s.Exact)
	}
	for _, p := range s.Phases {
		if p != Cheap {
			n++
		}
	}
	return n
}

// Map returns the sample of a function of values; an undefined one stays so.
func (s Sample) Map(f func(v float64) float64) Sample {
	each := func(values []float64) []float64 {
		out := make([]float64, len(values))
		for i, v := range values {
			out[i] = f(v)
		}
		return out
	}
	return Sample{each(s.Cheap), each(s.Exact), s.Phases}
}

// Minus returns the sample of the differences from another of the same items, in the same phases.
func (s Sample) Minus(t Sample) Sample {
	less := func(a, b []float64) []float64 {
		out := make([]float64, len(a))
		for i := range a {
			out[i] = a[i] - b[i]
		}
		return out
	}
	return Sample{less(s.Cheap, t.Cheap), less(s.Exact, t.Exact), s.Phases}
}

// strata returns N₁, n, and the weight N₁/n of a difference.
func (s Sample) strata() (others, second int, weight float64) {
	for _, p := range s.Phases {
		if p != Pilot {
			others++
		}
		if p == Second {
			second++
		}
	}
	return others, second, float64(others) / float64(second)
}

// sum returns the estimated sum of f over exact values that are defined.
func (s Sample) sum(f func(v float64) float64) (sum float64) {
	_, _, weight := s.strata()
	defined := func(v float64) float64 {
		if math.IsNaN(v) {
			return 0
		}
		return f(v)
	}
	if s.Whole() {
		for _, v := range s.Exact {
			sum += defined(v)
		}
		return sum
	}
	for i, p := range s.Phases {
		switch p {
		case Cheap:
			sum += defined(s.Cheap[i])
		case Pilot:
			sum += defined(s.Exact[i])
		case Second:
			x := defined(s.Cheap[i])
			sum += x + float64(weight*(defined(s.Exact[i])-x))
		}
	}
	return sum
}

// Mean returns the estimate of the exact mean and its interval, whose construction is that of the function
// [Mean] for the strata of the sample: BCa of 2000 resamples of each, with Student's t of as many degrees
// of freedom as Welch and Satterthwaite count, or above 500 items their Cornish–Fisher expansion. Where all
// items were measured exactly, it is that of these. It is NaN without items of the second phase, and
// where no item is estimated to be defined.
func (s Sample) Mean() (mean, low, high float64) {
	if s.Whole() {
		return Mean(s.Exact)
	}
	mean, count := s.estimate()
	if math.IsInf(mean, 0) || math.IsNaN(mean) || !(count > 0) || !s.Enough() {
		return mean, math.NaN(), math.NaN()
	}
	d := s.deviations(mean, count)
	if d.spread() == 0 {
		return mean, mean, mean
	}
	low, high = d.interval()
	return mean, mean + low, mean + high
}

// Defined returns the estimated number of items whose exact value is defined; NaN as of Mean.
func (s Sample) Defined() float64 {
	_, count := s.estimate()
	return count
}

// Estimate returns the estimate of the exact mean alone; NaN as of Mean.
func (s Sample) Estimate() float64 {
	mean, _ := s.estimate()
	return mean
}

// estimate also returns the estimated number of items whose exact value is defined.
func (s Sample) estimate() (mean, count float64) {
	if _, second, _ := s.strata(); second == 0 && !s.Whole() {
		return math.NaN(), math.NaN()
	}
	if count = s.sum(func(float64) float64 { return 1 }); !(count > 1e-9) { // none, up to rounding
		return math.NaN(), count
	}
	return s.sum(func(v float64) float64 { return v }) / count, count
}

// deviations returns by stratum what each item adds to the estimate, from the stratum's mean.
func (s Sample) deviations(mean, count float64) strata {
	_, _, weight := s.strata()
	var all [3][]float64 // by phase
	for i, p := range s.Phases {
		var u float64
		switch p {
		case Cheap:
			u = linear(s.Cheap[i], mean, count)
		case Pilot:
			u = linear(s.Exact[i], mean, count)
		case Second:
			u = linear(s.Cheap[i], mean, count)
			u += float64(weight * (linear(s.Exact[i], mean, count) - u))
		}
		all[p] = append(all[p], u)
	}
	var out strata
	for _, list := range all {
		switch center := 0.0; len(list) {
		case 0:
			continue
		case 1: // what it adds is the only estimate of a spread, to either side
			u := list[0] / math.Sqrt2
			list = []float64{u, -u}
		default:
			for _, u := range list {
				center += u / float64(len(list))
			}
			for i := range list {
				list[i] -= center
			}
		}
		out = append(out, list)
	}
	return out
}

// Errors returns, by item of the second phase and 0 of others, shares of θ − ȳ: over items drawn with
// replacement, as many as the second phase has, their sum has the mean 0 and the variance
// (N₁/N)²·(1/n − 1/N₁)·s²_d, with s²_d the variance of d in the sample. This is the bootstrap of a sample
// without replacement, rescaled (Rao and Wu, "Resampling Inference With Complex Survey Data", JASA 1988), of
// the estimate less the mean of exact values of all items. It is nil where all were measured exactly, and NaN
// without two items of the second phase.
func (s Sample) Errors() []float64 {
	if s.Whole() {
		return nil
	}
	mean, count := s.estimate()
	others, second, weight := s.strata()
	n := float64(second)
	scale, center := weight*math.Sqrt((1-n/float64(others))*n/(n-1)), 0.0
	errors := make([]float64, len(s.Phases))
	for i, p := range s.Phases {
		if p == Second {
			errors[i] = linear(s.Exact[i], mean, count) - linear(s.Cheap[i], mean, count)
			center += errors[i] / n
		}
	}
	for i, p := range s.Phases {
		if p == Second {
			errors[i] = scale * (errors[i] - center)
		}
	}
	return errors
}

// linear returns what a value adds to the estimate of a mean of so many values, from that mean, in its linear
// part: 0 if it is undefined.
func linear(v, mean, count float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return (v - mean) / count
}

// strata are independent lists of deviations, whose sum an estimate is.
type strata [][]float64

// spread returns the sum of squares.
func (s strata) spread() (sum float64) { return s.moment(2) }

// moment returns the sum of the powers of all deviations.
func (s strata) moment(power int) (sum float64) {
	for _, list := range s {
		for _, u := range list {
			p := 1.0
			for range power {
				p *= u
			}
			sum += p
		}
	}
	return sum
}

// student returns the quantile in the place of the normal one, as the function [Mean] has it for one stratum.
func (s strata) student() float64 {
	variance, squares, free := 0.0, 0.0, 0.0
	for _, list := range s {
		n := float64(max(2, len(list)))
		v := strata{list}.spread()
		variance += v
		squares += float64(v * n / (n - 1))
		free += float64(v * v / (n - 1))
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: variance * variance / free}
	return t.Quantile((1+Confidence)/2) * math.Sqrt(squares/variance)
}

// interval returns the ends of the interval, from the estimate.
func (s strata) interval() (low, high float64) {
	variance, items := s.spread(), 0
	skew, fourth := s.moment(3)/math.Pow(variance, 1.5), s.moment(4)
	for _, list := range s {
		v := strata{list}.spread()
		fourth -= 3 * v * v / float64(len(list))
		items += len(list)
	}
	kurtosis, z := fourth/(variance*variance), s.student()
	if items > smooth && math.Abs(skew) < 0.25 && kurtosis < 0.25 {
		e := expansion{math.Sqrt(variance), skew, kurtosis}
		return e.quantile(adjust(-z, skew/6, skew/6)), e.quantile(adjust(z, skew/6, skew/6))
	}
	sums := make([]float64, resamples)
	source := rand.NewPCG(1, 2)
	for i := range sums {
		for _, list := range s {
			sums[i] += resample(source, list)
		}
	}
	slices.Sort(sums)
	return bca(sums, skew/6, z)
}

// Ratio returns σ²_d/σ²_y, the variance of exact minus cheap by that of the exact values, over the items of
// some phases of which both are defined: 0 where no difference varies, infinite where exact values alone
// don't.
func (s Sample) Ratio(of ...Phase) float64 {
	var d, y []float64
	for i, p := range s.Phases {
		if x := s.Exact[i] - s.Cheap[i]; p != Cheap && slices.Contains(of, p) && !math.IsNaN(x) {
			d, y = append(d, x), append(y, s.Exact[i])
		}
	}
	if a := squares(d); a > 0 {
		return a / squares(y)
	}
	return 0
}

// squares returns the sum of squares from the mean.
func squares(x []float64) (sum float64) {
	mean := 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		sum += float64((v - mean) * (v - mean))
	}
	return sum
}

// Enough reports whether there is an interval, which takes two items of the second phase.
func (s Sample) Enough() bool {
	_, second, _ := s.strata()
	return second > 1 || s.Whole()
}

// Growth returns by which share the interval is wider than that of exact values of all items would be, by
// the variance of [Sample] and the ratio of variances over all exact values: 0.02 for 2 %. It is NaN without
// an interval.
func (s Sample) Growth() float64 {
	if s.Whole() {
		return 0
	}
	if !s.Enough() {
		return math.NaN()
	}
	others, second, _ := s.strata()
	return growth(len(s.Phases), others, second, s.Ratio(Pilot, Second))
}

func growth(items, others, second int, ratio float64) float64 {
	if ratio == 0 || second == others {
		return 0
	}
	n, rest := float64(items), float64(others)
	return math.Sqrt(1+rest*rest/n*(1/float64(second)-1/rest)*ratio) - 1
}

// Needed returns the size of the second phase, of so many items other than the pilot's, with which the
// interval grows by at most a share, given the pilot's ratio of variances. As that is an estimate from the
// pilot's items, it is taken 2/n₀ larger (Cox, "Estimation by Double Sampling", Biometrika 1952; Cochran
// 1977, section 4.7), so that the variance is met on average.
func Needed(pilot, others int, ratio, share float64) int {
	if ratio == 0 || others == 0 {
		return 0
	}
	ratio *= 1 + 2/float64(pilot)
	more, rest := (1+share)*(1+share)-1, float64(others)
	return int(math.Ceil(rest / (1 + more*float64(pilot+others)/(rest*ratio))))
}
