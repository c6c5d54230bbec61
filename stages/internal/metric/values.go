package metric

import (
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
)

var nan = math.NaN()

// How the channels of a map become one number a pixel.
const (
	Magnitude = "magnitude" // |Σ_c|, what the metrics of Walker et al. read
	Signed    = "signed"    // Σ_c
	Positive  = "positive"  // max(0, Σ_c)
)

// Values returns a map of shape [H,W] or [C,H,W] as one number per pixel, row by row, and its height and
// width.
func Values(t stages.Tensor, how string) (v []float64, height, width int, err error) {
	v = t.Float64s()
	switch s := t.Shape; len(s) {
	case 2:
		height, width = s[0], s[1]
	case 3:
		height, width = s[1], s[2]
		if s[0] == 0 {
			return nil, 0, 0, fmt.Errorf("a map of shape %v has no channels", s)
		}
		v = Sum.Of(v, height*width)
	default:
		return nil, 0, 0, fmt.Errorf("a map of shape %v is neither [H,W] nor [C,H,W]", s)
	}
	switch how {
	case Magnitude:
		for i, x := range v {
			v[i] = math.Abs(x)
		}
	case Positive:
		for i, x := range v {
			if x < 0 {
				v[i] = 0
			}
		}
	case Signed:
	default:
		return nil, 0, 0, fmt.Errorf("pixels can be read as %q, %q or %q, not %q", Magnitude, Signed,
			Positive, how)
	}
	return v, height, width, nil
}

// Order returns the indices of values from the largest to the smallest. Equal values keep the order of their
// indices; NaN comes last. Every stage that removes or counts pixels by relevance uses this order.
func Order(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := values[a], values[b]
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		case x == y:
			return a - b
		}
		// At least one is NaN.
		switch xn, yn := math.IsNaN(x), math.IsNaN(y); {
		case xn && yn:
			return a - b
		case xn:
			return 1
		}
		return -1
	})
	return order
}
