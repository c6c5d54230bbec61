package stat

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"
)

// efficiency is the asymptotic relative efficiency of the signed-rank test to the paired t-test on normal
// differences.
const efficiency = 3 / math.Pi

// Needed returns how many pairs [Wilcoxon] takes to reject at the two-sided level alpha with the given
// power, if the differences have the effect size d_z of [CohenD]: those of the paired t-test over the
// relative efficiency 3/π (Lehmann 1975). It is NaN for an effect of 0 or NaN, and at least [LeastPairs].
func Needed(effect, alpha, power float64) float64 {
	effect = math.Abs(effect)
	if !(effect > 0) {
		return math.NaN()
	}
	z := distuv.UnitNormal.Quantile(1-alpha/2) + distuv.UnitNormal.Quantile(power)
	// The normal distribution's number is too small: the t-test has to estimate the deviation, too.
	n := math.Max(2, math.Floor(z/effect*(z/effect)))
	if n < 1e6 { // else what is added is nothing to n
		for PairedPower(effect, int(n), alpha) < power {
			n++
		}
	}
	return math.Max(math.Ceil(n/efficiency), float64(LeastPairs(alpha)))
}

// PairedPower returns the probability that the two-sided paired t-test of n ≥ 2 differences rejects at
// level alpha, if their true d_z is effect: P(|T| > t) of the noncentral T with n−1 degrees of freedom and
// the noncentrality d_z·√n.
func PairedPower(effect float64, n int, alpha float64) float64 {
	free := float64(n - 1)
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: free}.Quantile(1 - alpha/2)
	shift := effect * math.Sqrt(float64(n))
	// T = (Z + shift)/S with S² = χ²/free: the mean over S of what Z must exceed.
	logScale := math.Log(2) + free/2*math.Log(free/2)
	gamma, _ := math.Lgamma(free / 2)
	density := func(s float64) float64 {
		if s <= 0 {
			return 0
		}
		f := math.Exp(logScale - gamma + (free-1)*math.Log(s) - free*s*s/2)
		return f * (distuv.UnitNormal.CDF(shift-t*s) + distuv.UnitNormal.CDF(-t*s-shift))
	}
	// S lies around 1 with deviation below 1/√(2·free); 12 of these hold all but 1e-20 of it.
	const pieces = 24
	half := 12 / math.Sqrt(2*free)
	low, high := math.Max(0, 1-half), 1+half
	sum := 0.0
	for i := range pieces {
		from := low + (high-low)*float64(i)/pieces
		to := low + (high-low)*float64(i+1)/pieces
		sum += quad.Fixed(density, from, to, 24, quad.Legendre{}, 0)
	}
	return math.Min(1, sum)
}
