// Package standalone puts programs of a model and what a method makes of their results together in one ONNX
// model, which any runtime runs: no host is left that would feed programs and combine their results.
//
// standalone.go has the model in the making, a [Draft]; numbers.go emits arithmetic in double precision, as
// methods compute; scan.go runs a program for one value after the other.
package standalone

import (
	"bytes"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/rewrite"
)

// irVersion is the version of the file format that came with opset [rewrite.Opset].
const irVersion = 8

// A Draft is an ONNX model in the making, for a fixed batch.
type Draft struct {
	*onnx.Model
	Batch int

	weights map[string]*onnxpb.TensorProto
}

// New returns an empty draft for a batch.
func New(batch int) *Draft {
	p := &onnxpb.ModelProto{IrVersion: irVersion, ProducerName: "runexp",
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: rewrite.Opset}},
		Graph:       &onnxpb.GraphProto{Name: "runexp"}}
	return &Draft{&onnx.Model{Proto: p}, batch, map[string]*onnxpb.TensorProto{}}
}

// Op adds a node with one output and returns the output's name.
func (d *Draft) Op(op string, in []string, attrs ...onnx.Attr) string {
	f := d.Fragment()
	out := f.Op(op, in, attrs...)
	d.After(f)
	return out
}

// OpTo adds a node whose output is called out.
func (d *Draft) OpTo(out, op string, in []string, attrs ...onnx.Attr) {
	f := d.Fragment()
	f.OpTo(out, op, in, attrs...)
	d.After(f)
}

// Ints adds a vector of integers and returns its name.
func (d *Draft) Ints(v ...int64) string { return d.Fragment().Ints("numbers", v, int64(len(v))) }

// Shape adds a shape, as operators read it, and returns its name.
func (d *Draft) Shape(shape ...int) string {
	v := make([]int64, len(shape))
	for i, n := range shape {
		v[i] = int64(n)
	}
	return d.Ints(v...)
}

// Singles adds a constant of float32 and returns its name.
func (d *Draft) Singles(v []float32, shape ...int64) string {
	return d.Fragment().Floats("numbers", v, shape...)
}

// Include adds the nodes of a program. fed names the value of the draft that each input of the program is, by
// [lower.IO]'s names. The result names the values that the program's own became.
func (d *Draft) Include(l *lower.Lowered, fed map[string]string) Included {
	values := map[string]string{}
	for _, v := range l.Inputs {
		values[v.Value()] = fed[v.Name]
	}
	g := withoutExpands(l)
	return Included{d.include(g, values), l.Signature}
}

// withoutExpands returns a program without the nodes that repeat an input as often as it has rows already. A
// runtime that doesn't know the batch would take them for changes of the shape, and know none behind them.
func withoutExpands(l *lower.Lowered) *onnxpb.GraphProto {
	g := l.Model.Proto.Graph
	out := &onnxpb.GraphProto{Initializer: g.Initializer}
	constants, shapes, same := map[string]*onnxpb.TensorProto{}, map[string][]int{}, map[string]string{}
	for _, t := range g.Initializer {
		constants[t.Name] = t
	}
	for _, v := range l.Inputs {
		shapes[v.Value()] = v.Shape
	}
	for _, n := range g.Node {
		if n.OpType == "Expand" && shapes[n.Input[0]] != nil && constants[n.Input[1]] != nil {
			to, err := onnx.Int64s(constants[n.Input[1]])
			shape := shapes[n.Input[0]]
			if err == nil && slices.Equal(broadcast(shape, ints(to)), shape) {
				same[n.Output[0]] = n.Input[0]
				continue
			}
		}
		c := proto.Clone(n).(*onnxpb.NodeProto)
		onnx.Retake(c, same)
		out.Node = append(out.Node, c)
	}
	return out
}

func ints(v []int64) []int {
	out := make([]int, len(v))
	for i, x := range v {
		out[i] = int(x)
	}
	return out
}

// Included are the values of a program within a draft.
type Included struct {
	names map[string]string
	lower.Signature
}

// Value returns the draft's name of a value of the program.
func (p Included) Value(name string) string {
	if in, ok := p.names[name]; ok {
		return in
	}
	return name
}

// Answer returns the model's answer [batch, classes].
func (p Included) Answer() string { return p.Value(lower.Answer) }

// Output returns an output of the program, by its name in the signature.
func (p Included) Output(name string) Single {
	i := slices.IndexFunc(p.Outputs, func(v lower.IO) bool { return v.Name == name })
	if i < 0 {
		return Single{}
	}
	return Single{p.Value(p.Outputs[i].Value()), p.Outputs[i].Shape}
}

// Has reports whether the program has an output.
func (p Included) Has(name string) bool { return p.Output(name).Name != "" }

// IncludeGraph adds the nodes of a graph. fed names the values of the draft that stand for some of the
// graph's, whether these are inputs or results of nodes.
func (d *Draft) IncludeGraph(g *onnx.Graph, fed map[string]string) Included {
	return Included{d.include(g.Proto.Graph, fed), lower.Signature{}}
}

// include adds the nodes and weights of g, under other names where the draft has theirs, and returns all
// names. values has those that are known.
func (d *Draft) include(g *onnxpb.GraphProto, values map[string]string) map[string]string {
	names := map[string]string{}
	for v, to := range values {
		names[v] = to
	}
	for _, t := range g.Initializer {
		name, known := d.weight(t)
		if names[t.Name] = name; !known {
			t = onnx.Renamed(t, name)
			d.weights[name] = t
			d.Proto.Graph.Initializer = append(d.Proto.Graph.Initializer, t)
		}
	}
	for _, n := range g.Node {
		c := proto.Clone(n).(*onnxpb.NodeProto)
		onnx.Retake(c, names)
		for i, v := range c.Output {
			switch _, fed := values[v]; {
			case v == "":
				continue
			case fed: // nothing reads this one
				c.Output[i] = d.Fresh(v + "/replaced")
			default:
				names[v] = d.Fresh(v)
				c.Output[i] = names[v]
			}
		}
		c.Name = c.Output[0]
		d.Proto.Graph.Node = append(d.Proto.Graph.Node, c)
	}
	return names
}

// weight returns the name of a weight in the draft, and whether the draft has it already.
func (d *Draft) weight(t *onnxpb.TensorProto) (name string, known bool) {
	if have := d.weights[t.Name]; have != nil && sameNumbers(have, t) {
		return t.Name, true
	}
	return d.Fresh(t.Name), false
}

// sameNumbers reports whether two weights of one name are the same; those of programs of one model share
// their memory.
func sameNumbers(a, b *onnxpb.TensorProto) bool {
	if a.DataType != b.DataType || !slices.Equal(a.Dims, b.Dims) {
		return false
	}
	if len(a.RawData) > 0 && len(b.RawData) > 0 {
		return &a.RawData[0] == &b.RawData[0] || bytes.Equal(a.RawData, b.RawData)
	}
	return onnx.TensorSum(a) == onnx.TensorSum(b)
}

// Finish sets the inputs and outputs, sorts the nodes, and removes those that no output needs.
func (d *Draft) Finish(inputs, outputs []onnx.Value) error {
	d.SetInputs(inputs...)
	d.SetOutputs(outputs...)
	if err := rewrite.TopologicalOrder(d.Model); err != nil {
		return err
	}
	d.Prune()
	return nil
}
