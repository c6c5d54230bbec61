package relevance

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// grids determines which values have spatial positions; values must be queried in topological order.
type grids struct {
	g    *onnx.Graph
	near *neighbours
	// kept are the values with the image's own axes, possibly strided by different factors.
	kept map[Value]bool
	// like are the grids whose aspect ratio a value with split and merged axes may have: the image's and that
	// of the last layer.
	like [][]int
}

// grids propagates the image's axes through the graph.
func (p *path) grids() *grids {
	s := &grids{g: p.g, near: p.near, kept: map[Value]bool{}}
	for _, v := range p.g.Inputs() {
		if image := p.g.Shape(v.Name); len(image) == 4 {
			s.kept[v.Name] = true
			if image[3] == 1 || image[3] == 3 {
				s.like = append(s.like, image[1:3])
			} else {
				s.like = append(s.like, image[2:])
			}
		}
	}
	for _, n := range p.nodes {
		if !p.keepsAxes(n) || !slices.ContainsFunc(p.data(n), func(v Value) bool { return s.kept[v] }) {
			continue
		}
		for _, v := range n.Output {
			s.kept[v] = len(p.g.Shape(v)) == 4
		}
	}
	return s
}

// keepsAxes reports whether a node's output has the same four axes as its input.
func (p *path) keepsAxes(n onnx.Node) bool {
	switch n.OpType {
	case "Einsum", "Flatten", "Gather", "GatherElements", "GatherND", "Reshape", "Squeeze", "Unsqueeze":
		return false
	case "MatMul":
		return p.branches(n) < 2
	}
	return true
}

// places reports whether a value has spatial positions: if its axes are the image's, if it has tokens in a
// square grid, or if its aspect ratio is that of the image or of the layer before. Blocks of tokens are no
// grid. A signal's value has them along its only axis besides the channels.
func (s *grids) places(v Value) bool {
	shape := s.g.Shape(v)
	if s.g.Root != "" {
		return len(shape) == 3 && shape[1] == words(s.g)
	}
	if len(shape) != 3 && len(shape) != 4 {
		return false
	}
	axis := s.near.channelAxis(v)
	if Signal(s.g) {
		last := len(shape) - 1
		return last == 2 && shape[3-axis] > 1 || last == 3 && axis == 1 && shape[2] == 1 && shape[3] > 1
	}
	if len(shape) == 3 {
		return SureGrid(s.g, shape[3-axis])
	}
	if size(shape[1:]) == shape[axis] {
		return false
	}
	grid := slices.Delete(slices.Clone(shape[1:]), axis-1, axis)
	if !s.kept[v] && len(s.like) > 0 &&
		!slices.ContainsFunc(s.like, func(other []int) bool { return alike(grid, other) }) {
		return false
	}
	s.like = append(s.like[:min(1, len(s.like))], grid)
	return true
}

// alike reports whether two grids have the same aspect ratio up to rounding.
func alike(a, b []int) bool {
	x, y := a[0]*b[1], a[1]*b[0]
	return 2*max(x, y) <= 3*min(x, y)
}
