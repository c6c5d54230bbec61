package relevance

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// composite returns a composite with arbitrary rules for layers.
func composite(change func(*LRP)) Policy {
	p := LRP{Conv: Epsilon(0.25), Dense: Epsilon(0.25), Stabiliser: 0.125, Bias: true, Norm: NormApart,
		Gates: GatesConstant}
	if change != nil {
		change(&p)
	}
	return p.Policy()
}

// TestTreatments compares the rules of nodes without weights with their definitions, element by element.
func TestTreatments(t *testing.T) {
	two := [][]int{{2, 3}, {2, 3}}
	gate := [][]int{{2, 3, 2}, {2, 3, 1}}
	noBias := func(p *LRP) { p.Bias = false }
	halved := func(p *LRP) { p.Gates = GatesHalved }
	norm := Example{Inputs: [][]int{{2, 3}, {3}, {3}, {3}, nil},
		Consts: map[int]any{4: []float32{0.75, 1, 3}},
		Attrs:  []onnx.Attr{{Name: "epsilon", Value: float32(0.25)}}}
	rows := Example{Inputs: [][]int{{2, 3}}, Attrs: []onnx.Attr{{Name: "axes", Value: []int64{1}}}}
	layerNorm := Example{Inputs: [][]int{{2, 3}, {3}, {3}}}
	scales, offsets := doubles(noise(rand.New(rand.NewPCG(1, 1)),
		3)), doubles(noise(rand.New(rand.NewPCG(2, 1)), 3))
	for _, tt := range []struct {
		name   string
		op     *Op
		ex     Example
		policy Policy
		// want returns the relevance of each input, given the inputs, the outputs and r.
		want func(x [][]float64, y, r []float64) [][]float64
	}{
		{"a sum shares", opAdd, Example{Inputs: two}, composite(nil),
			func(x [][]float64, y, r []float64) [][]float64 {
				return each(2, len(r), func(i, k int) float64 { return x[i][k] * r[k] / away(y[k], 0.125) })
			}},
		{"a difference shares", opSub, Example{Inputs: two}, composite(nil),
			func(x [][]float64, y, r []float64) [][]float64 {
				return each(2, len(r),
					func(i, k int) float64 { return float64(1-2*i) * x[i][k] * r[k] / away(y[k], 0.125) })
			}},
		{"a constant that is added takes its share", opAdd,
			Example{Inputs: [][]int{{2, 3}, nil}, Consts: map[int]any{1: float32(0.5)}}, composite(nil),
			func(x [][]float64, y, r []float64) [][]float64 {
				return each(1, len(r), func(i, k int) float64 { return x[i][k] * r[k] / away(y[k], 0.125) })
			}},
		{"or nothing", opAdd, Example{Inputs: [][]int{{2, 3}, nil}, Consts: map[int]any{1: float32(0.5)}},
			composite(noBias),
			func(x [][]float64, _, r []float64) [][]float64 {
				return each(1, len(r), func(_, k int) float64 { return r[k] })
			}},
		{"two operands and a constant without a share", opSum,
			Example{Inputs: [][]int{{2, 3}, {2, 3}, nil}, Consts: map[int]any{2: float32(0.5)}},
			composite(noBias),
			func(x [][]float64, _, r []float64) [][]float64 {
				return each(2, len(r),
					func(i, k int) float64 { return x[i][k] * r[k] / away(x[0][k]+x[1][k], 0.125) })
			}},
		{"a mean shares", opGlobalAveragePool, Example{Inputs: [][]int{{1, 2, 2, 2}}}, composite(nil),
			func(x [][]float64, y, r []float64) [][]float64 {
				return each(1, 8,
					func(_, k int) float64 { return x[0][k] / 4 * r[k/4] / away(y[k/4], 0.125) })
			}},
		{"an activation passes", opSigmoid, Example{Inputs: [][]int{{2, 3}}}, composite(nil),
			func(_ [][]float64, _, r []float64) [][]float64 { return [][]float64{r} }},
		{"a bounded Relu passes", opClip,
			Example{Inputs: [][]int{{2, 3}, nil, nil}, Consts: map[int]any{1: float32(0), 2: float32(1)}},
			composite(nil),
			func(_ [][]float64, _, r []float64) [][]float64 { return [][]float64{r} }},
		{"a power passes", opPow, Example{Inputs: [][]int{{2, 3}, nil}, Consts: map[int]any{1: float32(2)}},
			composite(nil),
			func(_ [][]float64, _, r []float64) [][]float64 { return [][]float64{r} }},
		{"a length shares by squares", opReduceL2, rows, composite(nil),
			func(x [][]float64, y, r []float64) [][]float64 {
				return each(1, 6, func(_, k int) float64 {
					return x[0][k] * x[0][k] / y[k/3] * r[k/3] / away(y[k/3], 0.125)
				})
			}},
		{"a sum of magnitudes by these", opReduceL1, rows, composite(nil),
			func(x [][]float64, y, r []float64) [][]float64 {
				return each(1, 6,
					func(_, k int) float64 { return math.Abs(x[0][k]) * r[k/3] / away(y[k/3], 0.125) })
			}},
		{"a sum of squares by these", opReduceSumSquare, rows, composite(nil),
			func(x [][]float64, y, r []float64) [][]float64 {
				return each(1, 6,
					func(_, k int) float64 { return x[0][k] * x[0][k] * r[k/3] / away(y[k/3], 0.125) })
			}},
		{"a product of three gives a third", opReduceProd, rows, composite(nil),
			func(_ [][]float64, y, r []float64) [][]float64 {
				return each(1, 6, func(_, k int) float64 { return y[k/3] / 3 * r[k/3] / away(y[k/3], 0.125) })
			}},
		{"a constant factor passes", opMul,
			Example{Inputs: [][]int{{2, 3}, nil}, Consts: map[int]any{1: float32(-3)}}, composite(nil),
			func(_ [][]float64, _, r []float64) [][]float64 { return [][]float64{r} }},
		{"a divisor is constant", opDiv, Example{Inputs: two}, composite(nil),
			func(_ [][]float64, _, r []float64) [][]float64 { return [][]float64{r, nil} }},
		{"a normalisation shares, its deviation is constant", opLayerNormalization, layerNorm, composite(nil),
			func(x [][]float64, y, r []float64) [][]float64 {
				return [][]float64{normalised(x[0], scales,
					func(k int) float64 { return r[k] / away(y[k], 0.125) })}
			}},
		{"without a share for its bias", opLayerNormalization, layerNorm, composite(noBias),
			func(x [][]float64, y, r []float64) [][]float64 {
				return [][]float64{normalised(x[0], scales,
					func(k int) float64 { return r[k] / away(y[k]-offsets[k%3], 0.125) })}
			}},
		{"a channel's too", opInstanceNormalization, Example{Inputs: [][]int{{2, 1, 3}, {1}, {1}}},
			composite(nil), func(x [][]float64, y, r []float64) [][]float64 {
				scale := doubles(noise(rand.New(rand.NewPCG(1, 1)), 1))[0]
				return [][]float64{normalised(x[0], []float64{scale, scale, scale},
					func(k int) float64 { return r[k] / away(y[k], 0.125) })}
			}},
		{"what divides by a length passes", opLpNormalization, Example{Inputs: [][]int{{2, 3}}},
			composite(nil),
			func(_ [][]float64, _, r []float64) [][]float64 { return [][]float64{r} }},
		{"a repeated factor is a gate", opMul, Example{Inputs: gate}, composite(nil),
			func(_ [][]float64, _, r []float64) [][]float64 { return [][]float64{r, nil} }},
		{"or gets half", opMul, Example{Inputs: gate}, composite(halved),
			func(_ [][]float64, _, r []float64) [][]float64 {
				return [][]float64{each(1, 12, func(_, k int) float64 { return r[k] / 2 })[0],
					each(1, 6, func(_, k int) float64 { return (r[2*k] + r[2*k+1]) / 2 })[0]}
			}},
		{"equal factors get half", opMul, Example{Inputs: two}, composite(nil),
			func(_ [][]float64, _, r []float64) [][]float64 {
				return each(2, len(r), func(_, k int) float64 { return r[k] / 2 })
			}},
		{"so do those of a matrix product", opMatMul, Example{Inputs: [][]int{{2, 1, 2}, {2, 2, 1}}},
			composite(nil), func(x [][]float64, y, r []float64) [][]float64 {
				return each(2, 4,
					func(_, k int) float64 { return x[0][k] * x[1][k] * r[k/2] / away(y[k/2], 0.125) / 2 })
			}},
		{"softmax passes nothing", opSoftmax, Example{Inputs: [][]int{{2, 3}}}, composite(nil),
			func([][]float64, []float64, []float64) [][]float64 { return [][]float64{nil} }},
		{"or its derivative times its input", opSoftmax, Example{Inputs: [][]int{{2, 3}}}, composite(halved),
			func(x [][]float64, y, r []float64) [][]float64 {
				return each(1, 6, func(_, k int) float64 {
					row := k / 3 * 3
					return x[0][k] * (r[k] - y[k]*(r[row]+r[row+1]+r[row+2]))
				})
			}},
		{"a BatchNormalization of its own shares with its bias", opBatchNormalization, norm,
			composite(func(p *LRP) { p.Stabiliser = 0 }), func(x [][]float64, y, r []float64) [][]float64 {
				scale := doubles(noise(rand.New(rand.NewPCG(1, 1)), 3))
				factor := []float64{scale[0], scale[1] / 1.118033988749895, scale[2] / 1.8027756377319946}
				return each(1, 6, func(_, k int) float64 { return x[0][k] * factor[k%3] / y[k] * r[k] })
			}},
		{"or passes", opBatchNormalization, norm, composite(func(p *LRP) { p.Norm = NormPassed }),
			func(_ [][]float64, _, r []float64) [][]float64 { return [][]float64{r} }},
		{"without a share for biases it passes too", opBatchNormalization, norm, composite(noBias),
			func(_ [][]float64, _, r []float64) [][]float64 { return [][]float64{r} }},
		{"a maximum gives all to where it was", opMaxPool,
			Example{Inputs: [][]int{{1, 1, 1, 4}}, Draw: apart, Attrs: []onnx.Attr{
				{Name: "kernel_shape", Value: []int64{1, 4}}}}, composite(nil),
			func(x [][]float64, y, r []float64) [][]float64 {
				return each(1, 4, func(_, k int) float64 {
					if x[0][k] == y[0] {
						return r[0]
					}
					return 0
				})
			}},
	} {
		b, err := prepare(t, tt.op, tt.ex, tt.policy, 1)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var x [][]float32
		var long [][]float64
		for i := range b.in {
			v := tt.ex.draw(b.flows[i], size(b.in[i]))
			x, long = append(x, v), append(long, doubles(v))
		}
		r := noise(rand.New(rand.NewPCG(5, 5)), size(b.shapes[0]))
		cotangents := [][]float32{r}
		y, back := b.run(t, x, cotangents)
		b.close()
		want := tt.want(long, doubles(y[0]), doubles(r))
		for i := range back {
			if i >= len(want) || want[i] == nil {
				if back[i] != nil {
					t.Errorf("%s: something incoming at input %d", tt.name, i)
				}
				continue
			}
			close64(t, tt.name, back[i], want[i], 1e-5)
		}
	}
}

// normalised returns the relevance of normalised rows of three, x·(g − mean g) with g = γ·s/σ.
func normalised(x, scale []float64, s func(k int) float64) []float64 {
	var out []float64
	for row := 0; row < len(x); row += 3 {
		var g [3]float64
		var mean, square, along float64
		for k := range 3 {
			mean += x[row+k] / 3
			square += x[row+k] * x[row+k] / 3
		}
		for k := range 3 {
			g[k] = scale[k] * s(row+k) / math.Sqrt(square-mean*mean+1e-5)
			along += g[k] / 3
		}
		for k := range 3 {
			out = append(out, x[row+k]*(g[k]-along))
		}
	}
	return out
}

// each returns count slices of n values.
func each(count, n int, value func(i, k int) float64) [][]float64 {
	out := make([][]float64, count)
	for i := range out {
		for k := range n {
			out[i] = append(out[i], value(i, k))
		}
	}
	return out
}

// TestLRPRefuses checks that nodes without a rule are errors that name them.
func TestLRPRefuses(t *testing.T) {
	for _, tt := range []struct {
		op   *Op
		ex   Example
		want string
	}{
		{opExp, Example{Inputs: [][]int{{2, 3}}}, "Exp"},
		{opPow, Example{Inputs: [][]int{{2, 3}, nil}, Consts: map[int]any{1: float32(-1)}}, "Pow"},
		{opReduceLogSumExp, Example{Inputs: [][]int{{2, 3}}}, "ReduceLogSumExp"},
		{opDiv,
			Example{Inputs: [][]int{nil, {2, 3}}, Flow: []int{1}, Consts: map[int]any{0: float32(2)},
				Draw: aboveZero}, "Div"},
		{opGemm,
			Example{Inputs: [][]int{{2, 3}, {3, 2}}, Attrs: []onnx.Attr{{Name: "alpha", Value: float32(-1)}}},
			"alpha"},
		{opGemm, Example{Inputs: [][]int{{2, 3}, {3, 2}}, Flow: []int{0, 1}}, "weights depend on the image"},
	} {
		_, err := prepare(t, tt.op, tt.ex, composite(nil), 1)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v doesn't say %q", tt.op.Type, err, tt.want)
		}
	}
}
