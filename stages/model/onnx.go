package model

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/rewrite"
)

// ONNXParams are the parameters of [ONNX].
type ONNXParams struct {
	Path   string       `yaml:"path" doc:"the .onnx file; weights in files beside it are found" file:"read"`
	Preset string       `yaml:"preset" doc:"how pixels are normalised and ordered, unless the parameters below say otherwise" choices:"caffe-bgr|cifar10|cifar10-per-image|half|imagenet|raw|resisc45|unit"`
	Layout string       `yaml:"layout" doc:"the input's axes; auto looks where the 1 or 3 channels are" choices:"auto|nchw|nhwc"`
	Order  string       `yaml:"order" doc:"the order of the channels; auto is the preset's" choices:"auto|rgb|bgr"`
	Scale  float64      `yaml:"scale" doc:"the value of a white pixel before mean and std; 0 is the preset's" min:"0" max:"65535"`
	Mean   []float64    `yaml:"mean" doc:"subtracted from red, green, blue after scaling; one number for all, none for the preset's"`
	Std    []float64    `yaml:"std" doc:"what red, green, blue are divided by; one number for all, none for the preset's"`
	Input  string       `yaml:"input" doc:"the input that takes the images; empty if there is only one"`
	Output string       `yaml:"output" doc:"the output with the classes; empty is the first of floating-point numbers"`
	Size   picture.Size `yaml:"size" doc:"height and width where the file leaves them open, one number for both or [height, width]; a file that fixes both can have another size if the model pools all places before its last layer"`
	Kind   string       `yaml:"output_kind" doc:"what the output holds; auto looks for the Softmax, LogSoftmax or Sigmoid that makes it and takes what enters that, the logits; other outputs are probabilities if they sum to 1. A Softmax makes probabilities of logits, a Sigmoid of sigmoid-logits and of a single logit" choices:"auto|logits|sigmoid-logits|probabilities"`
	Labels string       `yaml:"labels" doc:"a text file with a class name a line; empty for none" file:"read"`
}

// Validate refuses numbers that don't normalise anything.
func (p ONNXParams) Validate() error {
	if p.Path == "" {
		return stages.BadField("path", "path names no model")
	}
	for _, f := range []struct {
		name   string
		values []float64
	}{{"mean", p.Mean}, {"std", p.Std}} {
		if n := len(f.values); n > 1 && n != 3 {
			return stages.BadField(f.name, "%s has %d numbers: 1 or 3 are possible", f.name, n)
		}
	}
	if slices.Contains(p.Std, 0) {
		return stages.BadField("std", "std contains 0, and pixels are divided by it")
	}
	return nil
}

// ONNX is the stage that reads an ONNX classifier. Its output holds the model with its weights and with all
// that is needed to feed it; its facts say its size, the number of classes and, where known, their names.
var ONNX = stages.New(stages.Def[ONNXParams]{
	Name: "model/onnx",
	Doc: `an image classifier from an ONNX file

The model takes one batch of images with 1 or 3 channels and returns a number for
every class. It owns how pixels are fed: layout, order of the channels, range, mean
and deviation. It is loaded once, to learn its classes and whether it takes more
than one image at a time. Attributions are with respect to the normalised input.

An input of integers takes the real numbers that the model makes of them: 0 to 255 where
a Cast does (preset raw), those that its scale stands for where a DequantizeLinear or a
QLinearConv reads it (the preset of the net that was quantised).`,
	Version:  3,
	Relation: stages.Whole,
	Outputs: []stages.Port{{Name: "model", Type: stages.Model,
		Doc: "the model; facts: height, width, channels, classes, labels"}},
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
	m, err := onnx.ReadFile(p.Path)
	if err != nil {
		return err
	}
	out, err := read(ctx, m, p)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, stages.ErrOutOfMemory) {
			return err
		}
		return fmt.Errorf("%s: %w", p.Path, err)
	}
	labels, err := readLabels(p.Labels, out.Spec.Classes)
	if err != nil {
		return stages.BadField("labels", "labels: %w", err)
	}
	payload, err := out.Encode()
	if err != nil {
		return err
	}
	e.Set("model", payload)
	e.SetFacts("model", stages.Facts{
		"height":   strconv.Itoa(out.Spec.Height),
		"width":    strconv.Itoa(out.Spec.Width),
		"channels": strconv.Itoa(out.Spec.Channels),
		"classes":  strconv.Itoa(out.Spec.Classes),
		"labels":   labels,
		"ext":      "runexp-model",
	})
	return nil
}

// read brings a model into the form that travels, which takes a run of it.
func read(ctx context.Context, m *onnx.Model, p ONNXParams) (out modelfile.Model, err error) {
	defer onnx.Sound(&err)
	if err = rewrite.Order(m); err != nil {
		return out, err
	}
	m.FlushSubnormals()
	if out.Spec, err = specOf(m, p); err != nil {
		return out, err
	}
	if out.ONNX, err = m.Encode(); err != nil {
		return out, err
	}
	if _, err := OpenRuntime(); err != nil {
		return out, err // which says nothing of the model
	}
	if p.Kind == "auto" {
		err = findHead(ctx, &out, headOf(m, out.Spec.Output))
	} else {
		err = said(ctx, &out)
	}
	var field *stages.FieldError
	in, _ := pick(m.Inputs(), p.Input, "input", false)
	switch {
	case err == nil || errors.As(err, &field):
	case !p.Size.IsZero() && !slices.Contains(in.Shape[1:], onnx.Free):
		err = stages.BadField("size", "size is %v, and the model takes images of %v alone: %w", p.Size,
			in.Shape[1:], err)
	case p.Output != "" && errors.Is(err, errNoClasses):
		err = stages.BadField("output", "%w", err)
	}
	return out, err
}

// specOf derives all that the model's graph and the parameters say.
func specOf(m *onnx.Model, p ONNXParams) (modelfile.Spec, error) {
	var s modelfile.Spec
	if v := m.Opset(); v < 7 {
		return s, fmt.Errorf("the model uses opset %d: 7 is the oldest that is supported", v)
	}
	in, err := pick(m.Inputs(), p.Input, "input", false)
	if err != nil {
		return s, err
	}
	err = takesImages(in)
	if err == nil {
		err = continuous(m, in)
	}
	if err != nil {
		if p.Input != "" {
			err = stages.BadField("input", "%w", err)
		}
		return s, err
	}
	out, err := classesOf(m, p.Output)
	if err != nil {
		return s, err
	}
	s.Input, s.Output = in.Name, out
	if err := frame(&s, in, p); err != nil {
		return s, err
	}
	if err := resizable(m, s, in); err != nil {
		return s, err
	}
	if err := fill(&s, p); err != nil {
		return s, err
	}
	s.Probabilities, s.Independent = p.Kind == "probabilities", p.Kind == "sigmoid-logits"
	return s, nil
}

// fill says how pixels are fed to a model of known channels.
func fill(s *modelfile.Spec, p ONNXParams) (err error) {
	preset, ok := modelfile.PresetNamed(p.Preset)
	if !ok {
		return fmt.Errorf("there is no preset %q", p.Preset)
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

// pick returns the value called name, or the only or first one.
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
		return onnx.Value{}, fmt.Errorf("the model has the inputs %s and takes images alone only if there "+
			"is one", strings.Join(quoted, ", "))
	}
	return values[0], nil
}

// classesOf returns the value that holds the answer: the output of that name, or the first of floating-point
// numbers. What a QuantizeLinear rounds is such.
func classesOf(m *onnx.Model, name string) (string, error) {
	outputs := m.Outputs()
	if name == "" {
		if i := slices.IndexFunc(outputs, func(v onnx.Value) bool { return floating(v.Elem) }); i >= 0 {
			return outputs[i].Name, nil
		}
	}
	out, err := pick(outputs, name, "output", true)
	if err != nil || floating(out.Elem) {
		return out.Name, err
	}
	n := m.Producer(out.Name)
	if n != nil && n.OpType == "QuantizeLinear" && len(n.Input) > 0 {
		return n.Input[0], nil
	}
	made := ""
	if n != nil {
		made = fmt.Sprintf(", which %s makes", onnx.Node{NodeProto: n}.Label())
	}
	return "", stages.BadField("output",
		"output %q holds %s%s: a number of a floating-point type for every class is needed, so name "+
			"another output or export the model without what picks the class", out.Name, out.Elem, made)
}

// takesImages refuses an input that can't take images, whatever the parameters say.
func takesImages(in onnx.Value) error {
	switch in.Elem {
	case onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_FLOAT16, onnxpb.TensorProto_DOUBLE:
	default:
		if !integers(in.Elem) {
			return fmt.Errorf("input %q takes %s: only floating-point inputs are supported, and integers",
				in.Name, in.Elem)
		}
	}
	if !in.Known || len(in.Shape) != 4 {
		return fmt.Errorf("input %q takes %s of the shape %v: images have 4 dimensions", in.Name, in.Elem,
			in.Shape)
	}
	return nil
}

// frame derives batch, layout and size from the shape of an input that takes images.
func frame(s *modelfile.Spec, in onnx.Value, p ONNXParams) error {
	s.Batch = max(0, in.Shape[0])
	isCount := func(d int) bool { return d == 1 || d == 3 }
	switch {
	case p.Layout != "auto":
		s.Layout = p.Layout
	case isCount(in.Shape[1]):
		s.Layout = modelfile.NCHW
	case isCount(in.Shape[3]):
		s.Layout = modelfile.NHWC
	case in.Shape[1] == onnx.Free:
		s.Layout = modelfile.NCHW
	}
	ch, y, x := axes(s.Layout)
	c := in.Shape[ch]
	if c == onnx.Free {
		c = 3
	}
	if s.Layout == "" || !isCount(c) {
		return stages.BadField("layout",
			"input %q of shape %v has no dimension of 1 or 3 channels where the layout expects it", in.Name,
			in.Shape)
	}
	h, w, err := sized(in.Shape[y], in.Shape[x], p.Size)
	if err != nil {
		return err
	}
	if rows := max(1, s.Batch); w > picture.MaxPixels/h/rows {
		return fmt.Errorf("input %q takes %d images of %d×%d pixels at once: %d pixels are the most", in.Name,
			rows, h, w, picture.MaxPixels)
	}
	s.Height, s.Width, s.Channels = h, w, c
	return nil
}

// channels returns given, or else the preset's numbers, for n channels.
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
	// A grey model: presets are of colours, and for greys their average is meant.
	sum := 0.0
	for _, v := range preset {
		sum += v
	}
	return []float64{sum / float64(len(preset))}, nil
}

// maxLabels bounds the file with the classes' names.
const maxLabels = 1 << 26

func readLabels(path string, classes int) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := stages.ReadFile(path, maxLabels)
	if err != nil {
		return "", err
	}
	var names []string
	for s := bufio.NewScanner(bytes.NewReader(b)); ; {
		if !s.Scan() {
			if err := s.Err(); err != nil {
				return "", fmt.Errorf("%s: %w", path, err)
			}
			break
		}
		if !utf8.Valid(s.Bytes()) {
			return "", fmt.Errorf("%s:%d: not a text", path, len(names)+1)
		}
		names = append(names, strings.TrimSpace(s.Text()))
	}
	for len(names) > 0 && names[len(names)-1] == "" {
		names = names[:len(names)-1]
	}
	if len(names) != classes {
		return "", fmt.Errorf("%s names %d classes, the model has %d", path, len(names), classes)
	}
	return strings.Join(names, "\n"), nil
}
