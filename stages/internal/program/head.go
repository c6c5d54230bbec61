package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/target"
)

// Facts of a model whose answer is an expression: the expression, its unit, and its bounds.
const (
	TargetFact = "target"
	UnitFact   = "value_unit"
	LowFact    = "low"
	HighFact   = "high"
)

// TargetStage is the stage that makes a model whose answer is an expression.
const TargetStage = "model/target"

// An Explained is the parameters of a model whose answer is an expression.
type Explained struct {
	Language int       `json:"language"` // [target.Language]
	Target   string    `json:"target"`
	Names    []string  `json:"names,omitempty"`   // of the base's classes, if they are known
	Vectors  []float32 `json:"vectors,omitempty"` // what the word vectors is, of the shape Shape
	Shape    []int     `json:"shape,omitempty"`
}

// Made returns the model whose answer is an expression of n's outputs. The error of a wrong expression is
// about the field target.
func (n *Net) Made(slot stages.Slot, x Explained) (modelfile.Model, *target.Head, error) {
	out, err := n.explaining(slot, x)
	if err != nil {
		return modelfile.Model{}, nil, err
	}
	x.Language = target.Language
	with, err := json.Marshal(x)
	if err != nil {
		return modelfile.Model{}, nil, err
	}
	return modelfile.Model{Spec: out.Spec,
		Rewrite: &modelfile.Rewrite{Base: n.digest, Name: TargetStage, With: with}}, out.Head, nil
}

// ofRewrite returns the net that Made described, of n.
func (n *Net) ofRewrite(slot stages.Slot, r modelfile.Rewrite) (*Net, error) {
	var x Explained
	if err := json.Unmarshal(r.With, &x); err != nil {
		return nil, fmt.Errorf("a damaged model: %s: %w", r.Name, err)
	}
	if x.Language != target.Language {
		return nil, fmt.Errorf("a model made by another version of %s", r.Name)
	}
	return n.explaining(slot, x)
}

// explaining returns the net whose answer is what an expression reads, and whose programs explain its value.
//
// A copy is returned, whose digest the caller may set.
func (n *Net) explaining(slot stages.Slot, x Explained) (*Net, error) {
	out := *n
	parsed, err := target.Parse(x.Target)
	switch {
	case err != nil:
		return nil, badTarget(err)
	case n.Head != nil && n.Head.Text == x.Target:
		return &out, nil
	case n.Head != nil:
		return nil, stages.BadField("target", "target: the model's answer is the expression %s already",
			n.Head.Text)
	case n.Heads > 0:
		return nil, stages.BadField("target", "target: the model has a head for each cell of a grid, of "+
			"which a class is explained, and no expression")
	}
	outputs, answer, err := n.Readable(slot)
	if err != nil {
		return nil, err
	}
	h, err := parsed.Bind(target.Model{Outputs: outputs, Answer: answer, Classes: n.Classes, Names: x.Names,
		Height: n.Height, Width: n.Width, Vectors: x.Vectors, VectorsShape: x.Shape})
	if err != nil {
		return nil, badTarget(err)
	}
	out.Head = h
	if len(h.Outputs) == 1 && h.Outputs[0].Name == n.Output {
		return &out, nil
	}
	out.Classes, out.Probabilities, out.Independent, out.Spec.Outputs = h.Size(), false, false, nil
	out.Sides = false // which are of the other output
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
		return badTarget(err)
	}
	return nil
}

// Bounds returns the bounds among the facts of a model whose answer is an expression.
func Bounds(f stages.Facts) (low, high float64) {
	low, failed := strconv.ParseFloat(f[LowFact], 64)
	high, err := strconv.ParseFloat(f[HighFact], 64)
	if failed != nil || err != nil {
		return math.Inf(-1), math.Inf(1)
	}
	return low, high
}

// badTarget returns the error of a wrong expression.
func badTarget(err error) error {
	bad := &stages.FieldError{Field: "target", Err: fmt.Errorf("target: %w", err)}
	if at := (*target.Error)(nil); errors.As(err, &at) {
		bad.Column = at.Column
	}
	return bad
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

// explained returns the number of elements of a row that says what is explained: how much each class counts,
// or the parameters of an expression.
func (n *Net) explained() int {
	if n.Head != nil {
		return max(1, n.Head.Width())
	}
	return n.Classes
}

// ModelPort returns the input of a model for a stage with a parameter target: where that is an expression,
// the model that the stage reads is one whose answer is the expression.
func ModelPort(doc string) stages.Port {
	return stages.Port{Name: "model", Type: stages.Model, Doc: doc, Via: TargetStage,
		ViaIf: explainsExpression}
}

// explainsExpression reports whether the parameter target is an expression.
func explainsExpression(params any) bool {
	for _, f := range stages.Fields(params) {
		if f.Name == "target" && f.Type.Kind() == reflect.String {
			return target.Is(reflect.ValueOf(params).Elem().FieldByIndex(f.Index).String())
		}
	}
	return false
}
