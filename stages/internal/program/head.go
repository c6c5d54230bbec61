package program

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/target"
)

// Facts of the port targets where an expression is explained: the expression, its unit, its bounds, and the
// shape of the vectors that it reads, "2 512".
const (
	TargetFact  = "target"
	UnitFact    = "unit"
	LowFact     = "low"
	HighFact    = "high"
	VectorsFact = "vectors"
)

// Explaining returns the net whose answer is what an expression reads, and whose programs explain its value.
// Names are the classes' names, a line each, or [AnyNames]; vectors is the shape of what is on the port
// vectors, nil if it isn't wired. The error of a wrong expression is about the field target.
func (n *Net) Explaining(slot stages.Slot, text, names string, vectors []int) (*Net, error) {
	x, err := target.Parse(text)
	if err != nil {
		return nil, badTarget(text, err)
	}
	if n.Heads > 0 {
		return nil, stages.BadField("target", "target: the model has a head for each cell of a grid, of which "+
			"a class is explained, and no expression")
	}
	outputs, answer, err := n.Readable(slot)
	if err != nil {
		return nil, err
	}
	m := target.Model{Outputs: outputs, Answer: answer, Classes: n.Classes, Height: n.Height, Width: n.Width,
		Vectors: vectors}
	if names != "" && names != AnyNames {
		m.Names = strings.Split(names, "\n")
	}
	h, err := x.Bind(m)
	if err != nil {
		return nil, badTarget(text, err)
	}
	out := *n
	out.Head = h
	out.digest = stages.Sum(fmt.Appendf(n.digest[:len(n.digest):len(n.digest)], "target %q of %q, %v", text,
		names, vectors))
	if len(h.Outputs) == 1 && h.Outputs[0].Name == n.Output {
		return &out, nil
	}
	out.Classes, out.Probabilities, out.Independent = h.Size(), false, false
	out.Output = h.Outputs[0].Name
	if len(h.Outputs) > 1 {
		out.Output = joinedOutput
		out.onnx = sync.OnceValues(func() ([]byte, error) { return join(n.onnx, h.Outputs) })
	}
	return &out, nil
}

// CheckTarget refuses a target that is neither a class, nor a difference of two, nor an expression.
func CheckTarget(text string) error {
	var err error
	if target.Is(text) {
		_, err = target.Parse(text)
	} else {
		_, err = ParseExpression(text)
	}
	if err != nil {
		return badTarget(text, err)
	}
	return nil
}

// PortsOf returns the ports that a target needs besides model and images.
func PortsOf(text string) []string {
	if target.Is(text) {
		if x, err := target.Parse(text); err == nil {
			return x.Ports()
		}
		return nil
	}
	if x, err := ParseExpression(text); err == nil && x.Labelled() {
		return []string{"labels"}
	}
	return nil
}

// badTarget returns the error of a wrong expression.
func badTarget(text string, err error) error {
	if target.Is(text) {
		return stages.BadField("target", "target: %s: %w", text, err)
	}
	return stages.BadField("target", "target: %w", err)
}

// Readable returns the outputs that expressions may read, and the name of the one that the word output stands
// for, "" if there are several.
func (n *Net) Readable(slot stages.Slot) (outputs []modelfile.Output, answer string, err error) {
	if len(n.Spec.Outputs) > 0 {
		if len(n.Spec.Outputs) == 1 {
			answer = n.Spec.Outputs[0].Name
		}
		return n.Spec.Outputs, answer, nil
	}
	outputs = []modelfile.Output{{Name: n.Output, Shape: []int{n.Classes}}}
	if n.rewrite != nil {
		return outputs, n.Output, nil
	}
	c, err := slot.Share(fmt.Sprintf("outputs of %s", n.digest), 0, func() (_ io.Closer, err error) {
		defer onnx.Sound(&err)
		b, err := n.onnx()
		if err != nil {
			return nil, err
		}
		m, err := onnx.Parse(b)
		if err != nil {
			return nil, err
		}
		var list outputList
		for _, v := range m.Outputs() {
			if v.Name != n.Output && v.Elem == onnxpb.TensorProto_FLOAT && v.Known && len(v.Shape) > 0 &&
				!slices.Contains(v.Shape[1:], onnx.Free) {
				list = append(list, modelfile.Output{Name: v.Name, Shape: v.Shape[1:]})
			}
		}
		return list, nil
	})
	if err != nil {
		return nil, "", err
	}
	return append(outputs, c.(outputList)...), n.Output, nil
}

// An outputList is what slots share of a file.
type outputList []modelfile.Output

func (outputList) Close() error { return nil }

// joinedOutput is the value of the outputs that an expression reads, one after the other.
const joinedOutput = "runexp_joined_outputs"

// join returns a file with joinedOutput in addition.
func join(file func() ([]byte, error), outputs []modelfile.Output) (_ []byte, err error) {
	defer onnx.Sound(&err)
	b, err := file()
	if err != nil {
		return nil, err
	}
	m, err := onnx.Parse(b)
	if err != nil {
		return nil, err
	}
	if m.Fresh(joinedOutput) != joinedOutput {
		return nil, fmt.Errorf("the model already has a value called %q", joinedOutput)
	}
	f := m.Fragment()
	var rows []string
	for _, o := range outputs {
		single := f.Op("Cast", []string{o.Name}, onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)})
		rows = append(rows, f.Op("Reshape", []string{single,
			f.Ints("row", []int64{-1, int64(onnx.Size(o.Shape))}, 2)}))
	}
	f.OpTo(joinedOutput, "Concat", rows, onnx.Attr{Name: "axis", Value: 1})
	m.After(f)
	m.SetOutputs(append(m.Outputs(), onnx.Value{Name: joinedOutput, Elem: onnxpb.TensorProto_FLOAT})...)
	return m.Encode()
}

// explaining returns the net that explains what is on the port targets.
func (n *Net) explaining(e *stages.Env) (*Net, error) {
	facts := e.Facts("targets")
	if text := facts[TargetFact]; text != "" {
		return n.explainingFacts(e.Slot, facts, e.Facts("model")["labels"])
	}
	return n, nil
}

// explainingFacts does so for facts of the port targets.
func (n *Net) explainingFacts(slot stages.Slot, facts stages.Facts, names string) (*Net, error) {
	vectors, err := shapeOf(facts, VectorsFact)
	if err != nil {
		return nil, fmt.Errorf("port targets: %w", err)
	}
	return n.Explaining(slot, facts[TargetFact], names, vectors)
}

// shapeOf reads a shape among facts, nil if there is none.
func shapeOf(facts stages.Facts, name string) (shape []int, err error) {
	for _, d := range strings.Fields(facts[name]) {
		k, err := strconv.Atoi(d)
		if err != nil || k < 1 {
			return nil, fmt.Errorf("the fact %s is %q", name, facts[name])
		}
		shape = append(shape, k)
	}
	return shape, nil
}

// explained returns the number of elements of a row that says what is explained: how much each class counts,
// or the parameters of an expression.
func (n *Net) explained() int {
	if n.Head != nil {
		return max(1, n.Head.Width())
	}
	return n.Classes
}
