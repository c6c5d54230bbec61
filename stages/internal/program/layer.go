package program

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// Layer returns the name of the value of the graph that a layer means: middle,
// final, as [relevance.Layers] finds them, or the name itself.
func (n *Net) Layer(ctx context.Context, slot stages.Slot, layer string) (_ string, err error) {
	defer onnx.Sound(&err)
	g, err := n.Graph(ctx, slot, n.Fit(2, 2))
	if err != nil {
		return "", err
	}
	middle, final := relevance.Layers(g)
	name := layer
	switch layer {
	case "middle":
		name = middle
	case "final":
		name = final
	}
	if name == "" {
		return "", fmt.Errorf("layer %q: the model has no value with places that everything passes through; name one of its values", layer)
	}
	if g.Shape(name) == nil {
		return "", fmt.Errorf("layer %q: no value of the model's graph is called so", layer)
	}
	return name, nil
}
