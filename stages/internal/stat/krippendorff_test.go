package stat

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/runexp/runexp/stages/internal/golden"
)

// goldens of irr_icr.npz, of three or seven methods.
var irrSets = []string{"0", "1", "2", "3", "4"}

// TestGoldenKrippendorff compares α with that of the code of MAS, on its orders and on ranks, and with that
// of the reference implementation by which it should divide.
func TestGoldenKrippendorff(t *testing.T) {
	arrays := golden.Arrays(t, "testdata/irr_icr.npz")
	same := func(key string, got float64) {
		t.Helper()
		if want := arrays[key].Float64s()[0]; !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("%s: α = %v, want %v", key, got, want)
		}
	}
	for _, set := range irrSets {
		orders := rows(arrays["order_a"+set])
		ranks := make([][]float64, len(orders))
		for i := range orders {
			ranks[i] = places(orders[i])
		}
		same("irr_order_a"+set, KrippendorffOfficial(transposed(orders)))
		same("irr_rank_a"+set, KrippendorffOfficial(transposed(ranks)))
		same("grrrr_alpha_interval_"+set, Krippendorff(transposed(orders), IntervalLevel))
		same("grrrr_alpha_interval_rank_"+set, Krippendorff(transposed(ranks), IntervalLevel))
		a, b := transposed(rows(arrays["scores_a"+set])), transposed(rows(arrays["scores_b"+set]))
		same("imr_"+set, Spearman(a[0], b[0]))
	}
	same("perfect_irr", KrippendorffOfficial(transposed(rows(arrays["perfect_order"]))))
}

// TestKrippendorffReference compares all distances, with and without missing values, with a package.
func TestKrippendorffReference(t *testing.T) {
	b, err := os.ReadFile("testdata/krippendorff.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name                       string
		Units                      [][]*float64
		Nominal, Ordinal, Interval float64
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		var units [][]float64
		for _, u := range c.Units {
			values := make([]float64, len(u))
			for i, v := range u {
				values[i] = nan
				if v != nil {
					values[i] = *v
				}
			}
			units = append(units, values)
		}
		for level, want := range map[Level]float64{NominalLevel: c.Nominal, OrdinalLevel: c.Ordinal,
			IntervalLevel: c.Interval} {
			if got := Krippendorff(units, level); !(math.Abs(got-want) <= 1e-12) {
				t.Errorf("%s: %s α = %v, want %v", c.Name, level, got, want)
			}
		}
	}
}

func TestKrippendorffLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		images, methods := 2+r.IntN(20), 2+r.IntN(5)
		units := make([][]float64, methods)
		for range images {
			for rank, m := range r.Perm(methods) {
				units[m] = append(units[m], float64(rank))
			}
		}
		interval := Krippendorff(units, IntervalLevel)
		// Every rank is given as often: mean ranks of all values are a linear function of them.
		if ordinal := Krippendorff(units, OrdinalLevel); !(math.Abs(ordinal-interval) <= 1e-12) {
			t.Errorf("ordinal α = %v, interval %v", ordinal, interval)
		}
		// The official denominator: 1 − α shrinks by (m−1)/m.
		want := 1 - (1-interval)*float64(images-1)/float64(images)
		if official := KrippendorffOfficial(units); !(math.Abs(official-want) <= 1e-12) {
			t.Errorf("official α = %v, want %v", official, want)
		}
	}
	if a := Krippendorff([][]float64{{1, 1}, {1, 1}}, IntervalLevel); !math.IsNaN(a) {
		t.Errorf("α = %v of equal values, want NaN", a)
	}
	if a := KrippendorffOfficial([][]float64{{1, 1}, {1, 1}}); a != 1 {
		t.Errorf("official α = %v of equal values, want 1", a)
	}
	if a := Krippendorff([][]float64{{1, nan}, {nan, 2}}, NominalLevel); !math.IsNaN(a) {
		t.Errorf("α = %v without a pair, want NaN", a)
	}
	if a := Krippendorff([][]float64{{1, 1}, {2, 2}, {3, 3}}, OrdinalLevel); a != 1 {
		t.Errorf("α = %v of perfect agreement, want 1", a)
	}
}

// transposed swaps images and methods.
func transposed(in [][]float64) [][]float64 {
	out := make([][]float64, len(in[0]))
	for k := range out {
		for i := range in {
			out[k] = append(out[k], in[i][k])
		}
	}
	return out
}
