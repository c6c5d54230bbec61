package relevance

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// rescaleAt returns the rescale policy for one-node graphs, given the reference values of the flowing inputs.
func rescaleAt(official bool, references map[Value][]float32) Policy {
	return Policy{Name: "rescale at", Cases: []Case{{
		Match: func(*Builder, *Op, onnx.Node) bool { return true },
		Rule: func(b *Builder, op *Op, n onnx.Node, r []Value) []Value {
			there := map[Value]Value{}
			with := map[int]Value{}
			for i, v := range n.Input {
				if values, ok := references[v]; ok {
					with[i] = b.Unary("Identity", b.Floats(values, b.Shape(v)...))
					there[v] = with[i]
				}
			}
			for i, v := range b.Copy(n, with).Output {
				there[n.Output[i]] = v
			}
			return Rescale(official, there).rule(b, op, n)(b, op, n, r)
		},
	}}}
}

// otherwise returns the elements of input i for the reference, which all differ from those of the example.
func (ex Example) otherwise(i, n int) []float32 {
	if ex.Draw != nil {
		v := make([]float32, n)
		for k := range v {
			v[k] = ex.Draw(i*1000+n-1-k) * 1.037
		}
		return v
	}
	v := noise(rand.New(rand.NewPCG(uint64(i)+99, uint64(n))), n)
	for k := range v {
		v[k] *= 1.037
	}
	return v
}

// TestRescaleIsComplete checks for every operator that multipliers times input differences sum to multipliers
// times output differences, and which operators are rejected.
func TestRescaleIsComplete(t *testing.T) {
	library(t)
	refused := map[string]bool{}
	for _, op := range All() {
		for _, ex := range op.Examples {
			if op.Kind == Opaque {
				continue
			}
			var x, z [][]float32
			references := map[Value][]float32{}
			_, flows := model(t, op, ex)
			for _, i := range flows {
				n := size(ex.Inputs[i])
				x, z = append(x, ex.draw(i, n)), append(z, ex.otherwise(i, n))
				references[inputName(i)] = z[len(z)-1]
			}
			b, err := prepare(t, op, ex, rescaleAt(false, references), 1)
			if err != nil {
				if strings.Contains(err.Error(), "DeepLIFT has no rule") {
					refused[op.Type] = true
				} else if !strings.Contains(err.Error(), "depends on the image") {
					t.Errorf("%s, %s: %v", op.Type, ex.Name, err)
				}
				continue
			}
			u := make([][]float32, len(b.shapes))
			for i, s := range b.shapes {
				u[i] = noise(rand.New(rand.NewPCG(uint64(i), 7)), size(s))
			}
			y, back := b.run(t, x, u)
			there, _ := b.run(t, z, u)
			b.close()
			got, want, whole := 0.0, 0.0, 0.0
			for i, m := range back {
				for k, v := range m {
					got += float64(v) * (float64(x[i][k]) - float64(z[i][k]))
				}
			}
			for i := range y {
				for k, v := range y[i] {
					part := float64(u[i][k]) * (float64(v) - float64(there[i][k]))
					want += part
					whole += math.Abs(part)
				}
			}
			if !(math.Abs(got-want) <= 1e-5*whole) {
				t.Errorf("%s, %s: input sums are %v, output sums %v", op.Type, ex.Name, got, want)
			}
		}
	}
	var names []string
	for name := range refused {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"InstanceNormalization", "LRN", "LogSoftmax", "LpNormalization", "Max", "Min", "Pow",
		"ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceProd", "ReduceSumSquare"}
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("refused: %s", d)
	}
}

// rescaledAt returns the multipliers at the one input of an example, as emitted.
func rescaledAt(t *testing.T, op *Op, ex Example, official bool, x, z, u []float32) []float32 {
	t.Helper()
	b, err := prepare(t, op, ex, rescaleAt(official, map[Value][]float32{inputName(0): z}), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	_, back := b.run(t, [][]float32{x}, [][]float32{u})
	return back[0]
}

// TestRescaleJoint compares the rules of LayerNormalization, Softmax and pools with compositions in double
// precision.
func TestRescaleJoint(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 4))
	const rows, n = 4, 6
	x, z, u, gamma, beta := noise(draw, rows*n), noise(draw, rows*n), noise(draw, rows*n), noise(draw,
		n), noise(draw, n)
	for i := range z {
		z[i] *= 1.037
	}
	near := func(what string, got []float32, want []float64) {
		t.Helper()
		largest := 0.0
		for _, v := range want {
			largest = max(largest, math.Abs(v))
		}
		for i := range want {
			if !(math.Abs(float64(got[i])-want[i]) <= 2e-5*largest) {
				t.Errorf("%s at %d: %v, want %v", what, i, got[i], want[i])
			}
		}
	}
	line := Example{Inputs: [][]int{{rows, n}}}

	normal := Example{Inputs: [][]int{{rows, n}, nil, nil}, Consts: map[int]any{1: gamma, 2: beta},
		Attrs: []onnx.Attr{{Name: "epsilon", Value: float32(0.25)}}}
	var want []float64
	for r := range rows {
		a, b, m := x[r*n:(r+1)*n], z[r*n:(r+1)*n], u[r*n:(r+1)*n]
		centred := func(v []float32) (c []float64, root float64) {
			mean, variance := 0.0, 0.0
			for _, e := range v {
				mean += float64(e) / n
			}
			for _, e := range v {
				c = append(c, float64(e)-mean)
				variance += (float64(e) - mean) * (float64(e) - mean) / n
			}
			return c, math.Sqrt(variance + 0.25)
		}
		c, s := centred(a)
		d, q := centred(b)
		// y = γ·c·(1/s) + β, s = √v, v = mean of c².
		mReciprocal := 0.0
		mc := make([]float64, n)
		for i := range n {
			g := float64(m[i]) * float64(gamma[i])
			mc[i] = g * (1/s + 1/q) / 2
			mReciprocal += g * (c[i] + d[i]) / 2
		}
		mRoot := mReciprocal * (1/s - 1/q) / (s - q)
		mVariance := mRoot * (s - q) / (s*s - q*q)
		sum := 0.0
		for i := range n {
			mc[i] += mVariance / n * (c[i]*c[i] - d[i]*d[i]) / (c[i] - d[i])
			sum += mc[i]
		}
		for i := range n {
			want = append(want, mc[i]-sum/n)
		}
	}
	near("LayerNormalization", rescaledAt(t, opLayerNormalization, normal, false, x, z, u), want)

	var soft, official []float64
	for r := range rows {
		a, b, m := x[r*n:(r+1)*n], z[r*n:(r+1)*n], u[r*n:(r+1)*n]
		s, q := 0.0, 0.0
		for i := range n {
			s, q = s+math.Exp(float64(a[i])), q+math.Exp(float64(b[i]))
		}
		rho, quotient := make([]float64, n), make([]float64, n)
		total, mean := 0.0, 0.0
		for i := range n {
			y, w := math.Exp(float64(a[i]))/s, math.Exp(float64(b[i]))/q
			delta := float64(a[i]) - float64(b[i])
			rho[i] = float64(m[i]) * (y - w) / (delta - math.Log(s/q))
			quotient[i] = float64(m[i]) * (y - w) / delta
			total, mean = total+rho[i], mean+quotient[i]/n
		}
		for i := range n {
			e := (math.Exp(float64(a[i])) - math.Exp(float64(b[i]))) / (float64(a[i]) - float64(b[i]))
			soft = append(soft, rho[i]-e*math.Log(s/q)/(s-q)*total)
			official = append(official, quotient[i]-mean)
		}
	}
	near("Softmax", rescaledAt(t, opSoftmax, line, false, x, z, u), soft)
	near("Softmax, officially", rescaledAt(t, opSoftmax, line, true, x, z, u), official)

	// Windows of three elements with stride two overlap.
	pool := Example{Inputs: [][]int{{1, rows, n + 1}},
		Attrs: []onnx.Attr{{Name: "kernel_shape", Value: []int64{3}}, {Name: "strides", Value: []int64{2}}}}
	x, z = noise(draw, rows*(n+1)), noise(draw, rows*(n+1))
	for i := range z {
		z[i] *= 1.037
	}
	u = noise(draw, rows*3)
	pooled := make([]float64, len(x))
	for r := range rows {
		for w := range 3 {
			i, j := r*(n+1)+2*w, r*(n+1)+2*w
			for k := range 3 {
				at := r*(n+1) + 2*w + k
				if x[at] > x[i] {
					i = at
				}
				if z[at] > z[j] {
					j = at
				}
			}
			m, top := float64(u[r*3+w]), float64(max(x[i], z[j]))
			pooled[i] += m * (top - float64(z[j]))
			pooled[j] += m * (float64(x[i]) - top)
		}
	}
	for i := range pooled {
		pooled[i] /= float64(x[i]) - float64(z[i])
	}
	near("MaxPool", rescaledAt(t, opMaxPool, pool, false, x, z, u), pooled)
}

// TestRescaleAtEqualInputs checks that multipliers are derivatives if input and reference are equal.
func TestRescaleAtEqualInputs(t *testing.T) {
	x := []float32{-2, -0.5, 0.5, 2}
	u := []float32{1, 1, 1, 1}
	ex := Example{Inputs: [][]int{{4}}}
	if d := cmp.Diff([]float32{0, 0, 1, 1}, rescaledAt(t, opRelu, ex, false, x, x, u)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]float32{0, 0.8, 1, 0.8},
		rescaledAt(t, opRelu, ex, false, x, []float32{-3, 2, 1, -0.5}, u)); d != "" {
		t.Error(d)
	}
}
