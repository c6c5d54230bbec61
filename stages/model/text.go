package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/rewrite"
	"github.com/runexp/runexp/stages/internal/textnet"
)

const (
	// longestText is the largest number of tokens of a text, if neither the file nor the parameters state it.
	longestText = 512
	// judgedLength is the number of tokens of the texts by which a model's answers are judged, where it takes
	// any number, and shorterLength a second one.
	judgedLength, shorterLength = 24, 17
	// padTolerance is the largest difference that padding behind the attention mask may make to a model's
	// answers, relative to the largest: that of other kernels for other lengths.
	padTolerance = 2e-5
)

// Texts describes how a model takes texts.
type Texts struct {
	Inputs     []TextInput `json:"inputs"`
	Longest    int         `json:"longest"`              // number of tokens
	Open       bool        `json:"open,omitempty"`       // it may be more: a larger number wasn't tried
	Fixed      bool        `json:"fixed,omitempty"`      // all texts are that long, if need be padded
	Vocabulary int         `json:"vocabulary,omitempty"` // number of ids, 0 if unknown
	Embedding  string      `json:"embedding,omitempty"`  // the value that has a vector for each token
	Dimension  int         `json:"dimension,omitempty"`  // of these vectors
	Without    string      `json:"without,omitempty"`    // why there is no embedding
	Padded     bool        `json:"padded,omitempty"`     // the attention mask hides padding
	Lengths    string      `json:"lengths"`              // how texts of several lengths run
}

// A TextInput is an input of a model that takes texts.
type TextInput struct {
	Name  string `json:"name"`
	Takes string `json:"takes"` // ids, attention mask or token types
}

// textInputs returns the inputs of a model that takes texts, none for one that doesn't.
func textInputs(m *onnx.Model, p ONNXParams) (out []rewrite.TextInput, err error) {
	defer onnx.Sound(&err)
	all := m.Inputs()
	if !slices.ContainsFunc(all, func(in onnx.Value) bool { return !in.Known || len(in.Shape) < 4 }) {
		return nil, nil
	}
	if err := rewrite.TopologicalOrder(m); err != nil {
		return nil, nil // an error for images, too
	}
	return textnet.Inputs(m, p.Input)
}

// readText reads a model of texts, whose inputs are these.
func readText(ctx context.Context, m *onnx.Model, p ONNXParams,
	inputs []rewrite.TextInput) (out reading, err error) {
	defer onnx.Sound(&err)
	if err := p.onlyTexts(); err != nil {
		return out, err
	}
	if v := m.Opset(); v < 7 {
		return out, fmt.Errorf("the model uses opset %d: the oldest supported is 7", v)
	}
	if err := rewrite.TopologicalOrder(m); err != nil {
		return out, err
	}
	ids := inputs[0].Name
	text := modelfile.Text{Pad: -1, Mask: -1}
	found := textnet.Find(m, ids)
	text.Vocabulary = found.Vocabulary
	if most := textnet.Largest(inputs[0].Elem); most > 0 {
		text.Vocabulary = min(most, cmp.Or(text.Vocabulary, most))
	}
	text.Attention = slices.ContainsFunc(inputs,
		func(in rewrite.TextInput) bool { return in.Channel == modelfile.TextAttention })
	in := rewrite.TextInputs(m, modelfile.TextChannels, inputs)
	length := in.Shape[3]
	switch text.Fixed = length != onnx.Free; {
	case !text.Fixed:
		length = min(judgedLength, cmp.Or(p.Length, longestText))
	case p.Length != 0 && p.Length != length:
		return out, stages.BadField("length", "length is %d, but the model takes texts of %d tokens",
			p.Length, length)
	}
	q := p
	q.Input, q.Preset, q.Size, q.Layout = "", "unit", picture.Size{H: 1, W: length}, "auto"
	q.Order, q.Scale, q.Mean, q.Std = "auto", 0, nil, nil
	as := way{layout: modelfile.NCHW, channels: modelfile.TextChannels, text: &text}
	shapes, err := shapesOfSome(ctx, m, q, as, found)
	if err == nil {
		err = shapes.classifies(text, p.Output)
	}
	if err != nil {
		return out, err
	}
	shapes.embed(m, found.Values, &text)
	if out, err = readAs(ctx, m, q, as); err != nil {
		return out, aboutTexts(err)
	}
	if err := embeds(out, p); err != nil {
		return out, err
	}
	out.Spec.Text = &text
	out.texts = &Texts{Fixed: text.Fixed, Vocabulary: text.Vocabulary, Embedding: text.Embedding,
		Dimension: text.Dimension}
	if text.Embedding == "" {
		out.texts.Without = cmp.Or(found.Problem, "what the ids look up isn't a vector for each token")
	}
	for _, in := range inputs {
		out.texts.Inputs = append(out.texts.Inputs, TextInput{in.Name, textnet.Channels[in.Channel]})
	}
	if quantises(m) && out.Spec.Batch == 0 {
		out.Spec.Batch, out.alone = 1, "the model rounds by the range of a whole batch"
	}
	if out.texts.Lengths, err = lengthsOf(ctx, m, &out); err != nil {
		return out, err
	}
	out.texts.Padded = text.Attention
	if !text.Fixed {
		out.Spec.Width, err = longest(ctx, m, out.Model, p.Length)
	}
	out.texts.Longest, out.texts.Open = out.Spec.Width, !text.Fixed && out.Spec.Width == longestText
	return out, err
}

// lengthsOf describes how texts of several lengths run. It leaves out the attention mask of a model if
// padding behind it changes the answers.
func lengthsOf(ctx context.Context, m *onnx.Model, out *reading) (string, error) {
	text := out.Spec.Text
	hidden := false
	var err error
	if text.Attention && !quantises(m) {
		if hidden, err = hides(ctx, out.Model); err != nil {
			return "", err
		}
	}
	switch {
	case text.Fixed && hidden:
		return "shorter ones are padded behind the attention mask", nil
	case text.Fixed && text.Attention:
		out.notes = append(out.notes, "what a text is padded with changes the model's answers in spite of "+
			"its attention mask")
		return "shorter ones are padded, and the attention mask doesn't hide that entirely", nil
	case text.Fixed:
		return "shorter ones are padded, as no attention mask hides it", nil
	case hidden:
		return "each runs at the next power of two, padded behind the attention mask", nil
	case text.Attention:
		text.Attention = false
		return "each runs at its own length, as the attention mask doesn't hide padding entirely", nil
	}
	return "each runs at its own length, as no attention mask hides padding", nil
}

// textShapes are the shapes of values of a model of texts, for texts of one or two lengths.
type textShapes struct {
	rows    int
	lengths []int
	outputs []output
	shapes  []map[string][]int // by length, by value
}

// shapesOf runs a model on texts, and returns the shapes of its outputs and of other values.
func shapesOf(ctx context.Context, m *onnx.Model, p ONNXParams, as way,
	values []string) (t textShapes, err error) {
	s, err := specOf(m, p, as)
	if err != nil {
		return t, err
	}
	if t.outputs, err = outputsOf(m, p.Output); err != nil {
		return t, err
	}
	model := modelfile.Model{Spec: s}
	if model.ONNX, err = m.Encode(); err != nil {
		return t, err
	}
	if t.rows = s.Batch; t.rows == 0 || t.rows > largeBatch {
		t.rows = 1
	}
	t.lengths = []int{s.Width}
	if !s.Text.Fixed && s.Width > 1 {
		t.lengths = append(t.lengths, min(shorterLength, s.Width-1))
	}
	model.Spec.Output = t.outputs[0].value
	for _, o := range t.outputs[1:] {
		values = append(values, o.value)
	}
	for _, length := range t.lengths {
		model.Spec.Width = length
		shapes, err := shapesAt(ctx, model, t.rows, values)
		if err != nil {
			return t, err
		}
		t.shapes = append(t.shapes, shapes)
	}
	return t, nil
}

// shapesOfSome runs a model on texts of the ids that it may know, until it runs.
func shapesOfSome(ctx context.Context, m *onnx.Model, p ONNXParams, as way,
	found textnet.Embedding) (t textShapes, err error) {
	for _, as.text.Tried = range []int{cmp.Or(as.text.Vocabulary, found.Least, 128), 8, 2} {
		t, err = shapesOf(ctx, m, p, as, found.Values)
		if err == nil || as.text.Vocabulary > 0 || outOfMemory(ctx, err) {
			return t, err // the ids aren't the reason
		}
	}
	return t, err
}

// shapesAt runs a model on texts, and returns the shapes of its output and of other values.
func shapesAt(ctx context.Context, m modelfile.Model, rows int, values []string) (map[string][]int, error) {
	p, err := program.NewProbe(m, rows, append([]string{m.Spec.Output}, values...)...)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	all, err := p.Look(ctx, sampleTexts(m.Spec, rows, 0))
	if err != nil {
		if outOfMemory(ctx, err) {
			return nil, err
		}
		return nil, fmt.Errorf("the model fails on texts of %d tokens: %w", m.Spec.Width, err)
	}
	out := map[string][]int{m.Spec.Output: all[0].Shape}
	for i, v := range values {
		out[v] = all[1+i].Shape
	}
	return out, nil
}

// perToken reports whether a value has something for each token: one of its axes is as long as the text.
func (t textShapes) perToken(value string) bool {
	first := t.shapes[0][value]
	if len(t.lengths) == 1 {
		return len(first) > 2 && slices.Contains(first[1:], t.lengths[0])
	}
	return !slices.Equal(first, t.shapes[1][value])
}

// classifies returns an error for a model without an output that has classes of texts.
func (t textShapes) classifies(text modelfile.Text, requested string) error {
	var tokens []output
	for _, o := range t.outputs {
		if t.perToken(o.value) {
			tokens = append(tokens, o)
		}
	}
	if len(tokens) < len(t.outputs) {
		return nil
	}
	o, shape := tokens[0], t.shapes[0][tokens[0].value]
	what := fmt.Sprintf("output %q has numbers for each token, %v for %d "+
		"tokens", o.declared, shape, t.lengths[0])
	last := shape[max(0, len(shape)-1):]
	switch {
	case len(shape) < 3 && len(tokens) > 1:
		what += ": it finds where an answer begins and ends"
	case len(shape) < 3:
		what += ", and no classes"
	case text.Vocabulary > 0 && last[0] >= text.Vocabulary-1:
		what += ": a language model, which tells tokens; explain a sequence classifier"
	default:
		what += ": a classifier of tokens, or an encoder without a head; only classes of whole texts are " +
			"explained: wrap it so that it returns the logits of one token"
	}
	err := fmt.Errorf("%s: %w", what, errNoTexts)
	if requested != "" {
		return stages.BadField("output", "%w", err)
	}
	return err
}

// errNoTexts is the error of a model whose outputs have no classes for a text.
var errNoTexts = errors.New("one number per text and class is needed")

// embed finds the embedding among values: the first with a vector for each token. Rows that have the tokens
// first are exchanged.
func (t textShapes) embed(m *onnx.Model, values []string, text *modelfile.Text) {
	length := t.lengths[0]
	for _, v := range values {
		if s := t.shapes[0][v]; len(s) == 3 && s[0] == t.rows && s[1] == length {
			text.Embedding, text.Dimension = v, s[2]
			return
		}
	}
	for _, v := range values {
		if s := t.shapes[0][v]; len(s) == 3 && s[0] == length && s[1] == t.rows {
			if text.Embedding = rewrite.TextsFirst(m, v); text.Embedding != "" {
				text.Dimension = s[2]
			}
			return
		}
	}
}

// embeds returns an error if a model's answers are vectors of texts, not classes, unless the user states that
// they are.
func embeds(out reading, p ONNXParams) error {
	name := out.head.Output
	low := strings.ToLower(name)
	if p.Output != "" || !strings.Contains(low, "embed") && !strings.Contains(low, "hidden") &&
		!strings.Contains(low, "pool") {
		return nil
	}
	return stages.BadField("output", "output %q, of %d numbers a text, seems to be a vector of the text, "+
		"not a number for each class: %w; output: %s has it read as "+
		"such", name, out.Spec.Classes, errNoClasses, name)
}

// quantises reports whether a model rounds activations by their range, to which padding and other texts of a
// batch belong.
func quantises(m *onnx.Model) bool {
	return slices.ContainsFunc(m.Proto.Graph.Node, func(n *onnxpb.NodeProto) bool {
		return strings.HasPrefix(n.OpType, "DynamicQuantize")
	})
}

// hides reports whether padding behind the attention mask leaves a model's answers as they are.
func hides(ctx context.Context, m modelfile.Model) (bool, error) {
	rows := max(1, m.Spec.Batch)
	width := m.Spec.Width
	short := max(1, min(shorterLength, width-1))
	padded := sampleTexts(m.Spec, rows, 0)
	for k := range rows {
		clear(padded[k*m.Spec.Size()+modelfile.TextAttention*width+short:][:width-short])
	}
	other := slices.Clone(padded)
	for k := range rows { // other ids behind the mask
		at := other[k*m.Spec.Size()+modelfile.TextIDs*width:][:width]
		for i := short; i < width; i++ {
			at[i] = at[i-short]
		}
	}
	first, _, err := answer(ctx, m, padded, rows)
	if err != nil {
		return false, err
	}
	second, _, err := answer(ctx, m, other, rows)
	if err != nil || !unchanged(first, second) || m.Spec.Text.Fixed {
		return err == nil && unchanged(first, second), err
	}
	m.Spec.Width = short
	alone, _, err := answer(ctx, m, cropped(padded, m.Spec, width), rows)
	return err == nil && unchanged(first, alone), err
}

// cropped returns the beginnings of texts that are width tokens long.
func cropped(texts []float32, s modelfile.Spec, width int) (out []float32) {
	for row := range slices.Chunk(texts, width) {
		out = append(out, row[:s.Width]...)
	}
	return out
}

// unchanged reports whether answers differ by no more than arithmetic of other lengths explains.
func unchanged(a, b []float32) bool {
	largest, apart := 0.0, 0.0
	for i := range a {
		largest = max(largest, math.Abs(float64(a[i])))
		apart = max(apart, math.Abs(float64(a[i])-float64(b[i])))
	}
	return len(a) == len(b) && apart <= padTolerance*largest
}

// longest returns the largest number of tokens that a model runs with: the requested one, or else at most
// longestText.
func longest(ctx context.Context, graph *onnx.Model, m modelfile.Model, requested int) (int, error) {
	runs := func(length int) error {
		m.Spec.Width = length
		rows := max(1, m.Spec.Batch)
		_, _, err := answer(ctx, m, sampleTexts(m.Spec, rows, 0), rows)
		return err
	}
	most := cmp.Or(requested, longestText)
	failed := runs(most)
	if failed == nil || outOfMemory(ctx, failed) {
		return most, failed
	}
	good, bad := min(judgedLength, most), most // the model was read with texts of that many tokens
	guesses := tableSizes(graph, good, bad)
	for bad-good > 1 {
		try := (good + bad) / 2
		if i := slices.IndexFunc(guesses, func(n int) bool { return n > good && n < bad }); i >= 0 {
			try = guesses[i]
		}
		switch err := runs(try); {
		case err == nil:
			good = try
		case outOfMemory(ctx, err):
			return 0, err
		default:
			bad = try
		}
	}
	if requested != 0 {
		return 0, stages.BadField("length", "length is %d, but the model takes texts of at most %d "+
			"tokens: %w",
			requested, good, failed)
	}
	return good, nil
}

// tableSizes returns lengths of texts that the tables of a model suggest: a table of positions has a row for
// each, and sometimes for two more.
func tableSizes(m *onnx.Model, good, bad int) (out []int) {
	for _, t := range m.Proto.Graph.Initializer {
		if s := onnx.ShapeOf(t); len(s) == 2 && s[0] > good && s[0] <= bad+2 && !slices.Contains(out, s[0]) {
			out = append(out, s[0], s[0]+1, s[0]-2, s[0]-1)
		}
	}
	return out
}

// sampleTexts returns texts for trying a model, as many as rows. Their ids are from the middle of the
// vocabulary, since special tokens come first or last.
func sampleTexts(s modelfile.Spec, rows, from int) []float32 {
	tried := cmp.Or(s.Text.Tried, s.Text.Vocabulary, 128)
	first, span := tried/4, tried/2
	out := make([]float32, rows*s.Size())
	for k := range rows {
		text := out[k*s.Size():]
		for i := range s.Width {
			v := uint64(i+1)*0x9E3779B97F4A7C15 ^ uint64(k+from+1)*0xD1B54A32D192ED03
			v ^= v >> 29
			v *= 0xBF58476D1CE4E5B9
			text[modelfile.TextIDs*s.Width+i] = float32(first + int(v>>33)%max(1, span))
			text[modelfile.TextAttention*s.Width+i] = 1
		}
	}
	return out
}

// aboutTexts returns an error about a model's answers in words for texts.
func aboutTexts(err error) error {
	if errors.Is(err, errIgnored) {
		return judged("the model's answer is the same for texts that differ: it ignores their tokens, or " +
			"its " +
			"mask is 1 where tokens are to be ignored: export it with an attention mask that is 1 for " +
			"tokens " +
			"(output_kind has it read all the same)")
	}
	if field := (*stages.FieldError)(nil); errors.As(err, &field) && field == err {
		texts := *field
		texts.Err = &textError{field.Err}
		return &texts
	}
	return &textError{err}
}

// A textError is an error about a model's answers, which says text for image.
type textError struct{ error }

var imagesToTexts = strings.NewReplacer("an image", "a text", "images", "texts", "image", "text")

func (e *textError) Error() string { return imagesToTexts.Replace(e.error.Error()) }

func (e *textError) Unwrap() error { return e.error }

// onlyTexts returns an error for a parameter that a model of texts doesn't have.
func (p ONNXParams) onlyTexts() error {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"size", !p.Size.IsZero()}, {"layout", p.Layout != "auto"}, {"order", p.Order != "auto"},
		{"scale", p.Scale != 0}, {"mean", p.Mean != nil}, {"std", p.Std != nil},
		{"tokens", !p.Tokens.IsZero()},
	} {
		if f.given {
			return stages.BadField(f.name, "%s is for models of images, and this one takes texts: their "+
				"largest number of tokens is length", f.name)
		}
	}
	return nil
}

// textFacts are the facts of a model of texts.
func textFacts(s modelfile.Spec, f stages.Facts) {
	f["texts"] = "1"
	f["length"] = strconv.Itoa(s.Width)
	if s.Text.Vocabulary > 0 {
		f["vocabulary"] = strconv.Itoa(s.Text.Vocabulary)
	}
}
