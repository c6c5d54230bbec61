package chart

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// Ticks returns about n round numbers that span low to high; the first and the last are the limits of the
// plot.
func Ticks(low, high float64, n int) []float64 {
	if !(high > low) {
		pad := max(math.Abs(low)/10, 1e-3)
		low, high = low-pad, high+pad
	}
	raw := (high - low) / float64(n)
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * unit
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*unit >= raw*(1-1e-9) {
			step = m * unit
			break
		}
	}
	var ticks []float64
	first, last := math.Floor(low/step+1e-9), math.Ceil(high/step-1e-9)
	for k := first; k <= last; k++ {
		ticks = append(ticks, k*step)
	}
	return ticks
}

// TickText formats a tick with as many decimals as the step between ticks needs.
func TickText(t float64, ticks []float64) string {
	digits := 0
	if len(ticks) > 1 {
		step := ticks[1] - ticks[0]
		for digits < 12 && math.Abs(step-math.Round(step)) > 1e-6*math.Abs(step) {
			step *= 10
			digits++
		}
	}
	if math.Abs(t) < 1e-12 {
		t = 0
	}
	s := strconv.FormatFloat(t, 'f', digits, 64)
	if s[0] == '-' {
		s = "−" + s[1:]
	}
	return s
}

// decades returns the exponents of the powers of ten that span low to high.
func decades(low, high float64, _ int) []float64 {
	if low <= 0 { // without values
		low, high = 1, 10
	}
	first, last := math.Floor(math.Log10(low)+1e-9), math.Ceil(math.Log10(high)-1e-9)
	ticks := []float64{first}
	for k := first + 1; k <= max(last, first+1); k++ {
		ticks = append(ticks, k)
	}
	return ticks
}

// powers labels exponents with their powers of ten.
func powers(exponents []float64) plot.ConstantTicks {
	t := make([]plot.Tick, len(exponents))
	for i, k := range exponents {
		t[i] = plot.Tick{Value: k, Label: strconv.FormatFloat(math.Pow(10, k), 'g', 4, 64)}
	}
	return t
}
