package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/internal/target"
	"github.com/runexp/runexp/stages/ort"
)

// An Inspection is the declarations of an ONNX file and the results of running it.
type Inspection struct {
	File     string      `json:"file"`
	Bytes    int64       `json:"bytes"` // including external weights
	Producer string      `json:"producer"`
	IR       int         `json:"ir"`
	Opset    int         `json:"opset"`
	Inputs   []Value     `json:"inputs"`
	Outputs  []Value     `json:"outputs"`
	Weights  Weights     `json:"weights"`
	Norm     Norm        `json:"batch_normalization"`
	Leading  []string    `json:"leading"` // operators between the input and the first layer
	Nodes    []NodeCount `json:"operators"`
	Declared Declared    `json:"declared"` // its statements about its images and classes
	// remarks on parts of the file that are interpreted otherwise than written
	Notes   []string  `json:"notes,omitempty"`
	Presets []Preset  `json:"presets"`         // candidates: the file doesn't name one
	Range   []float64 `json:"range,omitempty"` // values of the least and largest byte, if any

	// Problem is the reason why the model can't be run; the fields below are then empty.
	Problem      string `json:"problem,omitempty"`
	NoClassifier bool   `json:"no_classifier,omitempty"` // Problem is that the model doesn't classify images

	// Candidates are the outputs that may have the classes; several are a question for the parameter output,
	// and Problem asks it.
	Candidates []Candidate `json:"candidates,omitempty"`

	Targets []string `json:"targets,omitempty"` // expressions that fit a model without classes

	Texts *Texts `json:"texts,omitempty"` // how a model of texts takes them

	Feed       modelfile.Spec `json:"feed"`      // assuming the default preset
	OpenSize   bool           `json:"open_size"` // the file leaves height or width open
	OpenHeight bool           `json:"open_height"`
	OpenWidth  bool           `json:"open_width"`
	OtherSize  int            `json:"other_size,omitempty"` // another height on which the model runs
	Cut        string         `json:"cut,omitempty"`        // the activation whose input is explained
	Head       Head           `json:"head"`                 // the kind of the answers, and the reason
	Alone      string         `json:"alone,omitempty"`      // why images are fed one by one
	Simplified []NodeCount    `json:"simplified"`           // operators after rewriting
	Rectifiers int            `json:"rectifiers"`
	Middle     *Value         `json:"middle,omitempty"`
	Final      *Value         `json:"final,omitempty"`
	Layers     []Value        `json:"layers,omitempty"`      // candidates, middle and final among them
	Gradient   string         `json:"no_gradient,omitempty"` // why there is no gradient
	Families   []string       `json:"families,omitempty"`    // of architectures; none if the graph doesn't tell

	// MultiplyAdds are the multiplications of an image's forward pass in convolutions and matrix products.
	MultiplyAdds int64 `json:"multiply_adds,omitempty"`

	Trial *Trial `json:"-"` // for checking which methods fit; nil if the model can't be run

	tokens bool // the model is a vision transformer
}

// Inspect examines an ONNX file as [ONNX] with these parameters would read it. A model that can't be run, or
// doesn't classify images, isn't an error: Problem holds the reason, and the other fields what the file
// declares. An input, output or size in p that the model doesn't have is an error. If the model leaves its
// size open and p doesn't set it, Inspect tries common sizes.
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
	m, notes, err := readFile(p.Path)
	if err != nil {
		return x, err
	}
	x.describe(m)
	x.Notes = notes
	if err := p.hold(m); err != nil {
		return x, err
	}
	x.Declared = declaredOf(m, p.Input)
	x.Presets = presets()
	texts, err := textInputs(m, p)
	if err == nil && texts == nil {
		err = noImages(m.Inputs(), p.Input)
	}
	if err != nil {
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
	if p.given(err) {
		return x, err
	}
	switch {
	case errors.Is(err, errNoClasses), errors.Is(err, errNoTexts):
		x.notClassifier(err)
	case err != nil:
		x.Problem = err.Error()
	}
	return x, nil
}

// given reports whether an error is about a parameter that isn't the default.
func (p ONNXParams) given(err error) bool {
	var field *stages.FieldError
	if !errors.As(err, &field) {
		return false
	}
	switch field.Field {
	case "input":
		return p.Input != ""
	case "output":
		return p.Output != ""
	case "layout":
		return p.Layout != "auto"
	case "size":
		return !p.Size.IsZero()
	case "length":
		return p.Length != 0
	}
	return false
}

// notClassifier records that the model is no classifier.
func (x *Inspection) notClassifier(err error) {
	x.NoClassifier, x.Problem = true, "this is neither an image nor a text classifier: "+err.Error()
}

// noImages returns why none of a model's inputs takes images, or nil if one does. A requested input is
// checked later, with an error at its parameter.
func noImages(inputs []onnx.Value, requested string) error {
	if requested != "" || len(inputs) == 0 {
		return nil
	}
	for _, in := range inputs {
		if !in.Known || len(in.Shape) == 4 { // its element type may not be floating-point
			return nil
		}
	}
	return takesImages(inputs[0])
}

// try runs the model and examines the graph from which gradients are compiled.
func (x *Inspection) try(ctx context.Context, m *onnx.Model, p ONNXParams) (err error) {
	defer onnx.Sound(&err)
	if in, err := pick(m.Inputs(), p.Input, "input", false); err == nil && takesImages(in) == nil {
		x.Range = rangeOf(m, in)
		x.OpenHeight, x.OpenWidth = openSize(in, p)
		x.OpenSize = x.OpenHeight || x.OpenWidth
	}
	if in, err := imageInput(m, p); err == nil && ambiguous(in, p) {
		p.Layout = cmp.Or(x.Declared.Layout, p.Layout)
	}
	out, err := x.readAtSizes(ctx, m, p)
	x.Candidates = out.candidates
	if err != nil {
		return err
	}
	x.Feed, x.Head, x.Alone, x.Texts = out.Spec, out.head, out.alone, out.texts
	x.Targets = target.Suggest(out.Spec.Outputs)
	if !out.Spec.Probabilities && out.head.Kind != kindLogits {
		x.Cut = cutOf(out.head.Through)
	}
	if other := out.Spec.Height * 2; !x.OpenSize && x.Texts == nil && !out.Spec.Signal() &&
		out.Spec.Classes > 0 && recurrentNode(m) == nil && runsAt(ctx, out.Model, other, out.Spec.Width*2) {
		x.OtherSize = other
	}
	t, err := trialOf(out.Model, "")
	if err != nil {
		return err
	}
	x.Trial = t
	g, err := t.graph(ctx)
	if err != nil {
		x.Gradient = err.Error()
		return nil
	}
	x.examine(g, out.Spec, t.batch())
	return nil
}

// readAtSizes reads a model that leaves its size open at the requested size, and at common ones until one
// runs.
func (x *Inspection) readAtSizes(ctx context.Context, m *onnx.Model, p ONNXParams) (out reading, err error) {
	requested, sizes := p.Size, []picture.Size{p.Size}
	if x.OpenSize {
		sizes = nil
		if !requested.IsZero() {
			sizes = append(sizes, requested)
		}
		common := []int{224, 32, 64, 28, 96, 299, 384, 512}
		if in, err := pick(m.Inputs(), p.Input, "input", false); err == nil && len(in.Shape) < 4 {
			common = []int{1000, 1024, 16000, 4096, 128}
		}
		for _, side := range common {
			sizes = append(sizes, picture.Size{H: side, W: side})
		}
	}
	var failed error // at the first size
	var without *reading
	for _, p.Size = range sizes {
		out, err = read(ctx, m, p)
		if err == nil && out.Spec.Classes == 0 && requested.IsZero() && p.Kind == "auto" && len(sizes) > 1 {
			if without == nil { // it may have classes at another size
				without = &reading{}
				*without = out
			}
			continue
		}
		switch {
		case err == nil && !requested.IsZero() && p.Size != requested:
			return reading{}, stages.BadField("size",
				"size is %v, but the model takes others, such as %v: %w", requested, p.Size, failed)
		case err == nil || ctx.Err() != nil:
			x.Notes = append(x.Notes, out.notes...)
			return out, err
		}
		failed = cmp.Or(failed, err)
	}
	if without != nil {
		x.Notes = append(x.Notes, without.notes...)
		return *without, nil
	}
	return out, failed
}

// examine describes the graph from which gradients are compiled, for this many images.
func (x *Inspection) examine(g *onnx.Graph, s modelfile.Spec, batch int) {
	x.Simplified = count(g.Proto.Graph.Node)
	x.Rectifiers = relevance.Rectifiers(g)
	x.Families = relevance.Families(g, x.Norm.Separate > 0 || x.Norm.Folded)
	_, err := relevance.Attend(g)
	x.tokens = err == nil
	x.MultiplyAdds = multiplyAdds(g) / int64(batch)
	shape := lower.LayerShapes(g)
	list := relevance.Cuts(g)
	middle, final := relevance.MiddleAndFinal(list)
	x.Middle, x.Final = layer(g, shape, middle), layer(g, shape, final)
	for _, name := range list {
		x.Layers = append(x.Layers, *layer(g, shape, name))
	}
	from := s.Input
	if s.Text != nil {
		if from = s.Text.Embedding; g.Shape(from) == nil {
			x.Gradient = "no value has a vector for each token: " +
				"" + cmp.Or(x.Texts.Without, "simplification removed it")
			return
		}
	}
	start := map[string]string{}
	for _, v := range s.Answers() {
		start[v] = v
	}
	if _, err := relevance.Backward(g, start, []string{from}, relevance.Policy{}); err != nil {
		x.Gradient = err.Error()
	}
}

// runsAt reports whether a model has equally many classes on images of another size.
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

// layer describes a value as attribution methods see it, with channels first if it is a feature map.
func layer(g *onnx.Graph, shape func(layer string) []int, name string) *Value {
	if name == "" {
		return nil
	}
	v := Value{Name: name, Type: typeName(g.Types[name].Elem)}
	for i, d := range shape(name) {
		if i == 0 {
			v.Shape = append(v.Shape, "N")
			continue
		}
		v.Shape = append(v.Shape, fmt.Sprint(d))
	}
	return &v
}

// cutOf returns the activation among the skipped operators.
func cutOf(through []string) string {
	for _, op := range []string{"Softmax", "LogSoftmax", "Sigmoid", "HardSigmoid"} {
		if slices.Contains(through, op) {
			return op
		}
	}
	return strings.Join(through, ", ")
}
