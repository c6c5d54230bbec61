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

// decades returns the powers of ten that span low to high, which are positive.
func decades(low, high float64, _ int) []float64 {
	first, last := math.Floor(math.Log10(low)+1e-9), math.Ceil(math.Log10(high)-1e-9)
	if low <= 0 { // without values
		first, last = 0, 1
	} else if first == last {
		last++
	}
	var ticks []float64
	for k := first; k <= last; k++ {
		ticks = append(ticks, math.Pow(10, k))
	}
	return ticks
}

// powers labels powers of ten as numbers.
func powers(values []float64) plot.ConstantTicks {
	t := make([]plot.Tick, len(values))
	for i, v := range values {
		t[i] = plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 4, 64)}
	}
	return t
}
