package standalone

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// A Single is a value in single precision, as programs return it. Its first axis is the batch.
type Single struct {
	Name  string
	Shape []int
}

// Numbers are a value in double precision, in which methods compute. Its first axis is the batch, or 1.
type Numbers struct {
	Name  string
	Shape []int

	d *Draft
}

// Double returns a value in double precision.
func (d *Draft) Double(v Single) Numbers {
	return Numbers{d.Op("Cast", []string{v.Name}, to(onnxpb.TensorProto_DOUBLE)), v.Shape, d}
}

// Numbers returns a value that is in double precision.
func (d *Draft) Numbers(name string, shape ...int) Numbers { return Numbers{name, shape, d} }

// Constant returns a constant.
func (d *Draft) Constant(v []float64, shape ...int) Numbers {
	dims := make([]int64, len(shape))
	for i, n := range shape {
		dims[i] = int64(n)
	}
	return Numbers{d.Fragment().Doubles("numbers", v, dims...), shape, d}
}

// Number returns a constant of one number, which broadcasts.
func (d *Draft) Number(v float64) Numbers { return d.Constant([]float64{v}) }

func to(elem onnxpb.TensorProto_DataType) onnx.Attr { return onnx.Attr{Name: "to", Value: int(elem)} }

// Single returns x, rounded to single precision.
func (x Numbers) Single() Single {
	return Single{x.d.Op("Cast", []string{x.Name}, to(onnxpb.TensorProto_FLOAT)), x.Shape}
}

func (x Numbers) op(op string, shape []int, in ...string) Numbers {
	return Numbers{x.d.Op(op, append([]string{x.Name}, in...)), shape, x.d}
}

// each returns a function of single elements.
func (x Numbers) each(op string) Numbers { return x.op(op, x.Shape) }

// Abs, Relu and Exp are functions of single elements.
func (x Numbers) Abs() Numbers  { return x.each("Abs") }
func (x Numbers) Relu() Numbers { return x.each("Relu") }
func (x Numbers) Exp() Numbers  { return x.each("Exp") }
func (x Numbers) Sqrt() Numbers { return x.each("Sqrt") }

// Plus, Minus, Times and Over compute with another value that broadcasts to x, or to which x broadcasts.
func (x Numbers) Plus(y Numbers) Numbers  { return x.with("Add", y) }
func (x Numbers) Minus(y Numbers) Numbers { return x.with("Sub", y) }
func (x Numbers) Times(y Numbers) Numbers { return x.with("Mul", y) }
func (x Numbers) Over(y Numbers) Numbers  { return x.with("Div", y) }

func (x Numbers) with(op string, y Numbers) Numbers {
	return x.op(op, broadcast(x.Shape, y.Shape), y.Name)
}

// broadcast returns the shape to which two broadcast.
func broadcast(a, b []int) []int {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clone(a)
	for i, n := range b {
		k := i + len(a) - len(b)
		out[k] = max(out[k], n)
	}
	return out
}

// IsZero returns 1 where x is 0, and 0 elsewhere.
func (x Numbers) IsZero() Numbers {
	is := x.op("Equal", x.Shape, x.d.Number(0).Name)
	return Numbers{x.d.Op("Cast", []string{is.Name}, to(onnxpb.TensorProto_DOUBLE)), x.Shape, x.d}
}

// Sum returns the sum over an axis, which disappears.
func (x Numbers) Sum(axis int) Numbers { return x.reduce("ReduceSum", 0, axis) }

// KeepSum returns the sum over axes, which become 1.
func (x Numbers) KeepSum(axes ...int) Numbers { return x.reduce("ReduceSum", 1, axes...) }

// KeepMax emits the maximum over axes, which are kept with size 1.
func (x Numbers) KeepMax(axes ...int) Numbers {
	shape, list := slices.Clone(x.Shape), make([]int64, len(axes))
	for i, a := range axes {
		shape[a], list[i] = 1, int64(a)
	}
	return Numbers{x.d.Op("ReduceMax", []string{x.Name}, onnx.Attr{Name: "axes", Value: list}), shape, x.d}
}

// KeepMean returns the mean over axes, which become 1: their sum, divided.
func (x Numbers) KeepMean(axes ...int) Numbers {
	count := 1
	for _, a := range axes {
		count *= x.Shape[a]
	}
	return x.KeepSum(axes...).Over(x.d.Number(float64(count)))
}

func (x Numbers) reduce(op string, keep int, axes ...int) Numbers {
	var shape []int
	for i, n := range x.Shape {
		switch {
		case !slices.Contains(axes, i):
			shape = append(shape, n)
		case keep == 1:
			shape = append(shape, 1)
		}
	}
	return Numbers{x.d.Op(op, []string{x.Name, x.d.Shape(axes...)}, onnx.Attr{Name: "keepdims", Value: keep}),
		shape, x.d}
}

// Range returns the largest element of each row minus its least.
func (x Numbers) Range() Numbers { return x.ends("ReduceMax").Minus(x.Least()) }

// Least returns the least element of each row.
func (x Numbers) Least() Numbers { return x.ends("ReduceMin") }

func (x Numbers) ends(op string) Numbers {
	axes := make([]int64, len(x.Shape)-1)
	shape := []int{x.Shape[0]}
	for i := range axes {
		axes[i], shape = int64(i+1), append(shape, 1)
	}
	return Numbers{x.d.Op(op, []string{x.Name}, onnx.Attr{Name: "axes", Value: axes}), shape, x.d}
}

// Stretched returns each row stretched to [0,1], 0 where all of its elements are equal.
func (x Numbers) Stretched() Numbers {
	span := x.Range()
	return x.Minus(x.Least()).Over(span.Plus(span.IsZero()))
}

// Reshape returns x in another shape.
func (x Numbers) Reshape(shape ...int) Numbers { return x.op("Reshape", shape, x.d.Shape(shape...)) }

// Transpose returns x with its axes in another order.
func (x Numbers) Transpose(perm ...int) Numbers {
	order, shape := make([]int64, len(perm)), make([]int, len(perm))
	for i, a := range perm {
		order[i], shape[i] = int64(a), x.Shape[a]
	}
	return Numbers{x.d.Op("Transpose", []string{x.Name}, onnx.Attr{Name: "perm", Value: order}), shape, x.d}
}

// Slice returns the elements from ≤ i < end along an axis.
func (x Numbers) Slice(axis, from, end int) Numbers {
	shape := slices.Clone(x.Shape)
	shape[axis] = end - from
	return x.op("Slice", shape, x.d.Shape(from), x.d.Shape(end), x.d.Shape(axis))
}

// Rows returns the elements at these indices along an axis.
func (x Numbers) Rows(axis int, indices ...int) Numbers {
	shape := slices.Clone(x.Shape)
	shape[axis] = len(indices)
	return Numbers{x.d.Op("Gather", []string{x.Name, x.d.Shape(indices...)},
		onnx.Attr{Name: "axis", Value: axis}), shape, x.d}
}

// MatMul returns the matrix product of the last two axes.
func (x Numbers) MatMul(y Numbers) Numbers {
	k := len(x.Shape) - 1
	shape := broadcast(x.Shape[:k-1], y.Shape[:len(y.Shape)-2])
	return x.op("MatMul", append(shape, x.Shape[k-1], y.Shape[len(y.Shape)-1]), y.Name)
}
