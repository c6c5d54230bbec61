package lower

import (
	"cmp"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// halfPrecision has the program compute in float16 what may be.
func (u *unit) halfPrecision() error {
	u.halved = HalfPrecision(u.graph)
	return nil
}

// A Halved says in which precision a node of a program computes, and why.
type Halved struct {
	Node     string `json:"node"` // its first output, as in the float32 program
	Operator string `json:"operator"`
	Float16  bool   `json:"float16"`
	Why      string `json:"why"`
}

// HalfPrecision has a graph compute in float16 by [halfTable], and returns what each node with numbers
// computes in.
//
// Products compute in float16, except those whose result is the answer or is exponentiated, sums written as a
// product with equal numbers, and those with weights that float16 can't hold. Nodes of role [either] take the
// side that leaves the fewest Casts in the graph; where two sides cost the same it is float32. Each value is
// cast once, where it is made, and no value is cast there and back. Weights are converted here. Inputs and
// outputs of the graph stay float32.
//
// A number beyond 65504 becomes an infinity, which sums and products keep, and norms make NaN: the answer
// isn't a number then, as little as scores that are computed from it. A Softmax may make 0 of it: what is
// compared with float32, a run's first items and one in twenty, shows that alone.
func HalfPrecision(g *onnx.Graph) []Halved {
	h := &halving{Graph: g, weights: map[string]*onnxpb.TensorProto{}, maker: map[string]int{},
		readers: map[string][]int{}, names: map[string]string{}}
	h.index()
	h.assign()
	h.keepExact()
	h.choose()
	list := h.list()
	h.convert()
	return list
}

// A halving is one run of the pass.
type halving struct {
	*onnx.Graph
	weights map[string]*onnxpb.TensorProto
	nodes   []onnx.Node
	maker   map[string]int    // of a value: its node
	readers map[string][]int  // of a value: the nodes that read it; -1: the graph returns it
	rows    []halfRow         // by node
	half    []bool            // by node: it computes in float16
	names   map[string]string // of values and weights: their names in float16
}

// index finds the nodes that make and read each value, and the types of values that have none yet.
func (h *halving) index() {
	for _, t := range h.Proto.Graph.Initializer {
		h.weights[t.Name] = t
		h.Types[t.Name] = onnx.Type{Elem: onnxpb.TensorProto_DataType(t.DataType), Shape: onnx.ShapeOf(t)}
	}
	for i, p := range h.Proto.Graph.Node {
		n := onnx.Node{NodeProto: h.plain(p)}
		h.nodes = append(h.nodes, n)
		for _, v := range onnx.Taken(p) {
			h.readers[v] = append(h.readers[v], i)
		}
		for k, v := range p.Output {
			if v == "" {
				continue
			}
			h.maker[v] = i
			if _, known := h.Types[v]; !known {
				h.Types[v] = onnx.Type{Elem: h.elemOf(n, k)}
			}
		}
	}
	for _, v := range h.Outputs() {
		h.readers[v.Name] = append(h.readers[v.Name], -1)
	}
}

// plain returns a Cast of float32 to float32 as the Identity that it is, and other nodes themselves.
func (h *halving) plain(p *onnxpb.NodeProto) *onnxpb.NodeProto {
	n := onnx.Node{NodeProto: p}
	if p.OpType != "Cast" || n.Int("to", 0) != int(onnxpb.TensorProto_FLOAT) || !h.float(n.In(0)) {
		return p
	}
	return onnx.NewNode(p.Name, "Identity", p.Input, p.Output)
}

// elemOf returns the type of the elements of a node's output k, given those of its inputs.
func (h *halving) elemOf(n onnx.Node, k int) onnxpb.TensorProto_DataType {
	of := func(i int) onnxpb.TensorProto_DataType { return h.Types[n.In(i)].Elem }
	switch op := n.OpType; {
	case op == "Cast":
		return onnxpb.TensorProto_DataType(n.Int("to", 0))
	case op == "Constant", op == "ConstantOfShape":
		for _, a := range n.Attribute {
			if a.T != nil {
				return onnxpb.TensorProto_DataType(a.T.DataType)
			}
		}
		return onnxpb.TensorProto_FLOAT
	case slices.Contains([]string{"Shape", "Size", "ArgMax", "ArgMin", "NonZero"}, op),
		k == 1 && (op == "MaxPool" || op == "TopK"):
		return onnxpb.TensorProto_INT64
	case slices.Contains([]string{"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or",
		"Not", "Xor", "IsNaN", "IsInf"}, op), k == 1 && op == "Dropout":
		return onnxpb.TensorProto_BOOL
	case op == "Where":
		return of(1)
	}
	return of(0)
}

// float reports whether a value has numbers of float32.
func (h *halving) float(v string) bool { return h.Types[v].Elem == onnxpb.TensorProto_FLOAT }

// floats reports whether a node reads or makes numbers of float32.
func (h *halving) floats(n onnx.Node) bool {
	return slices.ContainsFunc(n.Input, h.float) || slices.ContainsFunc(n.Output, h.float)
}

// assign finds every node's row: that of the table, unless it can't compute in float16.
func (h *halving) assign() {
	h.rows, h.half = make([]halfRow, len(h.nodes)), make([]bool, len(h.nodes))
	for i, n := range h.nodes {
		row, known := halfRows[n.OpType]
		fused := n.OpType == "FusedMatMul"
		switch why := h.unfit(n, row.role); {
		case !known || len(onnx.Bodies(n.NodeProto)) > 0 || n.Domain != "" && !fused:
			row = halfRow{single, "the table has no row of it"}
		case row.role == single:
		case !h.floats(n):
			row = halfRow{single, ""}
		case why != "":
			row = halfRow{single, why}
		}
		h.rows[i] = row
	}
}

// unfit returns why a node's weights keep it from float16, "" if they don't.
func (h *halving) unfit(n onnx.Node, role halfRole) string {
	if role == single {
		return ""
	}
	for i, name := range n.Input {
		w := h.weights[name]
		if w == nil || !h.float(name) {
			continue
		}
		v, err := onnx.Float32s(w)
		if err != nil {
			return err.Error()
		}
		other := func(x float32) bool { return x != v[0] }
		switch {
		case role == product && len(v) > 1 && v[0] != 0 && !slices.ContainsFunc(v, other):
			return "adds many numbers: its weights are equal"
		case slices.ContainsFunc(v, exceeds):
			return "a weight exceeds 65504"
		case (role == either || i < 2) && small(v): // a third input is added, so that its error is absolute
			return "weights are too small for float16"
		}
	}
	return ""
}

// exceeds reports whether a finite number is infinite in float16.
func exceeds(x float32) bool { return x-x == 0 && math.Abs(float64(x)) >= onnx.LargestFloat16+16 }

// small reports whether numbers lose more in float16 by being subnormal than rounding takes from others:
// 2⁻¹¹ of the root of their squares' sum.
func small(v []float32) bool {
	lost, all := 0., 0.
	for _, x := range v {
		if off := float64(onnx.FromFloat16(onnx.ToFloat16(x)) - x); off-off == 0 {
			lost += off * off
			all += float64(x) * float64(x)
		}
	}
	const most = 1. / (1 << 11)
	return lost > most*most*all*(1+1e-6)
}

// keepExact has the products compute in float32 whose results are the answer, or are exponentiated: an error
// of 2⁻¹¹ of a score of 50 is one of a fortieth of its weight, and WebGPU's Softmax makes 0 of infinities.
// Between them and there are at most nodes of role [either].
func (h *halving) keepExact() {
	seen := map[string]bool{}
	var visit func(v, why string)
	visit = func(v, why string) {
		i, made := h.maker[v]
		if !made || seen[v] {
			return
		}
		seen[v] = true
		switch h.rows[i].role {
		case either:
			for _, in := range h.nodes[i].Input {
				visit(in, why)
			}
		case product:
			h.rows[i] = halfRow{single, why}
		}
	}
	visit(Answer, "its result is the answer")
	for _, n := range h.nodes {
		if slices.Contains([]string{"Softmax", "LogSoftmax", "ReduceLogSumExp", "Exp"}, n.OpType) {
			visit(n.In(0), "its result is exponentiated")
		}
	}
}

// choose chooses the precision of nodes of role [either] so that the fewest values are cast. That is a least
// cut: a value costs 1 if its maker is on the other side than any of its readers.
func (h *halving) choose() {
	const source, sink = 0, 1
	f := newFlow(2 + len(h.nodes))
	vertex := func(i int) int { return i + 2 }
	for i, row := range h.rows {
		switch row.role {
		case product:
			f.join(source, vertex(i), unbounded)
		case single:
			f.join(vertex(i), sink, unbounded)
		}
	}
	join := func(v string, maker int) {
		if !h.float(v) || h.weights[v] != nil {
			return
		}
		up, down := f.vertex(), f.vertex() // cast to float32, and to float16
		f.join(maker, up, 1)
		f.join(down, maker, 1)
		for _, r := range h.readers[v] {
			reader := sink
			if r >= 0 {
				reader = vertex(r)
			}
			f.join(up, reader, unbounded)
			f.join(reader, down, unbounded)
		}
	}
	for _, v := range h.Inputs() {
		join(v.Name, sink)
	}
	for i, n := range h.nodes {
		for _, v := range n.Output {
			join(v, vertex(i))
		}
	}
	side := f.sourceSide(source, sink)
	for i := range h.nodes {
		h.half[i] = side[vertex(i)]
	}
}

// list returns what each node with numbers computes in.
func (h *halving) list() (list []Halved) {
	for i, n := range h.nodes {
		if !h.floats(n) {
			continue
		}
		why := h.rows[i].why
		if h.rows[i].role == either && !h.half[i] {
			why = "float16 would need more Casts, or as many"
		}
		list = append(list, Halved{cmp.Or(n.Output...), n.OpType, h.half[i], why})
	}
	return list
}

// convert writes the nodes, and the Casts between them.
func (h *halving) convert() {
	g := h.Proto.Graph
	g.Node = nil
	for _, v := range h.Inputs() {
		h.lowered(v.Name)
	}
	for i, n := range h.nodes {
		if !h.half[i] {
			g.Node = append(g.Node, n.NodeProto)
			for _, v := range n.Output {
				h.lowered(v)
			}
			continue
		}
		p := proto.Clone(n.NodeProto).(*onnxpb.NodeProto)
		var raised []string
		for k, v := range p.Input {
			if h.float(v) {
				p.Input[k] = h.float16(v)
			}
		}
		for k, v := range p.Output {
			if h.float(v) {
				p.Output[k] = h.float16(v)
				raised = append(raised, v)
			}
		}
		g.Node = append(g.Node, p)
		for _, v := range raised {
			if h.anyReader(v, false) {
				h.cast(h.float16(v), v, onnxpb.TensorProto_FLOAT)
			}
		}
	}
	h.Prune()
}

// lowered casts a value of float32 if a node in float16 reads it.
func (h *halving) lowered(v string) {
	if h.float(v) && h.anyReader(v, true) {
		h.cast(v, h.float16(v), onnxpb.TensorProto_FLOAT16)
	}
}

func (h *halving) anyReader(v string, half bool) bool {
	return slices.ContainsFunc(h.readers[v], func(r int) bool { return (r >= 0 && h.half[r]) == half })
}

func (h *halving) cast(from, to string, elem onnxpb.TensorProto_DataType) {
	h.Proto.Graph.Node = append(h.Proto.Graph.Node, onnx.NewNode(h.Fresh("runexp_Cast"), "Cast",
		[]string{from}, []string{to}, onnx.Attr{Name: "to", Value: int(elem)}))
}

// float16 returns the name of a value in float16, or of a weight, which it converts.
func (h *halving) float16(v string) string {
	if name, ok := h.names[v]; ok {
		return name
	}
	name := h.Fresh(v + "/float16")
	h.names[v] = name
	h.Types[name] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT16, Shape: h.Shape(v)}
	if w := h.weights[v]; w != nil {
		numbers, _ := onnx.Float32s(w) // assign has read them
		h.AddWeight(onnx.Float16Tensor(name, numbers, onnx.ShapeOf(w)...))
		h.Derive(name, "float16", v)
	}
	return name
}
