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

// Cells is the grid of a setting: images of n×n cells, each as large as the base's images. Cells are numbered
// row by row from 0; in a batch of cells those of an image follow one another.
type Cells struct {
	N int `json:"n"` // cells along a side
}

// count returns the number of cells of a grid.
func (c Cells) count() int { return c.N * c.N }

// spec returns the specification of a model for grids that otherwise equals the base's. Its layers are
// named, since the rewritten graph doesn't show them.
func (c Cells) spec(base modelfile.Spec, g *onnx.Graph) modelfile.Spec {
	s := base
	s.Middle, s.Final = lower.Layers(base, g)
	s.Height, s.Width = c.N*base.Height, c.N*base.Width
	return s
}

// fits returns an error for a base of which no grids can be made.
func (c Cells) fits(base lower.Source) error {
	if base.Spec.Text != nil {
		return &OtherItemsError{"the model takes texts, and the cells of a grid are images"}
	}
	if base.Spec.Signal() {
		return &OtherItemsError{"the model takes signals, and the cells of a grid are images"}
	}
	if base.Spec.Classes == 0 {
		return fmt.Errorf("the model has no classes, and each cell of a grid shows one")
	}
	return nil
}

// headed returns the specification of a model with a head for every cell, which takes cells as batches, and
// the graph of the base.
func (c Cells) headed(base lower.Source) (modelfile.Spec, *onnx.Graph, error) {
	if err := c.fits(base); err != nil {
		return modelfile.Spec{}, nil, err
	}
	g, _, err := graphOf(base, 0)
	if err != nil {
		return modelfile.Spec{}, nil, err
	}
	s := c.spec(base.Spec, g)
	if s.Batch%c.count() != 0 {
		return s, nil, fmt.Errorf("the model takes %d images at once, and the cells of a grid are %d: "+
			"export it with a dynamic batch dimension", s.Batch, c.count())
	}
	s.Batch /= c.count()
	s.Heads = max(1, s.Heads) * c.count()
	s.Classes *= c.count()
	return s, g, nil
}

// An editor adds nodes to a graph whose types it knows.
type editor struct {
	*onnx.Graph
}

// node returns a node with one output, of the given shape.
func (e editor) node(op string, in []string, out string, shape []int, attrs ...onnx.Attr) *onnxpb.NodeProto {
	e.Types[out] = onnx.Type{Elem: e.Types[in[0]].Elem, Shape: shape}
	// The base may have a node called out.
	return onnx.NewNode("rewrite/"+out, op, in, []string{out}, attrs...)
}

// ints adds a constant and returns its name.
func (e editor) ints(hint string, v []int) string {
	name := e.Fresh(hint)
	e.AddWeight(onnx.IntTensor(name, v, len(v)))
	return name
}

// permuted returns nodes that see v as an array of the shape split, permute its axes, and return it as out of
// the shape merged.
func (e editor) permuted(v, out string, split []int, perm []int64, merged []int) []*onnxpb.NodeProto {
	moved := make([]int, len(split))
	for i, p := range perm {
		moved[i] = split[p]
	}
	a, b := e.Fresh(out+"/split"), e.Fresh(out+"/moved")
	return []*onnxpb.NodeProto{
		e.node("Reshape", []string{v, e.ints(a+"/shape", split)}, a, split),
		e.node("Transpose", []string{a}, b, moved, onnx.Attr{Name: "perm", Value: perm}),
		e.node("Reshape", []string{b, e.ints(out+"/shape", merged)}, out, merged),
	}
}

// cut returns nodes that cut grids of features v, [B,C,n·h,n·w], into cells out, [B·n²,C,h,w]; channels last
// likewise.
func (e editor) cut(c Cells, v, out string, last bool) []*onnxpb.NodeProto {
	s, n := e.Shape(v), c.N
	if last {
		h, w := s[1]/n, s[2]/n
		return e.permuted(v, out, []int{s[0], n, h, n, w, s[3]}, []int64{0, 1, 3, 2, 4, 5},
			[]int{s[0] * n * n, h, w, s[3]})
	}
	h, w := s[2]/n, s[3]/n
	return e.permuted(v, out, []int{s[0], s[1], n, h, n, w}, []int64{0, 2, 4, 1, 3, 5},
		[]int{s[0] * n * n, s[1], h, w})
}

// stitch is the inverse of cut: it returns nodes that put the cells' features v together.
func (e editor) stitch(c Cells, v, out string) []*onnxpb.NodeProto {
	s, n := e.Shape(v), c.N
	rows := s[0] / (n * n)
	return e.permuted(v, out, []int{rows, n, n, s[1], s[2], s[3]}, []int64{0, 3, 1, 4, 2, 5},
		[]int{rows, s[1], n * s[2], n * s[3]})
}

// producer returns the index of the node that makes v, -1 if none does.
func (e editor) producer(v string) int {
	return slices.IndexFunc(e.Proto.Graph.Node,
		func(n *onnxpb.NodeProto) bool { return slices.Contains(n.Output, v) })
}

// insert puts nodes at a position.
func (e editor) insert(at int, nodes ...*onnxpb.NodeProto) {
	e.Proto.Graph.Node = slices.Insert(e.Proto.Graph.Node, at, nodes...)
}

// reread has all nodes that read v read another value.
func (e editor) reread(v, other string) {
	for _, n := range e.Proto.Graph.Node {
		onnx.Retake(n, map[string]string{v: other})
	}
}

// move renames v at the node that makes it, and returns the new name and the position after the node.
// Readers of v then read the value that gets v's name.
func (e editor) move(v, name string) (moved string, behind int) {
	i := e.producer(v)
	moved = e.Fresh(name)
	e.Types[moved] = e.Types[v]
	made := e.Proto.Graph.Node[i]
	made.Output[slices.Index(made.Output, v)] = moved
	return moved, i + 1
}

// stitched makes the value v of cells pass through the grid of the cells, which gets v's name.
func (e editor) stitched(c Cells, v string) {
	apart := e.Fresh(v + "/apart")
	e.reread(v, apart)
	cells, at := e.move(v, v+"/cells")
	whole := e.stitch(c, cells, v)
	e.insert(at, append(whole, e.cut(c, v, apart, false)...)...)
}

// heads turns the answers of cells, [B·n²,C], into answers of heads, [B,n²·C].
func (e editor) heads(s modelfile.Spec) {
	answers, at := e.move(s.Output, s.Output+"/cells")
	shape := []int{onnx.Size(e.Shape(answers)) / s.Classes, s.Classes}
	e.insert(at, e.node("Reshape", []string{answers, e.ints(s.Output+"/heads", shape)}, s.Output, shape))
}

// channelsFirst puts the channels of layers first, and returns the layers that are feature maps then,
// [B,C,h,w]: only these can be cut into cells.
func channelsFirst(g *onnx.Graph, layers ...string) (maps []string) {
	for _, v := range layers {
		if v == "" || slices.Contains(maps, v) {
			continue
		}
		lower.ChannelsFirst(g, v)
		if len(g.Shape(v)) == 4 {
			maps = append(maps, v)
		}
	}
	return maps
}

// graphOf returns the base's graph for a batch, 0 for the smallest one that shapes distinguish from other
// sizes.
func graphOf(base lower.Source, batch int) (*onnx.Graph, int, error) {
	if batch == 0 {
		if batch = base.Batch; batch == 0 {
			batch = 2
		}
	}
	g, err := base.Graph(batch)
	return g, batch, err
}

// trial returns the specification if the graph of it can be made.
func trial(ctx context.Context, r Rewriter, base lower.Source, s modelfile.Spec) (modelfile.Spec, error) {
	batch := s.Batch
	if batch == 0 {
		batch = 2
	}
	_, err := r.Graph(ctx, base, batch)
	return s, err
}
