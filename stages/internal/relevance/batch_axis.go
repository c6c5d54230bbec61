package relevance

import (
	"slices"
	"strings"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// A batchAxis is the position of the images of a batch in a value: an axis with index (outer·batch +
// image)·inner + rest. Windows and heads merged into the batch axis are the rest; tokens merged in front of
// it are the outer part.
type batchAxis struct{ axis, inner int }

// batchAxisOf returns the position of the images in a value of the model, or false if it is unknown. The
// values wrt have the images along their first axis.
func (b *Builder) batchAxisOf(v Value) (batchAxis, bool) {
	if b.batchAxes == nil {
		b.batchAxes = map[Value]batchAxis{}
		for _, v := range b.wrt {
			if s := b.Shape(v); len(s) > 0 && (b.batch == 0 || s[0] == b.batch) {
				b.batch = s[0]
				b.batchAxes[v] = batchAxis{0, 1}
			}
		}
		if b.batch > 1 {
			for _, n := range b.model {
				b.placeBatch(n)
			}
		}
	}
	if s := b.Shape(v); b.batch == 1 && len(s) > 0 {
		return batchAxis{0, s[0]}, true // the batch is the whole value
	}
	r, ok := b.batchAxes[v]
	return r, ok
}

// placeBatch propagates the position of the images from a node's inputs to its outputs.
func (b *Builder) placeBatch(n onnx.Node) {
	op := b.op(n)
	if op == nil || op.Kind == Opaque {
		return
	}
	for k, out := range n.Output {
		if _, ok := b.batchAxes[out]; ok || out == "" || b.Shape(out) == nil {
			continue
		}
		var found []batchAxis
		for i, in := range n.Input {
			r, ok := b.batchAxes[in]
			if !ok || op.Role(i) == Config {
				continue
			}
			to, ok := b.propagateBatch(n, i, b.Shape(in), b.Shape(n.Output[k]), r)
			if !ok || !b.fitsBatch(out, to) {
				found = nil
				break
			}
			found = append(found, to)
		}
		if len(found) > 0 && !slices.ContainsFunc(found, func(r batchAxis) bool { return r != found[0] }) {
			b.batchAxes[out] = found[0]
		}
	}
}

// fitsBatch reports whether a value has room for the images at a position.
func (b *Builder) fitsBatch(v Value, r batchAxis) bool {
	s := b.Shape(v)
	return r.axis >= 0 && r.axis < len(s) && s[r.axis] > 0 && s[r.axis]%(b.batch*r.inner) == 0
}

// propagate returns the position of the images in an output, given that in input i.
func (b *Builder) propagateBatch(n onnx.Node, i int, in, out []int, r batchAxis) (batchAxis, bool) {
	same := r.axis < len(in) && r.axis < len(out) && in[r.axis] == out[r.axis]
	switch n.OpType {
	case "Reshape", "Flatten", "Squeeze", "Unsqueeze":
		return b.reshaped(in, out, r)
	case "Transpose":
		perm := n.Ints("perm")
		if perm == nil {
			return batchAxis{len(in) - 1 - r.axis, r.inner}, true
		}
		return batchAxis{slices.Index(perm, r.axis), r.inner}, true
	case "Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool",
		"InstanceNormalization", "BatchNormalization", "LRN", "DepthToSpace", "SpaceToDepth":
		return r, r.axis == 0 && same
	case "Slice", "Split", "Concat", "Pad", "Tile", "Resize":
		return r, same && len(in) == len(out)
	case "Gather":
		switch axis := b.axis(n, 0, len(in)); {
		case r.axis > axis:
			return batchAxis{r.axis + len(out) - len(in), r.inner}, true
		case r.axis == axis:
			return b.gathered(n, in, out, r)
		}
		return r, true
	case "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSumExp",
		"ReduceSumSquare":
		return reduced(b.reducedAxes(n, len(in)), len(in) == len(out), r)
	case "Gemm":
		return gemmRow(n, i, len(in), r)
	case "MatMul", "Linear":
		summed := len(in) - 1
		if i == 1 {
			summed = len(in) - 2
		}
		return batchAxis{r.axis + len(out) - len(in), r.inner}, r.axis != summed && len(in) > 1
	case "Einsum":
		return einsumRow(n, i, r)
	}
	// Element-wise, or along other axes, with broadcasting.
	return batchAxis{r.axis + len(out) - len(in), r.inner}, true
}

// reduced returns the position after some axes are reduced, which keep their place with size 1 or don't.
func reduced(axes []int, keeps bool, r batchAxis) (batchAxis, bool) {
	apart := !slices.Contains(axes, r.axis)
	if keeps {
		return r, apart
	}
	before := 0
	for _, a := range axes {
		if a < r.axis {
			before++
		}
	}
	return batchAxis{r.axis - before, r.inner}, apart
}

// gemmRow returns the position after a Gemm, given that in input i, which has so many axes.
func gemmRow(n onnx.Node, i, rank int, r batchAxis) (batchAxis, bool) {
	if i == 2 {
		return batchAxis{r.axis + 2 - rank, r.inner}, true
	}
	kept := i // the axis of the factor that isn't summed over
	if n.Int([]string{"transA", "transB"}[i], 0) != 0 {
		kept = 1 - i
	}
	return batchAxis{i, r.inner}, r.axis == kept
}

// reshaped returns the position after a Reshape: the distance between images stays the same.
func (b *Builder) reshaped(in, out []int, r batchAxis) (batchAxis, bool) {
	apart := r.inner * size(in[r.axis+1:])
	for axis, d := range out {
		after := size(out[axis+1:])
		if after > 0 && apart%after == 0 && d%(apart/after*b.batch) == 0 {
			return batchAxis{axis, apart / after}, true
		}
	}
	return batchAxis{}, false
}

// gathered returns the position after a Gather from a one-dimensional value: the same if it selects equally
// many elements of each image, image by image.
func (b *Builder) gathered(n onnx.Node, in, out []int, r batchAxis) (batchAxis, bool) {
	indices, ok := b.g.Int64s(n.Input[1])
	if !ok || len(in) != 1 || len(indices) == 0 || len(indices)%b.batch != 0 {
		return batchAxis{}, false
	}
	each := len(indices) / b.batch
	for k, at := range indices {
		if at < 0 {
			at += int64(in[0])
		}
		if int(at)/r.inner%b.batch != k/each {
			return batchAxis{}, false
		}
	}
	return b.reshaped([]int{len(indices)}, out, batchAxis{0, each})
}

func einsumRow(n onnx.Node, i int, r batchAxis) (batchAxis, bool) {
	left, right, ok := strings.Cut(strings.ReplaceAll(n.Text("equation", ""), " ", ""), "->")
	terms := strings.Split(left, ",")
	if !ok || strings.Contains(left, ".") || i >= len(terms) || r.axis >= len(terms[i]) {
		return batchAxis{}, false
	}
	axis := strings.IndexByte(right, terms[i][r.axis])
	return batchAxis{axis, r.inner}, axis >= 0
}

// sumPerImage emits the sums of x over all elements of each image, [1, batch, 1]. The order of summation is
// that of a batch of one, so that the sums are batch-invariant. A long sum is a sum of sums: two products
// with ones.
func (b *Builder) sumPerImage(x Value, r batchAxis) Value {
	shape := b.splitShape(x, r)
	if shape[0] > 1 {
		x = b.Transpose(b.Reshape(x, shape[:]...), 1, 0, 2)
	}
	sums := b.rowSums(b.Reshape(x, shape[1], shape[0]*shape[2]))
	return b.Reshape(sums, 1, shape[1], 1)
}

// splitShape returns x's shape as the elements before images, images, and the elements after.
func (b *Builder) splitShape(x Value, r batchAxis) [3]int {
	s := b.Shape(x)
	inner := r.inner * size(s[r.axis+1:])
	return [3]int{size(s) / inner / b.batch, b.batch, inner}
}

// scalePerImage emits x times one factor per image, [1, batch, 1].
func (b *Builder) scalePerImage(x, factors Value, r batchAxis) Value {
	shape := b.splitShape(x, r)
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
