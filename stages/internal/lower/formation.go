package lower

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// formation grafts a copy of the model's head onto the end of each block, and returns the derivative of the
// score that it gives there with respect to the block's own attention: of the block alone, so that the
// backward pass of a block ends where it begins.
//
// The head reads the mean of the block's tokens in the place of each of them: selecting a token or pooling
// them then gives that mean, so the copy has the nodes and shapes of the model's head. A head that pools by
// an attention reads the tokens themselves, and its own attention stands for the block's.
func (u *unit) formation(prefixed string) error {
	g := u.graph
	h, err := relevance.FindHead(g, u.attention)
	if err != nil {
		return fmt.Errorf("%w; use attribute/generic-attention, which grafts no head, instead", err)
	}
	var grafts []graft
	for k := range h.Ends {
		grafts = append(grafts, u.graft(h, k))
	}
	forward := slices.Clip(g.Proto.Graph.Node)
	var emitted []*onnxpb.NodeProto
	for k, s := range grafts {
		g.Proto.Graph.Node = forward
		results, err := u.without().Backward(g, map[string]string{s.at: s.cotangent}, []string{s.attention},
			u.Rules)
		if err != nil {
			return err
		}
		slope := results[s.attention]
		if slope == "" {
			return fmt.Errorf("the end of the block of attention %q doesn't depend on it", s.attention)
		}
		f := g.Fragment()
		u.formed(f, fmt.Sprintf("%sblock%d", prefixed, k), slope, g.Shape(s.attention))
		g.After(f)
		emitted = append(emitted, g.Proto.Graph.Node[len(forward):]...)
	}
	g.Proto.Graph.Node = append(forward, emitted...)
	return nil
}

// A graft is a copy of the model's head: the seed of its score, and the attention that the score is
// differentiated with respect to.
type graft struct {
	seed
	attention string
}

// graft emits a copy of the head at the end of block k.
func (u *unit) graft(h relevance.Head, k int) graft {
	g := u.graph
	last := h.Ends[len(h.Ends)-1]
	instead := map[string]string{last: h.Ends[k]}
	if h.Axis >= 0 {
		instead[last] = u.spreadMean(h.Ends[k], h.Axis)
	}
	for _, n := range h.Nodes {
		c := proto.Clone(n.NodeProto).(*onnxpb.NodeProto)
		onnx.Retake(c, instead)
		for i, v := range n.Output {
			if v == "" {
				continue
			}
			c.Output[i] = g.Fresh(fmt.Sprintf("%s/block %d", v, k))
			g.Types[c.Output[i]] = g.Types[v]
			instead[v] = c.Output[i]
		}
		c.Name = c.Output[0]
		g.Proto.Graph.Node = append(g.Proto.Graph.Node, c)
	}
	attention := u.attention.Blocks[k]
	if u.attention.Pool != "" {
		attention = instead[u.attention.Pool]
	}
	return graft{u.seedAt(instead[u.Output]), attention}
}

// spreadMean emits the mean of the tokens of v, which are on an axis, in the place of each of them.
func (u *unit) spreadMean(v string, axis int) string {
	g := u.graph
	t := g.Types[v]
	one := onnx.Type{Elem: t.Elem, Shape: slices.Clone(t.Shape)}
	one.Shape[axis] = 1
	f := g.Fragment()
	mean := f.Op("ReduceMean", []string{v}, onnx.Attr{Name: "axes", Value: []int64{int64(axis)}})
	all := f.Op("Expand", []string{mean, u.constantShape(t.Shape)})
	maps.Copy(g.Types, map[string]onnx.Type{mean: one, all: t})
	g.After(f)
	return all
}

// seedAt emits the seed of the explained number at a copy of the model's output.
func (u *unit) seedAt(output string) seed {
	g := u.graph
	f := g.Fragment()
	rows := []int{u.batch, u.Classes}
	answer := f.Op("Reshape", []string{output, u.constantShape(rows)})
	g.Types[answer] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: rows}
	defer g.After(f)
	if u.head == nil {
		return seed{output, u.derivativeAt(f, answer, prefix+"targets", u.Probability)}
	}
	return seed{u.head.Emit(g, f, answer, prefix+"targets"), u.ones()}
}

// ones adds the cotangent of an expression: a column of ones.
func (u *unit) ones() string {
	g := u.graph
	one := g.Fresh("runexp_one")
	g.AddWeight(onnx.FloatTensor(one, slices.Repeat([]float32{1}, u.batch), u.batch, 1))
	g.Types[one] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: []int{u.batch, 1}}
	return one
}

// constantShape adds a constant shape.
func (u *unit) constantShape(shape []int) string {
	name := u.graph.Fresh("runexp_shape")
	u.graph.AddWeight(onnx.IntTensor(name, shape, len(shape)))
	return name
}

// formed returns the mean of the positive derivatives over heads and queries, [1, T].
func (u *unit) formed(f *onnx.Fragment, name, slope string, shape []int) {
	t := shape[len(shape)-1]
	rows := onnx.Size(shape) / (u.batch * t)
	positive := f.Op("Relu", []string{slope})
	u.returned(f, name, overHeads(f, positive, 1/float32(rows), u.batch, rows, 1, t), 1, t)
}
