package publish

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/runexp/runexp/pipeline/typeset"
	"github.com/runexp/runexp/stages"
)

// itemDigits are the significant digits of the score of an item. Means have as many as the numbers in tables.
const itemDigits = 6

// A number is written in JSON with the published digits. [stages.Number] writes all of them.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	switch x := float64(n); {
	case math.IsNaN(x):
		return []byte("null"), nil
	case math.IsInf(x, 0):
		return []byte(strconv.Quote(typeset.Format(x, typeset.Digits))), nil
	default:
		return []byte(typeset.Format(x, typeset.Digits)), nil
	}
}

func (n *number) UnmarshalJSON(b []byte) error { return (*stages.Number)(n).UnmarshalJSON(b) }

// within returns the distance of a run's number from one that was published with so many digits, and reports
// whether it is within the tolerance. Undefined and infinite numbers equal only themselves.
func within(published, now, tolerance float64, digits int) (deviation float64, ok bool) {
	published = typeset.RoundTo(published, digits)
	switch {
	case math.IsNaN(published) && math.IsNaN(now), published == typeset.RoundTo(now, digits):
		return 0, true
	case math.IsNaN(published) || math.IsNaN(now):
		return math.Inf(1), false
	}
	d := math.Abs(published - typeset.RoundTo(now, 9))
	if digits < 9 && published != 0 { // the published number may be off by its rounding
		tolerance += math.Pow10(int(math.Floor(math.Log10(math.Abs(published))))-digits+1) / 2
	}
	// The slack is for the last bit of the subtraction.
	return d, !math.IsInf(d, 0) && d <= tolerance*(1+1e-9)
}

// mean returns the mean of the defined values, NaN without any. The sum is compensated (Neumaier 1974), so
// that the published digits don't depend on the order of the items.
func mean(values []float64) (mean float64, undefined int) {
	var sum, lost float64
	for _, x := range values {
		if math.IsNaN(x) {
			undefined++
			continue
		}
		t := sum + x
		if math.Abs(sum) >= math.Abs(x) {
			lost += (sum - t) + x
		} else {
			lost += (x - t) + sum
		}
		sum = t
	}
	if math.IsNaN(lost) { // an infinite value
		lost = 0
	}
	n := len(values) - undefined
	if n == 0 {
		return math.NaN(), undefined
	}
	return (sum + lost) / float64(n), undefined
}

// Numbers that may differ between machines: in a text those with digits after the point, since whole
// numbers are counts; in an SVG every number that isn't a colour.
var (
	textNumber = regexp.MustCompile(`[-+]?[0-9]*\.[0-9]+(?:[eE][-+]?[0-9]+)?`)
	svgNumber  = regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?`)
)

// alike reports whether two texts are equal apart from the numbers that word matches, and whether these are
// within a tolerance, which may depend on how they are written. largest is the largest deviation.
func alike(word *regexp.Regexp, a, b []byte, tolerance func(a, b string) float64) (largest float64, ok bool) {
	x, y, gap := word.FindAll(a, -1), word.FindAll(b, -1), []byte{0}
	if len(x) != len(y) || !bytes.Equal(word.ReplaceAll(a, gap), word.ReplaceAll(b, gap)) {
		return 0, false
	}
	for k := range x {
		s, t := string(x[k]), string(y[k])
		if s == t {
			continue
		}
		u, err1 := strconv.ParseFloat(s, 64)
		v, err2 := strconv.ParseFloat(t, 64)
		d := math.Abs(u - v)
		if err1 != nil || err2 != nil || !(d <= tolerance(s, t)*(1+1e-9)) {
			return 0, false
		}
		largest = max(largest, d)
	}
	return largest, true
}

// lastDigit is a tolerance of one unit of the last digit, of the number with fewer digits: neighbours may be
// rounded apart by as much.
func lastDigit(a, b string) float64 { return max(unit(a), unit(b)) }

func unit(s string) float64 {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	_, decimals, _ := strings.Cut(mantissa, ".")
	e, _ := strconv.Atoi(exponent) // 0 without one
	return math.Pow10(e - len(decimals))
}
