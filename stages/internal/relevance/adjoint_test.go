package relevance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// exact reports whether the central difference of a kind is exact for any step, one operand at a time.
func exact(k Kind) bool { return k == Affine || k == Bilinear || k == Move || k == Sum }

// Tolerances relative to ‖v‖·‖Jᵀu‖, for rounding errors. Non-linear operators use a fourth-order difference
// with a step that avoids kinks.
const (
	exactTolerance  = 1e-6
	smoothTolerance = 5e-5
	smoothStep      = 1. / 64
)

// TestAdjoint checks ⟨v, Jᵀu⟩ = ⟨Jv, u⟩ for every operator; the right side is computed from differences of
// forward passes.
func TestAdjoint(t *testing.T) {
	for _, op := range All() {
		if op.Kind == Opaque {
			continue
		}
		if len(op.Examples) == 0 {
			t.Errorf("%s has no example", op.Type)
		}
		for _, ex := range op.Examples {
			t.Run(op.Type+"/"+ex.Name, func(t *testing.T) {
				if worst, where := adjointError(t, op, ex, Policy{}); !(worst < 1) {
					t.Errorf("%s: %.3g times the tolerance", where, worst)
				}
			})
		}
	}
}

// TestMutants checks that the adjoint test detects a VJP that is wrong by one percent, for every input of
// every example.
func TestMutants(t *testing.T) {
	for _, op := range All() {
		for _, ex := range op.Examples {
			t.Run(op.Type+"/"+ex.Name, func(t *testing.T) {
				for wrong := range len(ex.Inputs) {
					mutated := false
					p := Policy{Cases: []Case{{Type(op.Type),
						func(b *Builder, op *Op, n onnx.Node, dy []Value) []Value {
							back := op.VJP(b, n, dy)
							if wrong < len(back) && back[wrong] != "" && b.dynamic(n.Input[wrong]) {
								mutated = true
								back[wrong] = b.Mul(back[wrong], b.Scalar(1.01))
							}
							return back
						}}}}
					if worst, _ := adjointError(t, op, ex, p); mutated && worst < 1 {
						t.Errorf("input %d: a mutant passes, %.3g of the tolerance", wrong, worst)
					}
				}
			})
		}
	}
}

// adjointError returns the largest adjoint error of an example in units of the tolerance, and its location.
// Each flowing input is varied separately, in a random direction and along its own cotangent.
func adjointError(t *testing.T, op *Op, ex Example, p Policy) (worst float64, where string) {
	t.Helper()
	b, err := prepare(t, op, ex, p, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	r := rand.New(rand.NewPCG(7, 7))
	var x, u [][]float32
	for k, i := range b.flows {
		x = append(x, ex.draw(i, size(b.in[k])))
	}
	for _, s := range b.shapes {
		u = append(u, noise(r, size(s)))
	}
	_, back := b.run(t, x, u)
	for k, i := range b.flows {
		for _, direction := range []string{"a random direction", "its own direction"} {
			v := noise(r, size(b.in[k]))
			g := back[k]
			if g == nil {
				g = make([]float32, len(v))
			}
			if direction == "its own direction" {
				v = towards(g)
			}
			want := b.difference(t, op, x, u, k, v)
			tolerance := smoothTolerance
			if exact(op.Kind) {
				tolerance = exactTolerance
			}
			scale := norm(v) * norm(g)
			err := math.Abs(dot(v, g) - want)
			if scale == 0 {
				scale = 1
			}
			if e := err / (tolerance * scale); !(e <= worst) {
				worst, where = e, fmt.Sprintf("input %d in %s: %g, difference %g", i, direction, dot(v, g),
					want)
			}
		}
	}
	return worst, where
}

// towards returns a multiple of g with elements up to 2, rounded like [noise].
func towards(g []float32) []float32 {
	most := float32(0)
	for _, x := range g {
		most = max(most, x, -x)
	}
	v := make([]float32, len(g))
	if most == 0 {
		return v
	}
	for i, x := range g {
		v[i] = float32(math.Round(float64(x/most)*32)) / 16
	}
	return v
}

// difference returns ⟨Jv, u⟩ for input k varied along v.
func (b *bench) difference(t *testing.T, op *Op, x, u [][]float32, k int, v []float32) float64 {
	t.Helper()
	at := func(step float64) float64 {
		moved := append([][]float32(nil), x...)
		moved[k] = make([]float32, len(v))
		for i := range v {
			moved[k][i] = x[k][i] + float32(step)*v[i]
		}
		y, _ := b.run(t, moved, u)
		var s float64
		for i := range y {
			s += dot(y[i], u[i])
		}
		return s
	}
	if exact(op.Kind) {
		return (at(1) - at(-1)) / 2
	}
	const h = smoothStep
	return (8*(at(h)-at(-h)) - (at(2*h) - at(-2*h))) / (12 * h)
}
