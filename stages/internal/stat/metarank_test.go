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
			f := Fuse(quality, Clip(clip))
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

// solved returns κ of equation 6 by a dense pseudo-inverse: a row for each pair, times the root of the number
// of its cases.
func solved(t *testing.T, f Fusion) []float64 {
	t.Helper()
	m := len(f.Kappa)
	a, b := mat.NewDense(m*(m-1)/2, m, nil), mat.NewVecDense(m*(m-1)/2, nil)
	row := 0
	for p := range m {
		for q := p + 1; q < m; q++ {
			if n := f.Wins[p][q] + f.Wins[q][p]; n > 0 {
				a.Set(row, p, math.Sqrt(n))
				a.Set(row, q, -math.Sqrt(n))
				b.SetVec(row, math.Sqrt(n)*f.Logit[p][q])
			}
			row++
		}
	}
	var svd mat.SVD
	if !svd.Factorize(a, mat.SVDThin) {
		t.Fatal("no singular value decomposition")
	}
	var kappa mat.VecDense
	// The differences fix κ up to a constant in each part of the methods.
	svd.SolveVecTo(&kappa, b, m-1-slices.Max(f.Part))
	return kappa.RawVector().Data
}

// TestFuseIsLeastSquares compares κ with a dense solution of the smallest norm: of complete cases, of cases
// that lack methods, and of methods in parts that never met.
func TestFuseIsLeastSquares(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	split := 0
	for _, size := range []struct {
		cases, methods int
		absent         float64
	}{{1, 2, 0}, {3, 3, 0}, {7, 5, 0}, {26, 8, 0}, {10, 16, 0}, {7, 5, 0.2}, {26, 8, 0.3}, {10, 16, 0.5},
		{3, 8, 0.6}, {2, 9, 0.7}, {4, 12, 0.75}} {
		q := draw(r, size.cases, size.methods)
		for c := range q {
			for p := range q[c] {
				if r.Float64() < size.absent {
					q[c][p] = math.NaN()
				}
			}
		}
		f := Fuse(q, Clip(1e-3))
		split += slices.Max(f.Part)
		sums := make([]float64, slices.Max(f.Part)+1)
		for p, want := range solved(t, f) {
			sums[f.Part[p]] += f.Kappa[p]
			if d := math.Abs(want - f.Kappa[p]); !(d <= 1e-9) {
				t.Errorf("%+v: κ[%d] = %v, by dense least squares %v", size, p, f.Kappa[p], want)
			}
		}
		for part, sum := range sums {
			if !(math.Abs(sum) <= 1e-9) {
				t.Errorf("%+v: κ of part %d sums to %v", size, part, sum)
			}
		}
	}
	if split == 0 {
		t.Error("no methods fell into parts")
	}
}

// TestFuseCountsCommonCases checks that a method's absence leaves a case to the others.
func TestFuseCountsCommonCases(t *testing.T) {
	nan := math.NaN()
	f := Fuse([][]float64{{3, 2, 1}, {3, nan, 1}, {1, 2, nan}, {nan, nan, 5}}, Clip(1e-3))
	for _, c := range []struct {
		p, q      int
		wins, all float64
	}{{0, 1, 1, 2}, {0, 2, 2, 2}, {1, 2, 1, 1}} {
		if f.Wins[c.p][c.q] != c.wins || f.Wins[c.p][c.q]+f.Wins[c.q][c.p] != c.all ||
			f.P[c.p][c.q] != c.wins/c.all {
			t.Errorf("%d against %d: wins %v of %v, share %v", c.p, c.q, f.Wins[c.p][c.q],
				f.Wins[c.p][c.q]+f.Wins[c.q][c.p], f.P[c.p][c.q])
		}
	}
}

func TestSmoothing(t *testing.T) {
	q := [][]float64{{2, 1}, {2, 1}, {2, 1}}
	if got, want := Fuse(q, Laplace).Logit[0][1], math.Log(4); !(math.Abs(got-want) <= 1e-15) {
		t.Errorf("3 wins of 3 have the log-odds %v, with one more win and loss %v", got, want)
	}
	if got, want := Fuse(q, Clip(0.01)).Logit[0][1], math.Log(99); !(math.Abs(got-want) <= 1e-15) {
		t.Errorf("3 wins of 3 have the log-odds %v, clipped %v", got, want)
	}
}

// TestFuseIntervals checks intervals against all resamples of two cases, and their laws.
func TestFuseIntervals(t *testing.T) {
	seeded := func() *rand.Rand { return rand.New(rand.NewPCG(7, 8)) }
	// Of four equally likely resamples one has a first twice and one b: both ends are reached.
	kappa, rank := FuseIntervals([][]float64{{2, 1}, {1, 2}}, Clip(1e-3), 400, seeded())
	end := math.Log(999) / 2
	for p := range 2 {
		if !(math.Abs(kappa[p].Low+end) <= 1e-12 && math.Abs(kappa[p].High-end) <= 1e-12) ||
			rank[p] != (Interval{1, 2}) {
			t.Errorf("method %d: κ in %v, rank in %v", p, kappa[p], rank[p])
		}
	}
	if kappa, _ := FuseIntervals([][]float64{{2, 1}}, Clip(1e-3), 400, seeded()); !math.IsNaN(kappa[0].Low) {
		t.Errorf("one case has the interval %v", kappa[0])
	}
	// Only the third case connects c: without it, in 8 of 27 resamples, nothing is ranked.
	nan := math.NaN()
	kappa, rank = FuseIntervals([][]float64{{2, 1, nan}, {2, 1, nan}, {3, 2, 1}}, Clip(1e-3), 400, seeded())
	if math.IsNaN(kappa[0].Low) || rank[0] != (Interval{1, 1}) || rank[2] != (Interval{3, 3}) {
		t.Errorf("κ in %v, rank in %v", kappa, rank)
	}
	q := draw(seeded(), 26, 6)
	kappa, rank = FuseIntervals(q, Laplace, 1000, seeded())
	again, _ := FuseIntervals(q, Laplace, 1000, seeded())
	f := Fuse(q, Laplace)
	for p := range kappa {
		if kappa[p] != again[p] {
			t.Errorf("κ in %v and in %v with one seed", kappa[p], again[p])
		}
		if !(kappa[p].Low <= f.Kappa[p] && f.Kappa[p] <= kappa[p].High) || !(rank[p].Low <= rank[p].High) {
			t.Errorf("κ = %v, rank %d; intervals %v and %v", f.Kappa[p], f.Rank[p], kappa[p], rank[p])
		}
	}
}

func TestFuseLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		q := draw(r, 1+r.IntN(9), 2+r.IntN(6))
		f := Fuse(q, Clip(1e-3))

		// Any increasing function of a case's numbers leaves everything as it is.
		warped := make([][]float64, len(q))
		for c := range q {
			for _, x := range q[c] {
				warped[c] = append(warped[c], math.Exp(x)+float64(c))
			}
		}
		if g := Fuse(warped, Clip(1e-3)); !slices.Equal(f.Kappa, g.Kappa) {
			t.Fatalf("κ = %v, after an increasing map %v", f.Kappa, g.Kappa)
		}

		// Cases in another order: the same.
		shuffled := slices.Clone(q)
		r.Shuffle(len(q), func(a, b int) { shuffled[a], shuffled[b] = shuffled[b], shuffled[a] })
		if g := Fuse(shuffled, Clip(1e-3)); !slices.Equal(f.Kappa, g.Kappa) {
			t.Fatalf("κ = %v, with cases in another order %v", f.Kappa, g.Kappa)
		}

		// A method that is best everywhere is first.
		for c := range q {
			copy(warped[c], q[c])
			warped[c][0] = 2
		}
		if g := Fuse(warped, Clip(1e-3)); g.Rank[0] != 1 || slices.Contains(g.Rank[1:], 1) {
			t.Fatalf("the best everywhere has ranks %v", g.Rank)
		}

		// Methods in another order: the same numbers in that order, bit for bit.
		perm := r.Perm(len(q[0]))
		for c := range q {
			for i, p := range perm {
				warped[c][i] = q[c][p]
			}
		}
		g := Fuse(warped, Clip(1e-3))
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
		g = Fuse(warped, Clip(1e-3))
		for p := range f.Kappa {
			if !(math.Abs(g.Kappa[p]+f.Kappa[p]) <= 1e-12) {
				t.Fatalf("κ %v, reversed %v", f.Kappa, g.Kappa)
			}
		}
	}
}

func TestFuseTies(t *testing.T) {
	f := Fuse([][]float64{{1, 1, 0}, {2, 2, 1}}, Clip(0.01))
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

// BenchmarkFuse times the fusion of 26 cases of 2 to 64 methods, as figure 4 of the paper does.
func BenchmarkFuse(b *testing.B) {
	for _, methods := range []int{2, 4, 8, 16, 32, 64} {
		q := draw(rand.New(rand.NewPCG(5, 6)), 26, methods)
		b.Run(fmt.Sprint(methods), func(b *testing.B) {
			for b.Loop() {
				Fuse(q, Clip(1e-3))
			}
		})
	}
}
