package publish

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// Significant digits that are published of a mean or a table's number, and of the score of an item.
const (
	digits     = 9
	itemDigits = 6
)

// roundTo returns x with so many significant digits, as it's published.
func roundTo(x float64, digits int) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x + 0 // -0 is written like 0
	}
	var buf [32]byte
	y, err := strconv.ParseFloat(string(strconv.AppendFloat(buf[:0], x, 'e', digits-1, 64)), 64)
	if err != nil {
		return x
	}
	return y
}

// format writes a number with so many significant digits: nothing where it's undefined.
func format(x float64, digits int) string {
	if math.IsNaN(x) {
		return ""
	}
	x = roundTo(x, digits)
	if a := math.Abs(x); a >= 1e-6 && a < 1e15 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// A number is one in a line of JSON, where [stages.Number] may write it otherwise.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	switch x := float64(n); {
	case math.IsNaN(x):
		return []byte("null"), nil
	case math.IsInf(x, 0):
		return []byte(strconv.Quote(format(x, digits))), nil
	default:
		return []byte(format(x, digits)), nil
	}
}

func (n *number) UnmarshalJSON(b []byte) error { return (*stages.Number)(n).UnmarshalJSON(b) }

// parse reads what format wrote.
func parse(s string) (float64, bool) {
	if s == "" {
		return math.NaN(), true
	}
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil && !math.IsNaN(x)
}

// within returns the distance of a run's number from one that was published with so many digits, and reports
// whether it is within the tolerance. Undefined and infinite equal only themselves.
func within(published, now, tolerance float64, digits int) (deviation float64, ok bool) {
	published = roundTo(published, digits)
	switch {
	case math.IsNaN(published) && math.IsNaN(now), published == roundTo(now, digits):
		return 0, true
	case math.IsNaN(published) || math.IsNaN(now):
		return math.Inf(1), false
	}
	d := math.Abs(published - roundTo(now, 9))
	if digits < 9 && published != 0 { // what rounding took away doesn't count
		tolerance += math.Pow10(int(math.Floor(math.Log10(math.Abs(published))))-digits+1) / 2
	}
	// The slack is for the last bit of the subtraction.
	return d, !math.IsInf(d, 0) && d <= tolerance*(1+1e-9)
}

// mean averages the defined values. The sum is compensated (Neumaier 1974), so that the published digits
// don't depend on the order of the items. Without defined values it is undefined.
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

// brief writes a number for a sentence, to so many significant digits: 3e-7.
func brief(x float64, digits int) string {
	if math.IsNaN(x) {
		return "undefined"
	}
	s := strconv.FormatFloat(x, 'g', digits, 64)
	s = strings.Replace(s, "e-0", "e-", 1)
	return strings.Replace(s, "e+0", "e+", 1)
}

// decimals writes a published number with so many digits after the point: nothing where it's undefined.
func decimals(text string, digits int) string {
	x, ok := parse(text)
	switch {
	case !ok:
		return text
	case math.IsNaN(x):
		return ""
	}
	s := strconv.FormatFloat(x, 'f', digits, 64)
	if strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-")
	}
	return s
}

// Numbers that may be off: in a text those with digits after the point, since whole numbers count something;
// in an SVG all of them but colours.
var (
	textNumber = regexp.MustCompile(`[-+]?[0-9]*\.[0-9]+(?:[eE][-+]?[0-9]+)?`)
	svgNumber  = regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?`)
)

// alike reports whether two texts are equal but for what word matches, and that as numbers within a tolerance
// that may depend on how they're written.
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

// lastDigit returns one unit of the last digit of the coarser of two numbers: what rounding may do to numbers
// that are next to each other.
func lastDigit(a, b string) float64 { return max(unit(a), unit(b)) }

func unit(s string) float64 {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	_, decimals, _ := strings.Cut(mantissa, ".")
	e, _ := strconv.Atoi(exponent) // 0 without one
	return math.Pow10(e - len(decimals))
}
