package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
)

// Models loads the models that experiments name, each once.
type Models struct {
	NoRuntime error    // why nothing can be loaded: there is no ONNX Runtime
	Remarks   []string // remarks for users about stages on models that they fit

	loaded   map[string]*loaded
	reported map[string]bool // images and models that don't fit and were reported
}

// A loaded model, and the results of trying stages on it.
type loaded struct {
	trial   *model.Trial
	err     error // why there is no trial
	unfits  map[string]error
	reasons map[string]string // why stages don't fit, and the first stage with each reason
}

// A Use is a stage with its parameters and its inputs.
type Use struct {
	Name   string // name of the stage in the experiment
	Stage  *stages.Stage
	Params any
	// Wired returns the uses whose outputs are wired to an input, with the names of these outputs.
	Wired func(port string) []Wire
}

// A Wire is an output of a use.
type Wire struct {
	From Use
	Port string
}

// wires returns the outputs that are wired to the inputs of a type.
func (u Use) wires(t stages.Type) []Wire {
	var list []Wire
	for _, port := range u.Stage.Inputs {
		if port.Type == t {
			list = append(list, u.Wired(port.Name)...)
		}
	}
	return list
}

// through returns the wire that passes through the stage that the model port of u inserts, given u's
// parameters; ok is false if it inserts none.
func (u Use) through(w Wire) (passed Wire, ok bool) {
	port := u.Stage.Input("model")
	if port == nil || port.ViaIf == nil || !port.ViaIf(u.Params) || w.From.Stage.Name == port.Via {
		return w, false
	}
	s, ok := Builtin().Lookup(port.Via)
	if !ok {
		return w, false
	}
	params := s.NewParams()
	mine, own := reflect.ValueOf(u.Params).Elem(), reflect.ValueOf(params).Elem()
	for _, f := range stages.Fields(params) {
		for _, g := range stages.Fields(u.Params) {
			if g.Name == f.Name && g.Type == f.Type {
				own.FieldByIndex(f.Index).Set(mine.FieldByIndex(g.Index))
			}
		}
	}
	between := Use{w.From.Name, s, params, func(string) []Wire { return []Wire{w} }}
	return Wire{between, s.Outputs[0].Name}, true
}

// fact returns a number that is known about an output before its stage runs.
func (w Wire) fact(name string) (int, bool) {
	n, err := strconv.Atoi(w.From.facts()[w.Port][name])
	return n, err == nil
}

func (u Use) facts() map[string]stages.Facts {
	if u.Stage.Facts == nil {
		return nil
	}
	in := map[string]stages.Facts{}
	for _, port := range u.Stage.Inputs {
		if w := u.Wired(port.Name); len(w) > 0 {
			in[port.Name] = w[0].From.facts()[w[0].Port]
		}
	}
	out, err := u.Stage.Facts(u.Params, in)
	if err != nil {
		return nil // its own stage reports it if it matters
	}
	return out
}

// Unfit returns why a stage can't be used in a cell with its models: an error of its parameters, or of
// images of another size. It returns nil if this can't be known before the stages run: if the model is
// neither from model/onnx nor derived from one, or if the file or ONNX Runtime is missing.
func (m *Models) Unfit(ctx context.Context, u Use) error {
	if m.loaded == nil {
		m.loaded, m.reported = map[string]*loaded{}, map[string]bool{}
	}
	if x := m.made(ctx, u); x != nil {
		return x.err
	}
	for _, w := range u.wires(stages.Model) {
		through, ok := u.through(w)
		x := m.made(ctx, through.From)
		switch {
		case x == nil || x.err != nil && !ok:
			continue // its own stage reports the error
		case x.err != nil:
			return x.err // of the parameter that the stage in between shares with this one
		}
		m.remark(u.mislabelled(x.trial, w.From.Name))
		if in := u.Stage.Input("images"); in != nil && in.NotTexts != "" && len(u.Wired(in.Name)) == 0 {
			continue // the edge from texts is reported
		}
		images, err := u.misfit(x.trial)
		if err == nil {
			err = m.try(ctx, x, u, w.From.Name)
		} else if pair := images + "\x00" + w.From.Name; m.reported[pair] {
			continue // whatever the two are used for
		} else {
			m.reported[pair] = true
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w.From.Name, err)
		}
	}
	return nil
}

// made returns the model that a use makes from a file or from another model; nil if it makes none, or if
// that can't be done here.
func (m *Models) made(ctx context.Context, u Use) *loaded {
	if file, ok := u.Params.(*model.ONNXParams); ok {
		return m.load(ctx, file)
	}
	wires := u.wires(stages.Model)
	if len(wires) != 1 || len(u.Stage.Outputs) != 1 || u.Stage.Outputs[0].Base == "" {
		return nil
	}
	base := m.made(ctx, wires[0].From)
	if base == nil || base.err != nil {
		return nil // its own stage reports the error
	}
	key := fmt.Sprintf("%p %s %+v", base, u.Stage.Name, u.Params)
	x := m.loaded[key]
	if x == nil {
		x = newLoaded()
		x.trial, x.err = base.trial.Rewritten(ctx, u.Params)
		m.loaded[key] = x
	}
	return x.unless(ctx)
}

func newLoaded() *loaded { return &loaded{unfits: map[string]error{}, reasons: map[string]string{}} }

// unless returns x, or nil if ctx ended the loading, so that the error isn't the model's.
func (x *loaded) unless(ctx context.Context) *loaded {
	if ctx.Err() != nil || errors.Is(x.err, stages.ErrOutOfMemory) {
		return nil
	}
	return x
}

// load loads a file; it returns nil if that can't be done here.
func (m *Models) load(ctx context.Context, file *model.ONNXParams) *loaded {
	if _, err := os.Stat(file.Path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if m.NoRuntime == nil {
		_, m.NoRuntime = ort.Default()
	}
	if m.NoRuntime != nil {
		return nil
	}
	key := fmt.Sprintf("%+v", *file)
	x := m.loaded[key]
	if x == nil {
		x = newLoaded()
		x.trial, x.err = model.NewTrial(ctx, *file)
		m.loaded[key] = x
		if x.err == nil {
			for _, note := range x.trial.Notes {
				m.remark(file.Path + ": " + note)
			}
		}
	}
	return x.unless(ctx)
}

// try tries a use on a model, once for all equal uses.
func (m *Models) try(ctx context.Context, x *loaded, u Use, name string) error {
	wired := func(port string) bool { return len(u.Wired(port)) > 0 }
	key := u.Stage.Name + fmt.Sprintf(" %+v", u.Params)
	for _, port := range u.Stage.Inputs {
		key += strconv.FormatBool(wired(port.Name))
	}
	texts := u.textFacts()
	key += fmt.Sprint(texts)
	if err, ok := x.unfits[key]; ok {
		return err
	}
	err := x.trial.Unfit(ctx, u.Stage, u.Params, wired, texts)
	if ctx.Err() != nil || errors.Is(err, stages.ErrOutOfMemory) {
		return nil
	}
	err = x.shorten(u.Stage.Name, err)
	x.unfits[key] = err
	if err != nil {
		return err
	}
	why, err := x.trial.Remark(ctx, u.Params)
	if why != "" {
		m.remark(fmt.Sprintf("%s on %s: %s", u.Stage.Name, name, why))
	}
	return err
}

func (m *Models) remark(text string) {
	if text != "" && !slices.Contains(m.Remarks, text) {
		m.Remarks = append(m.Remarks, text)
	}
}

// shorten shortens an error that another stage had on the same model already, unless it concerns a
// parameter.
func (x *loaded) shorten(stage string, err error) error {
	if err == nil || errors.As(err, new(*stages.FieldError)) {
		return err
	}
	first, known := x.reasons[err.Error()]
	switch {
	case !known:
		x.reasons[err.Error()] = stage
	case first != stage:
		return fmt.Errorf("%s doesn't fit it, for the same reason as %s", stage, first)
	}
	return err
}

// textFacts returns what is known of the texts on the port images before their stage runs; nil if nothing is,
// or if they are images.
func (u Use) textFacts() stages.Facts {
	for _, w := range u.Wired("images") {
		if p := w.From.Stage.Output(w.Port); p != nil && p.Type == stages.Tokens {
			return w.From.facts()[w.Port]
		}
	}
	return nil
}

// mislabelled returns a remark if the wired labels are of more classes than the model has, or of fewer than
// half, which folders number among themselves. It isn't an error: perhaps no image has such a label, or they
// are the model's first.
func (u Use) mislabelled(t *model.Trial, name string) string {
	if t.Spec.Classes == 0 {
		return ""
	}
	for _, w := range u.wires(stages.Labels) {
		if n, ok := w.fact("classes"); ok && n > max(t.Spec.Classes, 2) {
			const text = "the labels of %s are of %d classes, and %s has %d"
			return fmt.Sprintf(text, w.From.Name, n, name, t.Spec.Classes)
		} else if ok && 2*n < t.Spec.Classes {
			const text = "the labels of %s are of %d classes, and %s has %d: which are they? names: FILE " +
				"of dataset/folder says it, a text file with the model's classes, a line each"
			return fmt.Sprintf(text, w.From.Name, n, name, t.Spec.Classes)
		}
	}
	return ""
}

// misfit returns the images that aren't of the kind and size that the model takes, if these are known, and
// the error.
func (u Use) misfit(t *model.Trial) (images string, err error) {
	for _, w := range u.wires(stages.Images) {
		name, texts := w.From.Name, t.Spec.Text != nil
		if p := w.From.Stage.Output(w.Port); p != nil && (p.Type == stages.Tokens) != texts {
			if texts {
				return name, fmt.Errorf("%s has images, and the model takes texts: dataset/text or "+
					"dataset/tokens has them", name)
			}
			return name, fmt.Errorf("%s has texts, and the model takes images", name)
		}
		height, okH := w.fact("height")
		width, okW := w.fact("width")
		if okH && okW && (height != t.Spec.Height || width != t.Spec.Width) {
			const text = "the images of %s have %d×%d pixels, and the model takes %d×%d: the data set's " +
				"size or crop makes others, and a model that takes any has the parameter size"
			return name, fmt.Errorf(text, name, height, width, t.Spec.Height, t.Spec.Width)
		}
	}
	return "", nil
}
