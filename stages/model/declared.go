package model

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/classname"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// Declared is the statements of an ONNX file about its images and classes: in its metadata, in the
// descriptions of its input and output, and in the labels of a ZipMap. None of it follows from running the
// model. A zero field isn't stated.
type Declared struct {
	Names    []string `json:"names,omitempty"`    // of the classes, in the order of the output
	Order    string   `json:"order,omitempty"`    // rgb or bgr
	Channels int      `json:"channels,omitempty"` // 1 for a grey image, 3 for a coloured one
	Layout   string   `json:"layout,omitempty"`   // nchw or nhwc

	// A pixel v in [0,1] is fed as (v·Scale − Mean)/Std, with numbers for red, green, blue or one for all;
	// Scale is 0 if it isn't stated.
	Scale float64   `json:"scale,omitempty"`
	Mean  []float64 `json:"mean,omitempty"`
	Std   []float64 `json:"std,omitempty"`

	Height int `json:"height,omitempty"`
	Width  int `json:"width,omitempty"`

	Said      []Said   `json:"said,omitempty"`      // every statement, in the order of the file
	Conflicts []string `json:"conflicts,omitempty"` // statements that contradict each other; the first counts
}

// Said is one statement of a file: about names, order, layout, range or size.
type Said struct {
	About  string `json:"about"`
	Text   string `json:"text"`   // such as "blue comes first"
	Source string `json:"source"` // such as `metadata "Image.BitmapPixelFormat" is "Bgr8"`
}

func (s Said) String() string { return s.Text + ": " + s.Source }

// Range returns the inputs for a black and a white pixel, over all channels; false if the file doesn't
// state them.
func (d Declared) Range() (black, white float64, ok bool) {
	if d.Scale == 0 {
		return 0, 0, false
	}
	black, white = math.Inf(1), math.Inf(-1)
	for c := range max(len(d.Mean), len(d.Std)) {
		mean, std := d.Mean[c%len(d.Mean)], d.Std[c%len(d.Std)]
		black, white = min(black, (0-mean)/std), max(white, (d.Scale-mean)/std)
	}
	return black, white, true
}

// IsZero reports whether the file states nothing that could be interpreted.
func (d Declared) IsZero() bool { return len(d.Said) == 0 }

// With returns the lines of parameters of model/onnx that feed pixels as stated; parameters that aren't
// stated are those of the preset with this name.
func (d Declared) With(preset string) []string {
	p, ok := modelfile.PresetNamed(preset)
	if !ok {
		p, _ = modelfile.PresetNamed("raw")
	}
	told := d.Scale != 0
	if told {
		p = d.nearest(p.Name)
	}
	lines := []string{"preset: " + p.Name}
	if d.Order != "" && d.Order != p.Order {
		lines = append(lines, "order: "+d.Order)
	}
	if told && !d.feedsAs(p) {
		lines = append(lines, fmt.Sprintf("scale: %v", d.Scale), "mean: "+listed(d.Mean),
			"std: "+listed(d.Std))
	}
	return lines
}

// nearest returns the preset that feeds pixels as stated, preferably the one with the given name, or in its
// order of channels; raw if there is none.
func (d Declared) nearest(preferred string) modelfile.Preset {
	best, _ := modelfile.PresetNamed("raw")
	most := 0
	for _, p := range modelfile.Presets() {
		if !d.feedsAs(p) {
			continue
		}
		fit := 1
		if p.Order == d.Order {
			fit += 2
		}
		if p.Name == preferred {
			fit++
		}
		if fit > most {
			best, most = p, fit
		}
	}
	return best
}

// feedsAs reports whether a preset feeds pixels as stated, in any order of channels.
func (d Declared) feedsAs(p modelfile.Preset) bool {
	return d.same(p.Scale, p.Mean, p.Std, 1e-3)
}

// same reports whether black and white pixels are fed as stated, up to a fraction of their distance.
func (d Declared) same(scale float64, mean, std []float64, part float64) bool {
	for c := range 3 {
		m, s := mean[c%len(mean)], std[c%len(std)]
		m2, s2 := d.Mean[c%len(d.Mean)], d.Std[c%len(d.Std)]
		most := part * d.Scale / s2
		if math.Abs(m/s-m2/s2) > most || math.Abs((scale-m)/s-(d.Scale-m2)/s2) > most {
			return false
		}
	}
	return true
}

func listed(v []float64) string {
	if len(v) == 1 {
		return fmt.Sprint(v[0])
	}
	var out []string
	for _, x := range v {
		out = append(out, fmt.Sprint(x))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// contradictions describes differences between the file's statements and the feeding of the model or the
// names of its classes.
func (d Declared) contradictions(p ONNXParams, s modelfile.Spec, labels string) (out []string) {
	says := func(about string) string {
		i := slices.IndexFunc(d.Said, func(s Said) bool { return s.About == about })
		return fmt.Sprintf("the file says that %s (%s)", d.Said[i].Text, d.Said[i].Source)
	}
	by := "preset " + p.Preset
	if d.Order != "" && s.Channels == 3 && d.Order != s.Order {
		if p.Order != "auto" {
			by = "order " + p.Order
		}
		first := map[string]string{modelfile.RGB: "red", modelfile.BGR: "blue"}[s.Order]
		out = append(out, fmt.Sprintf("%s; with %s %s comes first", says("order"), by, first))
	}
	if d.Scale != 0 && s.Channels == 3 && !d.same(s.Scale, s.Mean, s.Std, 0.02) {
		black, white, _ := Declared{Scale: s.Scale, Mean: s.Mean, Std: s.Std}.Range()
		out = append(out, fmt.Sprintf("%s; with preset %s and what overrides it they are fed as %.4g to %.4g",
			says("range"), p.Preset, black, white))
	}
	if d.Layout != "" && d.Layout != s.Layout {
		out = append(out, fmt.Sprintf("%s; the layout is %s", says("layout"), s.Layout))
	}
	if d.Names == nil {
		return out
	}
	names := d.classNames(s)
	if names == nil {
		return append(out, fmt.Sprintf("%s; the model has %d classes, so the names aren't used",
			says("names"), s.Classes))
	}
	for i, name := range strings.Split(labels, "\n") {
		if own := names[i]; labels != "" && !sameClass(own, name) {
			return append(out, fmt.Sprintf("%s; class %d is %q there and %q in labels", says("names"), i,
				own, name))
		}
	}
	return out
}

// classNames returns the file's names of a model's classes, each a line; nil if their number isn't that of
// the classes.
func (d Declared) classNames(s modelfile.Spec) []string {
	names := slices.Clone(d.Names)
	if s.Sides && len(names) == 1 {
		names, _ = sidesNamed(names)
	}
	if len(names) != s.Classes {
		return nil
	}
	for i, n := range names {
		names[i] = strings.Join(strings.Fields(n), " ")
	}
	return names
}

// sameClass reports whether two names may name one class.
func sameClass(a, b string) bool {
	a, b = letters(a), letters(b)
	return a == b || a == "" || b == "" || classname.Is(a, b) || classname.Is(b, a) ||
		strings.Contains(a, b) || strings.Contains(b, a)
}

// declaredOf reads a model's statements about its classes and about the input that takes images, "" for the
// only one.
func declaredOf(m *onnx.Model, input string) Declared {
	var r declaration
	for _, n := range m.Notes() {
		r.note(n.Key, n.Value, fmt.Sprintf("metadata %q is %s", n.Key, excerpt(n.Value)))
	}
	g := m.Proto.Graph
	if in, err := pick(m.Inputs(), input, "input", false); err == nil {
		i := slices.IndexFunc(g.Input, func(v *onnxpb.ValueInfoProto) bool { return v.Name == in.Name })
		r.input(g.Input[i])
	}
	labelsOfNodes(&r, g.Node)
	r.feed()
	return r.Declared
}

// input reads the description of an input, and the stated meaning of its dimensions.
func (r *declaration) input(v *onnxpb.ValueInfoProto) {
	_, meanings := onnx.Denotation(v)
	for i, meaning := range meanings {
		if len(meanings) == 4 && meaning == "DATA_CHANNEL" {
			source := fmt.Sprintf("dimension %d of input %q is denoted DATA_CHANNEL", i, v.Name)
			switch i {
			case 1:
				r.layout(modelfile.NCHW, source)
			case 3:
				r.layout(modelfile.NHWC, source)
			}
		}
	}
	if layout, source := layoutByNames(v); layout != "" {
		r.layout(layout, source)
	}
	doc := onnx.Doc(v)
	if doc == "" {
		return
	}
	source := fmt.Sprintf("input %q is described as %s", v.Name, excerpt(doc))
	r.readOrder(doc, source)
	if black, white, ok := rangeIn(doc); ok {
		r.pixels(black, white, source)
	}
	if strings.Contains(strings.ToUpper(doc), "NHWC") != strings.Contains(strings.ToUpper(doc), "NCHW") {
		r.readLayout(doc, source)
	}
}

// layoutByNames returns the layout that the names of an input's open dimensions show.
func layoutByNames(v *onnxpb.ValueInfoProto) (layout, source string) {
	dims := v.GetType().GetTensorType().GetShape().GetDim()
	if len(dims) != 4 {
		return "", ""
	}
	kind := func(i int) byte {
		switch letters(dims[i].GetDimParam()) {
		case "c", "channel", "channels", "numchannels", "inputchannels":
			return 'c'
		case "h", "height", "inputheight", "imageheight", "w", "width", "inputwidth", "imagewidth":
			return 's'
		}
		return 0
	}
	source = fmt.Sprintf("dimensions of input %q are named so", v.Name)
	switch {
	case kind(1) == 'c' || kind(1) != 's' && kind(2) == 's' && kind(3) == 's':
		return modelfile.NCHW, source
	case kind(3) == 'c' || kind(3) != 's' && kind(1) == 's' && kind(2) == 's':
		return modelfile.NHWC, source
	}
	return "", ""
}

// labelsOfNodes reads the names that nodes of ONNX's operators for classical learning give to classes.
func labelsOfNodes(r *declaration, nodes []*onnxpb.NodeProto) {
	for _, proto := range nodes {
		n := onnx.Node{NodeProto: proto}
		if n.Domain != "ai.onnx.ml" {
			continue
		}
		for _, attr := range []string{"classlabels_strings", "classes_strings"} {
			r.names(n.Texts(attr), fmt.Sprintf("%s of node %s", attr, n.Label()))
		}
	}
}

// excerpt quotes the beginning of a text.
func excerpt(text string) string {
	const shown = 60
	if r := []rune(text); len(r) > shown {
		text = string(r[:shown]) + "…"
	}
	return strconv.Quote(text)
}

// labelsOf returns the names of a model's classes, separated by line breaks: those of the list at path, or
// without one those that the file gives, if they are as many as the classes.
func labelsOf(path string, s modelfile.Spec, d Declared) (string, error) {
	if path != "" {
		return readLabels(path, s)
	}
	return strings.Join(d.classNames(s), "\n"), nil
}

// maxLabels limits the file of class names.
const maxLabels = 1 << 26

// readLabels returns the names of a model's classes in a list, separated by line breaks.
func readLabels(path string, s modelfile.Spec) (string, error) {
	if s.Classes == 0 {
		return "", fmt.Errorf("the model has no classes to name")
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
			return "", fmt.Errorf("%s:%d: not UTF-8 text", path, len(names)+1)
		}
		names = append(names, strings.TrimSpace(s.Text()))
	}
	for len(names) > 0 && names[len(names)-1] == "" {
		names = names[:len(names)-1]
	}
	switch {
	case s.Sides:
		if names, err = sidesNamed(names); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
	case len(names) != s.Classes:
		if is := stages.Mistaken(b[:min(len(b), 4096)]); is != nil {
			return "", fmt.Errorf("%s doesn't have one name per line: it is %w", path, is)
		}
		return "", fmt.Errorf("%s names %d classes, the model has %d", path, len(names), s.Classes)
	}
	return strings.Join(names, "\n"), nil
}
