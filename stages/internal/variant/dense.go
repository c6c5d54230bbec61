package variant

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// unary are the operators between dense layers that compute each element alike.
var unary = []string{"Celu", "Clip", "Dropout", "Elu", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu",
	"Relu", "Selu", "Sigmoid", "Softplus", "Tanh"}

// reshapes are the operators that flatten maps.
var reshapes = []string{"Flatten", "Reshape", "Squeeze"}

// A dense converts the dense layers of a chain of nodes, from a feature map to the answer.
type dense struct {
	editor
	nodes  []*onnxpb.NodeProto
	places []int   // of the flattened map: channels, height, width; nil before that
	perm   []int64 // of the axes before it is flattened
	first  bool    // no layer was converted yet
}

// convolve makes the dense layers between the feature maps final and the answer of a graph convolutional:
// the first gets the size of the maps as its window, the others 1×1. The answer is the mean over the
// places, reshaped to rows. The types of the values after final are no longer valid.
func convolve(g *onnx.Graph, final, answer string, rows []int) error {
	if len(g.Shape(final)) != 4 {
		return fmt.Errorf("its last layer %q has no feature maps", final)
	}
	d := dense{editor: editor{g}, first: true}
	old := map[*onnxpb.NodeProto]bool{}
	v := final
	for v != answer {
		n, err := d.reader(v)
		if err != nil {
			return err
		}
		old[n.NodeProto] = true
		if err := d.convert(n, v); err != nil {
			return fmt.Errorf("%s after the last layer: %w", n.Label(), err)
		}
		v = n.Output[0]
	}
	if d.first {
		return fmt.Errorf("its answer isn't computed by a dense layer")
	}
	places, mean := g.Fresh(answer+"/places"), g.Fresh(answer+"/mean")
	d.nodes[len(d.nodes)-1].Output[0] = places
	d.nodes = append(d.nodes, onnx.NewNode(mean, "GlobalAveragePool", []string{places}, []string{mean}),
		onnx.NewNode("rewrite/"+answer, "Reshape", []string{mean, d.ints(answer+"/rows", rows)},
			[]string{answer}))
	g.Proto.Graph.Node = slices.DeleteFunc(g.Proto.Graph.Node,
		func(n *onnxpb.NodeProto) bool { return old[n] })
	d.insert(len(g.Proto.Graph.Node), d.nodes...)
	return nil
}

// reader returns the only node that reads a value.
func (d *dense) reader(v string) (onnx.Node, error) {
	var all []onnx.Node
	for _, n := range d.Proto.Graph.Node {
		if slices.Contains(onnx.Taken(n), v) {
			all = append(all, onnx.Node{NodeProto: n})
		}
	}
	if len(all) != 1 {
		return onnx.Node{}, fmt.Errorf("%d nodes read %q, and not one", len(all), v)
	}
	return all[0], nil
}

// convert adds the converted form of a node that reads v.
func (d *dense) convert(n onnx.Node, v string) error {
	switch {
	case d.places == nil:
		return d.ofMaps(n, v)
	case n.OpType == "Gemm" || n.OpType == "MatMul":
		return d.product(n, v)
	case slices.Contains(unary, n.OpType) || n.OpType == "BatchNormalization" && !d.first:
		d.keep(n.NodeProto)
	case slices.Contains([]string{"Add", "Sub", "Mul", "Div"}, n.OpType) && !d.first:
		return d.perChannel(n, v)
	case slices.Contains(reshapes, n.OpType) && onnx.Size(d.Shape(n.Output[0])) == onnx.Size(d.Shape(v)):
		d.keep(onnx.NewNode(n.Name, "Identity", []string{v}, n.Output))
	default:
		return fmt.Errorf("it can't be computed at every place")
	}
	return nil
}

// ofMaps adds what a node becomes that reads maps v, which it may flatten.
func (d *dense) ofMaps(n onnx.Node, v string) error {
	in, out := d.Shape(v), d.Shape(n.Output[0])
	switch {
	case n.OpType == "Transpose" && len(in) == 4:
		for _, p := range n.Ints("perm") {
			d.perm = append(d.perm, int64(p))
		}
		if !slices.Equal(d.perm, []int64{0, 2, 3, 1}) {
			return fmt.Errorf("axes permuted by %v aren't places", d.perm)
		}
		d.keep(onnx.NewNode(n.Name, "Identity", []string{v}, n.Output))
	case len(out) == 2 && slices.Contains(reshapes, n.OpType):
		if d.perm != nil {
			in = []int{in[0], in[3], in[1], in[2]}
		}
		if out[0] != in[0] {
			return fmt.Errorf("it mixes images")
		}
		d.places = in[1:]
		d.keep(onnx.NewNode(n.Name, "Identity", []string{v}, n.Output))
	case len(out) == 4 && d.perm == nil:
		d.keep(n.NodeProto) // of maps, and for grids inferred anew
	default:
		return fmt.Errorf("it makes %v of maps %v", out, in)
	}
	return nil
}

func (d *dense) keep(n *onnxpb.NodeProto) { d.nodes = append(d.nodes, n) }

// product converts a dense layer.
func (d *dense) product(n onnx.Node, v string) error {
	w, ok := d.Float32s(n.In(1))
	shape := d.Shape(n.In(1))
	if !ok || n.In(0) != v || len(shape) != 2 || n.Int("transA", 0) != 0 || n.Float("alpha", 1) != 1 ||
		n.Float("beta", 1) != 1 {
		return fmt.Errorf("its weights aren't a constant matrix")
	}
	from, to := shape[0], shape[1]
	at := func(i, o int) float32 { return w[i*to+o] }
	if n.Int("transB", 0) != 0 {
		from, to = to, from
		at = func(i, o int) float32 { return w[o*from+i] }
	}
	window := []int{from, 1, 1}
	if d.first {
		window = d.places
	}
	if onnx.Size(window) != from {
		return fmt.Errorf("it takes %d numbers, and the maps have %v", from, window)
	}
	c, h, wide := window[0], window[1], window[2]
	kernel := make([]float32, 0, len(w))
	for o := range to {
		for k := range c {
			for i := range h * wide {
				if d.first && d.perm != nil { // flattened with channels last
					kernel = append(kernel, at(i*c+k, o))
				} else {
					kernel = append(kernel, at(k*h*wide+i, o))
				}
			}
		}
	}
	in := []string{v, d.floats(n.In(1), n.Output[0]+"/kernel", kernel, to, c, h, wide)}
	if n.In(2) != "" {
		bias, ok := d.Float32s(n.In(2))
		if !ok || len(bias) != to && len(bias) != 1 {
			return fmt.Errorf("its bias isn't constant")
		}
		if len(bias) == 1 {
			bias = slices.Repeat(bias, to)
		}
		in = append(in, d.floats(n.In(2), n.Output[0]+"/bias", bias, to))
	}
	d.first = false
	d.keep(onnx.NewNode(n.Name, "Conv", in, n.Output,
		onnx.Attr{Name: "kernel_shape", Value: []int64{int64(h), int64(wide)}}))
	return nil
}

// perChannel converts an operator whose other operand is a constant for every channel.
func (d *dense) perChannel(n onnx.Node, v string) error {
	in := slices.Clone(n.Input)
	for i, name := range in {
		if name == v {
			continue
		}
		c, ok := d.Float32s(name)
		if s := d.Shape(name); !ok || len(s) > 2 || len(s) == 2 && s[0] != 1 {
			return fmt.Errorf("its other operand isn't a constant for every channel")
		}
		in[i] = d.floats(name, name+"/channels", c, len(c), 1, 1)
	}
	d.keep(onnx.NewNode(n.Name, n.OpType, in, n.Output))
	return nil
}

// floats adds a constant derived from another one, and returns its name.
func (d *dense) floats(from, hint string, v []float32, shape ...int) string {
	t := onnx.FloatTensor(d.Fresh(hint), v, shape...)
	d.AddWeight(t)
	// The bits of a weight that a library computed depend on the processor, and so do those of v.
	if sum, ok := d.Computed[from]; ok {
		d.Computed[t.Name] = onnx.SumOf([]byte("rearranged"), fmt.Append(nil, shape, d.perm), sum[:])
	}
	return t.Name
}
