package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// orders calls f with every order of m methods.
func orders(m int, f func(order []int)) {
	var add func(order []int)
	add = func(order []int) {
		if len(order) == m {
			f(order)
		}
		for p := range m {
			if !slices.Contains(order, p) {
				add(append(slices.Clone(order), p))
			}
		}
	}
	add(nil)
}

// contradictions counts the comparisons that an order contradicts.
func contradictions(wins [][]float64, order []int) (sum float64) {
	for i, p := range order {
		for _, q := range order[i+1:] {
			sum += wins[q][p]
		}
	}
	return sum
}

// absent sets some qualities to NaN.
func absent(r *rand.Rand, q [][]float64, share float64) [][]float64 {
	for c := range q {
		for p := range q[c] {
			if r.Float64() < share {
				q[c][p] = math.NaN()
			}
		}
	}
	return q
}

// TestKemenyIsOptimal compares with all orders of few methods.
func TestKemenyIsOptimal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	several := 0
	for range 60 {
		m := 1 + r.IntN(6)
		wins := Wins(absent(r, draw(r, 1+r.IntN(5), m), 0.1))
		least, n, want := math.Inf(1), 0.0, make([]float64, m)
		orders(m, func(order []int) {
			c := contradictions(wins, order)
			if c < least {
				least, n, want = c, 0, make([]float64, m)
			}
			if c == least {
				n++
				for i, p := range order {
					want[p] += float64(i + 1)
				}
			}
		})
		if n > 1 {
			several++
		}
		got, exact := Kemeny(wins)
		for p := range want {
			if !exact || !(math.Abs(got[p]-want[p]/n) <= 1e-12) {
				t.Fatalf("places %v, over all %v best orders %v", got, n, want)
			}
		}
	}
	if several == 0 {
		t.Error("no draw has several best orders")
	}
}

// TestKemenyOfMany checks the local search: where cases agree it finds their order, and no single move
// improves on what it finds.
func TestKemenyOfMany(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	m := KemenyExact + 6
	first := r.Perm(m)
	agreed := make([]float64, m)
	for i, p := range first {
		agreed[p] = float64(-i)
	}
	places, exact := Kemeny(Wins([][]float64{agreed, agreed}))
	for i, p := range first {
		if exact || places[p] != float64(i+1) {
			t.Fatalf("places %v of the order %v, exact %v", places, first, exact)
		}
	}
	wins := Wins(draw(r, 5, m))
	places, _ = Kemeny(wins)
	order := make([]int, m)
	for p, place := range places {
		order[int(place)-1] = p
	}
	found := contradictions(wins, order)
	for from := range order {
		for to := range order {
			moved := slices.Delete(slices.Clone(order), from, from+1)
			moved = slices.Insert(moved, to, order[from])
			if c := contradictions(wins, moved); c < found {
				t.Fatalf("moving place %d to %d contradicts %v, the order found %v", from+1, to+1, c, found)
			}
		}
	}
}

// TestBradleyTerry checks the equations of the maximum: each method wins as often as is expected of it.
func TestBradleyTerry(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 40 {
		m := 2 + r.IntN(7)
		q := absent(r, draw(r, 2+r.IntN(25), m), 0.2)
		wins := Wins(append(q, draw(r, 1, m)...)) // of one part, since the last case has every method
		theta := BradleyTerry(wins)
		sum := 0.0
		for p := range m {
			sum += theta[p]
			won, expected := 0.0, 0.0
			for k := range m {
				if n := wins[p][k] + wins[k][p]; n > 0 {
					won += wins[p][k] + 0.5
					expected += (n + 1) * math.Exp(theta[p]) / (math.Exp(theta[p]) + math.Exp(theta[k]))
				}
			}
			if !(math.Abs(won-expected) <= 1e-6) {
				t.Fatalf("method %d wins %v, expected of θ = %v are %v", p, won, theta, expected)
			}
		}
		if !(math.Abs(sum) <= 1e-6) {
			t.Fatalf("θ sums to %v", sum)
		}
	}
	// Two methods have a closed form.
	if got, want := BradleyTerry([][]float64{{0, 3}, {1, 0}})[0],
		math.Log(3.5/1.5)/2; math.Abs(got-want) > 1e-9 {
		t.Errorf("θ = %v, want %v", got, want)
	}
}

// TestBordaAndCopeland compares both by hand: a beats b twice of three times and both beat c always, which
// misses one case.
func TestBordaAndCopeland(t *testing.T) {
	wins := Wins([][]float64{{3, 2, 1}, {3, 2, math.NaN()}, {2, 3, 1}, {1, 1, 1}})
	for p, want := range []float64{(2.5 + 2.5) / 7, (1.5 + 2.5) / 7, 1.0 / 6} {
		if got := Borda(wins)[p]; !(math.Abs(got-want) <= 1e-15) {
			t.Errorf("method %d has Borda's share %v, want %v", p, got, want)
		}
	}
	if got := Copeland(wins); !slices.Equal(got, []float64{1, 0.5, 0}) {
		t.Errorf("Copeland's shares are %v", got)
	}
	if got := Copeland(Wins([][]float64{{1, 1}, {1, math.NaN()}})); !slices.Equal(got, []float64{0.5, 0.5}) {
		t.Errorf("Copeland's shares of equals are %v", got)
	}
}

// TestRankingLaws checks for every fusion: the order of cases and of methods doesn't matter, nor does an
// increasing function of a case's numbers, and what is best everywhere is first.
func TestRankingLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	fusions := map[string]func(wins [][]float64) []float64{
		"borda": Borda, "copeland": Copeland, "bradley-terry": BradleyTerry,
		"kemeny": func(wins [][]float64) []float64 {
			places, _ := Kemeny(wins)
			for p := range places {
				places[p] = -places[p]
			}
			return places
		},
	}
	for name, fusion := range fusions {
		for range 20 {
			q := draw(r, 2+r.IntN(8), 2+r.IntN(6))
			want := fusion(Wins(q))
			perm := r.Perm(len(q[0]))
			other := make([][]float64, len(q))
			for c, to := range r.Perm(len(q)) {
				other[to] = make([]float64, len(q[c]))
				for i, p := range perm {
					other[to][i] = math.Exp(q[c][p]) + float64(c)
				}
			}
			got := fusion(Wins(other))
			for i, p := range perm {
				if !(math.Abs(got[i]-want[p]) <= 1e-8) {
					t.Fatalf("%s: %v, in another order %v", name, want, got)
				}
			}
			for c := range q {
				q[c][0] = 2
			}
			if places := Places(fusion(Wins(q))); places[0] != 1 || slices.Contains(places[1:], 1) {
				t.Fatalf("%s: the best everywhere has the places %v", name, places)
			}
		}
	}
}
