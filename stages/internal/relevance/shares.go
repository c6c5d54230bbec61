package relevance

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Shares are what the constants of a model, such as its biases, have of the explained output: each is a
// constant times the derivative with respect to it.
type Shares struct {
	// Planes are those of each node that adds a constant at places of the image, [batch,h,w]: magnitudes,
	// scaled to [0,1], with channels summed.
	Planes []Value
	// Total is the sum of all shares, [batch,1]; "" if those of a node can't be told apart by image.
	Total Value
}

// A Scaling says how the magnitudes of shares become a plane: less their minimum, divided by their range.
type Scaling struct {
	Layer bool    // the minimum and the range are those of all channels; otherwise each channel has its own
	Guard float32 // added to the range; 0 has magnitudes without a range become 0
}

// WithShares returns a policy that also returns [Shares]. Each BatchNormalization stays a node with a
// constant of its own.
func (p Policy) WithShares(s Scaling) Policy {
	p.Name += fmt.Sprintf(", shares scaled by layer %t, guard %g", s.Layer, s.Guard)
	p.Shares, p.Apart = &s, true
	return p
}

// BackwardWithShares is [Without.Backward] by a policy that returns shares.
func (w Without) BackwardWithShares(g *onnx.Graph, seeds map[Value]Value, wrt []Value,
	p Policy) (map[Value]Value, Shares, error) {
	b := newBuilder(g)
	b.without = w
	rel, err := b.backward(seeds, wrt, p)
	return rel, b.shares, err
}

// share records the shares of a node's constants, given what is propagated to its outputs and from there to
// its inputs.
func (b *Builder) share(s Scaling, op *Op, n onnx.Node, r, back []Value) {
	if b.curves(op, n) {
		b.addToTotal(b.implicit(n, r[0], back), n.Output[0])
		return
	}
	if !b.adds(op, n) {
		return
	}
	for k, v := range b.constantShares(n, r, back) {
		if v == "" {
			continue
		}
		b.addToTotal(v, n.Output[k])
		if _, known := b.addend(n, back); known {
			if at, ok := b.layoutOf(n.Output[k]); ok {
				b.shares.Planes = append(b.shares.Planes, b.plane(s, v, at))
			}
		}
	}
}

// adds reports whether a node may add a constant.
func (b *Builder) adds(op *Op, n onnx.Node) bool {
	switch op.Kind {
	case Sum:
		return true
	case Affine, Joint:
		return slices.Contains(op.Roles, Bias)
	case Move, Select:
		return b.fixedData(op, n)
	}
	return false
}

// fixedData reports whether a data input of a node is a constant.
func (b *Builder) fixedData(op *Op, n onnx.Node) bool {
	for i, v := range n.Input {
		if v != "" && op.Role(i) == Data && !b.flows[v] {
			return true
		}
	}
	return false
}

// curves reports whether a node is an element-wise function of one value that has implicit biases: all but
// those of which a multiple of the input gives that multiple of the output.
func (b *Builder) curves(op *Op, n onnx.Node) bool {
	switch {
	case n.OpType == "Clip":
	case n.OpType == "Max" || n.OpType == "Min":
		return b.fixedData(op, n)
	case op.Kind != Activation || homogeneous(b, op, n):
		return false
	}
	return true
}

// implicit emits the share of an element-wise function's implicit bias, f(x) − f′(x)·x: Srinivas and Fleuret,
// "Full-Gradient Representation for Neural Network Visualization", NeurIPS 2019.
func (b *Builder) implicit(n onnx.Node, r Value, back []Value) Value {
	share := b.Mul(r, n.Output[0])
	for i, v := range back {
		if v != "" && b.flows[n.Input[i]] {
			share = b.Sub(share, b.Mul(v, n.Input[i]))
		}
	}
	return share
}

// addToTotal adds shares of the shape of a value to the total.
func (b *Builder) addToTotal(shares, of Value) {
	axis, ok := b.batchAxisOf(of)
	if !ok {
		b.unknownTotal = true
		return
	}
	sums := b.Reshape(b.sumPerImage(shares, axis), b.batch, 1)
	if b.shares.Total != "" {
		sums = b.Add(b.shares.Total, sums)
	}
	b.shares.Total = sums
}

// addend returns the constant that a node adds to its output, or to what broadcasts to that, "" for none;
// known is false of nodes whose constant is found by running them on zeros alone.
func (b *Builder) addend(n onnx.Node, back []Value) (constant Value, known bool) {
	if !slices.ContainsFunc(back, func(v Value) bool { return v != "" }) {
		return "", false
	}
	fixed := func(i int) bool { return n.In(i) != "" && !b.flows[n.In(i)] }
	switch n.OpType {
	case "Conv", "ConvTranspose", "InstanceNormalization":
		if n.In(2) != "" && !fixed(2) {
			return "", false
		}
		if n.In(2) == "" {
			return "", true
		}
		return b.channels(n.In(2), len(b.Shape(n.Output[0]))), true
	case "LayerNormalization":
		return n.In(2), n.In(2) == "" || fixed(2)
	case "Gemm":
		if n.In(2) == "" || !fixed(2) {
			return "", true
		}
		return b.scaled(n.In(2), n.Float("beta", 1)), true
	case "BatchNormalization":
		return b.channels(b.normOffset(n), len(b.Shape(n.Output[0]))), true
	case "Add", "Sum":
		for i, v := range n.Input {
			switch {
			case !fixed(i):
			case constant == "":
				constant = v
			default:
				constant = b.Add(constant, v)
			}
		}
		return constant, true
	case "Sub":
		if fixed(0) {
			return n.Input[0], true
		}
		if fixed(1) {
			return b.Unary("Neg", n.Input[1]), true
		}
		return "", true
	}
	return "", false
}

// normOffset emits what a BatchNormalization adds to each channel, β − γμ/√(σ² + ε), by nodes on its
// weights, which ONNX Runtime folds.
func (b *Builder) normOffset(n onnx.Node) Value {
	deviation := b.Unary("Sqrt", b.Add(n.Input[4], b.Scalar(n.Float("epsilon", 1e-5))))
	return b.Sub(n.Input[2], b.Div(b.Mul(n.Input[1], n.Input[3]), deviation))
}

// A layout is how the elements of a value lie in the image: it has them in this shape, with the places of
// another value.
type layout struct {
	of    Value
	shape []int
	axis  int // of the channels
}

// layoutOf returns the layout of a value of the model, or false if it has no places in the image.
func (b *Builder) layoutOf(v Value) (layout, bool) {
	if b.layouts == nil {
		b.layouts = map[Value]layout{}
		p := newPath(b.g)
		s := p.grids()
		for _, n := range p.nodes {
			for _, v := range n.Output {
				if s.places(v) && b.Shape(v)[0] == b.batch && !p.weighs(v, map[Value]bool{}) {
					b.layouts[v] = layout{v, b.Shape(v), p.near.channelAxis(v)}
				}
			}
		}
		for _, n := range p.nodes {
			b.rowsOf(n)
		}
	}
	at, ok := b.layouts[v]
	return at, ok
}

// rowsOf gives the rows of linear layers, [batch·places, channels], the layout of what they are reshaped
// from, or to.
func (b *Builder) rowsOf(n onnx.Node) {
	from, to := n.Input[0], n.Output[0]
	rows := func(v, like Value) {
		at, ok := b.layouts[like]
		shape, last := b.Shape(v), len(at.shape)-1
		if _, known := b.layouts[v]; ok && !known && len(shape) == 2 && at.axis == last &&
			shape[0] == size(at.shape[:last]) {
			b.layouts[v] = layout{at.of, append(slices.Clone(at.shape[:last]), shape[1]), last}
		}
	}
	switch n.OpType {
	case "Reshape":
		rows(to, from)
		if a, c := b.Shape(from), b.Shape(to); len(a) > 0 && len(c) > 0 && a[len(a)-1] == c[len(c)-1] {
			rows(from, to)
		}
	case "Gemm", "MatMul":
		if len(b.Shape(from)) == 2 && n.Int("transA", 0) == 0 && b.g.Weight(n.Input[1]) != nil {
			rows(to, from)
		}
	}
}

// weighs reports whether a value becomes the weights of attention, whose two axes of tokens aren't places.
func (p *path) weighs(v Value, seen map[Value]bool) bool {
	if seen[v] {
		return false
	}
	seen[v] = true
	return slices.ContainsFunc(p.reads[v], func(i int) bool {
		switch n := p.nodes[i]; n.OpType {
		case "Softmax":
			return true
		case "Add", "Cast", "Div", "Identity", "Mul", "Reshape", "Sub", "Where":
			return p.weighs(n.Output[0], seen)
		}
		return false
	})
}

// plane emits the sum over channels of the scaled magnitudes of shares.
func (b *Builder) plane(s Scaling, shares Value, at layout) Value {
	x, height, width := b.onGrid(b.Reshape(b.Unary("Abs", shares), at.shape...), at)
	batch, channels := b.Shape(x)[0], b.Shape(x)[1]
	rows := []int{batch * channels, height * width}
	if s.Layer {
		rows = []int{batch, channels * height * width}
	}
	x = b.Reshape(x, rows...)
	bound := func(op string) Value {
		return b.Emit(op, []int{rows[0], 1}, []Value{x}, onnx.Attr{Name: "axes", Value: []int64{1}})
	}
	least := bound("ReduceMin")
	span := b.Sub(bound("ReduceMax"), least)
	if s.Guard > 0 {
		span = b.Add(span, b.Scalar(s.Guard))
	} else {
		span = b.Emit("Max", []int{rows[0], 1}, []Value{span, b.Scalar(leastNormal)})
	}
	scaled := b.Reshape(b.Div(b.Sub(x, least), span), batch, channels, height*width)
	return b.Reshape(b.Sum(scaled, []int{1}, false), batch, height, width)
}

// leastNormal is the least positive number with all digits.
const leastNormal = 0x1p-126

// onGrid emits x, which has a layout, as [batch, channels, places], and returns the size of the grid.
func (b *Builder) onGrid(x Value, at layout) (out Value, height, width int) {
	shape, axis := b.Shape(x), at.axis
	switch {
	case len(shape) == 4 && axis == 3:
		x = b.Transpose(x, 0, 3, 1, 2)
	case len(shape) == 3 && Signal(b.g) && axis == 2:
		x = b.Transpose(x, 0, 2, 1)
	case len(shape) == 3 && !Signal(b.g):
		tokens := shape[3-axis]
		if order := TokenOrder(b.g, at.of, 3-axis); order != nil {
			x = b.Gather(x, 3-axis, order...)
		}
		side, others := TokenGrid(tokens)
		from, to := []int{0, 0, 0}, slices.Clone(shape)
		from[3-axis], to[3-axis] = others, tokens
		if x = b.Slice(x, from, to); axis == 2 {
			x = b.Transpose(x, 0, 2, 1)
		}
		return x, side, side
	}
	shape = b.Shape(x)
	if height = 1; len(shape) == 4 {
		height = shape[2]
	}
	width = shape[len(shape)-1]
	return b.Reshape(x, shape[0], shape[1], height*width), height, width
}
