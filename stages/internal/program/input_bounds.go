package program

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/modelfile"
)

// InputBounds returns the values of black and of white at the model's input, a number a channel in a shape
// that broadcasts to the input, and passes stabiliser on, all as [relevance.Box] takes them. Where a channel
// is negated the two are exchanged.
func (n *Net) InputBounds(stabiliser float32) (low, high []float32, shape []int, _ float32) {
	for c := range n.Channels {
		black, white := n.Black(c), n.White(c)
		low, high = append(low, min(black, white)), append(high, max(black, white))
	}
	if n.Order == modelfile.BGR {
		slices.Reverse(low)
		slices.Reverse(high)
	}
	return low, high, n.Broadcast(), stabiliser
}
