package relevance

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// Box is the zᴮ-rule for a first layer with bounded data l ≤ x ≤ h: Rᵢ = Σⱼ (xᵢwᵢⱼ − lᵢwᵢⱼ⁺ −
// hᵢwᵢⱼ⁻)/Σ(…)·Rⱼ. Montavon et al. 2017, equation 17. low and high are the bounds of the model's input, in a
// shape that broadcasts to it; nodes between the input and the layer transform them.
func Box(low, high []float32, shape []int, stabiliser float32) LayerRule {
	name := fmt.Sprintf("box(%v, %v, %v, %g)", low, high, shape, stabiliser)
	return boxed(name, stabiliser, func(b *Builder, image Value) (Value, Value) {
		to := b.Shape(image)
		return b.Expand(b.Floats(low, shape...), to...), b.Expand(b.Floats(high, shape...), to...)
	})
}

// ImageBox is the zᴮ-rule bounded by the smallest and the largest element of each image, as in the code of
// RAP.
func ImageBox(stabiliser float32) LayerRule {
	return boxed(fmt.Sprintf("image-box(%g)", stabiliser), stabiliser,
		func(b *Builder, image Value) (Value, Value) {
			to := b.Shape(image)
			var axes []int64
			one := []int{to[0]}
			for i := range to[1:] {
				axes, one = append(axes, int64(1+i)), append(one, 1)
			}
			bound := func(op string) Value {
				return b.Expand(b.Emit(op, one, []Value{image}, onnx.Attr{Name: "axes", Value: axes}), to...)
			}
			return bound("ReduceMin"), bound("ReduceMax")
		})
}

func boxed(name string, stabiliser float32,
	bounds func(b *Builder, image Value) (low, high Value)) LayerRule {
	return LayerRule{name, func(b *Builder, l layer, r Value) Value {
		image := b.g.Inputs()[0].Name
		low, high := bounds(b, image)
		low, high, ok := b.moved(l.x(), image, low, high)
		if !ok {
			b.Fail(l.n,
				"the zᴮ-rule needs bounds of its data, which don't follow from those of the pixels; use the "+
					"rule flat or w-square for first layers instead")
			return ""
		}
		wp, wn := b.positivePart(l.w()), b.negativePart(l.w())
		z := l.with(b, l.x(), l.w(), "").Output[0]
		z = b.Sub(z, l.with(b, low, wp, "").Output[0])
		z = b.Sub(z, l.with(b, high, wn, "").Output[0])
		s := b.quotient(r, z, stabiliser, anySign)
		back := func(x, w Value) Value { return b.Mul(x, l.adjoint(b, l.with(b, l.x(), w, ""), s)) }
		return b.Sub(b.Sub(back(l.x(), l.w()), back(low, wp)), back(high, wn))
	}}
}

// moved emits the bounds of v, given those of the image, if v is computed from it by moves and arithmetic
// with constants; otherwise it returns false.
func (b *Builder) moved(v, image, low, high Value) (Value, Value, bool) {
	if v == image {
		return low, high, true
	}
	n, output, ok := b.producer(v)
	if !ok {
		return "", "", false
	}
	op := b.op(n)
	arithmetic := Type("Add", "Sub", "Mul", "Div", "BatchNormalization")(b, op, n)
	if op == nil || op.Kind != Move && !arithmetic {
		return "", "", false
	}
	lows, highs := map[int]Value{}, map[int]Value{}
	for i, in := range n.Input {
		if !b.dynamic(in) {
			continue
		}
		if arithmetic && (len(lows) > 0 || n.OpType == "Div" && i > 0) {
			return "", "", false
		}
		if lows[i], highs[i], ok = b.moved(in, image, low, high); !ok {
			return "", "", false
		}
	}
	low, high = b.Copy(n, lows).Output[output], b.Copy(n, highs).Output[output]
	if arithmetic { // a negative factor exchanges them
		shape := b.Shape(v)
		low, high = b.Emit("Min", shape, []Value{low, high}), b.Emit("Max", shape, []Value{low, high})
	}
	return low, high, true
}
