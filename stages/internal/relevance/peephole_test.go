package relevance

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// TestFold checks that products read untransposed operands, if the device has a product that does, that
// successive scalar factors are combined, and that results stay the same.
func TestFold(t *testing.T) {
	t.Run("FusedMatMul", func(t *testing.T) {
		testFold(t, Without{}, map[string]int{"FusedMatMul": 1, "Transpose": 1, "Neg": 1, "Mul": 1})
	})
	t.Run("without", func(t *testing.T) {
		testFold(t, Without{Operators: []string{"FusedMatMul"}},
			map[string]int{"Transpose": 3, "MatMul": 1, "Neg": 1, "Mul": 1})
	})
}

func testFold(t *testing.T, w Without, want map[string]int) {
	x := make([]float32, 2*3*5)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	at := func(item, row, column int) float64 { return float64(x[(item*3+row)*5+column]) }
	shape, got := emitted(t, []int{2, 3, 5}, x, func(b *Builder, v Value) Value {
		y := b.MatMul(b.SwapLast(v), b.SwapLast(b.Transpose(v, 0, 2, 1))) // xᵀ·x
		y = b.Unary("Neg", y)
		y = b.Div(b.Mul(b.Mul(y, b.Scalar(3)), b.Scalar(5)), b.Scalar(2))
		b.without = w
		b.optimise(y)
		types := map[string]int{}
		for _, n := range live(b, y) {
			types[n.OpType]++
		}
		if diff := cmp.Diff(want, types); diff != "" {
			t.Errorf("the nodes that matter: %s", diff)
		}
		return y
	})
	if len(shape) != 3 {
		t.Fatalf("shape %v", shape)
	}
	for item := range 2 {
		for i := range 5 {
			for k := range 5 {
				var want float64
				for row := range 3 {
					want += at(item, row, i) * at(item, row, k)
				}
				want *= -7.5
				if g := float64(got[(item*5+i)*5+k]); !(math.Abs(g-want) < 1e-5) {
					t.Errorf("[%d,%d,%d] is %g, want %g", item, i, k, g, want)
				}
			}
		}
	}
}

// TestFoldProduct checks that a product that is scaled and then permuted, with rows becoming columns, is
// computed scaled and transposed; that a product with other readers or with weights stays; and that results
// stay the same.
func TestFoldProduct(t *testing.T) {
	in := []int{2, 3, 4, 5}
	x := make([]float32, size(in))
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	w := x[7:27] // [5,4]
	for _, tt := range []struct {
		name          string
		perm          []int
		weight, twice bool
		want          map[string]int // number of live nodes of these operators
	}{
		{"heads and rows", []int{0, 3, 1, 2}, false, false, map[string]int{"FusedMatMul": 1, "Transpose": 1}},
		{"rows and columns", []int{0, 1, 3, 2}, false, false, map[string]int{"FusedMatMul": 1}},
		{"rows stay rows", []int{0, 2, 1, 3}, false, false, map[string]int{"FusedMatMul": 1, "Transpose": 1}},
		{"read twice", []int{0, 1, 3, 2}, false, true,
			map[string]int{"FusedMatMul": 2, "Mul": 2, "Transpose": 1}},
		{"with weights", []int{0, 1, 3, 2}, true, false,
			map[string]int{"MatMul": 1, "Mul": 1, "Transpose": 1}},
	} {
		_, got := emitted(t, in, x, func(b *Builder, v Value) Value {
			other := b.Transpose(v, 0, 1, 3, 2)
			if tt.weight {
				other = b.Floats(w, 5, 4)
			}
			p := b.MatMul(v, other)
			y := b.Transpose(b.Mul(p, b.Scalar(0.25)), tt.perm...)
			if tt.twice {
				y = b.Mul(y, p)
			}
			b.optimise(y)
			types := map[string]int{}
			for _, n := range live(b, y) {
				types[n.OpType]++
			}
			if d := cmp.Diff(tt.want, types); d != "" {
				t.Errorf("%s: the nodes that matter: %s", tt.name, d)
			}
			return y
		})
		product := func(at [4]int) (sum float64) {
			item := (at[0]*3 + at[1]) * 4
			for k := range 5 {
				right := x[(item+at[3])*5+k]
				if tt.weight {
					right = w[k*4+at[3]]
				}
				sum += float64(x[(item+at[2])*5+k]) * float64(right)
			}
			return sum
		}
		shape := [4]int{2, 3, 4, 4}
		for i, g := range got {
			var to, from [4]int
			rest := i
			for axis := 3; axis >= 0; axis-- {
				to[axis] = rest % shape[tt.perm[axis]]
				rest /= shape[tt.perm[axis]]
				from[tt.perm[axis]] = to[axis]
			}
			want := product(from) / 4
			if tt.twice {
				want *= product(to)
			}
			if !(math.Abs(float64(g)-want) < 1e-5) {
				t.Fatalf("%s: element %v is %g, want %g", tt.name, to, g, want)
			}
		}
		if len(got) != 2*3*4*4 {
			t.Errorf("%s: %d elements", tt.name, len(got))
		}
	}
}

// live returns the emitted nodes on which v depends.
func live(b *Builder, v Value) []onnx.Node {
	for _, n := range b.nodes {
		if n.Output[0] == v {
			out := []onnx.Node{{NodeProto: n}}
			for _, in := range n.Input {
				out = append(out, live(b, in)...)
			}
			return out
		}
	}
	return nil
}
