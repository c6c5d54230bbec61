package stat

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// SignTest returns the two-sided p-value of so many differences above and below 0, if either sign is as
// likely (Arbuthnot 1710): exact, and NaN without a difference.
func SignTest(above, below int) float64 {
	n := above + below
	if n == 0 {
		return math.NaN()
	}
	return min(1, 2*distuv.Binomial{N: float64(n), P: 0.5}.CDF(float64(min(above, below))))
}
