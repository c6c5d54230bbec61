package variant

import (
	"context"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// DiFull has a head for each cell that sees nothing of the others, from the image on: cells go through the
// base one by one, and their features are stitched together at the middle and the final layer, and at
// Layers.
type DiFull struct {
	Cells
	Layers []string `json:"layers,omitempty"` // names of values of the base's graph
}

// Name returns the name of the stage.
func (DiFull) Name() string { return "model/difull" }

// Spec returns the specification of the model for grids: a head for each cell, classes head by head.
func (d DiFull) Spec(ctx context.Context, base lower.Source) (modelfile.Spec, error) {
	s, g, err := d.headed(base)
	if err != nil {
		return s, err
	}
	// Layers without places can't be stitched: they aren't layers of the rewritten model.
	maps := channelsFirst(g, s.Middle, s.Final)
	for _, v := range []*string{&s.Middle, &s.Final} {
		if !slices.Contains(maps, *v) {
			*v = modelfile.NoLayer
		}
	}
	for _, v := range d.Layers {
		if (editor{g}).producer(v) < 0 || !slices.Contains(channelsFirst(g, v), v) {
			return s, fmt.Errorf("layers: %q isn't a value of the model's graph with places, [N,C,h,w]: "+
				"\"runexp inspect FILE --layers\" lists such", v)
		}
	}
	return trial(ctx, d, base, s)
}

// Graph returns the graph for a batch of grids.
func (d DiFull) Graph(_ context.Context, base lower.Source, batch int) (*onnx.Graph, error) {
	g, err := base.Graph(batch * d.count())
	if err != nil {
		return nil, err
	}
	e := editor{g}
	middle, final := lower.Layers(base.Spec, g)
	for _, v := range channelsFirst(g, append([]string{middle, final}, d.Layers...)...) {
		e.stitched(d.Cells, v)
	}
	e.cells(d.Cells, base.Spec, batch)
	s := base.Spec
	s.Classes *= d.count()
	e.heads(s)
	return g, nil
}

// cells makes the graph of a model of cells take grids.
func (e editor) cells(c Cells, s modelfile.Spec, batch int) {
	elem := e.Types[s.Input].Elem
	cells := e.Fresh(s.Input + "/cells")
	e.reread(s.Input, cells)
	shape := []int{batch, s.Channels, c.N * s.Height, c.N * s.Width}
	last := s.Layout == modelfile.NHWC
	if last {
		shape = []int{batch, c.N * s.Height, c.N * s.Width, s.Channels}
	}
	e.takes(s.Input, elem, shape)
	e.insert(0, e.cut(c, s.Input, cells, last)...)
}

// takes declares the graph's only input.
func (e editor) takes(name string, elem onnxpb.TensorProto_DataType, shape []int) {
	e.Types[name] = onnx.Type{Elem: elem, Shape: shape}
	e.SetInputs(onnx.Value{Name: name, Elem: elem, Shape: shape, Known: true})
}
