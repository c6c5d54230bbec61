// Package model has the stages that load and run models. model/onnx reads a file (onnx.go): its input
// (layout.go, integers.go, for texts text.go), its batch (probe.go), and its statements about images and
// classes (declared.go) in its metadata (declaration.go, note_readers.go, literal.go). It is run on several
// images (look.go), and its outputs (outputs.go) are judged (reading.go) by the graph and the answers
// (finding.go): by the properties that the graph ensures for its values (guarantee.go,
// guarantee_arithmetic.go, guarantee_rules.go) after the last layers (tail.go), by the operators at its end
// (head.go), and by the values that give the answers (match.go). One output becomes two classes, and
// outputs without classes are kept as they are (outputs.go).
//
// model/predict runs it on images (predict.go), and for an expression records what that freezes (freeze.go);
// other stages derive another model from it (rewrite.go, and target.go for an expression of its outputs).
// model/units makes nets whose true attribution is known (units.go). The command inspects files (inspect.go,
// describe.go), tries methods on the model (trial.go), and weighs hypotheses of how it is fed (feeds.go) by
// labelled images (accuracy.go, evidence.go).
package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/rewrite"
	"github.com/runexp/runexp/stages/ort"
)

// ONNXParams are the parameters of [ONNX].
type ONNXParams struct {
	Path      string       `yaml:"path" doc:"the .onnx file; external weights are read from the files that it names" file:"read"`
	Preset    string       `yaml:"preset" doc:"normalisation and channel order of pixels; the parameters below override it" choices:"caffe-bgr|cifar10|cifar10-per-image|half|imagenet|raw|resisc45|unit"`
	Layout    string       `yaml:"layout" doc:"axes of the input; auto: by the axis of size 1 or 3, and where the file leaves it open the one of both that the model runs in. nct and ntc are those of signals, [N, channels, time] or [N, time, channels]" choices:"auto|nchw|nhwc|nct|ntc"`
	Order     string       `yaml:"order" doc:"channel order; auto: the preset's" choices:"auto|rgb|bgr"`
	Scale     float64      `yaml:"scale" doc:"value of a white pixel before mean and std; 0: the preset's" min:"0" max:"65535"`
	Mean      []float64    `yaml:"mean" doc:"subtracted from red, green, blue after scaling; one number applies to all; default: the preset's"`
	Std       []float64    `yaml:"std" doc:"divisor of red, green, blue after subtracting mean; one number applies to all; default: the preset's"`
	Input     string       `yaml:"input" doc:"name of the input that takes images; default: the only one"`
	Constants []string     `yaml:"constants" key:"added" doc:"of a model with several inputs: NAME=NUMBERS for each that doesn't take the images, such as [\"age=40\", \"point=0.5, 0.5\"]; one number fills the input, or else there are as many as it has for an image"`
	Output    string       `yaml:"output" doc:"name of the output with the classes; default: the only one whose answers are a number per image and class"`
	Size      picture.Size `yaml:"size" doc:"height and width, one number for both or [height, width]; required if the file leaves them open; a model with global pooling also takes other sizes than its file fixes"`
	Tokens    onnx.Tokens  `yaml:"tokens" key:"added" doc:"of a vision transformer: how many tokens come before the patches, and the grid of these, such as 5+7x7 for a class token, 4 registers and 7 rows of 7 patches; default: as the model shows, which is an error where it isn't certain"`
	Length    int          `yaml:"length" key:"added" doc:"of a model that takes texts: the largest number of tokens; default: what the file fixes, or else the largest that it runs with, 512 at most" min:"0" max:"1000000"`
	Kind      string       `yaml:"output_kind" doc:"kind of the output; auto: found by the graph and by the answers to several images, and an error if neither tells; the logits in front of a final Softmax, LogSoftmax or Sigmoid are explained. Softmax converts logits to probabilities, Sigmoid converts sigmoid-logits; of one output, logits are sigmoid-logits. none: the model has no classes, and targets are expressions of its outputs, as for an embedding or a regression of several numbers" choices:"auto|logits|sigmoid-logits|probabilities|none"`
	Labels    string       `yaml:"labels" doc:"a text file with one class name per line, of a model with one output also the positive class's alone; default: the names in the file, if it has as many" file:"read"`
}

// Validate rejects parameters that define no normalisation.
func (p ONNXParams) Validate() error {
	if p.Path == "" {
		return stages.BadField("path", "path is required: an .onnx file")
	}
	for _, f := range []struct {
		name   string
		values []float64
	}{{"mean", p.Mean}, {"std", p.Std}} {
		if n := len(f.values); n > 1 && n != 3 {
			return stages.BadField(f.name, "%s has %d numbers: 1 or 3 are needed", f.name, n)
		}
	}
	if slices.Contains(p.Std, 0) {
		return stages.BadField("std", "std contains 0: pixels are divided by std")
	}
	_, err := p.held()
	return err
}

// ONNX is the stage that loads an ONNX model. Its output is the model with its weights and its preprocessing;
// its facts are the image size, the number of classes and, if known, their names, or without classes the
// outputs and their shapes.
var ONNX = stages.New(stages.Def[ONNXParams]{
	Name: "model/onnx",
	Doc: `a model of images, signals or texts from an ONNX file

A classifier takes a batch of images with 1 or 3 channels and returns a number per class.
The file may be named by an address: https://HOST/FILE#sha256=DIGEST, or
hf://ORGANISATION/REPOSITORY@REVISION/FILE of the Hugging Face Hub. It is fetched once,
into the user's cache folder, with what it keeps its weights in if that is called like
the file and ends in .data or _data; "runexp pin" writes digest and revision. Of a .gz
file, the file inside is read, and the digest is that of it.

Its preprocessing is part of it: layout, channel order, range, mean and standard
deviation. It is run on a few images, to determine its classes and whether it takes more
than one image at a time. Attributions are with respect to the normalised input.

What its output means follows from its graph and its answers. Numbers that a linear layer
leaves unbounded are logits. Softmax and Sigmoid, whatever they are written with and
whatever scales, permutes, rounds, sorts (TopK) or names (ZipMap) behind them, are looked
through. Other probabilities, such as means of several Softmaxes or some columns of one,
are explained themselves, divided by what the model returns for 1. Either way a class's
probability is the model's own. A model with NaN among its answers, or with one answer for
all images is refused, and so are two outputs with classes: the parameters output and
output_kind say what can't be found.

A model none of whose outputs has a number per class is read without classes: a
segmentation, a detector before non-maximum suppression, one with several outputs. Its
outputs are those that have numbers of one shape for each image, and what is explained is
an expression of them, the parameter target of a stage: "runexp inspect" shows the shapes
and expressions that fit. An embedding [N, numbers] looks like logits, and so may a
regression: output_kind: none says that it has no classes. Rows after non-maximum
suppression are as many as an image has objects, and are left out.

What the file says of itself is told by "runexp inspect": metadata such as WinML's, the
names that Ultralytics and Transformers write, statistics of pixels, descriptions and
denotations of its input. Parameters aren't changed by it; where they contradict it, check
and run warn. Only the classes' names are the file's, where labels isn't given and there
are as many.

A Dropout in training mode is taken as in evaluation, where it changes nothing; a model
whose answer is random is refused. All that the file keeps in other files, in functions
and nodes too, is read from the model's folder, and counts in the results' keys.

A model with one output has two classes, 1 that it answers for and 0 against it: of a
logit z, their logits are z and −z, of a probability p, p and 1 − p. So images that the
model takes for class 0 are explained by what speaks for 0. A regression without bounds
looks like a logit, and is taken for one.

A model whose input has 3 axes of floating point, [N, channels, time] or [N, time,
channels], or 2, takes signals: images of one row, with 1 or 3 channels; size is their
length. Its layers are feature maps of one row. Of a model with several inputs, constants
has numbers for all that don't take the images.

A model whose input is ids of tokens, [texts, tokens], takes texts. It may have an
attention mask and token types, too, by the names that exporters give. Its methods
explain the embedding, the value that has a vector for each token. Texts are padded
behind the attention mask, or where padding would change the answers run at their own
lengths. Parameters of pixels, such as preset, have no meaning for it.

An integer input becomes the real numbers that the model converts it to: 0 to 255 for a
Cast (preset raw), or the dequantised values for a DequantizeLinear or a QLinearConv
(the preset of the net before quantisation).`,
	Version:  4,
	Relation: stages.Whole,
	Outputs: []stages.Port{{Name: "model", Type: stages.Model,
		Doc: "the model; facts: height, width, channels, classes, labels; without classes: returns"}},
	Defaults: ONNXParams{Preset: "imagenet", Layout: "auto", Order: "auto", Kind: "auto"},
	Sources:  onnxSources,
	Run:      runONNX,
})

func onnxSources(p ONNXParams, _ []string) ([]stages.Source, error) {
	out := []stages.Source{{ID: "model", File: p.Path}}
	files, err := onnx.ExternalFiles(p.Path)
	if err != nil {
		return nil, err
	}
	for i, f := range files {
		out = append(out, stages.Source{ID: fmt.Sprintf("weights-%d", i), File: f})
	}
	if p.Labels != "" {
		out = append(out, stages.Source{ID: "labels", File: p.Labels})
	}
	return out, nil
}

func runONNX(ctx context.Context, p ONNXParams, e *stages.Env) error {
	m, notes, err := readFile(p.Path)
	if err == nil {
		err = p.hold(m)
	}
	if err != nil {
		return err
	}
	out, err := read(ctx, m, p)
	if err != nil {
		switch {
		case ctx.Err() != nil:
			return err
		case errors.Is(err, stages.ErrOutOfMemory): // no batch is smaller than the trial's
			return &stages.BatchError{Err: err, Rows: 1}
		}
		return fmt.Errorf("%s: %w", p.Path, err)
	}
	declared := declaredOf(m, p.Input)
	labels, err := labelsOf(p.Labels, out.Spec, declared)
	if err != nil {
		return stages.BadField("labels", "labels: %w", err)
	}
	for _, text := range append(append(notes, out.notes...), warnings(m, declared, p, out.Spec, labels)...) {
		e.Warn("%s", text)
	}
	payload, err := out.Encode()
	if err != nil {
		return err
	}
	e.Set("model", payload)
	e.SetFacts("model", factsOf(out.Spec, labels))
	return nil
}

// warnings returns warnings about a model that can be run.
func warnings(m *onnx.Model, d Declared, p ONNXParams, s modelfile.Spec, labels string) []string {
	out := d.contradictions(p, s, labels)
	if n := normOf(m.Proto.Graph); n.Training > 0 {
		out = append(out, fmt.Sprintf("%d of %d BatchNormalizations normalise by the batch, as in "+
			"training, so that answers depend on it: export the model in evaluation "+
			"mode", n.Training, n.Separate))
	}
	return out
}

// factsOf returns the facts of a model whose classes have these names.
func factsOf(s modelfile.Spec, labels string) stages.Facts {
	f := stages.Facts{
		"height":   strconv.Itoa(s.Height),
		"width":    strconv.Itoa(s.Width),
		"channels": strconv.Itoa(s.Channels),
		"classes":  strconv.Itoa(s.Classes),
		"labels":   labels,
		"ext":      "runexp-model",
	}
	if s.Classes == 0 {
		delete(f, "classes")
		delete(f, "labels")
		f["returns"] = returned(s.Outputs)
	}
	if s.Sides {
		f["outputs"] = "1"
	}
	if s.Text != nil {
		textFacts(s, f)
	}
	return f
}

// returned lists the outputs of a model without classes, a line each.
func returned(outputs []modelfile.Output) string {
	var lines []string
	for _, o := range outputs {
		lines = append(lines, o.String())
	}
	return strings.Join(lines, "\n")
}

// readFile reads a file with the data that it keeps in others, its functions inlined, in evaluation mode.
// Notes are remarks on parts that are interpreted otherwise than written.
func readFile(path string) (m *onnx.Model, notes []string, err error) {
	if m, err = onnx.ReadFile(path); err != nil {
		return nil, nil, err
	}
	if err = rewrite.InlineFunctions(m); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	switch n := rewrite.Evaluation(m); {
	case n == 1:
		notes = append(notes, "a Dropout is in training mode: it is taken as in evaluation, where it "+
			"changes nothing")
	case n > 1:
		notes = append(notes, fmt.Sprintf("%d Dropouts are in training mode: they are taken as in "+
			"evaluation, where they change nothing", n))
	}
	return m, notes, nil
}

// held returns the inputs that are held constant.
func (p ONNXParams) held() (out []rewrite.HeldInput, err error) {
	for _, text := range p.Constants {
		c, err := rewrite.ParseHeldInput(text)
		if err != nil {
			return nil, stages.BadField("constants", "constants: %w", err)
		}
		if slices.ContainsFunc(out, func(o rewrite.HeldInput) bool { return o.Name == c.Name }) {
			return nil, stages.BadField("constants", "constants: input %q is given twice", c.Name)
		}
		out = append(out, c)
	}
	return out, nil
}

// hold holds inputs of a model constant.
func (p ONNXParams) hold(m *onnx.Model) error {
	list, err := p.held()
	if err != nil {
		return err
	}
	var names []string
	for _, v := range m.Inputs() {
		names = append(names, v.Name)
	}
	for _, c := range list {
		if !slices.Contains(names, c.Name) {
			return stages.BadName("constants", c.Name, names, "constants: the model has no input %q; it "+
				"has %s", c.Name, strings.Join(names, ", "))
		}
	}
	if err := rewrite.HoldInputs(m, list); err != nil {
		return stages.BadField("constants", "constants: %w", err)
	}
	return nil
}

// readAs reads a model with one interpretation of its input's axes, and returns the interpretation of the
// whole.
func readAs(ctx context.Context, m *onnx.Model, p ONNXParams, axes way) (out reading, err error) {
	defer onnx.Sound(&err)
	if err = rewrite.TopologicalOrder(m); err != nil {
		return out, err
	}
	m.FlushSubnormals()
	if out.Spec, err = specOf(m, p, axes); err != nil {
		return out, err
	}
	if out.ONNX, err = m.Encode(); err != nil {
		return out, err
	}
	if _, err := ort.Default(); err != nil {
		return out, err // not an error of the model
	}
	outputs, err := outputsOf(m, p.Output)
	if err == nil {
		outputs, err = deterministic(m, outputs)
	}
	if err == nil {
		r := &reader{ctx: ctx, m: m, model: out.Model, kind: p.Kind}
		out, err = r.read(outputs)
	}
	if err == nil {
		err = twoSides(&out.Model)
	}
	var field *stages.FieldError
	in, _ := pick(m.Inputs(), p.Input, "input", false)
	switch {
	case err == nil || errors.As(err, &field):
	case !p.Size.IsZero() && !slices.Contains(in.Shape[1:], onnx.Free):
		err = stages.BadField("size", "size is %v, but the model only takes images of %v: %w", p.Size,
			in.Shape[1:], err)
	case p.Output != "" && errors.Is(err, errNoClasses):
		err = stages.BadField("output", "%w", err)
	}
	return out, err
}

// deterministic returns the outputs of a model that are the same at every call, or an error if there are
// none.
func deterministic(m *onnx.Model, outputs []output) (same []output, err error) {
	for _, o := range outputs {
		if random := rewrite.Deterministic(m, o.value); random == nil {
			same = append(same, o)
		} else if err == nil {
			err = random
		}
	}
	if len(same) > 0 {
		return same, nil
	}
	return nil, err
}

// imageInput returns the input that takes images.
func imageInput(m *onnx.Model, p ONNXParams) (in onnx.Value, err error) {
	defer onnx.Sound(&err)
	if v := m.Opset(); v < 7 {
		return in, fmt.Errorf("the model uses opset %d: the oldest supported is 7", v)
	}
	if in, err = pick(m.Inputs(), p.Input, "input", false); err != nil {
		return in, err
	}
	if others := m.Inputs(); len(others) > 1 {
		others = slices.DeleteFunc(others, func(v onnx.Value) bool { return v.Name == in.Name })
		_, err = pick(append([]onnx.Value{in}, others...), "", "input", false)
		return in, err
	}
	if err = takesImages(in); err == nil {
		err = continuous(m, in)
	}
	if err != nil && p.Input != "" {
		err = stages.BadField("input", "%w", err)
	}
	return in, err
}

// specOf derives the part of the specification that follows from the graph and the parameters, without
// running the model.
func specOf(m *onnx.Model, p ONNXParams, axes way) (modelfile.Spec, error) {
	var s modelfile.Spec
	in, err := imageInput(m, p)
	if err != nil {
		return s, err
	}
	if _, err := outputsOf(m, p.Output); err != nil {
		return s, err
	}
	s.Input, s.Tokens = in.Name, p.Tokens
	if err := setInputShape(&s, in, p.Size, axes); err != nil {
		return s, err
	}
	if err := checkResizable(m, s, in); err != nil {
		return s, err
	}
	if err := setPreprocessing(&s, p); err != nil {
		return s, err
	}
	return s, nil
}

// setPreprocessing sets how pixels become the input of a model whose number of channels is known.
func setPreprocessing(s *modelfile.Spec, p ONNXParams) (err error) {
	preset, ok := modelfile.PresetNamed(p.Preset)
	if !ok {
		return fmt.Errorf("unknown preset %q", p.Preset)
	}
	s.Order, s.Scale = preset.Order, preset.Scale
	if p.Order != "auto" {
		s.Order = p.Order
	}
	if s.Channels == 1 {
		s.Order = modelfile.RGB
	}
	if p.Scale != 0 {
		s.Scale = p.Scale
	}
	if s.Mean, err = channels(p.Mean, preset.Mean, s.Channels); err != nil {
		return stages.BadField("mean", "mean: %w", err)
	}
	if s.Std, err = channels(p.Std, preset.Std, s.Channels); err != nil {
		return stages.BadField("std", "std: %w", err)
	}
	return nil
}

// pick returns the value called name; if name is empty, the only value, or the first one.
func pick(values []onnx.Value, name, what string, first bool) (onnx.Value, error) {
	var names, quoted []string
	for _, v := range values {
		if v.Name == name {
			return v, nil
		}
		names, quoted = append(names, v.Name), append(quoted, strconv.Quote(v.Name))
	}
	switch {
	case len(values) == 0:
		return onnx.Value{}, fmt.Errorf("the model has no %s", what)
	case name != "":
		return onnx.Value{}, stages.BadName(what, name, names, "the model has no %s %q; it has %s", what,
			name, strings.Join(quoted, ", "))
	case len(values) > 1 && !first:
		return onnx.Value{}, severalInputs(names, quoted)
	}
	return values[0], nil
}

// severalInputs is the error of a model with inputs besides that of the images.
func severalInputs(names, quoted []string) error {
	return fmt.Errorf("the model has the inputs %s, and one takes the images: hold the others constant "+
		"by the parameter constants, such as constants: [%q]", strings.Join(quoted, ", "),
		names[len(names)-1]+"=0")
}

// channels returns given, or the preset's numbers by default, for n channels.
func channels(given, preset []float64, n int) ([]float64, error) {
	switch {
	case len(given) == n:
		return given, nil
	case len(given) == 1:
		return slices.Repeat(given, n), nil
	case len(given) > 1:
		return nil, fmt.Errorf("%d numbers for a model of %d channels", len(given), n)
	case n == len(preset):
		return preset, nil
	}
	// A greyscale model takes the mean over the preset's colours.
	sum := 0.0
	for _, v := range preset {
		sum += v
	}
	return []float64{sum / float64(len(preset))}, nil
}
