package lower

import (
	"context"

	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// Resized returns a graph of [Graph] up to the value s.Output, for images of the size in s, whose input is
// the graph's. Types are inferred again. It returns an error for a graph that fixes its size, as position
// embeddings do. g must not be used any more.
func Resized(ctx context.Context, g *onnx.Graph, s modelfile.Spec, batch int) (_ *onnx.Graph, err error) {
	defer onnx.Sound(&err)
	u := &unit{Spec: s, ctx: ctx, batch: batch, model: g.Model}
	u.restrict([]onnx.Value{{Name: s.Input, Elem: g.Types[s.Input].Elem, Shape: u.inputShape(), Known: true}},
		[]onnx.Value{{Name: s.Output, Elem: g.Types[s.Output].Elem}})
	if err := u.inferShapes(); err != nil {
		return nil, err
	}
	return onnx.NewGraph(u.model, u.types)
}

// Layers returns the values of a model's graph that are its middle and its final layer, "" without one: the
// layers in the specification, or else those of [relevance.Layers].
func Layers(s modelfile.Spec, g *onnx.Graph) (middle, final string) {
	if s.Middle != "" || s.Final != "" {
		return s.Middle, s.Final
	}
	return relevance.Layers(g)
}
