// Package onnx reads, edits and writes ONNX models. A [Model] is the protobuf message itself, with queries
// and a few edits: its inputs and outputs, new nodes before and after the model's own, new inputs and
// outputs.
//
// external.go reads a file with the weights that it keeps in other files, and tensors.go visits all tensors
// of a model, sparse ones (sparse.go) included; context.go refuses graphs that were compiled for a device,
// and sound.go turns the panics of inconsistent models into errors. graph.go has nodes, attributes, types
// and shapes, tensor.go checks weights, numbers.go decodes them and float16.go rounds numbers to float16;
// notes.go reads the metadata, quantised.go finds quantised nodes, and expression.go identifies equal
// subgraphs. edit.go adds and renames values; flush_subnormals.go changes weights. some.go names nodes in
// messages, and tokens.go states where tokens are in an image.
package onnx

//go:generate go run -C gen . ../onnx.proto ../onnxpb

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Free is the size of a dimension that a model leaves open.
const Free = -1

// MaxBytes is the largest size of a protobuf message.
const MaxBytes = math.MaxInt32

// A Model is an ONNX model in memory, with all its weights.
type Model struct {
	Proto *onnxpb.ModelProto

	// Computed are the digests of the expressions of the weights that a library has computed, by name:
	// their last bits depend on the processor.
	Computed map[string]Sum

	names map[string]int // by name of a value, the last number appended to it; nil before the first new name
}

// A Value describes an input or output.
type Value struct {
	Name  string
	Elem  onnxpb.TensorProto_DataType
	Shape []int // Free for an open dimension
	Known bool  // whether the model states a shape; otherwise Shape is nil
}

// Parse reads a model whose weights are all inside. It returns a descriptive error for bytes that are cut
// off, that aren't ONNX, or whose weights don't fill their shapes.
func Parse(b []byte) (*Model, error) {
	m, err := parse(b)
	if err != nil {
		return nil, err
	}
	if err := m.settle(); err != nil {
		return nil, err
	}
	return m, nil
}

// settle turns a model that has all its weights inside into one that the rest of the project can read: no
// weight is sparse, each fills its shape, and no reference to another file is left.
func (m *Model) settle() error {
	if err := makeDense(m.Proto); err != nil {
		return err
	}
	if err := eachTensor(m.Proto, checkTensor); err != nil {
		return err
	}
	return refuseContexts(m.Proto)
}

// parse reads a model whose weights may be in other files.
func parse(b []byte) (*Model, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("the file is empty")
	}
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("a model of %d bytes is larger than ONNX's %d", len(b), MaxBytes)
	}
	p := new(onnxpb.ModelProto)
	if err := proto.Unmarshal(b, p); err != nil {
		if startsLikeModel(b) {
			return nil, fmt.Errorf("the file is cut off or damaged: %w", err)
		}
		return nil, notONNX(b, err)
	}
	switch {
	case p.Graph == nil || p.IrVersion <= 0:
		return nil, notONNX(b, errors.New("it has no graph"))
	case len(p.Graph.Output) == 0:
		return nil, fmt.Errorf("the model has no output")
	}
	m := &Model{Proto: p}
	if m.Opset() == 0 {
		return nil, fmt.Errorf("the model doesn't say which version of ONNX's operators it uses")
	}
	leaveOut(p, trainingInfo) // nothing reads it, and it may name files
	return m, nil
}

// notONNX is the error of a file that begins with b, which can't be read for the reason why.
func notONNX(b []byte, why error) error {
	if is := stages.Mistaken(b[:min(len(b), 4096)]); is != nil {
		return fmt.Errorf("the file is not an ONNX model: it is %w", is)
	}
	return fmt.Errorf("the file is not an ONNX model: %w", why)
}

// startsLikeModel reports whether b begins with an IR version, as models by all writers of ONNX do.
func startsLikeModel(b []byte) bool {
	num, typ, n := protowire.ConsumeTag(b)
	if n < 0 || num != 1 || typ != protowire.VarintType {
		return false
	}
	v, k := protowire.ConsumeVarint(b[n:])
	return k > 0 && v > 0 && v < 100
}

// Encode returns the model's bytes: equal models give equal bytes.
func (m *Model) Encode() ([]byte, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.Proto)
	if err == nil && len(b) > MaxBytes {
		err = fmt.Errorf("a model of %d bytes is larger than ONNX's %d", len(b), MaxBytes)
	}
	return b, err
}

// Opset returns the version of ONNX's own operators that the model uses, 0 if it states none.
func (m *Model) Opset() int {
	for _, o := range m.Proto.OpsetImport {
		if o.Domain == "" || o.Domain == "ai.onnx" {
			return int(o.Version)
		}
	}
	return 0
}

// Inputs returns the inputs that must be fed: the graph's inputs that aren't weights.
func (m *Model) Inputs() []Value {
	weights := map[string]bool{}
	for _, t := range m.Proto.Graph.Initializer {
		weights[t.Name] = true
	}
	var out []Value
	for _, v := range m.Proto.Graph.Input {
		if !weights[v.Name] {
			out = append(out, valueOf(v))
		}
	}
	return out
}

// Outputs returns the graph's outputs.
func (m *Model) Outputs() []Value {
	var out []Value
	for _, v := range m.Proto.Graph.Output {
		out = append(out, valueOf(v))
	}
	return out
}

// Producer returns the node that makes the value called name, nil if it is an input or a weight.
func (m *Model) Producer(name string) *onnxpb.NodeProto {
	for _, n := range m.Proto.Graph.Node {
		if slices.Contains(n.Output, name) {
			return n
		}
	}
	return nil
}

func valueOf(v *onnxpb.ValueInfoProto) Value {
	t := v.GetType().GetTensorType()
	out := Value{Name: v.Name, Elem: onnxpb.TensorProto_DataType(t.GetElemType()), Known: t.GetShape() != nil}
	for _, d := range t.GetShape().GetDim() {
		if size := d.GetDimValue(); size > 0 {
			out.Shape = append(out.Shape, int(size))
		} else {
			out.Shape = append(out.Shape, Free)
		}
	}
	return out
}

func (v Value) proto() *onnxpb.ValueInfoProto {
	t := &onnxpb.TypeProto_Tensor{ElemType: int32(v.Elem)}
	if v.Known {
		t.Shape = &onnxpb.TensorShapeProto{}
	}
	for i, d := range v.Shape {
		dim := &onnxpb.TensorShapeProto_Dimension{
			Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)}}
		if d == Free {
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: fmt.Sprintf("%s_%d", v.Name, i)}
		}
		t.Shape.Dim = append(t.Shape.Dim, dim)
	}
	return &onnxpb.ValueInfoProto{Name: v.Name,
		Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: t}}}
}
