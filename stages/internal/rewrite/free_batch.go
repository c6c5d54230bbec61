package rewrite

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// The batches for which [FreeBatch] has a model made: two tell how its constants depend on the batch, and
// the third checks that.
const (
	firstBatch  = 2
	secondBatch = 3
	thirdBatch  = 5
)

// FreeBatch returns a model for any batch, given the one that at makes for a batch. These must differ in
// their constants alone, such as shapes, and in the declared shapes of values. Constants that differ are
// computed from the first dimension of the input called input: numbers a·batch + b, or rows that repeat for
// each image. The error names a node or constant that depends on the batch in another way.
func FreeBatch(at func(batch int) (*onnx.Model, error), input string) (*onnx.Model, error) {
	first, err := at(firstBatch)
	if err != nil {
		return nil, err
	}
	second, err := at(secondBatch)
	if err != nil {
		return nil, err
	}
	third, err := at(thirdBatch)
	if err != nil {
		return nil, err
	}
	f := &freeing{model: first, computed: map[[3]string]string{}}
	if f.second, err = f.pair(second); err != nil {
		return nil, err
	}
	if f.third, err = f.pair(third); err != nil {
		return nil, err
	}
	f.fragment = first.Fragment()
	f.batch = f.fragment.Op("Shape", []string{input}, onnx.Attr{Name: "start", Value: 0},
		onnx.Attr{Name: "end", Value: 1})
	err = f.constants(first.Proto.Graph.Node, second.Proto.Graph.Node, third.Proto.Graph.Node)
	if err != nil {
		return nil, err
	}
	first.Before(f.fragment)
	for _, values := range [][2][]*onnxpb.ValueInfoProto{
		{first.Proto.Graph.Input, second.Proto.Graph.Input},
		{first.Proto.Graph.Output, second.Proto.Graph.Output},
	} {
		freeShapes(values[0], values[1])
	}
	first.Prune()
	return first, nil
}

// A freeing is one call of [FreeBatch].
type freeing struct {
	model         *onnx.Model // for the first batch, which is changed
	second, third paired
	fragment      *onnx.Fragment
	batch         string               // the value with the batch, [1]
	computed      map[[3]string]string // by operator and the weights of the first two models: the value
}

// A paired model has the same nodes as the first one.
type paired struct {
	weights map[string]*onnxpb.TensorProto
}

func weightsOf(m *onnx.Model) map[string]*onnxpb.TensorProto {
	out := map[string]*onnxpb.TensorProto{}
	for _, t := range m.Proto.Graph.Initializer {
		out[t.Name] = t
	}
	return out
}

// pair checks that a model has the nodes of the first one.
func (f *freeing) pair(other *onnx.Model) (paired, error) {
	p := pairing{paired{weightsOf(other)}, weightsOf(f.model), map[string]string{}}
	for i, v := range f.model.Proto.Graph.Input {
		if inputs := other.Proto.Graph.Input; i >= len(inputs) || inputs[i].Name != v.Name {
			return p.paired, fmt.Errorf("its inputs depend on the batch")
		}
		p.names[v.Name] = v.Name
	}
	err := p.nodes(f.model.Proto.Graph.Node, other.Proto.Graph.Node)
	return p.paired, err
}

// A pairing finds out whether two models have the same nodes.
type pairing struct {
	paired
	first map[string]*onnxpb.TensorProto
	names map[string]string // of a value of the first model: its name in the other
}

func (p *pairing) nodes(first, other []*onnxpb.NodeProto) error {
	if len(first) != len(other) {
		return fmt.Errorf("the number of its nodes depends on the batch: %d or %d", len(first), len(other))
	}
	for i, n := range first {
		if err := p.node(n, other[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *pairing) node(n, m *onnxpb.NodeProto) error {
	differs := fmt.Errorf("node %s depends on the batch", onnx.Node{NodeProto: n}.Label())
	if n.OpType != m.OpType || n.Domain != m.Domain || len(n.Input) != len(m.Input) ||
		len(n.Output) != len(m.Output) || len(n.Attribute) != len(m.Attribute) {
		return differs
	}
	for i, v := range n.Input {
		if !p.same(v, m.Input[i]) {
			return differs
		}
	}
	for i, a := range n.Attribute {
		b := m.Attribute[i]
		if a.G != nil && b.G != nil {
			if err := p.body(a.G, b.G); err != nil {
				return err
			}
			continue
		}
		if !proto.Equal(a, b) {
			return differs
		}
	}
	for i, v := range n.Output {
		p.names[v] = m.Output[i]
	}
	return nil
}

// body pairs the graphs inside two nodes.
func (p *pairing) body(g, h *onnxpb.GraphProto) error {
	if len(g.Input) != len(h.Input) || len(g.Output) != len(h.Output) || len(g.Initializer) > 0 {
		return fmt.Errorf("a graph inside of it depends on the batch")
	}
	for i, v := range g.Input {
		p.names[v.Name] = h.Input[i].Name
	}
	if err := p.nodes(g.Node, h.Node); err != nil {
		return err
	}
	for i, v := range g.Output {
		if !p.same(v.Name, h.Output[i].Name) {
			return fmt.Errorf("the results of a graph inside of it depend on the batch")
		}
	}
	return nil
}

// same reports whether two values are results of the same nodes, or weights.
func (p *pairing) same(v, w string) bool {
	if p.first[v] != nil {
		return p.weights[w] != nil
	}
	return p.names[v] == w
}

// constants has the nodes of the first model read computed values in the place of constants that differ.
func (f *freeing) constants(first, second, third []*onnxpb.NodeProto) error {
	weights := weightsOf(f.model)
	for i, n := range first {
		for k, v := range n.Input {
			a := weights[v]
			if a == nil {
				continue
			}
			b, c := f.second.weights[second[i].Input[k]], f.third.weights[third[i].Input[k]]
			if equalTensors(a, b) && equalTensors(a, c) {
				continue
			}
			key := [3]string{n.OpType, a.Name, b.Name}
			if f.computed[key] == "" {
				v, err := f.compute(n.OpType, a, b, c)
				if err != nil {
					return fmt.Errorf("node %s: %w", onnx.Node{NodeProto: n}.Label(), err)
				}
				f.computed[key] = v
			}
			n.Input[k] = f.computed[key]
		}
		for k, a := range n.Attribute {
			if a.G == nil {
				continue
			}
			g, h := second[i].Attribute[k].G, third[i].Attribute[k].G
			if err := f.constants(a.G.Node, g.Node, h.Node); err != nil {
				return err
			}
			freeShapes(a.G.Input, g.Input)
			freeShapes(a.G.Output, g.Output)
		}
	}
	return nil
}

// equalTensors reports whether two constants have the same numbers, in whatever form.
func equalTensors(a, b *onnxpb.TensorProto) bool {
	if a == b {
		return true
	}
	if a.DataType != b.DataType || !slices.Equal(a.Dims, b.Dims) {
		return false
	}
	if a.RawData != nil && b.RawData != nil {
		return slices.Equal(a.RawData, b.RawData)
	}
	return onnx.TensorSum(a) == onnx.TensorSum(b)
}

// compute emits the constant, read by an operator, that is a, b and c for the three batches.
func (f *freeing) compute(op string, a, b, c *onnxpb.TensorProto) (string, error) {
	wrong := fmt.Errorf("the constant %q depends on the batch in a way that isn't known", a.Name)
	if a.DataType != b.DataType || len(a.Dims) != len(b.Dims) || len(a.Dims) != len(c.Dims) {
		return "", wrong
	}
	if slices.Equal(a.Dims, b.Dims) {
		if v, ok := f.inferred(a, b); op == "Reshape" && ok {
			return v, nil
		}
		if v, ok := f.linear(a, b, c); ok {
			return v, nil
		}
		return "", wrong
	}
	if v, ok := f.repeated(a, b, c); ok {
		return v, nil
	}
	if v, ok := f.counted(a, b, c); ok {
		return v, nil
	}
	return "", wrong
}

// linear emits the integers slope·batch + offset, in a's shape.
func (f *freeing) linear(a, b, c *onnxpb.TensorProto) (string, bool) {
	x, err := onnx.Int64s(a)
	y, otherErr := onnx.Int64s(b)
	z, thirdErr := onnx.Int64s(c)
	if err != nil || otherErr != nil || thirdErr != nil || a.DataType != int32(onnxpb.TensorProto_INT64) ||
		len(x) != len(z) {
		return "", false
	}
	slopes, offsets := make([]int64, len(x)), make([]int64, len(x))
	for i := range x {
		var ok bool
		if slopes[i], offsets[i], ok = line(x[i], y[i], z[i]); !ok {
			return "", false
		}
	}
	v := f.line(slopes, offsets)
	if len(a.Dims) != 1 {
		v = f.fragment.Op("Reshape", []string{v, f.fragment.Ints("shape", a.Dims, int64(len(a.Dims)))})
	}
	return v, true
}

// inferred emits a shape whose only dimension that depends on the batch is left to Reshape.
func (f *freeing) inferred(a, b *onnxpb.TensorProto) (string, bool) {
	x, err := onnx.Int64s(a)
	y, otherErr := onnx.Int64s(b)
	if err != nil || otherErr != nil || slices.ContainsFunc(x, func(d int64) bool { return d <= 0 }) {
		return "", false
	}
	out, open := slices.Clone(x), 0
	for i := range x {
		if x[i] != y[i] {
			out[i] = -1
			open++
		}
	}
	return f.fragment.Ints("shape", out, int64(len(out))), open == 1
}

// line returns the line through a number for each of the three batches, false if they are on none.
func line(x, y, z int64) (slope, offset int64, ok bool) {
	slope = (y - x) / (secondBatch - firstBatch)
	offset = x - slope*firstBatch
	return slope, offset, slope*thirdBatch+offset == z
}

// line emits the vector slopes·batch + offsets.
func (f *freeing) line(slopes, offsets []int64) string {
	n := int64(len(slopes))
	v := f.fragment.Op("Mul", []string{f.batch, f.fragment.Ints("slopes", slopes, n)})
	if slices.ContainsFunc(offsets, func(x int64) bool { return x != 0 }) {
		v = f.fragment.Op("Add", []string{v, f.fragment.Ints("offsets", offsets, n)})
	}
	return v
}

// repeated emits a constant whose parts along an axis repeat for each image.
func (f *freeing) repeated(a, b, c *onnxpb.TensorProto) (string, bool) {
	axis, rows := batchAxis(a, b, c)
	if axis < 0 {
		return "", false
	}
	part, ok := partOf(a, axis, rows)
	if !ok || !repeats(part, a, axis) || !repeats(part, b, axis) || !repeats(part, c, axis) {
		return "", false
	}
	t := &onnxpb.TensorProto{Name: f.model.Fresh(a.Name + "/image"), Dims: slices.Clone(a.Dims),
		DataType: a.DataType, RawData: part}
	t.Dims[axis] = rows
	f.model.Proto.Graph.Initializer = append(f.model.Proto.Graph.Initializer, t)
	slopes, offsets := make([]int64, len(a.Dims)), make([]int64, len(a.Dims))
	for i := range offsets {
		offsets[i] = 1
	}
	slopes[axis], offsets[axis] = 1, 0
	return f.fragment.Op("Tile", []string{t.Name, f.line(slopes, offsets)}), true
}

// batchAxis returns the only axis whose length is a multiple of the batch in all three constants, and that
// multiple; −1 if there is none.
func batchAxis(a, b, c *onnxpb.TensorProto) (axis int, rows int64) {
	axis = -1
	for i, d := range a.Dims {
		if d == b.Dims[i] && d == c.Dims[i] {
			continue
		}
		slope, offset, ok := line(d, b.Dims[i], c.Dims[i])
		if !ok || offset != 0 || slope <= 0 || axis >= 0 {
			return -1, 0
		}
		axis, rows = i, slope
	}
	return axis, rows
}

// raw returns the bytes of a constant's numbers, nil if they are in another form.
func raw(t *onnxpb.TensorProto) []byte {
	if t.RawData != nil {
		return t.RawData
	}
	if v, err := onnx.Float32s(t); err == nil {
		return onnx.FloatTensor("", v).RawData
	}
	if v, err := onnx.Int64s(t); err == nil && t.DataType == int32(onnxpb.TensorProto_INT64) {
		out := make([]byte, 0, 8*len(v))
		for _, x := range v {
			for k := range 8 {
				out = append(out, byte(uint64(x)>>(8*k)))
			}
		}
		return out
	}
	return nil
}

// partOf returns the bytes of the first rows along an axis.
func partOf(t *onnxpb.TensorProto, axis int, rows int64) ([]byte, bool) {
	all := raw(t)
	size := onnx.ElemSize(onnxpb.TensorProto_DataType(t.DataType))
	if all == nil || size <= 0 {
		return nil, false
	}
	inner := size
	for _, d := range t.Dims[axis+1:] {
		inner *= int(d)
	}
	var out []byte
	for block := range slices.Chunk(all, inner*int(t.Dims[axis])) {
		out = append(out, block[:inner*int(rows)]...)
	}
	return out, true
}

// repeats reports whether a constant consists of a part, repeated along an axis.
func repeats(part []byte, t *onnxpb.TensorProto, axis int) bool {
	all := raw(t)
	outer := 1
	for _, d := range t.Dims[:axis] {
		outer *= int(d)
	}
	block := len(part) / max(1, outer)
	if block == 0 || len(all)%len(part) != 0 {
		return false
	}
	times := len(all) / len(part)
	for o := range outer {
		for k := range times {
			at := (o*times + k) * block
			if !slices.Equal(all[at:at+block], part[o*block:(o+1)*block]) {
				return false
			}
		}
	}
	return true
}

// counted emits integers that rise by the same step from one to the next, such as the numbers of images.
func (f *freeing) counted(a, b, c *onnxpb.TensorProto) (string, bool) {
	axis, rows := batchAxis(a, b, c)
	if axis < 0 || a.DataType != int32(onnxpb.TensorProto_INT64) {
		return "", false
	}
	step, start := int64(0), int64(0)
	for k, t := range []*onnxpb.TensorProto{a, b, c} {
		v, err := onnx.Int64s(t)
		if err != nil || len(v) < 2 || int64(len(v)) != t.Dims[axis] {
			return "", false
		}
		if k == 0 {
			start, step = v[0], v[1]-v[0]
		}
		for i, x := range v {
			if x != start+int64(i)*step {
				return "", false
			}
		}
	}
	if step == 0 {
		return "", false
	}
	number := func(v int64) string { return f.fragment.Ints("number", []int64{v}) }
	end := f.fragment.Op("Reshape", []string{f.line([]int64{rows * step}, []int64{start}),
		f.fragment.Ints("shape", []int64{}, 0)})
	v := f.fragment.Op("Range", []string{number(start), end, number(step)})
	return f.fragment.Op("Reshape", []string{v, f.shapeOf(a, axis)}), true
}

// shapeOf emits the shape of a constant whose axis is as long as is left.
func (f *freeing) shapeOf(t *onnxpb.TensorProto, axis int) string {
	dims := slices.Clone(t.Dims)
	dims[axis] = -1
	return f.fragment.Ints("shape", dims, int64(len(dims)))
}

// freeShapes leaves the dimensions of declared values open that depend on the batch.
func freeShapes(first, second []*onnxpb.ValueInfoProto) {
	for i, v := range first {
		dims := v.GetType().GetTensorType().GetShape().GetDim()
		others := second[i].GetType().GetTensorType().GetShape().GetDim()
		for k, d := range dims {
			if k < len(others) && d.GetDimValue() != others[k].GetDimValue() {
				d.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: BatchDimension}
			}
		}
	}
}

// BatchDimension is the name of the dimension that [FreeBatch] leaves open.
const BatchDimension = "batch"
