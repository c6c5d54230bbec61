package stat

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

// within reports whether x is y within 1e-12, relative to y above 1.
func within(x, y float64) bool { return math.Abs(x-y) <= 1e-12*math.Max(1, math.Abs(y)) }

// TestScipy compares with what scipy, statsmodels and mpmath make of the same samples; testdata/samples.py
// made the file.
func TestScipy(t *testing.T) {
	b, err := os.ReadFile("testdata/samples.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Wilcoxon []struct {
			X            []float64
			Statistic, P float64
		}
		Counts []struct {
			A, B         []float64
			Statistic, P float64
		}
		Kendall []struct {
			X, Y []float64
			Tau  float64
		}
		Concordance []struct {
			X [][]float64
			W float64
		}
		Friedman []struct {
			X       [][]float64
			Rank    []float64
			Chi2, P float64
		}
		Nemenyi []struct {
			K, N                          int
			Alpha, CD, Difference, P, Far float64
			PFar                          float64
		}
		Holm   []struct{ P, Corrected []float64 }
		Effect []struct {
			X []float64
			D float64
		}
		Power []struct {
			Effect, Alpha, Power float64
			N                    int
		}
		Needed []struct {
			Effect, Alpha float64
			N             int
		}
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	compared := 0
	same := func(what string, i int, got, want float64) {
		t.Helper()
		if compared++; !within(got, want) {
			t.Errorf("%s %d: %.17g, want %.17g", what, i, got, want)
		}
	}
	for i, c := range want.Wilcoxon {
		w := Wilcoxon(c.X)
		same("Wilcoxon's T", i, w.Statistic(), c.Statistic)
		same("Wilcoxon's p", i, w.P, c.P)
	}
	for i, c := range want.Counts {
		for _, unit := range []float64{1, 7, 3, 10} { // scipy has the counts themselves
			a, b := slices.Clone(c.A), slices.Clone(c.B)
			for k := range a {
				a[k], b[k] = a[k]/unit, b[k]/unit
			}
			w := Wilcoxon(Differences(a, b))
			same("T of counts", i, w.Statistic(), c.Statistic)
			same("p of counts", i, w.P, c.P)
		}
	}
	for i, c := range want.Kendall {
		same("Kendall's τ", i, Kendall(c.X, c.Y), c.Tau)
	}
	for i, c := range want.Concordance {
		same("Kendall's W", i, concordance(c.X), c.W)
	}
	for i, c := range want.Friedman {
		f := Friedman(c.X)
		same("Friedman's χ²", i, f.Chi2, c.Chi2)
		same("Friedman's p", i, f.P, c.P)
		for p, r := range c.Rank {
			same("mean rank", i, f.Rank[p], r)
		}
	}
	for i, c := range want.Nemenyi {
		same("critical difference", i, CriticalDifference(c.K, c.N, c.Alpha), c.CD)
		same("Nemenyi's p", i, Nemenyi(c.Difference, c.K, c.N), c.P)
		if p := Nemenyi(-c.Far, c.K, c.N); !(math.Abs(p/c.PFar-1) <= 1e-9) { // small: its digits count
			t.Errorf("Nemenyi's p %d: %v, want %v", i, p, c.PFar)
		}
	}
	for i, c := range want.Holm {
		for k, p := range Holm(c.P) {
			same("Holm's p", i, p, c.Corrected[k])
		}
	}
	for i, c := range want.Effect {
		same("d_z", i, CohenD(c.X), c.D)
	}
	for i, c := range want.Power {
		same("power", i, PairedPower(c.Effect, c.N, c.Alpha), c.Power)
	}
	for i, c := range want.Needed {
		same("needed", i, Needed(c.Effect, c.Alpha, 0.8), float64(c.N))
	}
	if compared != 187 {
		t.Errorf("compared %d numbers", compared)
	}
}

// concordance returns Kendall's W, the agreement of several rankings with each other, corrected for ties, of
// Friedman's χ²: W = χ²/(m(k−1)) (Kendall & Babington Smith 1939).
func concordance(values [][]float64) float64 {
	t := Friedman(values)
	return t.Chi2 / (float64(t.Blocks) * float64(len(t.Rank)-1))
}
