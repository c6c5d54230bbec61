package model_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// A tailed is a net under construction whose last value has a row of numbers per image.
type tailed struct {
	m     *onnx.Model
	f     *onnx.Fragment
	x     string
	width int
	draw  *rand.Rand

	ops     []string // as they were added
	bent    bool     // not affine any more in the logits
	rounded float64  // the step to which numbers are rounded, as it is now
}

func (n *tailed) op(name string, attrs ...onnx.Attr) { n.x = n.f.Op(name, []string{n.x}, attrs...) }

func (n *tailed) number(v float64) string { return n.f.Floats("c", []float32{float32(v)}, 1) }

func (n *tailed) by(op string, v float64) { n.x = n.f.Op(op, []string{n.x, n.number(v)}) }

func (n *tailed) ints(v ...int64) string { return n.f.Ints("i", v, int64(len(v))) }

// reduced reduces the last axis.
func (n *tailed) reduced(op string) string {
	if op == "ReduceSum" {
		return n.f.Op(op, []string{n.x, n.ints(1)})
	}
	return n.f.Op(op, []string{n.x}, onnx.Attr{Name: "axes", Value: []int64{1}})
}

// likely reports whether what is there are probabilities times a number.
func (n *tailed) likely() bool {
	is := false
	for _, op := range n.ops {
		switch op {
		case "softmax", "softmax of groups", "sigmoid", "hard-sigmoid", "exp over sum",
			"stable exp over sum", "1/(1+exp(-x))",
			"exp/(1+exp)":
			is = true
		case "log-softmax", "log", "exp", "tanh", "softsign", "erf", "normed", "negative", "offset",
			"minus log-sum-exp", "minus largest", "over largest", "minus mean", "superclasses":
			is = false
		case "whole", "whole by Cast": // leave nothing of probabilities but of percents
			is = is && slices.Contains(n.ops, "percent")
		}
	}
	return is
}

// weights returns a matrix of nonnegative numbers.
func (n *tailed) weights(rows, columns int) string {
	v := make([]float32, rows*columns)
	for i := range v {
		v[i] = float32(n.draw.Float64())
	}
	return n.f.Floats("mix", v, int64(rows), int64(columns))
}

// member adds the logits of another linear layer.
func (n *tailed) member(width int) string {
	v := make([]float32, width*4)
	for i := range v {
		v[i] = float32(n.draw.NormFloat64() * 5)
	}
	return n.f.Op("MatMul", []string{"f", n.f.Floats("v", v, 4, int64(width))})
}

var last = onnx.Attr{Name: "axis", Value: -1}

// A piece is a rule of the grammar of tails.
type piece struct {
	name string
	// bends says that the piece isn't affine.
	bends bool
	add   func(n *tailed) bool // false if it doesn't fit here
}

func simple(op string, attrs ...onnx.Attr) func(*tailed) bool {
	return func(n *tailed) bool { n.op(op, attrs...); return true }
}

func to(t onnxpb.TensorProto_DataType) onnx.Attr { return onnx.Attr{Name: "to", Value: int(t)} }

// pieces is the grammar: a tail is a chain of some of them.
var pieces = []piece{
	{"softmax", true, simple("Softmax", last)},
	{"sigmoid", true, simple("Sigmoid")},
	{"log-softmax", true, simple("LogSoftmax", last)},
	{"log", true, simple("Log")},
	{"exp", true, simple("Exp")},
	{"hard-sigmoid", true, simple("HardSigmoid")},
	{"tanh", true, simple("Tanh")},
	{"relu", true, simple("Relu")},
	{"softsign", true, simple("Softsign")},
	{"erf", true, simple("Erf")},
	{"normed", true, simple("LpNormalization", onnx.Attr{Name: "axis", Value: 1})},
	{"percent", false, func(n *tailed) bool { n.by("Mul", 100); n.rounded *= 100; return true }},
	{"temperature", false, func(n *tailed) bool {
		t := 0.3 + 3*n.draw.Float64()
		n.by("Div", t)
		n.rounded /= t
		return true
	}},
	{"offset", false, func(n *tailed) bool { n.by("Add", n.draw.Float64()); return true }},
	{"epsilon", false, func(n *tailed) bool { n.by("Add", 1e-7); return true }},
	{"negative", false, simple("Neg")},
	{"complement", true, func(n *tailed) bool {
		n.x = n.f.Op("Sub", []string{n.number(1), n.x})
		return true
	}},
	{"flat", false, simple("Flatten")},
	{"identity", false, simple("Identity")},
	{"column", false, func(n *tailed) bool {
		n.x = n.f.Op("Reshape", []string{n.x, n.ints(0, int64(n.width), 1, 1)})
		n.op("Transpose", onnx.Attr{Name: "perm", Value: []int64{0, 2, 3, 1}})
		n.op("Flatten")
		return true
	}},
	{"squeezed", false, func(n *tailed) bool {
		n.x = n.f.Op("Unsqueeze", []string{n.x, n.ints(2)})
		n.x = n.f.Op("Squeeze", []string{n.x, n.ints(2)})
		return true
	}},
	{"double", false, func(n *tailed) bool {
		n.op("Cast", to(onnxpb.TensorProto_DOUBLE))
		n.op("Cast", to(onnxpb.TensorProto_FLOAT))
		return true
	}},
	{"background", true, func(n *tailed) bool {
		if n.width < 3 {
			return false
		}
		n.width--
		from := int64(n.draw.IntN(2))
		n.x = n.f.Op("Slice", []string{n.x, n.ints(from), n.ints(from + int64(n.width)), n.ints(1)})
		return true
	}},
	{"permuted", false, func(n *tailed) bool {
		var order []int64
		for _, c := range n.draw.Perm(n.width) {
			order = append(order, int64(c))
		}
		n.x = n.f.Op("Gather", []string{n.x, n.ints(order...)}, onnx.Attr{Name: "axis", Value: 1})
		return true
	}},
	{"some", true, func(n *tailed) bool {
		if n.width < 4 {
			return false
		}
		var order []int64
		n.width -= 1 + n.draw.IntN(2)
		for _, c := range n.draw.Perm(n.width) {
			order = append(order, int64(c))
		}
		n.x = n.f.Op("Gather", []string{n.x, n.ints(order...)}, onnx.Attr{Name: "axis", Value: 1})
		return true
	}},
	{"clip", true, func(n *tailed) bool {
		n.x = n.f.Op("Clip", []string{n.x, n.f.Floats("low", []float32{1e-7}),
			n.f.Floats("high", []float32{1})})
		return true
	}},
	{"narrow clip", true, func(n *tailed) bool {
		n.x = n.f.Op("Clip", []string{n.x, n.f.Floats("low", []float32{0.1}),
			n.f.Floats("high", []float32{0.7})})
		return true
	}},
	{"two decimals", true, func(n *tailed) bool {
		n.by("Mul", 100)
		n.op("Round")
		n.by("Div", 100)
		n.rounded += 0.01
		return true
	}},
	{"whole", true, func(n *tailed) bool { n.op("Round"); n.rounded++; return true }},
	{"whole by Cast", true, func(n *tailed) bool {
		n.op("Cast", to(onnxpb.TensorProto_INT32))
		n.op("Cast", to(onnxpb.TensorProto_FLOAT))
		n.rounded += 2 // towards zero
		return true
	}},
	{"quantised", true, func(n *tailed) bool {
		n.x = roundedTo(1./255)(n.f, n.m, n.x)
		n.rounded += 1. / 255
		return true
	}},
	{"top", true, func(n *tailed) bool {
		k := min(n.width, 3)
		out := n.m.Fresh("ranks")
		other := n.m.Fresh("places")
		n.f.OpTo(out, "TopK", []string{n.x, n.ints(int64(k))})
		n.m.After(n.f)
		node := n.m.Proto.Graph.Node[len(n.m.Proto.Graph.Node)-1]
		node.Output = append(node.Output, other)
		n.f = n.m.Fragment()
		n.x, n.width = out, k
		return true
	}},
	{"exp over sum", true, func(n *tailed) bool {
		n.op("Exp")
		n.x = n.f.Op("Div", []string{n.x, n.reduced("ReduceSum")})
		return true
	}},
	{"stable exp over sum", true, func(n *tailed) bool {
		n.x = n.f.Op("Sub", []string{n.x, n.reduced("ReduceMax")})
		n.op("Exp")
		n.x = n.f.Op("Div", []string{n.x, n.reduced("ReduceSum")})
		return true
	}},
	{"minus log-sum-exp", true, func(n *tailed) bool {
		n.x = n.f.Op("Sub", []string{n.x, n.reduced("ReduceLogSumExp")})
		return true
	}},
	{"1/(1+exp(-x))", true, func(n *tailed) bool {
		n.op("Neg")
		n.op("Exp")
		n.by("Add", 1)
		n.op("Reciprocal")
		return true
	}},
	{"exp/(1+exp)", true, func(n *tailed) bool {
		n.op("Exp")
		n.x = n.f.Op("Div", []string{n.x, n.f.Op("Add", []string{n.x, n.number(1)})})
		return true
	}},
	{"over sum", true, func(n *tailed) bool {
		n.rounded *= float64(1 + n.width) // the number and the sum, which is near 1, are rounded
		n.x = n.f.Op("Div", []string{n.x, n.reduced("ReduceSum")})
		return true
	}},
	{"over largest", true, func(n *tailed) bool {
		n.x = n.f.Op("Div", []string{n.x, n.reduced("ReduceMax")})
		return true
	}},
	{"minus largest", true, func(n *tailed) bool {
		n.x = n.f.Op("Sub", []string{n.x, n.reduced("ReduceMax")})
		return true
	}},
	{"minus mean", false, func(n *tailed) bool {
		n.x = n.f.Op("Sub", []string{n.x, n.reduced("ReduceMean")})
		return true
	}},
	{"sharpened", true, func(n *tailed) bool { n.by("Pow", 0.5); return true }},
	{"mean with a member", true, func(n *tailed) bool {
		n.x = n.f.Op("Mean", []string{n.x, n.f.Op("Softmax", []string{n.member(n.width)}, last)})
		return true
	}},
	{"sum with a member", true, func(n *tailed) bool {
		n.x = n.f.Op("Add", []string{n.x, n.f.Op("Softmax", []string{n.member(n.width)}, last)})
		return true
	}},
	{"weighted with a member", true, func(n *tailed) bool {
		y := n.f.Op("Softmax", []string{n.member(n.width)}, last)
		n.x = n.f.Op("Add", []string{n.f.Op("Mul", []string{n.x, n.number(0.75)}),
			n.f.Op("Mul", []string{y, n.number(0.25)})})
		return true
	}},
	{"members of logits", false, func(n *tailed) bool {
		if n.bent {
			return false
		}
		n.x = n.f.Op("Add", []string{n.x, n.member(n.width)})
		return true
	}},
	{"superclasses", true, func(n *tailed) bool {
		if n.width < 4 {
			return false
		}
		n.x = n.f.Op("MatMul", []string{n.x, n.weights(n.width, n.width-1)})
		n.width--
		if !n.likely() { // a layer behind features
			n.ops, n.bent, n.rounded = nil, false, 0
		}
		return true
	}},
	{"one output", true, func(n *tailed) bool { // of another layer
		n.x, n.width, n.ops, n.bent, n.rounded = n.member(1), 1, nil, false, 0
		return true
	}},
	{"pair", true, func(n *tailed) bool {
		if n.width != 1 {
			return false
		}
		n.x = n.f.Op("Concat", []string{n.f.Op("Sub", []string{n.number(1), n.x}), n.x},
			onnx.Attr{Name: "axis", Value: 1})
		n.width = 2
		return true
	}},
	{"softmax of groups", true, func(n *tailed) bool {
		if n.width < 4 || n.width%2 != 0 {
			return false
		}
		n.x = n.f.Op("Reshape", []string{n.x, n.ints(-1, 2, int64(n.width)/2)})
		n.op("Softmax", last)
		n.op("Flatten")
		return true
	}},
	{"late member", true, func(n *tailed) bool { // that is 0 for most images
		y := n.f.Op("Relu", []string{n.f.Op("Sub", []string{n.member(n.width), n.number(100)})})
		n.x = n.f.Op("Add", []string{n.x, y})
		if !n.likely() { // a layer next to features
			n.ops, n.bent, n.rounded = nil, false, 0
		}
		return true
	}},
	{"own scales", true, func(n *tailed) bool {
		v := make([]float32, n.width)
		for i := range v {
			v[i] = float32(0.5 + n.draw.Float64())
		}
		n.x = n.f.Op("Mul", []string{n.x, n.f.Floats("own", v, int64(n.width))})
		return true
	}},
}

// normalisers are the pieces that make probabilities, or their logarithms, of logits.
var normalisers = []string{"softmax", "sigmoid", "log-softmax", "exp over sum", "stable exp over sum",
	"minus log-sum-exp", "1/(1+exp(-x))", "exp/(1+exp)"}

// grow returns a net with a tail of those pieces, or of random ones, without names that tell.
func grow(seed uint64, names ...string) *tailed {
	draw := rand.New(rand.NewPCG(seed, 27))
	n := tiny{channels: 3, filters: 4, classes: 1 + draw.IntN(12), height: 5, width: 5, gain: 6}
	if len(names) > 0 {
		n.classes = 6
	}
	g := &tailed{m: n.model(onnx.Free), x: "logits", width: n.classes, draw: draw}
	g.f = g.m.Fragment()
	count := draw.IntN(6)
	if len(names) > 0 {
		count = len(names)
	}
	for i := range count {
		at := draw.IntN(len(pieces))
		if len(names) > 0 {
			at = slices.IndexFunc(pieces, func(p piece) bool { return p.name == names[i] })
		}
		p := pieces[at]
		if slices.Contains(normalisers, p.name) {
			g.rounded = 0 // what is normalised are rounded numbers
		}
		if p.add(g) {
			g.ops = append(g.ops, p.name)
			g.bent = g.bent || p.bends
		}
	}
	g.m.After(g.f)
	if g.x == "logits" {
		f := g.m.Fragment()
		g.x = f.Op("Identity", []string{g.x})
		g.m.After(f)
	}
	strip(g)
	g.m.SetOutputs(onnx.Value{Name: g.x, Elem: onnxpb.TensorProto_FLOAT})
	return g
}

// strip gives all values names that tell nothing.
func strip(g *tailed) {
	names := map[string]string{"pixels": "pixels"}
	name := func(v string) string {
		if v == "" {
			return v
		}
		if _, ok := names[v]; !ok {
			names[v] = fmt.Sprintf("t%d", len(names))
		}
		return names[v]
	}
	p := g.m.Proto.Graph
	for _, t := range p.Initializer {
		t.Name = name(t.Name)
	}
	for _, n := range p.Node {
		n.Name = ""
		for i, v := range n.Input {
			n.Input[i] = name(v)
		}
		for i, v := range n.Output {
			n.Output[i] = name(v)
		}
	}
	g.x = name(g.x)
}

// returned runs the file as it is and returns its answer to each of some normalised images.
func returned(t testing.TB, m *onnx.Model, images [][]float32, shape ...int) [][]float32 {
	t.Helper()
	r := modeltest.Runtime(t)
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.NewPlainSession(b, []string{"pixels"}, []string{m.Outputs()[0].Name})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x, err := ort.NewTensor[float32](r, append([]int{1}, shape...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var out [][]float32
	for _, image := range images {
		copy(x.Data, image)
		answers, err := ort.Fetch[float32](t.Context(), s, []ort.Value{x})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, answers[0].Data)
	}
	return out
}

// An outcome is what became of a tail.
type outcome string

const (
	isLogits outcome = "logits"
	through  outcome = "looked through"
	kept     outcome = "kept"
	refused  outcome = "refused"
	differs  outcome = "differs silently"

	// illPosed is a tail whose own answer is a matter of rounding, such as a quotient by a sum that is 0 but
	// for rounding: it has no answer to hold a response against.
	illPosed outcome = "the file's own answer is rounding"
)

// told reads a net and holds the response that stages read against the file's own answers to other images
// than it was judged by.
func told(t testing.TB, g *tailed) (outcome, string) {
	t.Helper()
	images := make([][]float32, 6)
	for i := range images {
		for k := range 3 * 5 * 5 {
			images[i] = append(images[i], float32(g.draw.NormFloat64()+math.Sin(float64(k*i))))
		}
	}
	answers := returned(t, g.m, images, 3, 5, 5)
	p := *model.ONNX.NewParams().(*model.ONNXParams)
	p.Path, p.Preset = modeltest.File(t, g.m), "unit"
	x, err := model.Inspect(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if x.Problem != "" {
		return refused, x.Problem
	}
	x.Trial.Close()
	data := modeltest.Model(t, p)
	net := modeltest.Net(t, data)
	f, err := net.Forward(t.Context(), stagetest.NewSlot(), net.Fit(len(images), len(images)))
	if err != nil {
		return refused, err.Error()
	}
	for from := 0; from < len(images); from += f.Batch {
		rows := min(f.Batch, len(images)-from)
		for i := range rows {
			copy(f.Image(i), images[from+i])
		}
		if err := f.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			text := disagrees(net, f.Row(i), answers[from+i], x, g)
			if text != "" && shaky(t, g, images[from+i], answers[from+i]) {
				return illPosed, text
			}
			if text != "" {
				return differs, text
			}
		}
	}
	switch {
	case x.Head.Kind == "logits" && len(x.Head.Through) == 0:
		return isLogits, ""
	case x.Feed.Probabilities:
		return kept, x.Head.Why
	}
	return through, fmt.Sprint(x.Head.Through)
}

// shaky reports whether the file itself answers otherwise to an image whose numbers differ in the last bits.
func shaky(t testing.TB, g *tailed, image, answer []float32) bool {
	near := make([][]float32, 16)
	for i := range near {
		for _, v := range image {
			near[i] = append(near[i], v*float32(1+1e-6*g.draw.NormFloat64()))
		}
	}
	for _, again := range returned(t, g.m, near, 3, 5, 5) {
		for c, a := range again {
			if !(math.Abs(float64(a)-float64(answer[c])) <= 1e-3*max(1, math.Abs(float64(a)))) {
				return true
			}
		}
	}
	return false
}

// disagrees returns how the response of a row differs from the file's answer, or "".
func disagrees(net *program.Net, row, answer []float32, x model.Inspection, g *tailed) string {
	if slices.ContainsFunc(answer, func(a float32) bool { return a != a }) {
		return "" // exponentials overflow in the file, which has no answer to this image
	}
	first := 0
	if x.Feed.Sides {
		first = 1 // of both sides, the positive
	}
	classes := len(row) - first
	order := make([]int, classes) // classes by column of the answer
	for c := range order {
		order[c] = first + c
	}
	if slices.Contains(x.Head.Through, "TopK") { // the columns of the answer are ranks
		classes = min(classes, len(answer))
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Compare(x.Head.Scale*net.Logit(row, program.Target{Class: b, Minus: -1}),
				x.Head.Scale*net.Logit(row, program.Target{Class: a, Minus: -1}))
		})
	}
	if classes != len(answer) {
		return fmt.Sprintf("%d classes instead of %d", classes, len(answer))
	}
	size := 1.
	for _, a := range answer {
		size = max(size, math.Abs(float64(a)))
	}
	tolerance := 1e-4
	if len(x.Head.Through) > 0 { // the response isn't rounded
		tolerance += g.rounded * 0.51 / math.Abs(x.Head.Scale)
	}
	for c, a := range answer {
		want := float64(a) / x.Head.Scale
		target := program.Target{Class: order[c], Minus: -1}
		got := net.Probability(row, target)
		switch x.Head.Kind {
		case "logits":
			got, want = net.Logit(row, target), float64(a)
			if len(x.Head.Through) > 0 { // up to what is the same for all classes
				got -= net.Logit(row, program.Target{Class: order[0], Minus: -1})
				want -= float64(answer[0])
			}
			if g.bent && len(x.Head.Through) == 0 && !harmless(g) {
				return "taken for logits"
			}
			if math.Abs(got-want) <= 1e-4*size {
				continue
			}
		case "log-probabilities":
			want = math.Exp(want)
		}
		if got != want && !(math.Abs(got-want) <= tolerance) {
			return fmt.Sprintf("class %d: %v instead of %v (%+v)", c, got, want, x.Head)
		}
	}
	return ""
}

// harmless reports whether a tail leaves logits what they are: rectified, others left out, rounded, or with a
// linear layer behind.
func harmless(g *tailed) bool {
	for _, op := range g.ops {
		switch op {
		case "relu", "background", "some", "superclasses", "complement", "own scales", "quantised", "whole",
			"two decimals", "whole by Cast", "minus largest", "sharpened", "pair", "late member",
			"one output":
		default:
			i := slices.IndexFunc(pieces, func(p piece) bool { return p.name == op })
			if pieces[i].bends {
				return false
			}
		}
	}
	return true
}

// TestRandomTail grows a net with a tail of its own in every run.
func TestRandomTail(t *testing.T) {
	modeltest.Runtime(t)
	seed := uint64(time.Now().UnixNano())
	check(t, seed)
}

func check(t *testing.T, seed uint64) outcome {
	g := grow(seed)
	out, why := told(t, g)
	if out == differs {
		t.Errorf("seed %d, %d wide, %q: %s", seed, g.width, g.ops, why)
	}
	if out == refused && g.width > 1 && (!g.bent || usual(g)) {
		t.Errorf("seed %d, %q: refused: %s", seed, g.ops, why)
	}
	return out
}

// usual reports whether a tail is one normaliser, with nothing behind it but what moves and scales numbers.
func usual(g *tailed) bool {
	at := slices.IndexFunc(g.ops, func(op string) bool { return slices.Contains(normalisers, op) })
	for i, op := range g.ops {
		k := slices.IndexFunc(pieces, func(p piece) bool { return p.name == op })
		moves := !pieces[k].bends && (i < at || op != "offset" && op != "negative" && op != "minus mean") &&
			(op != "percent" || i > at) // exponentials of large numbers overflow
		if i != at && !moves {
			return false
		}
	}
	return at >= 0
}

func FuzzTails(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		modeltest.Runtime(t)
		check(t, seed)
	})
}

// TestTails tries every form of tail known to be written.
func TestTails(t *testing.T) {
	modeltest.Runtime(t)
	for _, tt := range []struct {
		want outcome
		ops  []string
	}{
		{isLogits, []string{"identity"}},
		{isLogits, []string{"temperature"}},
		{isLogits, []string{"minus mean"}},
		{isLogits, []string{"members of logits"}},
		{isLogits, []string{"relu"}},
		{isLogits, []string{"column", "double", "squeezed"}},
		{through, []string{"softmax"}},
		{through, []string{"softmax", "percent"}},
		{through, []string{"softmax", "temperature"}},
		{through, []string{"temperature", "softmax"}},
		{through, []string{"softmax", "permuted"}},
		{kept, []string{"softmax", "background"}},
		{kept, []string{"softmax", "some", "percent"}},
		{kept, []string{"softmax", "background", "log"}},
		{through, []string{"softmax", "top"}},
		{through, []string{"top"}},
		{through, []string{"log-softmax", "negative", "top"}},
		{refused, []string{"top", "whole by Cast"}},
		{refused, []string{"top", "softmax"}},
		{refused, []string{"softmax", "top", "over sum"}},
		{through, []string{"softmax", "two decimals"}},
		{through, []string{"softmax", "percent", "whole"}},
		{refused, []string{"softmax", "whole"}},
		{refused, []string{"softmax", "whole by Cast"}},
		{through, []string{"softmax", "percent", "whole by Cast"}},
		{kept, []string{"softmax of groups"}},
		{kept, []string{"softmax of groups", "superclasses"}},
		{kept, []string{"softmax", "late member"}},
		{refused, []string{"softmax", "exp"}},
		{through, []string{"minus largest", "sigmoid"}},
		{isLogits, []string{"one output"}},
		{through, []string{"one output", "sigmoid"}},
		{kept, []string{"one output", "sigmoid", "pair"}},
		{refused, []string{"one output", "percent", "softmax"}},
		{through, []string{"softmax", "log", "negative"}},
		{through, []string{"softmax", "epsilon", "log"}},
		{through, []string{"log-softmax", "permuted"}},
		{through, []string{"log-softmax", "exp", "percent"}},
		{through, []string{"exp over sum", "percent"}},
		{through, []string{"stable exp over sum"}},
		{through, []string{"minus log-sum-exp"}},
		{through, []string{"1/(1+exp(-x))"}},
		{through, []string{"exp/(1+exp)", "percent"}},
		{through, []string{"sigmoid", "percent"}},
		{through, []string{"sigmoid", "some", "percent"}},
		{through, []string{"sigmoid", "background"}},
		{through, []string{"minus largest"}},
		{through, []string{"exp", "log"}},
		{through, []string{"softmax", "softmax"}},
		{kept, []string{"sigmoid", "over sum"}},
		{kept, []string{"hard-sigmoid"}},
		{kept, []string{"hard-sigmoid", "percent"}},
		{kept, []string{"softmax", "mean with a member"}},
		{kept, []string{"softmax", "sum with a member"}},
		{kept, []string{"softmax", "weighted with a member", "percent"}},
		{kept, []string{"softmax", "mean with a member", "log"}},
		{kept, []string{"softmax", "sum with a member", "background"}},
		{kept, []string{"softmax", "sharpened"}},
		{kept, []string{"softmax", "sharpened", "over sum"}},
		{kept, []string{"softmax", "complement"}},
		{kept, []string{"softmax", "narrow clip"}},
		{kept, []string{"softmax", "superclasses"}},
		{kept, []string{"softmax", "own scales"}},
		{refused, []string{"softmax", "over largest"}},
		{refused, []string{"tanh"}},
		{refused, []string{"softsign"}},
		{refused, []string{"normed"}},
		{refused, []string{"exp"}},
		{refused, []string{"log-softmax", "negative", "log"}},
	} {
		g := grow(3, tt.ops...)
		if out, why := told(t, g); out != tt.want {
			t.Errorf("%q: %s, want %s: %s", tt.ops, out, tt.want, why)
		}
	}
}

// TestManyTails grows as many tails as TAILS says, from the seed TAILS_FROM on, and counts what became of
// them.
func TestManyTails(t *testing.T) {
	modeltest.Runtime(t)
	many, err := strconv.Atoi(cmp.Or(os.Getenv("TAILS"), "30"))
	from, bad := strconv.ParseUint(cmp.Or(os.Getenv("TAILS_FROM"), "0"), 10, 64)
	if err != nil || bad != nil {
		t.Fatal(err, bad)
	}
	counts := map[outcome]int{}
	for i := range uint64(many) {
		counts[check(t, from+i)]++
	}
	t.Log(counts)
	if counts[illPosed] > 2+many/500 {
		t.Errorf("%d of %d tails have no answer to hold a response against", counts[illPosed], many)
	}
}
