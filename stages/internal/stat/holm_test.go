package stat

import (
	"fmt"
	"math"
	"testing"
)

func TestHolm(t *testing.T) {
	for _, c := range []struct{ p, want []float64 }{
		{nil, []float64{}},
		{[]float64{0.01, nan, 0.04}, []float64{0.02, nan, 0.04}}, // what isn't tested doesn't count
		{[]float64{0.03, 0.03, 0.9}, []float64{0.09, 0.09, 0.9}},
		{[]float64{0.5, 0.8}, []float64{1, 1}},
	} {
		if got := Holm(c.p); fmt.Sprintf("%.12g", got) != fmt.Sprintf("%.12g", c.want) {
			t.Errorf("Holm(%v) = %v, want %v", c.p, got, c.want)
		}
	}
}

func TestWilcoxonRules(t *testing.T) {
	for _, c := range []struct {
		d    []float64
		n    int
		p    float64
		size float64
	}{
		{nil, 0, nan, nan},
		{[]float64{0, 0}, 0, 1, nan},
		{[]float64{1}, 1, 1, 1},
		{[]float64{1, nan}, 2, nan, nan},
		{[]float64{-1, -2, -3, -4, -5, -6}, 6, 2.0 / 64, -1},
	} {
		w := Wilcoxon(c.d)
		if got, want := fmt.Sprint(w.N, w.P, w.Effect()), fmt.Sprint(c.n, c.p, c.size); got != want {
			t.Errorf("%v: n, p and effect %s, want %s", c.d, got, want)
		}
	}
	for alpha, want := range map[float64]int{0.05: 6, 0.0625: 5, 0.01: 8} {
		if got := LeastPairs(alpha); got != want {
			t.Errorf("α = %v takes %d pairs, want %d", alpha, got, want)
		}
	}
	if n := Needed(0, 0.05, 0.8); !math.IsNaN(n) {
		t.Errorf("no effect needs %v pairs", n)
	}
	if n := Needed(50, 0.05, 0.8); n != 6 { // fewer can't reject
		t.Errorf("a huge effect needs %v pairs, want 6", n)
	}
}

func TestAlike(t *testing.T) {
	rank := []float64{3.1, 1, 2, 2.9}
	for critical, want := range map[float64]string{
		0.1: "[]", 0.5: "[[3 0]]", 1: "[[2 3] [3 0]]", 1.2: "[[1 2] [2 3 0]]", 3: "[[1 2 3 0]]",
	} {
		if got := fmt.Sprint(Alike(rank, critical)); got != want {
			t.Errorf("critical difference %v: %s, want %s", critical, got, want)
		}
	}
}
