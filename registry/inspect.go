package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/model"
)

// A Look says which input, output and size of a model are meant; the zero Look
// takes what there is.
type Look struct {
	Input, Output string
	Size          string // as the parameter size of model/onnx; "" for none
}

// An Inspection is what an ONNX file is, and what fits it.
type Inspection struct {
	model.Inspection
	Preset  string `json:"-"` // for the stanza, where it was measured; else it's a guess
	Methods []Fit  `json:"methods"`
	Stanza  string `json:"stanza,omitempty"` // for the stages of an experiment; none for a model that no stage takes
}

// A Fit says whether an attribution method can explain a model.
type Fit struct {
	Method string `json:"method"`
	Fits   bool   `json:"fits"`
	Why    string `json:"why,omitempty"` // it doesn't; or what to know where it does
}

// Inspect looks into an ONNX file.
func Inspect(ctx context.Context, path string, l Look) (Inspection, error) {
	p := model.ONNX.NewParams().(*model.ONNXParams)
	p.Path, p.Input, p.Output = path, l.Input, l.Output
	if err := p.Size.UnmarshalText([]byte(l.Size)); err != nil {
		return Inspection{}, &stages.FieldError{Field: "size", Err: err}
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
	}
	if _, missing := OpenRuntime(); x.Trial != nil || missing != nil && !x.NoClassifier {
		x.Stanza = x.StanzaAt(l, "model", path)
	}
	return x, nil
}

// methods tries all methods on a model, as they are by default.
func methods(ctx context.Context, t *model.Trial) ([]Fit, error) {
	var out []Fit
	for _, s := range Builtin().Family("attribute") {
		if s.Output("maps") == nil { // it tells about a method, and is none
			continue
		}
		p := s.NewParams()
		f := Fit{Method: s.Name, Fits: true}
		err := t.Unfit(ctx, s, p, func(string) bool { return false })
		if ctx.Err() != nil || errors.Is(err, stages.ErrOutOfMemory) {
			return nil, err
		}
		if err != nil {
			f.Fits, f.Why = false, err.Error()
		} else if f.Why, err = t.Remark(ctx, p); err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// StanzaAt returns the stage that reads the model, as far as it can be known,
// with the path that the experiment has to give.
func (x *Inspection) StanzaAt(l Look, name, path string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:\n  uses: model/onnx\n  with:\n    path: %s\n    preset: %s\n", name, Quote(filepath.ToSlash(path)), cmp.Or(x.Preset, guess(x.Inspection)))
	if x.Feed.Layout == "nhwc" {
		fmt.Fprintf(&b, "    layout: %s\n", x.Feed.Layout)
	}
	if size := l.Size; x.OpenSize || size != "" {
		if h, w := x.Feed.Height, x.Feed.Width; h > 0 && h == w {
			size = strconv.Itoa(h)
		} else if h > 0 {
			size = fmt.Sprintf("[%d, %d]", h, w)
		}
		fmt.Fprintf(&b, "    size: %s\n", size)
	}
	if l.Input != "" {
		fmt.Fprintf(&b, "    input: %s\n", Quote(l.Input))
	}
	if l.Output != "" {
		fmt.Fprintf(&b, "    output: %s\n", Quote(l.Output))
	}
	return b.String()
}

// guess returns the preset to begin with: the most widely used, that of pixels as they are
// where the model does arithmetic on its input, or that with the range of its bytes.
func guess(x model.Inspection) string {
	if x.Range != nil {
		return model.NearestPreset(x.Range[0], x.Range[1])
	}
	if len(x.Leading) > 0 {
		return "raw"
	}
	return "imagenet"
}

// Quote writes a text as YAML.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// NodeCount says how often a model has an operator.
type NodeCount = model.NodeCount
