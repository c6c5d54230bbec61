package model

import (
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// A Candidate is an output that has a number per image and class.
type Candidate struct {
	Output  string   `json:"output"` // its name in the file
	Classes int      `json:"classes"`
	Shape   []string `json:"shape"`           // as measured, N for the images
	Names   []string `json:"names,omitempty"` // of the classes, if a ZipMap has them
	Head    Head     `json:"head"`            // the kind of its numbers, and the reason
}

func (c Candidate) String() string {
	return Value{Name: c.Output, Shape: c.Shape}.plain()
}

// An output is an output of a file that may have the classes.
type output struct {
	declared string
	value    string   // the tensor that is read in its place
	names    []string // of the classes, from a ZipMap
	through  []string // the operators between value and the declared output that aren't run
}

// outputsOf returns the outputs that are tensors of floating-point numbers, or can be read as such: the one
// of that name, or without a name all. It is an error if there is none.
func outputsOf(m *onnx.Model, name string) ([]output, error) {
	declared := m.Outputs()
	if name != "" {
		v, err := pick(declared, name, "output", true)
		if err != nil {
			return nil, err
		}
		declared = []onnx.Value{v}
	}
	var out []output
	var failed error
	for _, v := range declared {
		o, err := readOutput(m, v)
		if err == nil {
			out = append(out, o)
		} else if failed == nil {
			failed = err
		}
	}
	if len(out) == 0 {
		return nil, failed
	}
	return out, nil
}

// readOutput returns how an output is read: for an output of QuantizeLinear the value before rounding, for
// a ZipMap and a TopK their input.
func readOutput(m *onnx.Model, v onnx.Value) (output, error) {
	out := output{declared: v.Name, value: v.Name}
	n := onnx.Node{NodeProto: m.Producer(v.Name)}
	if kind := containerOf(m, v.Name); kind != "" {
		if n.GetOpType() != "ZipMap" || len(n.Input) == 0 {
			return out, stages.BadField("output", "output %q is %s%s: a tensor with a number per class is "+
				"needed",
				v.Name, kind, madeBy(n))
		}
		out.value, out.names, out.through = n.Input[0], zipped(n), []string{"ZipMap"}
		return out, nil
	}
	if !floating(v.Elem) {
		if n.GetOpType() != "QuantizeLinear" || len(n.Input) == 0 {
			return out, stages.BadField("output",
				"output %q has the type %s%s: a floating-point number per class is needed; name "+
					"another output, or export the model without the selection of a class", v.Name, v.Elem,
				madeBy(n))
		}
		out.value, out.through = n.Input[0], []string{"QuantizeLinear"}
		return out, nil
	}
	at := v.Name
	for n.NodeProto != nil && len(n.Input) > 0 && isView(n) {
		at = n.Input[0]
		n = onnx.Node{NodeProto: m.Producer(at)}
	}
	if n.GetOpType() == "TopK" && len(n.Input) > 0 && n.Output[0] == at {
		out.value, out.through = n.Input[0], []string{"TopK"}
	}
	return out, nil
}

func madeBy(n onnx.Node) string {
	if n.NodeProto == nil {
		return ""
	}
	return ", made by " + n.Label()
}

// containerOf describes an output that isn't a tensor, else "".
func containerOf(m *onnx.Model, name string) string {
	for _, v := range m.Proto.Graph.Output {
		if v.Name == name {
			return container(v.GetType())
		}
	}
	return ""
}

// container describes a type that isn't a tensor's, else "".
func container(t *onnxpb.TypeProto) string {
	within := func(t *onnxpb.TypeProto) string {
		if kind := container(t); kind != "" {
			return strings.TrimPrefix(kind, "a ") + "s"
		}
		return typeName(onnxpb.TensorProto_DataType(t.GetTensorType().GetElemType())) + " tensors"
	}
	switch {
	case t.GetSequenceType() != nil:
		return "a sequence of " + within(t.GetSequenceType().GetElemType())
	case t.GetOptionalType() != nil:
		return "optional " + within(t.GetOptionalType().GetElemType())
	case t.GetTensorType() == nil && len(t.ProtoReflect().GetUnknown()) > 0: // of a type of ONNX-ML
		return "a map"
	}
	return ""
}

// zipped returns the names of the classes that a ZipMap has, or their numbers.
func zipped(n onnx.Node) []string {
	if names := n.Texts("classlabels_strings"); len(names) > 0 {
		return names
	}
	var out []string
	for _, v := range n.Ints("classlabels_int64s") {
		out = append(out, strconv.Itoa(v))
	}
	return out
}

// classesOf returns the number of classes of an answer of that shape to that many images.
func classesOf(shape []int, rows int) (int, error) {
	n := onnx.Size(shape)
	if n == 0 || n%rows != 0 || slices.Max(append([]int{1}, shape...)) != max(n/rows, rows) {
		return 0, noClasses(shape)
	}
	return n / rows, nil
}
