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

// DiPart has a head for each cell that sees nothing of the others' features at the final layer. Up to there
// the whole grid goes through the base, so that features of a cell may depend on its neighbours.
type DiPart struct{ Cells }

// Name returns the name of the stage.
func (DiPart) Name() string { return "model/dipart" }

// Spec returns the specification of the model for grids: a head for each cell, classes head by head.
func (d DiPart) Spec(ctx context.Context, base lower.Source) (modelfile.Spec, error) {
	s, _, err := d.headed(base)
	if err != nil {
		return s, err
	}
	return trial(ctx, d, base, s)
}

// Graph returns the graph for a batch of grids: the base's up to the final layer at the grids' size, and
// the rest at the cells'.
func (d DiPart) Graph(ctx context.Context, base lower.Source, batch int) (*onnx.Graph, error) {
	front, final, err := d.front(ctx, base, batch)
	if err != nil {
		return nil, err
	}
	back, err := base.Graph(batch * d.count())
	if err != nil {
		return nil, err
	}
	channelsFirst(back, final)
	e := editor{front}
	whole, cell := front.Shape(final), back.Shape(final)
	if !slices.Equal(whole, []int{batch, cell[1], d.N * cell[2], d.N * cell[3]}) {
		return nil, fmt.Errorf("the features of a grid at the final layer %q are %v, not %d×%d times those "+
			"of an image, %v: DiPart can't tell the cells apart", final, whole[1:], d.N, d.N, cell[1:])
	}
	apart := front.Fresh(final + "/apart")
	e.insert(len(front.Proto.Graph.Node), e.cut(d.Cells, final, apart, false)...)
	e.append(back, base.Output, map[string]string{final: apart})
	s := base.Spec
	s.Classes *= d.count()
	e.heads(s)
	front.SetOutputs(onnx.Value{Name: s.Output, Elem: front.Types[s.Output].Elem})
	return front, nil
}

// front returns the base's graph up to the final layer, at the grids' size.
func (d DiPart) front(ctx context.Context, base lower.Source, batch int) (*onnx.Graph, string, error) {
	g, batch, err := graphOf(base, batch)
	if err != nil {
		return nil, "", err
	}
	s := d.spec(base.Spec, g)
	final := s.Final
	if !slices.Contains(channelsFirst(g, s.Middle, final), final) {
		return nil, "", fmt.Errorf("DiPart cuts the features at the final layer into cells, and the model " +
			"has no feature maps there")
	}
	s.Output = final
	g, err = lower.Resized(ctx, g, s, batch)
	if err != nil {
		return nil, "", fmt.Errorf("DiPart has no meaning for a model whose layers fix the size of its "+
			"images, as position embeddings do: %w", err)
	}
	return g, final, nil
}

// append adds the nodes that make a value of another graph, which read some of this graph's values in place
// of their own. The value keeps its name, the others get new ones.
func (e editor) append(from *onnx.Graph, output string, instead map[string]string) {
	from.SetInputs()
	needed := map[string]bool{output: true}
	var nodes []*onnxpb.NodeProto
	for _, n := range slices.Backward(from.Proto.Graph.Node) {
		if !slices.ContainsFunc(n.Output, func(v string) bool { return needed[v] && instead[v] == "" }) {
			continue
		}
		nodes = append(nodes, n)
		for _, v := range onnx.Taken(n) {
			needed[v] = true
		}
	}
	slices.Reverse(nodes)
	rename := func(v string) string {
		if v == "" || v == output {
			return v
		}
		if instead[v] == "" {
			instead[v] = e.Fresh("head/" + v)
			e.Types[instead[v]] = from.Types[v]
		}
		return instead[v]
	}
	e.Types[output] = from.Types[output]
	for _, t := range from.Proto.Graph.Initializer {
		if needed[t.Name] {
			c := onnx.Renamed(t, rename(t.Name))
			if sum, ok := from.Computed[t.Name]; ok {
				if e.Computed == nil {
					e.Computed = map[string]onnx.Sum{}
				}
				e.Computed[c.Name] = sum
			}
			e.AddWeight(c)
		}
	}
	for _, n := range nodes {
		if n.Name != "" {
			n.Name = "head/" + n.Name
		}
		for i, v := range n.Output {
			n.Output[i] = rename(v)
		}
		taken := map[string]string{}
		for _, v := range onnx.Taken(n) {
			taken[v] = rename(v)
		}
		onnx.Retake(n, taken)
	}
	e.insert(len(e.Proto.Graph.Node), nodes...)
}
