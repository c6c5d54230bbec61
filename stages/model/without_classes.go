package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/ort"
)

// kindNone is the value of output_kind for a model without classes.
const kindNone = "none"

// withoutClasses reads a model that is explained by expressions of its outputs: all floating-point ones that
// have a number or an array for each image, whose shape is the same for every image tried.
func (r *reader) withoutClasses(outputs []output) (out reading, err error) {
	if r.model.Spec.Text != nil {
		return out, stages.BadField("output_kind", "output_kind is none, and this model takes texts: only "+
			"models of images are read without classes")
	}
	outputs = slices.DeleteFunc(outputs, func(o output) bool { return o.value != o.declared })
	if len(outputs) == 0 {
		return out, fmt.Errorf("the model has no floating-point output")
	}
	f := &free{reader: r, left: map[string]string{}}
	if err := f.look(outputs); err != nil {
		return out, err
	}
	out.Model = r.model
	s := &out.Spec
	switch {
	case s.Batch > largeBatch && r.rows == 1:
		s.Batch = 0
	case s.Batch > maxBatch:
		return out, tooLarge(s.Batch)
	}
	fixed := r.model.Spec.Batch
	if s.Batch == 0 && len(f.kept) > 0 {
		if s.Batch, err = f.together(); err != nil {
			return out, err
		}
	}
	switch {
	case s.Batch == 1 && fixed > 1:
		return out, tooLarge(fixed)
	case s.Batch == 1 && fixed == 0:
		out.alone = aloneWhy
	}
	if s.Outputs = f.kept; len(f.kept) == 0 {
		return out, f.refused(outputs)
	}
	for _, o := range outputs {
		if why := f.left[o.declared]; why != "" {
			out.notes = append(out.notes, fmt.Sprintf("output %s is left out: %s", printable(o.declared), why))
		}
	}
	out.head.Kind = kindNone
	return out, nil
}

// free is the outputs of a model without classes.
type free struct {
	*reader
	kept []modelfile.Output
	left map[string]string // why others are left out
}

// Reasons why an output is left out.
const (
	unevenRows = "its shape isn't the same for all images" + beforeSuppression
	noRows     = "it has no numbers for the images tried" + beforeSuppression
	oneForAll  = "its first axis isn't that of the images"

	beforeSuppression = ", as after non-maximum suppression: export the model before that"
)

// look runs the model on several images, and keeps the outputs of one shape for all.
func (f *free) look(outputs []output) error {
	var values []string
	for _, o := range outputs {
		values = append(values, o.value)
	}
	for len(values) > 0 {
		err := f.lookAt(values)
		if err == nil {
			break
		}
		if !errors.As(err, new(*unevenError)) {
			return err
		}
		f.left[values[0]] = err.Error() + beforeSuppression
		values = values[1:]
	}
	varies := false
	for _, o := range outputs {
		v, ok := f.seen[o.value]
		switch {
		case !ok:
			f.left[o.declared] = cmp.Or(f.left[o.declared], unevenRows)
			continue
		case slices.Contains(v.shape, 0):
			f.left[o.declared] = noRows
			continue
		case len(v.shape) == 0 || v.shape[0] != f.rows:
			f.left[o.declared] = oneForAll
			continue
		}
		if err := unsound(v.rows); err != nil {
			return fmt.Errorf("output %q: %w", o.declared, err)
		}
		varies = varies || len(v.rows) == 0 || !constantRows(v.rows)
		f.kept = append(f.kept, modelfile.Output{Name: o.declared, Shape: v.shape[1:]})
	}
	if len(f.kept) > 0 && !varies {
		return judged("the model's outputs are the same for images that differ: it ignores its image")
	}
	return nil
}

// together runs the model on two images at once, and returns the batch of the model: 0 if both get the
// answers that they get alone, 1 if they don't or the model fails. Outputs that have one answer for both are
// left out.
func (f *free) together() (batch int, err error) {
	m := f.model
	m.Spec.Batch = 0
	var names []string
	for _, o := range f.kept {
		names = append(names, o.Name)
	}
	both, err := lookOnce(f.ctx, m, 2, names)
	switch {
	case f.ctx.Err() != nil:
		return 0, context.Cause(f.ctx)
	case errors.Is(err, stages.ErrOutOfMemory):
		return 0, fmt.Errorf("the model accepts batch 1 but not batch 2: %v", err)
	case err != nil:
		return 1, nil
	}
	var kept []modelfile.Output
	for i, o := range f.kept {
		alone, pair := f.seen[o.Name], both[i]
		size := onnx.Size(alone.shape)
		if onnx.Size(pair.Shape) == size { // that of one image
			f.left[o.Name] = oneForAll
			continue
		}
		kept = append(kept, o)
		if pair.Shape[0] != 2 || !slices.Equal(pair.Shape[1:], o.Shape) {
			batch = 1
			continue
		}
		for k, row := range alone.rows[:min(2, len(alone.rows))] {
			if len(pair.Data) == 2*size && !near(row, pair.Data[k*size:][:size]) {
				batch = 1
			}
		}
	}
	f.kept = kept
	return batch, nil
}

// refused returns why no output can be explained.
func (f *free) refused(outputs []output) error {
	if len(outputs) == 1 {
		return judged("%s", f.left[outputs[0].declared])
	}
	var parts []string
	for _, o := range outputs {
		parts = append(parts, fmt.Sprintf("%s: %s", printable(o.declared), f.left[o.declared]))
	}
	return judged("no output has numbers for each image; %s", strings.Join(parts, "; "))
}

// lookOnce returns values of a model for one batch, of the first images that models are judged by.
func lookOnce(ctx context.Context, m modelfile.Model, rows int,
	names []string) ([]ort.Result[float32], error) {
	m.Spec.Output = names[0]
	p, err := program.NewProbe(m, rows, names...)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Look(ctx, looked(m.Spec)[:rows*m.Spec.Size()])
}

// suggest returns up to three targets that fit outputs, the likeliest first.
func suggest(outputs []modelfile.Output) (out []string) {
	var rows []modelfile.Output
	for _, o := range outputs {
		name := quotedOutput(o.Name)
		switch len(o.Shape) {
		case 0:
			out = append(out, name)
		case 1:
			out = append(out, fmt.Sprintf("%s[%d]", name, min(3, o.Shape[0]-1)))
			if o.Shape[0] > 1 {
				out = append(out, fmt.Sprintf("cosine(%s, other(%[1]s))", name))
			}
		case 2:
			rows = append(rows, o)
			out = append(out, fmt.Sprintf("max(%s[:, %d])", name, o.Shape[1]-1),
				fmt.Sprintf("%s[%d, %d]", name, min(3, o.Shape[0]-1), o.Shape[1]-1))
		default:
			k := min(3, o.Shape[0]-1)
			out = append(out, fmt.Sprintf("sum(%s[%d])", name, k))
			if len(o.Shape) == 3 && o.Shape[0] > 1 {
				out = append(out, fmt.Sprintf("segmentation(%d, %s)", k, name))
			}
		}
	}
	for _, boxes := range rows {
		for _, scores := range rows {
			if boxes.Shape[1] == 4 && scores.Shape[1] != 4 && boxes.Shape[0] == scores.Shape[0] {
				out = append([]string{fmt.Sprintf("detection(%s, %s)", quotedOutput(boxes.Name),
					quotedOutput(scores.Name))}, out...)
			}
		}
	}
	return out[:min(3, len(out))]
}

// quotedOutput returns an output's name as targets write it.
func quotedOutput(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) || unicode.IsDigit(rune(name[0])) ||
		slices.Contains([]string{"label", "mask", "other", "predicted", "vectors"}, name) {
		return `"` + name + `"`
	}
	return name
}
