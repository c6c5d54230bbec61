package relevance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// A denseLayer is z = W·x + b as a dense matrix in float64: W[j][i] for output j and input i of one image.
type denseLayer struct {
	w [][]float64
	b []float64
}

// denseOf returns the dense form of an example's layer: a Conv without dilation, a Gemm with transposed
// weights, or a MatMul of vectors.
func denseOf(op *Op, ex Example) denseLayer {
	weights := noise(rand.New(rand.NewPCG(1, 1)), size(ex.Inputs[1]))
	var bias []float32
	if len(ex.Inputs) > 2 {
		bias = noise(rand.New(rand.NewPCG(2, 1)), size(ex.Inputs[2]))
	}
	at := func(i int) float64 {
		if bias == nil {
			return 0
		}
		return float64(bias[i])
	}
	x, w := ex.Inputs[0], ex.Inputs[1]
	var d denseLayer
	switch op.Type {
	case "Gemm", "MatMul":
		in, out := x[len(x)-1], w[0]
		if op.Type == "MatMul" {
			out = w[1]
		}
		for j := range out {
			row := make([]float64, in)
			for i := range in {
				if op.Type == "Gemm" {
					row[i] = float64(weights[j*in+i])
				} else {
					row[i] = float64(weights[i*out+j])
				}
			}
			d.w, d.b = append(d.w, row), append(d.b, at(j))
		}
		return d
	}
	n := onnx.Node{NodeProto: onnx.NewNode("n", op.Type, nil, nil, ex.Attrs...)}
	group, stride, pads := n.Int("group", 1), []int{1, 1}, []int{0, 0, 0, 0}
	if s := n.Ints("strides"); s != nil {
		stride = s
	}
	if p := n.Ints("pads"); p != nil {
		pads = p
	}
	c, h, wd := x[1], x[2], x[3]
	m, kh, kw := w[0], w[2], w[3]
	oh, ow := (h+pads[0]+pads[2]-kh)/stride[0]+1, (wd+pads[1]+pads[3]-kw)/stride[1]+1
	for f := range m {
		for oy := range oh {
			for ox := range ow {
				row := make([]float64, c*h*wd)
				for k := range w[1] {
					channel := f/(m/group)*(c/group) + k
					for dy := range kh {
						for dx := range kw {
							iy, ix := oy*stride[0]+dy-pads[0], ox*stride[1]+dx-pads[1]
							if iy >= 0 && iy < h && ix >= 0 && ix < wd {
								row[(channel*h+iy)*wd+ix] = float64(weights[((f*w[1]+k)*kh+dy)*kw+dx])
							}
						}
					}
				}
				d.w, d.b = append(d.w, row), append(d.b, at(f))
			}
		}
	}
	return d
}

func plusPart(x float64) float64  { return math.Max(x, 0) }
func minusPart(x float64) float64 { return math.Min(x, 0) }

// away is z with ε added to its magnitude.
func away(z, epsilon float64) float64 {
	if z < 0 {
		return z - epsilon
	}
	return z + epsilon
}

// A message is the share of the relevance at output j that each input gets, given x, a row of weights and the
// bias.
type message func(x, w []float64, b float64) []float64

// propagate applies a message to one image.
func (d denseLayer) propagate(m message, x, r []float64) []float64 {
	out := make([]float64, len(x))
	for j, row := range d.w {
		for i, f := range m(x, row, d.b[j]) {
			out[i] += f * r[j]
		}
	}
	return out
}

// shares is a message: each input's share of the sum of parts and bias.
func shares(part func(x, w float64, i int) float64, bias func(float64) float64, epsilon float64) message {
	return func(x, w []float64, b float64) []float64 {
		sum := bias(b)
		out := make([]float64, len(x))
		for i := range x {
			out[i] = part(x[i], w[i], i)
			sum += out[i]
		}
		for i := range out {
			if sum == 0 && epsilon == 0 {
				out[i] = 0
				continue
			}
			out[i] /= away(sum, epsilon)
		}
		return out
	}
}

func none(float64) float64 { return 0 }

func same(b float64) float64 { return b }

func product(x, w float64, _ int) float64 { return x * w }

func alphaBeta(alpha, beta, epsilon float64, bias bool) message {
	up, down := plusPart, minusPart
	if !bias {
		up, down = none, none
	}
	p := shares(func(x, w float64, _ int) float64 { return plusPart(x * w) }, up, epsilon)
	n := shares(func(x, w float64, _ int) float64 { return minusPart(x * w) }, down, epsilon)
	return func(x, w []float64, b float64) []float64 {
		ps, ns := p(x, w, b), n(x, w, b)
		for i := range ps {
			ps[i] = alpha*ps[i] - beta*ns[i]
		}
		return ps
	}
}

func gammaRule(gamma, epsilon float64, bias bool) message {
	return func(x, w []float64, b float64) []float64 {
		if !bias {
			b = 0
		}
		z := b
		for i := range x {
			z += x[i] * w[i]
		}
		part := plusPart
		if z < 0 {
			part = minusPart
		} else if z == 0 {
			return make([]float64, len(x))
		}
		return shares(func(x, w float64, _ int) float64 { return x*w + gamma*part(x*w) },
			func(b float64) float64 {
				if !bias {
					return 0
				}
				return b + gamma*part(b)
			}, epsilon)(x, w, b)
	}
}

// TestRulesAgainstDense compares every rule of layers with weights with its formula, evaluated over all pairs
// of input and output in float64.
func TestRulesAgainstDense(t *testing.T) {
	low, high := []float32{-2.5, -3, -2.25}, []float32{2.5, 2.25, 3}
	box := func(bound func(i int) (float64, float64)) message {
		return shares(func(x, w float64, i int) float64 {
			l, h := bound(i)
			return x*w - l*plusPart(w) - h*minusPart(w)
		}, none, 0.125)
	}
	rules := []struct {
		rule LayerRule
		bias bool
		want func(x []float64, ex Example) message
	}{
		{Epsilon(0.25), true, func([]float64, Example) message { return shares(product, same, 0.25) }},
		{Epsilon(0.25), false, func([]float64, Example) message { return shares(product, none, 0.25) }},
		{Epsilon(0), true, func([]float64, Example) message { return shares(product, same, 0) }},
		{ZPlus(1e-6), true, func([]float64, Example) message { return alphaBeta(1, 0, 1e-6, true) }},
		{ZPlus(0), false, func([]float64, Example) message { return alphaBeta(1, 0, 0, false) }},
		{AlphaBeta(2, 1, 1e-6), true,
			func([]float64, Example) message { return alphaBeta(2, 1, 1e-6, true) }},
		{AlphaBeta(1.5, 0.5, 1e-6), false,
			func([]float64, Example) message { return alphaBeta(1.5, 0.5, 1e-6, false) }},
		{Gamma(0.25, 1e-3), true, func([]float64, Example) message { return gammaRule(0.25, 1e-3, true) }},
		{Gamma(1, 1e-3), false, func([]float64, Example) message { return gammaRule(1, 1e-3, false) }},
		{Flat(1e-6), true, func([]float64, Example) message {
			return shares(func(_, w float64, _ int) float64 {
				if w == 0 { // not connected: no weight is 0
					return 0
				}
				return 1
			}, none, 1e-6)
		}},
		{WSquare(1e-6), true, func([]float64, Example) message {
			return shares(func(_, w float64, _ int) float64 { return w * w }, none, 1e-6)
		}},
		{CaptumZPlus(0.25), true, func([]float64, Example) message {
			return shares(func(x, w float64, _ int) float64 { return x * plusPart(w) }, same, 0.25)
		}},
		{Box(low, high, []int{1, 3, 1, 1}, 0.125), true, func(x []float64, ex Example) message {
			return box(func(i int) (float64, float64) {
				c := i / size(ex.Inputs[0][2:])
				return float64(low[c]), float64(high[c])
			})
		}},
		{ImageBox(0.125), true, func(x []float64, _ Example) message {
			return box(func(int) (float64, float64) { return slices.Min(x), slices.Max(x) })
		}},
	}
	for _, layer := range []struct {
		op *Op
		ex Example
	}{
		{opConv, Example{Name: "padded", Inputs: [][]int{{2, 3, 5, 4}, {4, 3, 3, 2}, {4}}, Attrs: []onnx.Attr{
			{Name: "strides", Value: []int64{2, 1}}, {Name: "pads", Value: []int64{1, 1, 0, 0}}}}},
		{opConv,
			Example{Name: "grouped, no bias", Inputs: [][]int{{2, 6, 4, 4}, {4, 3, 2, 2}},
				Attrs: []onnx.Attr{{Name: "group", Value: 2}}}},
		{opGemm,
			Example{Name: "torch's", Inputs: [][]int{{2, 7}, {5, 7}, {5}},
				Attrs: []onnx.Attr{{Name: "transB", Value: 1}}}},
		{opMatMul, Example{Name: "weights", Inputs: [][]int{{2, 7}, {7, 5}}, Flow: []int{0}}},
	} {
		dense := denseOf(layer.op, layer.ex)
		for _, tt := range rules {
			name := fmt.Sprintf("%s %s, %s, bias %t", layer.op.Type, layer.ex.Name, tt.rule.Name, tt.bias)
			if layer.ex.Inputs[0][1] != 3 && len(tt.rule.Name) > 4 && tt.rule.Name[:4] == "box(" {
				continue // the bounds are for three channels
			}
			p := LRP{Conv: tt.rule, Dense: tt.rule, Stabiliser: 1e-6, Bias: tt.bias, Norm: NormFolded,
				Gates: GatesConstant}
			b, err := prepare(t, layer.op, layer.ex, p.Policy(), 1)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			x := layer.ex.draw(0, size(layer.ex.Inputs[0]))
			r := noise(rand.New(rand.NewPCG(5, 5)), size(b.shapes[0]))
			_, back := b.run(t, [][]float32{x}, [][]float32{r})
			b.close()
			var want []float64
			for k := range 2 {
				xk := doubles(x[k*len(x)/2 : (k+1)*len(x)/2])
				want = append(want,
					dense.propagate(tt.want(xk, layer.ex), xk, doubles(r[k*len(r)/2:(k+1)*len(r)/2]))...)
			}
			close64(t, name, back[0], want, 1e-5)
		}
	}
}

func doubles(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

// close64 compares got with want, with a tolerance relative to want's norm.
func close64(t *testing.T, what string, got []float32, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	var off, all float64
	for i := range want {
		d := float64(got[i]) - want[i]
		off += d * d
		all += want[i] * want[i]
	}
	if !(off <= tolerance*tolerance*all) || all == 0 {
		t.Errorf("%s: relative error %.2g", what, math.Sqrt(off/all))
	}
}
