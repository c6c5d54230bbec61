package model

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
)

// A Head is the kind of a model's output, and the reason for it.
type Head struct {
	Output string `json:"output"` // its name in the file
	// Kind is logits, probabilities or log-probabilities.
	Kind string `json:"kind"`
	// Through are the operators between the explained logits and the output; none if the output itself is
	// explained.
	Through []string `json:"through,omitempty"`
	// Scale is the output for the probability 1, or for an increase of the logarithm by one.
	Scale float64 `json:"scale,omitempty"`
	Why   string  `json:"why"`
}

// String describes in a line or two which operators were skipped, and why; "" for no head.
func (h Head) String() string {
	var parts []string
	if len(h.Through) > 0 {
		parts = append(parts, fmt.Sprintf("output %s is theirs through %s", printable(h.Output),
			strings.Join(h.Through, ", ")))
	}
	switch {
	case h.Kind == kindProbabilities && h.Scale != 1:
		parts = append(parts, fmt.Sprintf("the model returns %.4g for the probability 1", h.Scale))
	case h.Kind == kindLogarithms && h.Scale != 1:
		parts = append(parts, fmt.Sprintf("the model returns %.4g times the logarithms", h.Scale))
	case h.Kind == kindLogarithms:
		parts = append(parts, "the model returns the logarithms of probabilities")
	}
	return strings.Join(append(parts, h.Why), ";\n")
}

const (
	kindLogits        = "logits"
	kindProbabilities = "probabilities"
	kindLogarithms    = "log-probabilities"
)

// A reading is the interpretation of a model.
type reading struct {
	modelfile.Model
	head       Head
	candidates []Candidate
	alone      string   // why images are fed alone though the file leaves the batch open
	notes      []string // remarks for the user on the interpretation of the input's axes
	texts      *Texts   // of a model that takes texts
}

// A verdict is the kind of an output.
type verdict struct {
	output
	classes     int
	shape       []int
	head        Head
	explained   string // the value with the logits or with the model's own answer
	columns     []int  // of explained, that have the classes; nil for all in order
	own         bool
	probability bool
	scale       float64 // the divisor of explained
	log         bool    // explained is then exponentiated
	err         error
}

// A reader reads a model by its graph and its answers.
type reader struct {
	ctx   context.Context
	m     *onnx.Model
	model modelfile.Model // its Spec lacks the output
	kind  string          // the parameter output_kind
	all   *guarantees
	seen  map[string]view
	rows  int // in a batch
}

// read interprets a model whose Spec is complete except for output, classes and head.
func (r *reader) read(outputs []output) (out reading, err error) {
	if r.kind == kindNone {
		return r.withoutClasses(outputs)
	}
	r.all = guaranteesOf(r.m, nil, r.model.Spec.Text != nil)
	if err := r.lookAtTails(outputs); err != nil {
		return out, err
	}
	shapes := map[string][]int{}
	for name, v := range r.seen {
		shapes[name] = v.shape
	}
	r.all = guaranteesOf(r.m, shapes, r.model.Spec.Text != nil)
	var good []verdict
	var failed error
	for _, o := range outputs {
		v := r.judge(o)
		if err := context.Cause(r.ctx); err != nil {
			return out, err
		}
		if v.err == nil {
			good = append(good, v)
		} else if failed == nil || errors.Is(failed, errNoClasses) && !errors.Is(v.err, errNoClasses) {
			failed = v.err
		}
	}
	good = r.distinct(good)
	for _, v := range good {
		out.candidates = append(out.candidates, v.candidate())
	}
	switch {
	case len(good) == 0:
		return out, failed
	case len(good) > 1:
		return out, whichOutput(out.candidates)
	}
	err = r.settle(good[0], &out)
	return out, err
}

// whichOutput is the error if several outputs have classes.
func whichOutput(of []Candidate) error {
	var words []string
	for _, c := range of {
		words = append(words, fmt.Sprintf("%s (%s)", c, c.Head.Kind))
	}
	return stages.BadField("output", "which output has the classes? %s; name one: --output, or output: in "+
		"an experiment", strings.Join(words, ", "))
}

// lookAtTails runs the model on several images and records the values after the last linear layers.
func (r *reader) lookAtTails(outputs []output) error {
	var values []string
	for _, o := range outputs {
		for _, v := range r.all.tail(o.value) {
			if !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
	}
	return r.lookAt(values)
}

// lookAt runs the model on several images and records values.
func (r *reader) lookAt(values []string) (err error) {
	model := r.model
	if model.Spec.Batch > largeBatch {
		model.Spec.Batch = 0
		r.rows = 1
		if r.seen, err = look(r.ctx, model, values[0], values[1:]...); err == nil || outOfMemory(r.ctx, err) {
			return err
		}
		if model.Spec.Batch = r.model.Spec.Batch; model.Spec.Batch > maxBatch {
			_, err := probe(r.ctx, &model)
			return err
		}
	}
	r.rows = max(1, model.Spec.Batch)
	if r.seen, err = look(r.ctx, model, values[0], values[1:]...); err != nil && r.ctx.Err() == nil {
		if errors.As(err, new(*answerError)) || errors.As(err, new(*unevenError)) {
			return err
		}
		return fmt.Errorf("the model fails on a batch of %d: %w", r.rows, err)
	}
	return err
}

// judge determines the kind of an output.
func (r *reader) judge(o output) verdict {
	v := verdict{output: o, explained: o.value, scale: 1,
		head: Head{Output: o.declared, Scale: 1, Through: o.through}}
	seen := r.seen[o.value]
	v.shape = seen.shape
	if v.classes, v.err = classesOf(seen.shape, r.rows); v.err != nil {
		return v
	}
	if len(seen.rows) == 0 {
		v.err = noClasses(seen.shape)
		return v
	}
	if v.err = unsound(seen.rows); v.err != nil {
		return v
	}
	if r.kind != "auto" {
		v.declare(r.kind, seen.rows)
		return v
	}
	r.find(&v, seen.rows)
	return v
}

// declare gives an output the kind in output_kind.
func (v *verdict) declare(kind string, rows [][]float32) {
	v.probability, v.own = kind == kindProbabilities, kind == "sigmoid-logits"
	v.head.Kind, v.head.Why = kindLogits, "output_kind states it"
	if !v.probability {
		return
	}
	v.head.Kind = kindProbabilities
	for _, row := range rows {
		if i := slices.IndexFunc(row, notProbability); i >= 0 {
			v.err = stages.BadField("output_kind",
				"output_kind is probabilities, but the model's output has values outside [0,1], such as "+
					"%.4g: these are logits", row[i])
			return
		}
	}
}

// ordered sorts values by the node that makes them, those nearest to the image first, without one.
func (r *reader) ordered(values []string, without string) []string {
	at := map[string]int{}
	for i, n := range r.m.Proto.Graph.Node {
		for _, v := range n.Output {
			at[v] = i
		}
	}
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == without })
	slices.SortStableFunc(values, func(a, b string) int { return at[a] - at[b] })
	return values
}

// look moves the explained value from the output to the logits before the last operators.
func (v *verdict) look(r *reader, m match) {
	v.explained, v.own, v.columns, v.probability = m.value, m.own, m.columns, false
	v.head.Through = append(operators(r.all.between(m.value, v.value, nodesOf(r.m))), v.through...)
	v.head.Kind, v.head.Scale = kindProbabilities, m.scale
	if m.log {
		v.head.Kind = kindLogarithms
	}
	if m.itself {
		v.head.Kind = kindLogits
	}
	v.head.Why = "computed from the logits, they equal the model's own on every image tried"
	if m.apart > exactTolerance {
		v.head.Why = fmt.Sprintf("computed from the logits, they are those that the model rounds: at most "+
			"%.1g apart on every image tried", m.apart)
	}
}

// keep classifies the output itself as probabilities.
func (v *verdict) keep(scale float64, log, own bool, by string) {
	v.probability, v.own, v.scale, v.log = true, own, scale, log
	v.head.Kind, v.head.Scale = kindProbabilities, scale
	if log {
		v.head.Kind = kindLogarithms
	}
	v.head.Why = by + " normalises them"
	if !strings.ContainsAny(by, `"`) {
		v.head.Why = by
	}
}

// refuse explains why the output can be neither logits nor probabilities.
func (v *verdict) refuse(g guarantee) {
	const ask = "; name another output by output, or say by output_kind what its numbers are"
	what := fmt.Sprintf("%s leaves numbers from %.4g to %.4g, which are neither logits nor probabilities",
		g.by, g.low, g.high)
	switch {
	case g.never != "":
		what = g.label + " " + g.never
	case g.by == "" && !g.varies:
		what = "it doesn't depend on the image"
	case g.by == "":
		what = fmt.Sprintf("its numbers stay between %.4g and %.4g", g.low, g.high)
	case math.IsInf(g.low, 0) || math.IsInf(g.high, 0):
		what = g.by + " leaves numbers that are neither logits nor probabilities"
	}
	v.err = stages.BadField("output_kind", "what output %q means isn't known: %s%s", v.declared, what, ask)
}

// nodesOf returns the nodes of a model.
func nodesOf(m *onnx.Model) []onnx.Node {
	var out []onnx.Node
	for _, n := range m.Proto.Graph.Node {
		out = append(out, onnx.Node{NodeProto: n})
	}
	return out
}

// distinct leaves out outputs that are features of others, and all but the first of those that are the same
// classes in another form.
func (r *reader) distinct(good []verdict) []verdict {
	nodes := nodesOf(r.m)
	var out []verdict
	for i, v := range good {
		drop := false
		for k, w := range good {
			if k != i {
				drop = drop || r.all.feature(v.value, w.value, nodes) ||
					k < i && v.classes == w.classes && r.all.alike(v, w, nodes)
			}
		}
		if !drop {
			out = append(out, v)
		}
	}
	return out
}

// alike reports whether two outputs are the same classes in two forms.
func (all *guarantees) alike(v, w verdict, nodes []onnx.Node) bool {
	if all.same(v.explained, w.explained) {
		return true
	}
	for _, ends := range [][2]string{{v.value, w.value}, {w.value, v.value}} {
		between := all.between(all.source(ends[0]), ends[1], nodes)
		if len(between) > 0 && !slices.ContainsFunc(between, isLayer) {
			return true
		}
	}
	return false
}

// feature reports whether classes are computed from an output by a linear layer, and the output isn't a
// model's logits: it is rectified, or a nonlinear operator is between it and the layer.
func (all *guarantees) feature(value, classes string, nodes []onnx.Node) bool {
	from := all.source(value)
	between := all.between(from, classes, nodes)
	first := slices.IndexFunc(between, isLayer)
	return first >= 0 && from != all.source(classes) &&
		(all.of[from].low >= 0 || len(operators(between[:first])) > 0)
}

func isLayer(n onnx.Node) bool { return slices.Contains(layers, n.OpType) }

func (v verdict) candidate() Candidate {
	c := Candidate{Output: v.declared, Classes: v.classes, Names: v.names, Head: v.head}
	for i, d := range v.shape {
		if i == 0 && len(v.shape) > 1 {
			c.Shape = append(c.Shape, "N")
			continue
		}
		c.Shape = append(c.Shape, fmt.Sprint(d))
	}
	return c
}

// settle completes the model by a verdict and checks its response against the model's own answers.
func (r *reader) settle(v verdict, out *reading) error {
	out.Model, out.head = r.model, v.head
	s := &out.Spec
	s.Output, s.Classes, s.Probabilities, s.Independent = v.explained, v.classes, v.probability, v.own
	if v.columns != nil || v.scale != 1 || v.log {
		if err := v.edit(&out.Model); err != nil {
			return err
		}
	}
	open := s.Batch == 0
	answers, err := probe(r.ctx, &out.Model)
	if err != nil {
		return err
	}
	if open && s.Batch == 1 {
		out.alone = aloneWhy
	}
	if r.kind != "auto" {
		return nil
	}
	return r.holds(v, *s, answers)
}

// aloneWhy is why images are fed alone.
const aloneWhy = "in a batch, an image gets another answer than alone, or the model fails"

// edit appends to a model's graph the nodes from the explained value to the response.
func (v verdict) edit(m *modelfile.Model) error {
	file, err := onnx.Parse(m.ONNX)
	if err != nil {
		return err
	}
	f := file.Fragment()
	x := f.Op("Cast", []string{v.explained}, onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)})
	if v.columns != nil {
		columns := make([]int64, len(v.columns))
		for i, c := range v.columns {
			columns[i] = int64(c)
		}
		x = f.Op("Gather", []string{f.Op("Flatten", []string{x}), f.Ints("columns", columns,
			int64(len(columns)))}, onnx.Attr{Name: "axis", Value: 1})
	}
	if v.scale != 1 {
		x = f.Op("Mul", []string{x, f.Floats("unit", []float32{float32(1 / v.scale)}, 1)})
	}
	if v.log {
		x = f.Op("Exp", []string{x})
	}
	file.After(f)
	m.Spec.Output = x
	m.ONNX, err = file.Encode()
	return err
}

// holds checks that the response that stages read equals the model's own answer, up to the head's scale.
func (r *reader) holds(v verdict, s modelfile.Spec, answers []float32) error {
	if v.head.Kind == kindLogits {
		return nil
	}
	s.Independent = s.Independent || s.Classes == 1
	net := program.Net{Spec: s}
	rows := r.seen[v.value].rows
	for i := 0; i < min(2, len(rows), len(answers)/s.Classes); i++ {
		row := answers[i*s.Classes:][:s.Classes]
		for c, a := range rows[i] {
			want := float64(a) / v.head.Scale
			if v.head.Kind == kindLogarithms {
				want = math.Exp(want)
			}
			got := net.Probability(row, program.Target{Class: c, Minus: -1})
			if !(math.Abs(got-want) <= quantisationTolerance) {
				return fmt.Errorf("output %q gives %.4g for an image and class where %.4g was expected: its "+
					"head isn't understood; say by output_kind what its numbers are", v.declared, want, got)
			}
		}
	}
	return nil
}
