// Package score holds the stages that turn maps and curves into numbers.
//
// A score that has no value, such as that of a map without relevance, is NaN: undefined, counted, and never
// averaged. Numbers that an official implementation gives in its place exist under variant: official only.
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

// tag returns the variant as scores carry it: the default one has no name.
func tag(variant string) string {
	if variant == paper {
		return ""
	}
	return variant
}

// responseOf returns one response of a curve: a number for each point.
func responseOf(facts stages.Facts, payload []byte, name string) ([]float64, error) {
	t, err := stages.DecodeTensor(payload)
	if err != nil {
		return nil, err
	}
	names := strings.Split(facts["responses"], ",")
	if len(t.Shape) != 2 || t.Shape[0] != len(names) || t.Shape[1] < 2 {
		return nil, fmt.Errorf("curves of shape %v don't fit their responses %q", t.Shape, facts["responses"])
	}
	for i, n := range names {
		if n == name {
			return t.Float64s()[i*t.Shape[1] : (i+1)*t.Shape[1]], nil
		}
	}
	return nil, fmt.Errorf("the curves have no response %q, only %q", name, facts["responses"])
}

// expect refuses curves that were made another way than an input needs, such as swapped edges.
func expect(in map[string]stages.Facts, port string, p metric.Protocol) error {
	if got := in[port]["order"]; got != p.String() {
		return fmt.Errorf("the input %q needs curves of %s, not of %q", port, p, got)
	}
	return nil
}

// stepOf returns how many pixels change from one point of the curves to the next.
func stepOf(facts stages.Facts) (int, error) {
	n, err := strconv.Atoi(facts["step_pixels"])
	if err != nil || n < 1 {
		return 0, errors.New("curves whose steps have different numbers of pixels can't be aligned with a " +
			"map: give them a step in pixels, or a number of steps that divides the pixels")
	}
	return n, nil
}
