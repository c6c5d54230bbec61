package relevance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// An absCase is an example with its reference implementation for each variant and image.
type absCase struct {
	op     *Op
	ex     Example
	layers func(v AbsLRPVariant, x []float64) []layer64
	pool   MaxPoolRule
}

func absCases() []absCase {
	conv := Example{Inputs: [][]int{{2, 3, 5, 4}, {4, 3, 3, 2}, {4}}, Attrs: []onnx.Attr{
		{Name: "strides", Value: []int64{2, 1}}, {Name: "pads", Value: []int64{1, 1, 0, 0}}}}
	gemm := Example{Inputs: [][]int{{2, 7}, {5, 7}, {5}}, Attrs: []onnx.Attr{{Name: "transB", Value: 1}}}
	matmul := Example{Inputs: [][]int{{2, 7}, {7, 5}}, Flow: []int{0}}
	norm := Example{Inputs: [][]int{{2, 7}, {7}, {7}}}
	batch := Example{Inputs: [][]int{{2, 9}, {9}, {9}, {9}, nil},
		Consts: map[int]any{4: []float32{0.5, 1, 3, 0.25, 2, 1, 4, 0.5, 1}}}
	uneven := func(i int) float32 { return float32(math.Sin(1.7*float64(i))) + 0.1 }
	groups := Example{Inputs: [][]int{{2, 3, 4}, {3}, {3}}, Draw: uneven}
	gate := func(x []float64) []float64 {
		out := make([]float64, len(x)/2)
		for i := range out {
			out[i] = x[i] * x[i+len(out)]
		}
		return out
	}
	scores := Example{Inputs: [][]int{{2, 6}}}
	pool := Example{Inputs: [][]int{{2, 1, 4, 4}}, Draw: apart, Attrs: []onnx.Attr{
		{Name: "kernel_shape", Value: []int64{2, 2}}, {Name: "strides", Value: []int64{2, 2}}}}
	one := func(l layer64) func(AbsLRPVariant, []float64) []layer64 {
		return func(AbsLRPVariant, []float64) []layer64 { return []layer64{l} }
	}
	sum := func(x []float64) []float64 {
		out := make([]float64, len(x)/2)
		for i := range out {
			out[i] = x[i] + x[i+len(out)]
		}
		return out
	}
	product := func(x []float64) []float64 { // of [2,3] and [3,2]
		out := make([]float64, 4)
		for i := range 2 {
			for j := range 2 {
				for k := range 3 {
					out[2*i+j] += x[3*i+k] * x[6+2*k+j]
				}
			}
		}
		return out
	}
	windows := func(f func(a, b float64) float64, scale float64) func([]float64) []float64 {
		return func(x []float64) []float64 {
			var out []float64
			for y := 0; y < 4; y += 2 {
				for c := 0; c < 4; c += 2 {
					out = append(out, scale*f(f(x[4*y+c], x[4*y+c+1]), f(x[4*y+c+4], x[4*y+c+5])))
				}
			}
			return out
		}
	}
	most := windows(math.Max, 1)
	plus := func(a, b float64) float64 { return a + b }
	tanh := func(v AbsLRPVariant, _ []float64) []layer64 {
		l := each64(math.Tanh, math.Tanh)
		if v == AbsLRPJanuary {
			l.atSame = each64(func(x float64) float64 { return math.Abs(math.Tanh(x)) }, nil).h
		}
		return []layer64{l}
	}
	return []absCase{
		{op: opConv, ex: conv, layers: one(linear64(denseOf(opConv, conv)))},
		{op: opGemm, ex: gemm, layers: one(linear64(denseOf(opGemm, gemm)))},
		{op: opMatMul, ex: matmul, layers: one(linear64(denseOf(opMatMul, matmul)))},
		{op: opAdd, ex: Example{Inputs: [][]int{{2, 5}, {2, 5}}, Draw: uneven},
			layers: one(layer64{h: sum, abs: sum})},
		{op: opMul, ex: Example{Inputs: [][]int{{2, 8}, {2, 8}}}, layers: one(layer64{h: gate, abs: gate})},
		{op: opMatMul, ex: Example{Inputs: [][]int{{2, 2, 3}, {2, 3, 2}}, Draw: uneven},
			layers: one(layer64{h: product, abs: product})},
		{op: opMaxPool, ex: pool, layers: func(v AbsLRPVariant, _ []float64) []layer64 {
			return []layer64{{h: most, abs: most, undivided: v == AbsLRPOfficial}} // no sum of branches
		}},
		{op: opMaxPool, ex: pool, pool: MaxPoolDivide, layers: one(layer64{h: most, abs: most})},
		{op: opMaxPool, ex: pool, pool: MaxPoolMultiply,
			layers: one(layer64{h: most, abs: most, undivided: true})},
		{op: opAveragePool, ex: pool, layers: one(layer64{h: windows(plus, 0.25), abs: windows(plus, 0.25)})},
		{op: opTanh, ex: scores, layers: tanh},
		{op: opSoftmax, ex: scores, layers: func(v AbsLRPVariant, x []float64) []layer64 {
			exp := func(of func(float64) float64) func([]float64) []float64 {
				z := 0.0
				for _, v := range x {
					z += math.Exp(of(v))
				}
				return each64(func(v float64) float64 { return math.Exp(v) / z }, nil).h
			}
			l := layer64{h: exp(same), abs: exp(math.Abs)}
			if v == AbsLRPJanuary {
				l.atSame = l.h
			}
			return []layer64{l}
		}},
		{op: opLayerNormalization, ex: norm, layers: func(v AbsLRPVariant, x []float64) []layer64 {
			size := make([]float64, len(x))
			for i, v := range x {
				size[i] = math.Abs(v)
			}
			mean, deviation := moments(x, 1e-5)
			if v == AbsLRPJanuary {
				return januaryNorm(weightOf(norm, 1), weightOf(norm, 2),
					func(bool, int) (float64, float64) { return mean, deviation })
			}
			return normLayers(v, weightOf(norm, 1), weightOf(norm, 2),
				func(abs bool, i int) (float64, float64) {
					if abs {
						return moments(size, 1e-5)
					}
					return mean, deviation
				})
		}},
		{op: opInstanceNormalization, ex: groups, layers: func(v AbsLRPVariant, x []float64) []layer64 {
			var scale, bias []float64
			for c := range 3 {
				for range 4 {
					scale, bias = append(scale, weightOf(groups, 1)[c]), append(bias, weightOf(groups, 2)[c])
				}
			}
			statistics := func(abs bool, i int) (float64, float64) {
				channel := slices.Clone(x[i/4*4 : i/4*4+4])
				for k, v := range channel {
					if abs {
						channel[k] = math.Abs(v)
					}
				}
				return moments(channel, 1e-5)
			}
			if v == AbsLRPJanuary {
				return januaryNorm(scale, bias, statistics)
			}
			return normLayers(v, scale, bias, statistics)
		}},
		{op: opBatchNormalization, ex: batch, layers: func(v AbsLRPVariant, x []float64) []layer64 {
			means, variances := weightOf(batch, 3), doubles(batch.Consts[4].([]float32))
			return normLayers(v, weightOf(batch, 1), weightOf(batch, 2),
				func(_ bool, i int) (float64, float64) {
					return means[i], math.Sqrt(variances[i] + 1e-5)
				})
		}},
	}
}

// normLayers is the reference of a normalisation as one layer or as two, with given statistics for h and for
// |h|.
func normLayers(v AbsLRPVariant, scale, bias []float64,
	statistics func(abs bool, i int) (mean, deviation float64)) []layer64 {
	standard := func(abs bool) func([]float64) []float64 {
		return func(x []float64) []float64 {
			out := make([]float64, len(x))
			for i := range x {
				mean, deviation := statistics(abs, i)
				out[i] = (x[i] - mean) / deviation
			}
			return out
		}
	}
	affine := func(f func(float64) float64) func([]float64) []float64 {
		return func(x []float64) []float64 {
			out := make([]float64, len(x))
			for i := range x {
				out[i] = x[i]*f(scale[i]) + f(bias[i])
			}
			return out
		}
	}
	if v == AbsLRPOfficial {
		h, abs := standard(false), standard(true)
		return []layer64{{
			h:   func(x []float64) []float64 { return affine(same)(h(x)) },
			abs: func(x []float64) []float64 { return affine(math.Abs)(abs(x)) },
		}}
	}
	return []layer64{{h: standard(false), abs: standard(false)}, {h: affine(same), abs: affine(math.Abs)}}
}

// januaryNorm is the reference of the January code's normalisation by the image's own statistics.
func januaryNorm(scale, bias []float64,
	statistics func(abs bool, i int) (mean, deviation float64)) []layer64 {
	layers := normLayers(AbsLRPOfficial, scale, bias,
		func(_ bool, i int) (float64, float64) { return statistics(false, i) })
	layers[0].atSame = func(x []float64) []float64 {
		out := make([]float64, len(x))
		for i := range x {
			mean, deviation := statistics(false, i)
			out[i] = math.Abs((x[i]-mean)/deviation) * math.Abs(scale[i])
		}
		return out
	}
	return layers
}

// TestAbsLRPAgainstDense compares the rule of every kind of node in every variant with algorithm 1 in
// float64, with numerical derivatives.
func TestAbsLRPAgainstDense(t *testing.T) {
	for _, c := range absCases() {
		for _, variant := range []AbsLRPVariant{AbsLRPPaper, AbsLRPOfficial, AbsLRPJanuary} {
			name := fmt.Sprintf("%s of %v, %s", c.op.Type, c.ex.Inputs[0], variant)
			p := AbsLRP{Variant: variant, MaxPool: c.pool, Ablation: AblationNone}
			if p.MaxPool == "" {
				p.MaxPool = MaxPoolAuto
			}
			rules := p.Policy()
			rules.Cases = rules.Cases[1:] // the softmax isn't the output here
			b, err := prepare(t, c.op, c.ex, rules, 1)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			var in [][]float32
			for i, shape := range b.in {
				in = append(in, c.ex.draw(b.flows[i], size(shape)))
			}
			r := noise(rand.New(rand.NewPCG(5, 5)), size(b.shapes[0]))
			_, back := b.run(t, in, [][]float32{r})
			b.close()
			want := make([][]float64, len(in))
			for k := range 2 { // images
				var x []float64
				var cut []int
				for _, v := range in {
					n := len(v) / 2
					x, cut = append(x, doubles(v[k*n:(k+1)*n])...), append(cut, n)
				}
				n := len(r) / 2
				out := pass64(variant, c.layers(variant, x), x, doubles(r[k*n:(k+1)*n]), cut)
				for i, n := range cut {
					part, own := out[:n], x[:n]
					if variant == AbsLRPJanuary && c.op == opMatMul && len(cut) == 2 {
						// Queries and keys are split into heads: y = x.
						y := each64(same, nil)
						y.atSame = each64(math.Abs, nil).h
						part = y.step(variant, own, part, cut[i:i+1])
					}
					want[i] = append(want[i], part...)
					out, x = out[n:], x[n:]
				}
			}
			for i := range in {
				close64(t, fmt.Sprintf("%s, input %d", name, i), back[i], want[i], 1e-5)
			}
		}
	}
}
