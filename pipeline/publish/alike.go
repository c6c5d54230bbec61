package publish

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Numbers that may be off: in a text those with digits after the point, since whole numbers count something;
// in an SVG all of them but colours.
var (
	textNumber = regexp.MustCompile(`[-+]?[0-9]*\.[0-9]+(?:[eE][-+]?[0-9]+)?`)
	svgNumber  = regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?`)
)

// alike reports whether two texts are equal but for what word matches, and that as numbers within a tolerance
// that may depend on how they're written.
func alike(word *regexp.Regexp, a, b []byte, tolerance func(a, b string) float64) (deviation float64, ok bool) {
	x, y := word.FindAllIndex(a, -1), word.FindAllIndex(b, -1)
	if len(x) != len(y) {
		return math.Inf(1), false
	}
	i, j := 0, 0
	for k := range x {
		if string(a[i:x[k][0]]) != string(b[j:y[k][0]]) {
			return math.Inf(1), false
		}
		s, t := string(a[x[k][0]:x[k][1]]), string(b[y[k][0]:y[k][1]])
		i, j = x[k][1], y[k][1]
		if s == t {
			continue
		}
		u, err1 := strconv.ParseFloat(s, 64)
		v, err2 := strconv.ParseFloat(t, 64)
		if err1 != nil || err2 != nil {
			return math.Inf(1), false
		}
		d := math.Abs(u - v)
		if !(d <= tolerance(s, t)*(1+1e-9)) {
			return d, false
		}
		deviation = max(deviation, d)
	}
	return deviation, string(a[i:]) == string(b[j:])
}

// lastDigit returns one unit of the last digit of the coarser of two numbers: what rounding may do to numbers
// that are next to each other.
func lastDigit(a, b string) float64 { return max(unit(a), unit(b)) }

func unit(s string) float64 {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	_, decimals, _ := strings.Cut(mantissa, ".")
	e, _ := strconv.Atoi(exponent) // 0 without one
	return math.Pow10(e - len(decimals))
}
