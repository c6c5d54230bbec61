package program

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/ort"
	"github.com/runexp/runexp/stages/internal/rewrite"
)

// newestIR is the newest version of ONNX's file format that the runtime reads.
// Nothing of what later ones added is in a graph.
const newestIR = 10

// Graph returns the net's graph for a batch of that many images: simplified, in
// single precision, of opset [rewrite.Opset], every type and shape known. Its
// input is the model's own, [Spec.Input], in the model's layout and order; its
// output is [Spec.Output]. The caller may change it; the weights are shared.
//
// It is shared by slots, so that the programs of a net derive it once.
func (n *Net) Graph(ctx context.Context, slot stages.Slot, batch int) (*onnx.Graph, error) {
	if n.Batch > 0 && batch != n.Batch {
		return nil, fmt.Errorf("the model takes %d images at once, not %d", n.Batch, batch)
	}
	k, err := n.keptGraph(ctx, slot, batch)
	if err != nil {
		return nil, err
	}
	return k.Clone(), nil
}

// keptGraph returns the graph that slots share, not to be changed.
func (n *Net) keptGraph(ctx context.Context, slot stages.Slot, batch int) (kept, error) {
	key := fmt.Sprintf("graph batch %d of %s", batch, n.digest)
	c, err := slot.Share(key, n.size, func() (io.Closer, error) { return n.graph(ctx, batch) })
	if err != nil {
		return kept{}, err
	}
	return c.(kept), nil
}

// kept is a graph that slots share. Its shapes are known of it alone, or were measured on an
// image, and then may hang on that.
type kept struct {
	*onnx.Graph
	measured bool
}

func (kept) Close() error { return nil }

func (n *Net) graph(ctx context.Context, batch int) (k kept, err error) {
	defer onnx.Sound(&err)
	if ctx.Err() != nil {
		return k, context.Cause(ctx)
	}
	m, err := n.plain(batch)
	if err != nil {
		return k, err
	}
	version := m.Opset()
	if m, err = simplify(m); err != nil {
		return k, err
	}
	if ctx.Err() != nil {
		return k, context.Cause(ctx)
	}
	types, measured, err := n.infer(ctx, m, batch)
	if err != nil {
		return k, err
	}
	anew, err := rewrite.ToOpset(m, types)
	if err != nil {
		return k, err
	}
	if anew || version != rewrite.Opset {
		// Some of what ONNX Runtime simplifies it knows only in newer operators.
		if m, err = simplify(m); err != nil {
			return k, err
		}
		if types, measured, err = n.infer(ctx, m, batch); err != nil {
			return k, err
		}
		if _, err := rewrite.ToOpset(m, nil); err != nil {
			return k, err
		}
	}
	g, err := onnx.NewGraph(m, types)
	return kept{g, measured}, err
}

// plain returns the net's model for a batch of that many images before anything is
// known of its values: whole, in single precision, with what the answer needs and no
// more.
func (n *Net) plain(batch int) (*onnx.Model, error) {
	m, err := n.parse()
	if err != nil {
		return nil, err
	}
	if _, err := rewrite.Single(m); err != nil {
		return nil, err
	}
	if _, err := rewrite.Dequantise(m); err != nil {
		return nil, err
	}
	m.FlushSubnormals()
	m.SetInputs(onnx.Value{Name: n.Input, Elem: onnxpb.TensorProto_FLOAT, Shape: n.inputShape(batch), Known: true})
	m.SetOutputs(onnx.Value{Name: n.Output, Elem: onnxpb.TensorProto_FLOAT})
	m.ForgetShapes()
	m.Prune()
	m.Proto.IrVersion = min(m.Proto.IrVersion, newestIR)
	rewrite.Ahead(m)
	return m, spare(m)
}

// inputShape returns the shape of the model's own input.
func (n *Net) inputShape(batch int) []int {
	if n.Layout == modelfile.NHWC {
		return []int{batch, n.Height, n.Width, n.Channels}
	}
	return []int{batch, n.Channels, n.Height, n.Width}
}

// simplify is [optimised] after a change of names: that fails where ONNX Runtime makes a
// Gemm of a MatMul and has called a shape the same before, in this model or in what the
// file was made from.
func simplify(m *onnx.Model) (*onnx.Model, error) {
	for _, t := range m.Proto.Graph.Initializer {
		if strings.HasPrefix(t.Name, "gemm_input_shape") {
			m.Rename(t, m.Fresh("known/"+t.Name))
		}
	}
	return optimised(m)
}

// optimised returns a model as [ort.Runtime.Simplify] makes it; m isn't to be used any
// more.
func optimised(m *onnx.Model) (*onnx.Model, error) {
	return optimisedWithout(m, multipliers(m, large))
}

// optimisedWithout returns the same if what it is doesn't hang on the weights that are out.
func optimisedWithout(m *onnx.Model, out func(*onnxpb.TensorProto) bool) (*onnx.Model, error) {
	inputs := m.Inputs()
	without := misfused(m.Proto)
	nodes, weights := m.Proto.Graph.Node, m.Proto.Graph.Initializer
	source := *m
	heavy := lighten(m, out)
	b, err := m.Encode()
	if err != nil {
		return nil, err
	}
	runtime, err := ort.Warily()
	if err != nil {
		return nil, err
	}
	defer runtime.Close()
	if b, err = runtime.Simplify(b, without...); err != nil {
		return nil, err
	}
	if m, err = onnx.Parse(b); err != nil {
		return nil, err
	}
	m.SetInputs(inputs...)
	m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer, heavy...)
	m.Prune()
	m.Computed = computed(m, &source, nodes, weights)
	return m, nil
}

// computed returns the digests of the expressions that ONNX Runtime computed the weights of
// m from, which it made of a source with these nodes and weights.
func computed(m, source *onnx.Model, nodes []*onnxpb.NodeProto, weights []*onnxpb.TensorProto) map[string]onnx.Sum {
	given, made := map[string]*onnxpb.TensorProto{}, map[string]bool{}
	for _, t := range weights {
		given[t.Name] = t
	}
	for _, n := range nodes {
		for _, v := range n.Output {
			made[v] = true
		}
	}
	x := onnx.NewExpressions(nodes, func(v string) onnx.Sum {
		if t := given[v]; t != nil {
			return source.WeightSum(t)
		}
		return onnx.SumOf([]byte("input"), fmt.Append(nil, m.Inputs()))
	})
	out := map[string]onnx.Sum{}
	for _, t := range m.Proto.Graph.Initializer {
		switch s, before := source.Computed[t.Name]; {
		case before:
			out[t.Name] = s
		case given[t.Name] != nil:
		case made[t.Name]:
			out[t.Name] = x.Value(t.Name)
		case onnx.Exact(t):
		default:
			// A fusion's, made of whatever it fused.
			parts := [][]byte{[]byte("fused"), []byte(t.Name)}
			for _, v := range m.Outputs() {
				s := x.Value(v.Name)
				parts = append(parts, s[:])
			}
			out[t.Name] = onnx.SumOf(parts...)
		}
	}
	return out
}
