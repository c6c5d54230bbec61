package program

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
)

// Layer returns the name of the value of the graph that a layer means.
func (n *Net) Layer(ctx context.Context, slot stages.Slot, layer string) (string, error) {
	g, err := n.Graph(ctx, slot, n.Fit(2, 2))
	if err != nil {
		return "", err
	}
	if g.Shape(layer) == nil {
		return "", fmt.Errorf("layer %q: no value of the model's graph is called so", layer)
	}
	return layer, nil
}
