package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// A Value is an input, an output or an intermediate value of a model.
type Value struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Shape has numbers, or names of open dimensions; it is nil if the file declares no shape.
	Shape []string `json:"shape"`
}

func (v Value) String() string {
	if v.Shape == nil && strings.Contains(v.Type, " ") { // no tensor
		return printable(v.Name) + " " + v.Type
	}
	return printable(v.Name) + " " + v.Type + " [" + printable(strings.Join(v.Shape, ", ")) + "]"
}

// plain leaves out the type.
func (v Value) plain() string {
	return printable(v.Name) + " [" + printable(strings.Join(v.Shape, ", ")) + "]"
}

// printable quotes strings with characters unfit for a terminal.
func printable(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}

// Weights are the constants of a model.
type Weights struct {
	Numbers int64    `json:"numbers"`
	Types   []string `json:"types"`
}

// Norm describes the batch normalisation of a model.
type Norm struct {
	Separate int  `json:"apart"`    // number of BatchNormalization nodes
	Training int  `json:"training"` // of these, nodes that normalise by batch statistics, as in training
	Folded   bool `json:"merged"`   // names of weights show that the exporter folded it into convolutions
}

// A NodeCount is the number of nodes of an operator.
type NodeCount struct {
	Operator  string `json:"operator"`
	Count     int    `json:"count"`
	Supported bool   `json:"supported"` // its gradient is known, or known to be none
}

// A Preset is a named normalisation of pixels.
type Preset struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
}

func presets() []Preset {
	var out []Preset
	for _, p := range modelfile.Presets() {
		doc := fmt.Sprintf("(pixel·%g − %v)/%v", p.Scale, p.Mean, p.Std)
		if p.Order == modelfile.BGR {
			doc += ", blue first"
		}
		out = append(out, Preset{p.Name, doc})
	}
	return out
}

// NearestPreset returns the preset whose range over all channels comes closest to [black, white]. The range
// of quantised inputs is the same for all channels.
func NearestPreset(black, white float64) string {
	name, least := "", math.Inf(1)
	for _, p := range modelfile.Presets() {
		low, high := math.Inf(1), math.Inf(-1)
		for c := range 3 {
			low = min(low, -p.Mean[c]/p.Std[c])
			high = max(high, (p.Scale-p.Mean[c])/p.Std[c])
		}
		if d := (math.Abs(low-black) + math.Abs(high-white)) / (white - black); d < least {
			name, least = p.Name, d
		}
	}
	return name
}

// describe sets the fields that follow from the file alone.
func (x *Inspection) describe(m *onnx.Model) {
	g := m.Proto.Graph
	x.Producer = printable(strings.TrimSpace(m.Proto.GetProducerName() + " " + m.Proto.GetProducerVersion()))
	x.IR, x.Opset = int(m.Proto.IrVersion), m.Opset()
	fed := map[string]bool{}
	for _, v := range m.Inputs() {
		fed[v.Name] = true
	}
	for _, v := range g.Input {
		if fed[v.Name] {
			x.Inputs = append(x.Inputs, valueOf(v))
		}
	}
	for _, v := range g.Output {
		x.Outputs = append(x.Outputs, valueOf(v))
	}
	for _, t := range g.Initializer {
		n := int64(1)
		for _, d := range t.Dims {
			n *= d
		}
		x.Weights.Numbers += n
		if name := typeName(onnxpb.TensorProto_DataType(t.DataType)); !slices.Contains(x.Weights.Types,
			name) {
			x.Weights.Types = append(x.Weights.Types, name)
		}
	}
	slices.Sort(x.Weights.Types)
	x.Norm = normOf(g)
	x.Nodes = count(g.Node)
	x.Leading = leading(g, fed)
}

func valueOf(v *onnxpb.ValueInfoProto) Value {
	if kind := container(v.GetType()); kind != "" {
		return Value{Name: v.Name, Type: kind}
	}
	t := v.GetType().GetTensorType()
	out := Value{Name: v.Name, Type: typeName(onnxpb.TensorProto_DataType(t.GetElemType()))}
	for _, d := range t.GetShape().GetDim() {
		switch {
		case d.GetDimValue() > 0:
			out.Shape = append(out.Shape, strconv.FormatInt(d.GetDimValue(), 10))
		case d.GetDimParam() != "":
			out.Shape = append(out.Shape, d.GetDimParam())
		default:
			out.Shape = append(out.Shape, "?")
		}
	}
	return out
}

// typeName returns NumPy's name of a type.
func typeName(t onnxpb.TensorProto_DataType) string {
	switch t {
	case onnxpb.TensorProto_FLOAT:
		return "float32"
	case onnxpb.TensorProto_DOUBLE:
		return "float64"
	}
	return strings.ToLower(t.String())
}

// count counts nodes by operator, the most frequent first, then by name.
func count(nodes []*onnxpb.NodeProto) []NodeCount {
	at := map[string]int{}
	var out []NodeCount
	for _, n := range nodes {
		name := n.OpType
		own := n.Domain == "" || n.Domain == "ai.onnx"
		if !own {
			name = n.Domain + "." + name
		}
		k, ok := at[name]
		if !ok {
			k = len(out)
			at[name] = k
			out = append(out,
				NodeCount{Operator: printable(name), Supported: own && relevance.Supported(n.OpType)})
		}
		out[k].Count++
	}
	slices.SortFunc(out, func(a, b NodeCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Operator, b.Operator))
	})
	return out
}

// normOf counts batch normalisation. PyTorch's exporter names computed weights onnx::Conv_ and a number, and
// computes those of convolutions only to fold a normalisation into them; other exporters leave a trace in the
// name as well.
func normOf(g *onnxpb.GraphProto) Norm {
	var n Norm
	for _, node := range g.Node {
		switch node.OpType {
		case "BatchNormalization":
			n.Separate++
			if (onnx.Node{NodeProto: node}).Int("training_mode", 0) != 0 {
				n.Training++
			}
		case "Conv":
			w := (onnx.Node{NodeProto: node}).In(1)
			low := strings.ToLower(w)
			n.Folded = n.Folded || strings.HasPrefix(w, "onnx::Conv") || strings.Contains(low, "batchnorm") ||
				strings.Contains(low, "fusedbn")
		}
	}
	return n
}

// leading returns the arithmetic operators at the start of a model, such as a normalisation of its own.
func leading(g *onnxpb.GraphProto, fed map[string]bool) []string {
	var out []string
	at := map[string]bool{}
	for name := range fed {
		at[name] = true
	}
	for _, n := range g.Node {
		if len(n.Output) == 0 || !slices.ContainsFunc(n.Input, func(v string) bool { return at[v] }) {
			continue
		}
		switch n.OpType {
		case "Sub", "Add", "Mul", "Div", "BatchNormalization":
			out = append(out, n.OpType)
		case "Transpose", "Cast", "Identity", "Pad", "Shape":
		default:
			return out
		}
		if n.OpType != "Shape" {
			at[n.Output[0]] = true
		}
	}
	return out
}

// multiplyAdds counts the multiplications of a forward pass in convolutions and matrix products, which take
// nearly all of its time. A node of unknown shape counts nothing.
func multiplyAdds(g *onnx.Graph) int64 {
	var sum int64
	for _, p := range g.Proto.Graph.Node {
		n := onnx.Node{NodeProto: p}
		if len(n.Output) == 0 {
			continue
		}
		switch n.OpType {
		case "Conv":
			sum += volume(g.Shape(n.Output[0])) * volume(rest(g.Shape(n.In(1)), 1))
		case "ConvTranspose":
			sum += volume(g.Shape(n.In(0))) * volume(rest(g.Shape(n.In(1)), 1))
		case "MatMul":
			a := g.Shape(n.In(0))
			sum += volume(g.Shape(n.Output[0])) * volume(rest(a, len(a)-1))
		case "Gemm":
			inner := 1
			if n.Int("transA", 0) != 0 {
				inner = 0
			}
			if a := g.Shape(n.In(0)); len(a) == 2 {
				sum += volume(g.Shape(n.Output[0])) * int64(a[inner])
			}
		}
	}
	return sum
}

func rest(shape []int, from int) []int {
	if from < 0 || from > len(shape) {
		return nil
	}
	return shape[from:]
}

// volume returns the number of elements of a shape, 0 if it is unknown.
func volume(shape []int) int64 {
	if len(shape) == 0 {
		return 0
	}
	n := int64(1)
	for _, d := range shape {
		n *= int64(d)
	}
	return n
}
