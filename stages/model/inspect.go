package model

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/ort"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// An Inspection is what an ONNX file says of itself, and what a run of it shows.
type Inspection struct {
	File     string      `json:"file"`
	Bytes    int64       `json:"bytes"` // with the weights in other files
	Producer string      `json:"producer"`
	IR       int         `json:"ir"`
	Opset    int         `json:"opset"`
	Inputs   []Value     `json:"inputs"`
	Outputs  []Value     `json:"outputs"`
	Weights  Weights     `json:"weights"`
	Norm     Norm        `json:"batch_normalization"`
	Leading  []string    `json:"leading"` // operators between the input and the first layer
	Nodes    []NodeCount `json:"operators"`
	Presets  []Preset    `json:"presets"`         // candidates: the file doesn't tell
	Range    []float64   `json:"range,omitempty"` // what the least and the largest byte stand for at an input of these

	// Problem says why the model couldn't be run; what follows is empty then.
	Problem      string `json:"problem,omitempty"`
	NoClassifier bool   `json:"no_classifier,omitempty"` // that is because it doesn't classify images

	Feed       modelfile.Spec `json:"feed"`      // with the default preset
	OpenSize   bool           `json:"open_size"` // the file leaves height or width open
	OpenHeight bool           `json:"open_height"`
	OpenWidth  bool           `json:"open_width"`
	OtherSize  int            `json:"other_size,omitempty"` // it also runs on images of this height
	Cut        string         `json:"cut,omitempty"`        // the operator that makes its probabilities, whose input is explained
	Simplified []NodeCount    `json:"simplified"`           // what it comes down to
	Rectifiers int            `json:"rectifiers"`
	Middle     *Value         `json:"middle,omitempty"`
	Final      *Value         `json:"final,omitempty"`
	Gradient   string         `json:"no_gradient,omitempty"` // why there is none

	Trial *Trial `json:"-"` // what methods may be tried on; nil where the model couldn't be run
}

// Inspect looks into an ONNX file, as [ONNX] with these parameters would read it. A model that can't be run,
// or classifies no images, is no error: Problem says why, and the rest what the file shows. An input, output
// or size in p that the model doesn't have is one. Where it leaves its size open and p doesn't say it, usual
// ones are tried.
func Inspect(ctx context.Context, p ONNXParams) (Inspection, error) {
	x := Inspection{File: p.Path}
	files, err := onnx.ExternalFiles(p.Path)
	if err != nil {
		return x, err
	}
	for _, f := range append(files, p.Path) {
		info, err := os.Stat(f)
		if err != nil {
			return x, err
		}
		x.Bytes += info.Size()
	}
	m, err := onnx.ReadFile(p.Path)
	if err != nil {
		return x, err
	}
	x.describe(m)
	x.Presets = presets()
	if err := noImages(m.Inputs(), p.Input); err != nil {
		x.notClassifier(err)
		return x, nil
	}
	if _, err := ort.Default(); err != nil {
		x.Problem = err.Error()
		return x, nil
	}
	err = x.try(ctx, m, p)
	if ctx.Err() != nil || errors.Is(err, stages.ErrOutOfMemory) {
		return x, err
	}
	var field *stages.FieldError
	if errors.As(err, &field) &&
		(field.Field == "input" && p.Input != "" || field.Field == "output" && p.Output != "" ||
			field.Field == "size" && !p.Size.IsZero()) {
		return x, err
	}
	switch {
	case errors.Is(err, errNoClasses):
		x.notClassifier(err)
	case err != nil:
		x.Problem = err.Error()
	}
	return x, nil
}

// notClassifier says what a detector or a model of texts is not.
func (x *Inspection) notClassifier(err error) {
	x.NoClassifier, x.Problem = true, "this isn't an image classifier: "+err.Error()
}

// noImages says why none of a model's inputs takes images, nil if one does. An input that is asked for is
// looked at by those who asked.
func noImages(inputs []onnx.Value, asked string) error {
	if asked != "" || len(inputs) == 0 {
		return nil
	}
	for _, in := range inputs {
		if !in.Known || len(in.Shape) == 4 { // of numbers that aren't floating-point perhaps
			return nil
		}
	}
	return takesImages(inputs[0])
}

// try runs the model and looks at the graph that gradients are made from.
func (x *Inspection) try(ctx context.Context, m *onnx.Model, p ONNXParams) (err error) {
	defer onnx.Sound(&err)
	if in, err := pick(m.Inputs(), p.Input, "input", false); err == nil {
		x.Range = rangeOf(m, in)
		x.OpenHeight, x.OpenWidth = openSize(in, p)
		x.OpenSize = x.OpenHeight || x.OpenWidth
	}
	asked, sizes := p.Size, []picture.Size{p.Size}
	if x.OpenSize {
		sizes = nil
		if !asked.IsZero() {
			sizes = append(sizes, asked)
		}
		for _, side := range []int{224, 32, 64, 28, 96, 299, 384, 512} { // the usual ones
			sizes = append(sizes, picture.Size{H: side, W: side})
		}
	}
	var out modelfile.Model
	var failed error
	for _, p.Size = range sizes {
		var err error
		if out, err = read(ctx, m, p); err == nil && !asked.IsZero() && p.Size != asked {
			return stages.BadField("size", "size is %v, and the model takes others, such as %v: %w", asked,
				p.Size, failed)
		}
		if err == nil || ctx.Err() != nil {
			failed = err
			break
		}
		if failed == nil {
			failed = err
		}
	}
	if failed != nil {
		return failed
	}
	x.Feed = out.Spec
	if declared, err := classesOf(m, p.Output); err == nil && declared != out.Spec.Output {
		x.Cut = headOf(m, declared).op
	}
	if other := out.Spec.Height * 2; !x.OpenSize && sequential(m) == nil &&
		runsAt(ctx, out, other, out.Spec.Width*2) {
		x.OtherSize = other
	}
	t, err := trialOf(out)
	if err != nil {
		return err
	}
	x.Trial = t
	g, err := t.graph(ctx)
	if err != nil {
		x.Gradient = err.Error()
		return nil
	}
	x.Simplified = count(g.Proto.Graph.Node)
	x.Rectifiers = relevance.Rectifiers(g)
	middle, final := relevance.Layers(g)
	x.Middle, x.Final = layer(g, middle), layer(g, final)
	if _, err := relevance.Backward(g, map[string]string{out.Spec.Output: out.Spec.Output},
		[]string{out.Spec.Input}, relevance.Policy{}); err != nil {
		x.Gradient = err.Error()
	}
	return nil
}

// runsAt reports whether a model gives as many answers for images of another size.
func runsAt(ctx context.Context, m modelfile.Model, height, width int) bool {
	m.Spec.Height, m.Spec.Width = height, width
	rows := max(1, m.Spec.Batch)
	if width > picture.MaxPixels/height/rows {
		return false
	}
	shape, err := program.AnswerShape(ctx, m, rows)
	if err != nil {
		return false
	}
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n == rows*m.Spec.Classes && len(shape) > 0 && shape[0] == rows
}

// layer returns a value as attributions are made for it, its channels first if it is of feature maps.
func layer(g *onnx.Graph, name string) *Value {
	if name == "" {
		return nil
	}
	g = g.Clone()
	program.Arrange(g, name)
	v := Value{Name: name, Type: typeName(g.Types[name].Elem)}
	for i, d := range g.Shape(name) {
		if i == 0 {
			v.Shape = append(v.Shape, "N")
			continue
		}
		v.Shape = append(v.Shape, fmt.Sprint(d))
	}
	return &v
}
