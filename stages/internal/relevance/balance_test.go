package relevance

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// unbalanced are the examples that balanced gradients refuse: at 0 they have no finite value, or they are
// functions of several values that aren't a linear map of them.
var unbalanced = []string{"Acosh/any", "Log/any", "LogSoftmax/classes", "LogSoftmax/channels",
	"Pow/several whole numbers", "ReduceLogSumExp/the last", "ReduceLogSumExp/places"}

// stopped are the examples through which balanced gradients propagate nothing.
var stopped = []string{"Pow/inverse root", "Reciprocal/any", "ReduceL2/places", "ReduceL2/the last",
	"Softmax/attention", "Softmax/channels", "Softmax/classes"}

// balanceLimit is for rounding.
const balanceLimit = 1e-5

func balancedPolicy() Policy { return Balanced().Policy() }

// TestBalance holds the law of balanced gradients for every operator: values times what is propagated to
// them, and what the operator returns for zeros in their place, are what arrived.
func TestBalance(t *testing.T) {
	for _, op := range All() {
		for _, ex := range op.Examples {
			name := op.Type + "/" + ex.Name
			t.Run(name, func(t *testing.T) {
				e, passed, err := balanceError(t, op, ex, balancedPolicy())
				if refused := err != nil && strings.Contains(err.Error(),
					"has no rule of activations"); err !=
					nil && !refused || refused != slices.Contains(unbalanced, name) {
					t.Fatal(err)
				}
				if err == nil && passed == slices.Contains(stopped, name) {
					t.Errorf("something is propagated: %t", passed)
				}
				if !(e <= balanceLimit) {
					t.Errorf("what is returned is off by %.2g", e)
				}
			})
		}
	}
}

// TestBalanceMutants checks that the law detects a rule that is wrong by one percent.
func TestBalanceMutants(t *testing.T) {
	for _, op := range All() {
		for _, ex := range op.Examples {
			if name := op.Type + "/" + ex.Name; slices.Contains(slices.Concat(unbalanced, stopped), name) ||
				len(ex.Inputs) == 0 {
				continue
			}
			rules := balancedPolicy()
			p := rules
			p.Cases = []Case{{func(*Builder, *Op, onnx.Node) bool { return true },
				func(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
					back := rules.rule(b, op, n)(b, op, n, r)
					for i, v := range back {
						if v != "" {
							back[i] = b.scaled(v, 1.01)
						}
					}
					return back
				}}}
			if e, _, err := balanceError(t, op, ex, p); err != nil || e <= balanceLimit {
				t.Errorf("%s/%s: off by only %.2g, %v", op.Type, ex.Name, e, err)
			}
		}
	}
}

// balanceError returns how much of what arrives at an example is lost, relative to the magnitudes of the
// summands, and whether something is propagated.
func balanceError(t *testing.T, op *Op, ex Example, p Policy) (off float64, passed bool, err error) {
	t.Helper()
	if len(ex.Inputs) == 0 {
		return 0, true, nil
	}
	b, err := prepare(t, op, ex, p, 1)
	if err != nil {
		return 0, false, err
	}
	defer b.close()
	var x, zeros, u [][]float32
	for k, i := range b.flows {
		x = append(x, ex.draw(i, size(b.in[k])))
	}
	for i, s := range b.shapes {
		u = append(u, noise(rand.New(rand.NewPCG(uint64(i), 3)), size(s)))
	}
	y, _ := b.run(t, x, u)
	for _, u := range [][][]float32{u, y} { // of the second, no parts cancel
		y, back := b.run(t, x, u)
		sum, scale := 0., 0.
		zeros = nil
		for k, g := range back {
			zeros = append(zeros, x[k])
			if g == nil {
				continue
			}
			passed = true
			zeros[k] = make([]float32, len(x[k]))
			sum -= dot(x[k], g)
			scale += size1(x[k], g)
		}
		if !passed {
			return 0, false, nil
		}
		constant, _ := b.run(t, zeros, u)
		for i := range y {
			sum += dot(y[i], u[i]) - dot(constant[i], u[i])
			scale += size1(y[i], u[i])
		}
		off = max(off, math.Abs(sum)/scale)
	}
	return off, true, nil
}

// size1 returns Σ |aᵢbᵢ|.
func size1(a, b []float32) (sum float64) {
	for i := range a {
		sum += math.Abs(float64(a[i]) * float64(b[i]))
	}
	return sum
}

// TestSecant compares the slope of activations with (f(x) − f(0))/x in float64, also for inputs about 0.
func TestSecant(t *testing.T) {
	x := []float32{-8, -3, -0.5, -0.0101, -0.0099, -1e-4, -1e-6, -1e-9, -1e-11, -1e-30, 0, 1e-20, 1e-9, 1e-5,
		0.004, 0.02, 0.7, 5}
	one := func(attrs ...onnx.Attr) Example { return Example{Inputs: [][]int{{len(x)}}, Attrs: attrs} }
	bounded := one()
	bounded.Consts = map[int]any{1: float32(0), 2: float32(6)}
	above := one()
	above.Consts = map[int]any{1: float32(1)}
	for _, tt := range []struct {
		op *Op
		ex Example
		f  func(x float64) float64 // slope
	}{
		{opSigmoid, one(), func(x float64) float64 {
			return zeroOr(x, 0.25, math.Tanh(x/2)/2)
		}},
		{opTanh, one(), func(x float64) float64 { return zeroOr(x, 1, math.Tanh(x)) }},
		{opErf, one(), func(x float64) float64 { return zeroOr(x, 2/math.SqrtPi, math.Erf(x)) }},
		{opExp, one(), func(x float64) float64 { return zeroOr(x, 1, math.Expm1(x)) }},
		{opSoftplus, one(), func(x float64) float64 {
			return zeroOr(x, 0.5, math.Log1p(math.Expm1(x)/2))
		}},
		{opElu, one(), func(x float64) float64 {
			if x < 0 {
				return math.Expm1(x) / x
			}
			return 1
		}},
		{opRelu, one(), func(x float64) float64 {
			if x > 0 {
				return 1
			}
			return 0
		}},
		{opHardSwish, one(), func(x float64) float64 { return max(0, min(1, x/6+0.5)) }},
		{opClip, bounded, func(x float64) float64 {
			if x > 0 {
				return min(1, 6/x)
			}
			return 0
		}},
		{opClip, above, func(x float64) float64 {
			if x > 1 {
				return (x - 1) / x
			}
			return 0
		}},
	} {
		b, err := prepare(t, tt.op, tt.ex, balancedPolicy(), 1)
		if err != nil {
			t.Fatal(err)
		}
		ones := slices.Repeat([]float32{1}, len(x))
		_, back := b.run(t, [][]float32{x}, [][]float32{ones})
		b.close()
		for i, v := range x {
			want := tt.f(float64(v))
			if math.Abs(float64(v)) < 1e-8 && tt.op == opClip && v >= 0 || tt.op == opHardSwish && v == -3 {
				continue // the kink
			}
			if e := math.Abs(float64(back[0][i]) - want); !(e <= 2e-5*(0.1+math.Abs(want))) {
				t.Errorf("%s at %g: %g, want %g", tt.op.Type, v, back[0][i], want)
			}
		}
	}
}

// zeroOr is the slope from 0 to a rise at x, or the derivative at 0.
func zeroOr(x, derivative, rise float64) float64 {
	if x == 0 {
		return derivative
	}
	return rise / x
}

// TestBalanceText: every Balance is read as it is written.
func TestBalanceText(t *testing.T) {
	for text, want := range map[string]Balance{
		"plain": {}, "balanced": {Detach, Detach, Ratio, Half, Plain},
		"attn-lrp": {Quarter, Detach, Ratio, Half, Plain},
		"cp-lrp":   {Detach, Detach, Plain, Plain, Plain}, "decompx": {Detach, Detach, Ratio, Plain, Plain},
		"{quantize: straight-through}": {Quantize: StraightThrough}, "{quantize: plain}": {},
		"{}": {}, "{attention: plain}": {}, "{norm: detach, product: half}": {Norm: Detach, Product: Half},
		"{activation: ratio}":                       {Activation: Ratio},
		"{ norm : detach , attention : quarter , }": {Attention: Quarter, Norm: Detach},
	} {
		var got, again Balance
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		b, err := got.MarshalText()
		if err != nil || again.UnmarshalText(b) != nil || again != want {
			t.Errorf("%s is written %s and read %+v", text, b, again)
		}
	}
	for text, want := range map[string]string{
		"libra":                           "none of plain, balanced, attn-lrp, cp-lrp, decompx",
		"{attention: half}":               "may be detach or plain or quarter",
		"{heads: detach}":                 "none of attention, norm, activation, product",
		"{norm: detach":                   "closing brace",
		"{norm: detach, norm: plain}":     "twice",
		"":                                "none of plain",
		"{attention}":                     "may be detach",
		"{balanced}":                      "none of attention",
		"{norm: detach, product: }":       "may be half or plain",
		"{norm: {detach: yes}, a: plain}": "may be detach or plain",
	} {
		var p Balance
		if err := p.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
