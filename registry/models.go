package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/model"
)

// Models looks into the files of the models that experiments name, each once.
type Models struct {
	// NoRuntime says why it couldn't: there's no ONNX Runtime.
	NoRuntime error
	// Remarks are what there is to know of stages on models that they fit.
	Remarks []string

	seen map[string]*seen
	told map[string]bool // images and models of whose sizes it was told that they differ
}

// A seen is a model that was looked into, and what was found of stages on it.
type seen struct {
	trial   *model.Trial
	err     error // why there is no trial
	unfits  map[string]error
	reasons map[string]string // why stages don't fit, and the first of these
}

// A Use is a stage with its parameters, and what is wired to its inputs.
type Use struct {
	Name   string // of the stage in the experiment
	Stage  *stages.Stage
	Params any
	// Wired returns the uses whose outputs an input takes, and the names of these.
	Wired func(port string) []Wire
}

// A Wire is an output of a use.
type Wire struct {
	From Use
	Port string
}

// Unfit says why a stage can't do what it is used for, as far as the models tell it that
// it works on: whatever it would say of its parameters, and of images of another size.
// It is nil where that isn't known before the stages run: where the model isn't one of
// model/onnx, its file isn't there, or ONNX Runtime isn't.
func (m *Models) Unfit(ctx context.Context, u Use) error {
	if file, ok := u.Params.(*model.ONNXParams); ok {
		if x := m.look(ctx, file); x != nil {
			return x.err
		}
		return nil
	}
	if m.told == nil {
		m.told = map[string]bool{}
	}
	for _, port := range u.Stage.Inputs {
		if port.Type != stages.Model {
			continue
		}
		for _, w := range u.Wired(port.Name) {
			file, ok := w.From.Params.(*model.ONNXParams)
			if !ok {
				continue
			}
			x := m.look(ctx, file)
			if x == nil || x.err != nil {
				continue // its own stage says so
			}
			m.remark(u.mislabelled(x.trial, w.From.Name))
			images, err := u.oversized(x.trial)
			switch told := images + "\x00" + w.From.Name; {
			case err == nil:
				err = m.try(ctx, x, u, w.From.Name)
			case m.told[told]: // whatever else the two are used for
				continue
			default:
				m.told[told] = true
			}
			if err != nil {
				return fmt.Errorf("%s: %w", w.From.Name, err)
			}
		}
	}
	return nil
}

// look looks into a file, nil if that can't be done here.
func (m *Models) look(ctx context.Context, file *model.ONNXParams) *seen {
	if _, err := os.Stat(file.Path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if m.NoRuntime == nil {
		_, m.NoRuntime = OpenRuntime()
	}
	if m.NoRuntime != nil {
		return nil
	}
	key := fmt.Sprintf("%+v", *file)
	x := m.seen[key]
	if x == nil {
		if m.seen == nil {
			m.seen = map[string]*seen{}
		}
		x = &seen{unfits: map[string]error{}, reasons: map[string]string{}}
		x.trial, x.err = model.NewTrial(ctx, *file)
		m.seen[key] = x
	}
	if ctx.Err() != nil || errors.Is(x.err, stages.ErrOutOfMemory) {
		return nil // that says nothing about the model
	}
	return x
}

// try tries a use on a model, once for all that are alike.
func (m *Models) try(ctx context.Context, x *seen, u Use, name string) error {
	wired := func(port string) bool { return len(u.Wired(port)) > 0 }
	key := u.Stage.Name + fmt.Sprintf(" %+v", u.Params)
	for _, port := range u.Stage.Inputs {
		key += strconv.FormatBool(wired(port.Name))
	}
	err, ok := x.unfits[key]
	if ok {
		return err
	}
	if err = x.trial.Unfit(ctx, u.Stage, u.Params, wired); ctx.Err() != nil || errors.Is(err, stages.ErrOutOfMemory) {
		return nil
	}
	err = x.once(u.Stage.Name, err)
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

// remark adds a remark, once.
func (m *Models) remark(text string) {
	if text != "" && !slices.Contains(m.Remarks, text) {
		m.Remarks = append(m.Remarks, text)
	}
}

// mislabelled returns a remark where the wired labels are of more classes than the model
// has. It isn't an error: perhaps no image has such a label.
func (u Use) mislabelled(t *model.Trial, name string) string {
	for _, port := range u.Stage.Inputs {
		if port.Type != stages.Labels {
			continue
		}
		for _, w := range u.Wired(port.Name) {
			n, err := strconv.Atoi(w.From.facts()[w.Port]["classes"])
			if err == nil && n > max(t.Spec.Classes, 2) {
				return fmt.Sprintf("the labels of %s are of %d classes, and %s has %d", w.From.Name, n, name, t.Spec.Classes)
			}
		}
	}
	return ""
}

// once shortens what was said of another stage on the same model already, unless it is of
// a parameter.
func (x *seen) once(stage string, err error) error {
	var field *stages.FieldError
	if err == nil || errors.As(err, &field) {
		return err
	}
	first, told := x.reasons[err.Error()]
	if !told {
		x.reasons[err.Error()] = stage
	} else if first != stage {
		return fmt.Errorf("%s doesn't fit it, for the same reason as %s", stage, first)
	}
	return err
}

// oversized says that images don't have the model's size, if it's known which they have.
func (u Use) oversized(t *model.Trial) (images string, err error) {
	for _, port := range u.Stage.Inputs {
		if port.Type != stages.Images {
			continue
		}
		for _, w := range u.Wired(port.Name) {
			f := w.From.facts()[w.Port]
			height, errH := strconv.Atoi(f["height"])
			width, errW := strconv.Atoi(f["width"])
			if errH == nil && errW == nil && (height != t.Spec.Height || width != t.Spec.Width) {
				return w.From.Name, fmt.Errorf("the images of %s have %d×%d pixels, and the model takes %d×%d: the data set's size or crop makes others, and a model that takes any has the parameter size", w.From.Name, height, width, t.Spec.Height, t.Spec.Width)
			}
		}
	}
	return "", nil
}

// facts returns what is known of a stage's outputs before it runs.
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
		return nil // its own stage says so, where that matters
	}
	return out
}
