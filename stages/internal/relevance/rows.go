package relevance

import (
	"slices"
	"strings"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// A row says where in a value the images of a batch are: along an axis, whose index is (outer·batch +
// image)·inner + rest. Windows and heads, which are merged into the axis of the batch, are the rest; tokens
// that come before it the outer.
type row struct{ axis, inner int }

// rowOf returns where the images of the batch are in a value of the model, false where that can't be told.
// The values that relevance is wanted at have a row for each of them.
func (b *Builder) rowOf(v Value) (row, bool) {
	if b.rows == nil {
		b.rows = map[Value]row{}
		for _, v := range b.ends {
			if s := b.Shape(v); len(s) > 0 && (b.batch == 0 || s[0] == b.batch) {
				b.batch = s[0]
				b.rows[v] = row{0, 1}
			}
		}
		if b.batch > 1 {
			for _, n := range b.model {
				b.place(n)
			}
		}
	}
	if s := b.Shape(v); b.batch == 1 && len(s) > 0 {
		return row{0, s[0]}, true // all there is
	}
	r, ok := b.rows[v]
	return r, ok
}

// place finds the images in the outputs of a node, given where they are in its inputs.
func (b *Builder) place(n onnx.Node) {
	op := b.op(n)
	if op == nil || op.Kind == Opaque {
		return
	}
	for k, out := range n.Output {
		if _, ok := b.rows[out]; ok || out == "" || b.Shape(out) == nil {
			continue
		}
		var found []row
		for i, in := range n.Input {
			r, ok := b.rows[in]
			if !ok || op.Role(i) == Config {
				continue
			}
			to, ok := b.carry(n, i, b.Shape(in), b.Shape(n.Output[k]), r)
			if !ok || !b.holds(out, to) {
				found = nil
				break
			}
			found = append(found, to)
		}
		if len(found) > 0 && !slices.ContainsFunc(found, func(r row) bool { return r != found[0] }) {
			b.rows[out] = found[0]
		}
	}
}

// holds reports whether a value has room for the images there.
func (b *Builder) holds(v Value, r row) bool {
	s := b.Shape(v)
	return r.axis >= 0 && r.axis < len(s) && s[r.axis] > 0 && s[r.axis]%(b.batch*r.inner) == 0
}

// carry returns where the images of input i are in an output.
func (b *Builder) carry(n onnx.Node, i int, in, out []int, r row) (row, bool) {
	same := r.axis < len(in) && r.axis < len(out) && in[r.axis] == out[r.axis]
	switch n.OpType {
	case "Reshape", "Flatten", "Squeeze", "Unsqueeze":
		return b.reshaped(in, out, r)
	case "Transpose":
		perm := n.Ints("perm")
		if perm == nil {
			return row{len(in) - 1 - r.axis, r.inner}, true
		}
		return row{slices.Index(perm, r.axis), r.inner}, true
	case "Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool",
		"InstanceNormalization", "BatchNormalization", "LRN", "DepthToSpace", "SpaceToDepth":
		return r, r.axis == 0 && same
	case "Slice", "Split", "Concat", "Pad", "Tile", "Resize":
		return r, same && len(in) == len(out)
	case "Gather":
		axis := b.axis(n, 0, len(in))
		if r.axis > axis {
			return row{r.axis + len(out) - len(in), r.inner}, true
		}
		if r.axis == axis {
			return b.picked(n, in, out, r)
		}
		return r, true
	case "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSumExp",
		"ReduceSumSquare":
		axes := b.reduced(n, len(in))
		if len(in) == len(out) {
			return r, !slices.Contains(axes, r.axis)
		}
		before := 0
		for _, a := range axes {
			if a < r.axis {
				before++
			}
		}
		return row{r.axis - before, r.inner}, !slices.Contains(axes, r.axis)
	case "Gemm":
		// The axis that isn't summed over, of either factor.
		keeps := 0
		if n.Int([]string{"transA", "transB", ""}[i], 0) != 0 != (i == 1) {
			keeps = 1
		}
		if i == 2 {
			return row{r.axis + 2 - len(in), r.inner}, true
		}
		return row{i, r.inner}, r.axis == keeps
	case "MatMul", "Linear":
		summed := len(in) - 1
		if i == 1 {
			summed = len(in) - 2
		}
		return row{r.axis + len(out) - len(in), r.inner}, r.axis != summed && len(in) > 1
	case "Einsum":
		return einsumRow(n, i, r)
	}
	// Element by element, or along other axes, with broadcasting.
	return row{r.axis + len(out) - len(in), r.inner}, true
}

// reshaped returns where images are after a change of shape: as far apart as before.
func (b *Builder) reshaped(in, out []int, r row) (row, bool) {
	apart := r.inner * size(in[r.axis+1:])
	for axis, d := range out {
		after := size(out[axis+1:])
		if after > 0 && apart%after == 0 && d%(apart/after*b.batch) == 0 {
			return row{axis, apart / after}, true
		}
	}
	return row{}, false
}

// picked returns where images are in what a Gather picks of a row of elements: where they were if it picks
// equally many of each, one image after the other.
func (b *Builder) picked(n onnx.Node, in, out []int, r row) (row, bool) {
	indices, ok := b.g.Int64s(n.Input[1])
	if !ok || len(in) != 1 || len(indices) == 0 || len(indices)%b.batch != 0 {
		return row{}, false
	}
	each := len(indices) / b.batch
	for k, at := range indices {
		if at < 0 {
			at += int64(in[0])
		}
		if int(at)/r.inner%b.batch != k/each {
			return row{}, false
		}
	}
	return b.reshaped([]int{len(indices)}, out, row{0, each})
}

func einsumRow(n onnx.Node, i int, r row) (row, bool) {
	left, right, ok := strings.Cut(strings.ReplaceAll(n.Text("equation", ""), " ", ""), "->")
	terms := strings.Split(left, ",")
	if !ok || strings.Contains(left, ".") || i >= len(terms) || r.axis >= len(terms[i]) {
		return row{}, false
	}
	axis := strings.IndexByte(right, terms[i][r.axis])
	return row{axis, r.inner}, axis >= 0
}

// perImage emits the sums of x over all elements of each image, [1, batch, 1]. They are added in the order
// they have in a batch of one, so that the sum has the same bits in any. A long sum is a sum of sums: two
// products with ones.
func (b *Builder) perImage(x Value, r row) Value {
	shape := b.threefold(x, r)
	if shape[0] > 1 {
		x = b.Transpose(b.Reshape(x, shape[:]...), 1, 0, 2)
	}
	sums := b.rowSums(b.Reshape(x, shape[1], shape[0]*shape[2]))
	return b.Reshape(sums, 1, shape[1], 1)
}

// threefold returns x's shape as what comes before images, images, and what comes after.
func (b *Builder) threefold(x Value, r row) [3]int {
	s := b.Shape(x)
	inner := r.inner * size(s[r.axis+1:])
	return [3]int{size(s) / inner / b.batch, b.batch, inner}
}

// eachImage emits x times a number for each image [1, batch, 1].
func (b *Builder) eachImage(x, factors Value, r row) Value {
	shape := b.threefold(x, r)
	return b.Reshape(b.Mul(b.Reshape(x, shape[:]...), factors), b.Shape(x)...)
}

// rowSums emits the sums of the rows of a matrix, [rows].
func (b *Builder) rowSums(x Value) Value {
	s := b.Shape(x)
	part := 1
	for k := 2; k*k <= s[1]; k++ {
		if s[1]%k == 0 {
			part = k
		}
	}
	if part > 1 {
		x = b.Reshape(b.MatMul(b.Reshape(x, s[0]*s[1]/part, part), b.Ones(part, 1)), s[0], s[1]/part)
		s = b.Shape(x)
	}
	return b.Reshape(b.MatMul(x, b.Ones(s[1], 1)), s[0])
}
