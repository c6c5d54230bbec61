package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/ort"
)

// A Candidate is an output that has a number per image and class.
type Candidate struct {
	Output  string   `json:"output"` // its name in the file
	Classes int      `json:"classes"`
	Shape   []string `json:"shape"`           // as measured, N for the images
	Names   []string `json:"names,omitempty"` // of the classes, if a ZipMap has them
	Head    Head     `json:"head"`            // the kind of its numbers, and the reason
}

func (c Candidate) String() string {
	return Value{Name: c.Output, Shape: c.Shape}.plain()
}

// An output is an output of a file that may have the classes.
type output struct {
	declared string
	value    string   // the tensor that is read in its place
	names    []string // of the classes, from a ZipMap
	through  []string // the operators between value and the declared output that aren't run
}

// outputsOf returns the outputs that are tensors of floating-point numbers, or can be read as such: the one
// of that name, or without a name all. It is an error if there is none.
func outputsOf(m *onnx.Model, name string) ([]output, error) {
	declared := m.Outputs()
	if name != "" {
		v, err := pick(declared, name, "output", true)
		if err != nil {
			return nil, err
		}
		declared = []onnx.Value{v}
	}
	var out []output
	var failed error
	for _, v := range declared {
		o, err := readOutput(m, v)
		if err == nil {
			out = append(out, o)
		} else if failed == nil {
			failed = err
		}
	}
	if len(out) == 0 {
		return nil, failed
	}
	return out, nil
}

// readOutput returns how an output is read: for an output of QuantizeLinear the value before rounding, for
// a ZipMap and a TopK their input.
func readOutput(m *onnx.Model, v onnx.Value) (output, error) {
	out := output{declared: v.Name, value: v.Name}
	n := onnx.Node{NodeProto: m.Producer(v.Name)}
	if kind := containerOf(m, v.Name); kind != "" {
		if n.GetOpType() != "ZipMap" || len(n.Input) == 0 {
			return out, stages.BadField("output", "output %q is %s%s: a tensor with a number per class is "+
				"needed",
				v.Name, kind, madeBy(n))
		}
		out.value, out.names, out.through = n.Input[0], zipped(n), []string{"ZipMap"}
		return out, nil
	}
	if !floating(v.Elem) {
		if n.GetOpType() != "QuantizeLinear" || len(n.Input) == 0 {
			return out, stages.BadField("output",
				"output %q has the type %s%s: a floating-point number per class is needed; name "+
					"another output, or export the model without the selection of a class", v.Name, v.Elem,
				madeBy(n))
		}
		out.value, out.through = n.Input[0], []string{"QuantizeLinear"}
		return out, nil
	}
	at := v.Name
	for n.NodeProto != nil && len(n.Input) > 0 && isView(n) {
		at = n.Input[0]
		n = onnx.Node{NodeProto: m.Producer(at)}
	}
	if n.GetOpType() == "TopK" && len(n.Input) > 0 && n.Output[0] == at {
		out.value, out.through = n.Input[0], []string{"TopK"}
	}
	return out, nil
}

func madeBy(n onnx.Node) string {
	if n.NodeProto == nil {
		return ""
	}
	return ", made by " + n.Label()
}

// containerOf describes an output that isn't a tensor, else "".
func containerOf(m *onnx.Model, name string) string {
	for _, v := range m.Proto.Graph.Output {
		if v.Name == name {
			return container(v.GetType())
		}
	}
	return ""
}

// container describes a type that isn't a tensor's, else "".
func container(t *onnxpb.TypeProto) string {
	within := func(t *onnxpb.TypeProto) string {
		if kind := container(t); kind != "" {
			return strings.TrimPrefix(kind, "a ") + "s"
		}
		return typeName(onnxpb.TensorProto_DataType(t.GetTensorType().GetElemType())) + " tensors"
	}
	switch {
	case t.GetSequenceType() != nil:
		return "a sequence of " + within(t.GetSequenceType().GetElemType())
	case t.GetOptionalType() != nil:
		return "optional " + within(t.GetOptionalType().GetElemType())
	case t.GetTensorType() == nil && len(t.ProtoReflect().GetUnknown()) > 0: // of a type of ONNX-ML
		return "a map"
	}
	return ""
}

// zipped returns the names of the classes that a ZipMap has, or their numbers.
func zipped(n onnx.Node) []string {
	if names := n.Texts("classlabels_strings"); len(names) > 0 {
		return names
	}
	var out []string
	for _, v := range n.Ints("classlabels_int64s") {
		out = append(out, strconv.Itoa(v))
	}
	return out
}

// classesOf returns the number of classes of an answer of that shape to that many images.
func classesOf(shape []int, rows int) (int, error) {
	n := onnx.Size(shape)
	if n == 0 || n%rows != 0 || slices.Max(append([]int{1}, shape...)) != max(n/rows, rows) {
		return 0, noClasses(shape)
	}
	return n / rows, nil
}

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
			out.notes = append(out.notes,
				fmt.Sprintf("output %s is left out: %s", printable(o.declared), why))
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

// twoSides makes two classes of a model that returns one number an image, a logit z or a probability p of
// the positive class: its payload's graph goes on to the logits −z and z or the probabilities 1 − p and p.
// So the negative class is a class like any other, and readers of the model needn't know models with one
// output.
//
// −z is exact; so 1 − p, as the sigmoid of −z, keeps its digits where p is near 1. Of a model that returns
// p and no logit it has those that p leaves.
func twoSides(m *modelfile.Model) error {
	s := &m.Spec
	if s.Classes != 1 {
		return nil
	}
	file, err := onnx.Parse(m.ONNX)
	if err != nil {
		return err
	}
	f := file.Fragment()
	last := s.Output
	add := func(op string, in string, attrs ...onnx.Attr) {
		out, inputs := file.Fresh("sides/"+op), []string{last}
		if in != "" {
			inputs = append(inputs, in)
		}
		f.OpTo(out, op, inputs, attrs...)
		last = out
	}
	add("Cast", "", onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)})
	add("Reshape", f.Ints("row", []int64{-1, 1}, 2))
	add("Mul", f.Floats("sides", []float32{-1, 1}, 1, 2))
	if s.Probabilities {
		add("Add", f.Floats("whole", []float32{1, 0}, 1, 2))
	}
	file.After(f)
	s.Output, s.Classes, s.Independent, s.Sides = last, 2, true, true
	m.ONNX, err = file.Encode()
	return err
}

// sidesNamed returns the names of both classes of a model with one output, from a list of two names, or
// from one name, the positive class's.
func sidesNamed(names []string) ([]string, error) {
	switch len(names) {
	case 1:
		return []string{"not " + names[0], names[0]}, nil
	case 2:
		return names, nil
	}
	return nil, fmt.Errorf("a model with one output has two classes: the negative, 0, and the positive, 1; "+
		"one name is that of the positive class, two are those of both, and not %d: %s", len(names),
		strings.Join(names[:min(len(names), 3)], ", "))
}
