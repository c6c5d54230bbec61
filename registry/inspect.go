package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
)

// A Look chooses the input, output, layout and size of a model; the zero Look takes the file's own
// declarations.
type Look struct {
	Input, Output string
	Layout        string // of the input's axes, nchw or nhwc; "": the trial's result
	Size          string // the parameter size of model/onnx; "" for none
	Length        int    // its parameter length; 0 for none
	Preset        string // the parameter preset of the stanza; "": what is declared, measured or guessed
	Precision     string // whose nodes are listed, float16 alone; "" for none
}

func (l Look) params(path string) *model.ONNXParams {
	p := model.ONNX.NewParams().(*model.ONNXParams)
	p.Path, p.Input, p.Output, p.Layout = path, l.Input, l.Output, cmp.Or(l.Layout, p.Layout)
	p.Length = l.Length
	return p
}

// check returns an error for an unknown layout.
func (l Look) check() error {
	if names := []string{"nchw", "nhwc", "nct", "ntc"}; l.Layout != "" && !slices.Contains(names, l.Layout) {
		return stages.BadName("layout", l.Layout, names, "%q is no layout: nchw or nhwc, of signals nct "+
			"or ntc", l.Layout)
	}
	switch l.Precision {
	case "", stages.Float16:
		return nil
	case stages.BFloat16, stages.TF32:
		return stages.BadField("precision", "what computes in %s is the choice of the provider's libraries",
			l.Precision)
	}
	return stages.BadName("precision", l.Precision, []string{stages.Float16},
		"%q is no precision whose nodes are listed: float16", l.Precision)
}

// An Inspection describes an ONNX file, and the stages that fit it.
type Inspection struct {
	model.Inspection
	Measured *model.Feed `json:"-"` // for the stanza; nil for a guess
	Methods  []Fit       `json:"methods"`
	Rewrites []Fit       `json:"rewrites"` // stages that rewrite the model
	// lines of an experiment; none for a model that no stage takes
	Stanza string     `json:"stanza,omitempty"`
	Uses   []StageUse `json:"uses,omitempty"` // of devices
	// Float16 lists what the nodes of a forward pass compute in where its precision is float16.
	Float16 []Halved `json:"float16,omitempty"`
}

// A Halved says of a node whether it computes in float16 or in float32, and why.
type Halved = model.Halved

// A StageUse describes how the programs that a stage runs on a model use a device.
type StageUse struct {
	Stage    string  `json:"stage"`
	Device   string  `json:"device"`
	Programs []Usage `json:"programs,omitempty"`
	Problem  string  `json:"problem,omitempty"` // why they don't run there
}

// The descriptions of programs on devices; their types are documented in package model.
type (
	Usage    = model.Usage    // of a device by a program
	Fallback = model.Fallback // an operator that the CPU computes
	Copies   = model.Copies   // between the device and the host
)

// A Fit says whether an attribution method can explain a model, or a stage rewrite it.
type Fit struct {
	Method string `json:"method"`
	Fits   bool   `json:"fits"`
	Why    string `json:"why,omitempty"` // why it doesn't fit; or a remark if it does
	// Hides reports that for texts it needs a token that hides others, as Why says.
	Hides bool `json:"hides,omitempty"`
}

// forTexts are parameters of methods whose defaults may be for images, and their values for texts.
var forTexts = map[string]string{"baseline": "mask", "substrate": "mask", "unit": "pixel",
	"preset": "epsilon-plus"}

// unfitTexts returns why a method doesn't fit a model of texts. It gives parameters other values where their
// defaults are for images, and returns what is to be written then.
func unfitTexts(ctx context.Context, t *model.Trial, s *stages.Stage, params any) (write string, err error) {
	var fields []string
	for range len(forTexts) + 1 {
		err = t.Unfit(ctx, s, params, func(string) bool { return false }, nil)
		if err == nil && s.Check != nil {
			err = s.Check(params, func(port string) bool { return port == stages.TextsName })
		}
		var of *stages.FieldError
		if !errors.As(err, &of) || forTexts[of.Field] == "" || slices.Contains(fields, of.Field) {
			break
		}
		for _, f := range stages.Fields(params) {
			if f.Name == of.Field {
				reflect.ValueOf(params).Elem().FieldByIndex(f.Index).SetString(forTexts[f.Name])
				fields = append(fields, f.Name)
			}
		}
	}
	switch {
	case len(fields) == 0:
	case len(fields) == 1 && forTexts[fields[0]] == "mask":
		write = fmt.Sprintf("with %s: mask or %[1]s: pad", fields[0])
	default:
		for i, name := range fields {
			fields[i] = name + ": " + forTexts[name]
		}
		write = "with " + strings.Join(fields, ", ")
	}
	return write, err
}

// Inspect inspects an ONNX file, and measures how the programs of some stages use these devices.
func Inspect(ctx context.Context, path string, l Look, devices ...stages.Device) (Inspection, error) {
	p := l.params(path)
	if err := p.Size.UnmarshalText([]byte(l.Size)); err != nil {
		return Inspection{}, &stages.FieldError{Field: "size", Err: err}
	}
	if err := l.check(); err != nil {
		return Inspection{}, err
	}
	found, err := model.Inspect(ctx, *p)
	x := Inspection{Inspection: found}
	if err != nil {
		return x, err
	}
	if x.Trial != nil {
		defer x.Trial.Close()
		if x.Methods, err = methods(ctx, x.Trial); err != nil {
			return x, err
		}
		if x.Rewrites, err = rewrites(ctx, x.Trial); err != nil {
			return x, err
		}
		if l.Precision != "" {
			if x.Float16, err = x.Trial.Halved(ctx); err != nil {
				return x, err
			}
		}
		for _, d := range devices {
			uses, err := uses(ctx, x.Trial, d)
			if err != nil {
				return x, err
			}
			x.Uses = append(x.Uses, uses...)
		}
	}
	if _, missing := ort.Default(); x.Trial != nil || missing != nil && !x.NoClassifier {
		x.Stanza = x.StanzaAt(l, path)
	}
	return x, nil
}

// methods tries all methods on a model, with their defaults.
func methods(ctx context.Context, t *model.Trial) ([]Fit, error) {
	var out []Fit
	for _, s := range Builtin().Family("attribute") {
		if s.Output("maps") == nil { // it measures a method, and isn't one
			continue
		}
		p := s.NewParams()
		f := Fit{Method: s.Name, Fits: true}
		var err error
		remark := ""
		if t.Spec.Text != nil {
			remark, err = unfitTexts(ctx, t, s, p)
		} else {
			err = t.Unfit(ctx, s, p, func(string) bool { return false }, nil)
		}
		if ctx.Err() != nil || errors.Is(err, stages.ErrOutOfMemory) {
			return nil, err
		}
		if err != nil {
			f.Fits, f.Why = false, err.Error()
		} else if f.Why, err = t.Remark(ctx, p); err != nil {
			return nil, err
		}
		if f.Fits {
			f.Why, f.Hides = cmp.Or(f.Why, remark), remark != ""
		}
		out = append(out, f)
	}
	return out, nil
}

// rewrites tries all stages that rewrite models of such items on a model, with their defaults.
func rewrites(ctx context.Context, t *model.Trial) ([]Fit, error) {
	var out []Fit
	for _, s := range Builtin().Family("model") {
		if len(s.Outputs) != 1 || s.Outputs[0].Base == "" || s.Sources != nil {
			continue // model/target reads a file, and has an expression of the user's
		}
		f, p := Fit{Method: s.Name, Fits: true}, s.NewParams()
		if v, ok := p.(interface{ Validate() error }); ok && v.Validate() != nil {
			continue // what it makes depends on what is written
		}
		_, err := t.Rewritten(ctx, p)
		if ctx.Err() != nil || errors.Is(err, stages.ErrOutOfMemory) {
			return nil, err
		}
		if model.OfOtherItems(err) {
			continue
		}
		if err != nil {
			f.Fits, f.Why = false, err.Error()
		}
		out = append(out, f)
	}
	return out, nil
}

// tried are the stages whose programs are representative of experiments: a classification, a gradient, a
// backward pass with rules, masked images, a curve. A model may support only some of them.
var tried = []string{"model/predict", "attribute/saliency", "attribute/lrp-epsilon", "attribute/rise",
	"perturb/deletion"}

// uses measures how the programs of some stages use a device.
func uses(ctx context.Context, t *model.Trial, d stages.Device) (list []StageUse, err error) {
	for _, name := range tried {
		s, _ := Builtin().Lookup(name)
		u := StageUse{Stage: name, Device: d.String()}
		u.Programs, err = t.Usages(ctx, d, s, s.NewParams())
		if ctx.Err() != nil || errors.Is(err, stages.ErrOutOfMemory) {
			return nil, err
		}
		if err != nil {
			u.Problem = err.Error()
		}
		list = append(list, u)
	}
	return list, nil
}

// StanzaAt returns the lines of an experiment that read the model from path, with the settings that are
// known.
func (x *Inspection) StanzaAt(l Look, path string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "model:\n  uses: model/onnx\n  with:\n    path: %s\n", Quote(filepath.ToSlash(path)))
	if x.Texts != nil {
		if l.Length != 0 {
			fmt.Fprintf(&b, "    length: %d\n", l.Length)
		}
		return b.String() + l.names()
	}
	feed, h, w := x.Declared.With(guess(x.Inspection)), x.Feed.Height, x.Feed.Width
	if x.Measured != nil {
		feed, h, w = x.Measured.Lines(), x.Measured.Size.H, x.Measured.Size.W
	} else if l.Preset != "" {
		feed = []string{"preset: " + l.Preset}
	}
	for _, line := range feed {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	if layout := cmp.Or(l.Layout, x.Feed.Layout, x.Declared.Layout); layout == "nhwc" || layout == l.Layout {
		fmt.Fprintf(&b, "    layout: %s\n", layout)
	}
	if size := l.Size; x.OpenSize || size != "" {
		if h > 0 && h == w {
			size = strconv.Itoa(h)
		} else if h > 0 {
			size = fmt.Sprintf("[%d, %d]", h, w)
		}
		fmt.Fprintf(&b, "    size: %s\n", size)
	}
	return b.String() + l.names()
}

// names returns the lines of an experiment that name a model's input and output.
func (l Look) names() (lines string) {
	if l.Input != "" {
		lines = fmt.Sprintf("    input: %s\n", Quote(l.Input))
	}
	if l.Output != "" {
		lines += fmt.Sprintf("    output: %s\n", Quote(l.Output))
	}
	return lines
}

// guess returns a likely preset: the most widely used one, the one of unchanged pixels if the model does
// arithmetic on its input, or the one with the range of its bytes.
func guess(x model.Inspection) string {
	switch {
	case x.Range != nil:
		return model.NearestPreset(x.Range[0], x.Range[1])
	case len(x.Leading) > 0:
		return "raw"
	}
	return "imagenet"
}

// Quote writes a text as YAML.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
