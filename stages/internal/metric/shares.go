package metric

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// Shares returns the share of the pixels that are replaced at each of n points of a curve, by the fact
// shares. Curves without it have steps of equal size.
func Shares(facts stages.Facts, n int) ([]float64, error) {
	shares := make([]float64, n)
	if facts["shares"] == "" {
		for k := range shares {
			shares[k] = float64(k) / float64(n-1)
		}
		return shares, nil
	}
	fields := strings.Split(facts["shares"], ",")
	if len(fields) != n {
		return nil, fmt.Errorf("curves of %d points don't match their %d shares", n, len(fields))
	}
	for k, f := range fields {
		var err error
		if shares[k], err = strconv.ParseFloat(f, 64); err != nil || !(shares[k] >= 0 && shares[k] <= 1) {
			return nil, fmt.Errorf("curves have the share %q, which is no number from 0 to 1", f)
		}
	}
	return shares, nil
}
