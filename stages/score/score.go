// Package score has the stages that compute scores from maps and curves: one metric per file, and in score.go
// what they share.
//
// An undefined score, such as that of a map without relevance, is NaN: it is counted, and excluded from
// means. Numbers that an official implementation returns instead are available by variant: official.
package score

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
)

// The values of the parameter variant.
const (
	paper    = "paper"
	official = "official"
)

// tag returns the variant's name as part of a measure; the default has no name.
func tag(variant string) string {
	if variant == paper {
		return ""
	}
	return variant
}

// responseOf returns one response of a curve: a number per point.
func responseOf(facts stages.Facts, payload []byte, name string) ([]float64, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, err
	}
	names := strings.Split(facts["responses"], ",")
	if len(t.Shape) != 2 || t.Shape[0] != len(names) || t.Shape[1] < 2 {
		return nil, fmt.Errorf("curves of shape %v don't match their responses %q", t.Shape,
			facts["responses"])
	}
	for i, n := range names {
		if n == name {
			return t.Float64s()[i*t.Shape[1] : (i+1)*t.Shape[1]], nil
		}
	}
	return nil, fmt.Errorf("the curves have no response %q, only %q", name, facts["responses"])
}

// checkOrder rejects curves made in another order than an input needs, as with swapped edges.
func checkOrder(in map[string]stages.Facts, port string, p metric.Protocol) error {
	if order := in[port]["order"]; order != p.String() {
		return fmt.Errorf("the input %q needs curves of %s, not of %q", port, p, order)
	}
	return nil
}

// stepOf returns the number of pixels that change from one point of the curves to the next.
func stepOf(facts stages.Facts) (int, error) {
	n, err := strconv.Atoi(facts["step_pixels"])
	if err != nil || n < 1 {
		return 0, errors.New("curves whose steps have different numbers of pixels can't be aligned with a " +
			"map: give them a step in pixels, or a number of steps that divides the pixels")
	}
	return n, nil
}
