package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/npy"
)

// reference reads meta_rank_reference.npz: the fusion of five tables of areas under curves, computed by a
// least-squares solver elsewhere.
func reference(t testing.TB) (arrays map[string]npy.Array, sets int) {
	t.Helper()
	arrays = golden.Arrays(t, "testdata/meta_rank_reference.npz")
	for {
		if _, ok := arrays[fmt.Sprintf("auc%d", sets)]; !ok {
			return arrays, sets
		}
		sets++
	}
}

func rows(a npy.Array) [][]float64 {
	flat := a.Float64s()
	out := make([][]float64, a.Shape[0])
	for i := range out {
		out[i] = flat[i*a.Shape[1] : (i+1)*a.Shape[1]]
	}
	return out
}

func TestGoldenMetaRank(t *testing.T) {
	arrays, sets := reference(t)
	used := 0
	for set := range sets {
		quality := rows(arrays[fmt.Sprintf("auc%d", set)])
		for c, higher := range arrays[fmt.Sprintf("higher_better%d", set)].Float64s() {
			if higher == 0 {
				for p := range quality[c] {
					quality[c][p] = -quality[c][p]
				}
			}
		}
		used += 2
		for _, clip := range []float64{1e-2, 1e-3, 1e-6} {
			f := Fuse(quality, clip)
			same := func(key string, got []float64) {
				t.Helper()
				want, ok := arrays[key]
				if !ok {
					t.Fatalf("no array %q", key)
				}
				used++
				for i, w := range want.Float64s() {
					// ln(P/(1−P)) at P = 1 − 1e-6 has eleven good digits in the reference.
					if !(math.Abs(got[i]-w) <= 1e-11*math.Max(1, math.Abs(w))) {
						t.Errorf("%s[%d] = %v, want %v", key, i, got[i], w)
					}
				}
			}
			if clip == 1e-2 {
				for p := range f.P {
					// The reference leaves the meaningless diagonal to its solver.
					f.P[p][p] = arrays[fmt.Sprintf("P%d", set)].Float64s()[p*len(f.P)+p]
				}
				same(fmt.Sprintf("P%d", set), slices.Concat(f.P...))
			}
			name := map[float64]string{1e-2: "0.01", 1e-3: "0.001", 1e-6: "1e-06"}[clip]
			same(fmt.Sprintf("logit%d_eps%s", set, name), slices.Concat(f.Logit...))
			same(fmt.Sprintf("kappa%d_eps%s", set, name), f.Kappa)
		}
	}
	if used != len(arrays) {
		t.Errorf("compared %d of the file's %d arrays", used, len(arrays))
	}
}

// TestFuseIsLeastSquares solves equation 6 by a dense pseudo-inverse, one row a pair, and finds the closed
// form.
func TestFuseIsLeastSquares(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []struct{ cases, methods int }{{1, 2}, {3, 3}, {7, 5}, {26, 8}, {10, 16}} {
		f := Fuse(draw(r, size.cases, size.methods), 1e-3)
		m := size.methods
		a := mat.NewDense(m*(m-1)/2, m, nil)
		b := mat.NewVecDense(m*(m-1)/2, nil)
		row := 0
		for p := range m {
			for q := p + 1; q < m; q++ {
				a.Set(row, p, 1)
				a.Set(row, q, -1)
				b.SetVec(row, f.Logit[p][q])
				row++
			}
		}
		var svd mat.SVD
		if !svd.Factorize(a, mat.SVDThin) {
			t.Fatal("no singular value decomposition")
		}
		var kappa mat.VecDense
		svd.SolveVecTo(&kappa, b, m-1) // the differences fix κ up to a constant: rank m−1
		sum := 0.0
		for p := range m {
			sum += f.Kappa[p]
			if d := math.Abs(kappa.AtVec(p) - f.Kappa[p]); !(d <= 1e-9) {
				t.Errorf("%d methods: κ[%d] = %v by least squares, %v in closed form", m, p, kappa.AtVec(p),
					f.Kappa[p])
			}
		}
		if !(math.Abs(sum) <= 1e-9) {
			t.Errorf("%d methods: κ sums to %v", m, sum)
		}
	}
}

func TestFuseLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		q := draw(r, 1+r.IntN(9), 2+r.IntN(6))
		f := Fuse(q, 1e-3)

		// Any increasing function of a case's numbers leaves everything as it is.
		warped := make([][]float64, len(q))
		for c := range q {
			for _, x := range q[c] {
				warped[c] = append(warped[c], math.Exp(x)+float64(c))
			}
		}
		if g := Fuse(warped, 1e-3); !slices.Equal(f.Kappa, g.Kappa) {
			t.Fatalf("κ = %v, after an increasing map %v", f.Kappa, g.Kappa)
		}

		// Methods in another order: the same numbers in that order, bit for bit.
		perm := r.Perm(len(q[0]))
		for c := range q {
			for i, p := range perm {
				warped[c][i] = q[c][p]
			}
		}
		g := Fuse(warped, 1e-3)
		for i, p := range perm {
			if g.Kappa[i] != f.Kappa[p] || g.Rank[i] != f.Rank[p] {
				t.Fatalf("method %d: κ %v rank %d, permuted κ %v rank %d", p, f.Kappa[p], f.Rank[p],
					g.Kappa[i], g.Rank[i])
			}
		}

		// All cases turned round: κ turned round.
		for c := range q {
			for p, x := range q[c] {
				warped[c][p] = -x
			}
		}
		g = Fuse(warped, 1e-3)
		for p := range f.Kappa {
			if !(math.Abs(g.Kappa[p]+f.Kappa[p]) <= 1e-12) {
				t.Fatalf("κ %v, reversed %v", f.Kappa, g.Kappa)
			}
		}
	}
}

func TestFuseTies(t *testing.T) {
	f := Fuse([][]float64{{1, 1, 0}, {2, 2, 1}}, 0.01)
	if f.Wins[0][1] != 1 || f.P[0][1] != 0.5 || f.Logit[0][1] != 0 {
		t.Errorf("two ties count %v wins, P %v, logit %v", f.Wins[0][1], f.P[0][1], f.Logit[0][1])
	}
	if !slices.Equal(f.Rank, []int{1, 1, 3}) {
		t.Errorf("ranks %v, want 1 1 3", f.Rank)
	}
	want := math.Log(99)
	if !(math.Abs(f.Logit[0][2]-want) <= 1e-12) {
		t.Errorf("a method that always wins has logit %v, want ln 99 = %v", f.Logit[0][2], want)
	}
}

func TestAgreement(t *testing.T) {
	rho, pairs := Agreement([][]float64{{1, 2, 3}, {10, 20, 30}, {3, 2, 1}, {5, 5, 5}})
	if want := (1.0 - 1 - 1) / 3; !(math.Abs(rho-want) <= 1e-12) || pairs != 3 {
		t.Errorf("agreement %v over %d pairs, want %v over 3", rho, pairs, want)
	}
}

func draw(r *rand.Rand, cases, methods int) [][]float64 {
	q := make([][]float64, cases)
	for c := range q {
		for range methods {
			q[c] = append(q[c], math.Round(r.Float64()*20)/20) // coarse, so that some tie
		}
	}
	return q
}

func BenchmarkFuse(b *testing.B) {
	q := draw(rand.New(rand.NewPCG(5, 6)), 26, 64)
	for b.Loop() {
		Fuse(q, 1e-3)
	}
}
