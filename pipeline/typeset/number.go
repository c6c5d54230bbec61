package typeset

import (
	"math"
	"strconv"
	"strings"
)

// Digits are the significant digits of the numbers in tables.
const Digits = 9

// RoundTo returns x rounded to so many significant digits, as numbers are published.
func RoundTo(x float64, digits int) float64 {
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

// Format writes a number with so many significant digits, and "" for an undefined one.
func Format(x float64, digits int) string {
	if math.IsNaN(x) {
		return ""
	}
	x = RoundTo(x, digits)
	if a := math.Abs(x); a >= 1e-6 && a < 1e15 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// Parse reads a number that Format wrote.
func Parse(s string) (float64, bool) {
	if s == "" {
		return math.NaN(), true
	}
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil && !math.IsNaN(x)
}

// Brief writes a number for a sentence, such as 3e-7, with at most so many significant digits.
func Brief(x float64, digits int) string {
	if math.IsNaN(x) {
		return "undefined"
	}
	s := strconv.FormatFloat(x, 'g', digits, 64)
	s = strings.Replace(s, "e-0", "e-", 1)
	return strings.Replace(s, "e+0", "e+", 1)
}

// Decimals writes a published number with so many digits after the point, and "" for an undefined one. A text
// that is no number stays as it is.
func Decimals(text string, digits int) string {
	x, ok := Parse(text)
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
