package scores

import (
	"math/rand/v2"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/stat"
)

// TestPower: what n items can confirm, as the sentence before a run says it.
func TestPower(t *testing.T) {
	for _, c := range []struct {
		competitors, n int
		against        string
		noun, want     string
		atMost         bool
		by             []string
	}{
		{16, 12, Pairs, "", "12 images, 16 methods: nothing can be confirmed, however large; 13 confirm a " +
			"unanimous lead; about 87 a difference of half a standard deviation", false, nil},
		{16, 13, Pairs, "", "13 images, 16 methods: 13 confirm a unanimous lead; about 87 a difference of " +
			"half a standard deviation", false, nil},
		{16, 12, Best, "", "at most 12 images, 16 methods: 10 confirm a unanimous lead; about 65 a " +
			"difference of half a standard deviation", true, nil},
		{50, 300, Pairs, "", "300 images, 50 methods: enough to confirm a difference of half a standard " +
			"deviation (about 120)", false, nil},
		{50, 300, Pairs, "", "300 images in groups by class and size, 50 methods: 16 of a group confirm a " +
			"unanimous lead; about 120 of a group a difference of half a standard deviation", false,
			[]string{"class", "size"}},
		{2, 1, Pairs, "texts", "1 text, 2 methods: nothing can be confirmed, however large; 6 confirm a " +
			"unanimous lead; about 36 a difference of half a standard deviation", false, nil},
		{1, 5, Pairs, "", "", false, nil},
	} {
		got := Family{"method", c.competitors, c.against, true, 0.05}.Power(
			stages.Amount{Items: c.n, Noun: c.noun, AtMost: c.atMost}, c.by)
		if got.Text != c.want {
			t.Errorf("%d competitors, %d images:\n%s\nwant\n%s", c.competitors, c.n, got.Text, c.want)
		}
	}
}

// TestPowerIsThatOfTheTest: of as many normal differences as the family needs the signed-rank test confirms
// a mean of half a standard deviation in about 80 of 100 experiments, and of one fewer than the least it
// confirms none, however large.
func TestPowerIsThatOfTheTest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, competitors := range []int{2, 5, 16} {
		f := Family{"method", competitors, Pairs, true, 0.05}
		level := f.Level / float64(f.Tests())
		draw := func(n int, mean float64) bool {
			d := make([]float64, n)
			for i := range d {
				d[i] = mean + r.NormFloat64()
			}
			return stat.Wilcoxon(d).P <= level
		}
		const rounds = 2000
		hits := 0
		for range rounds {
			if draw(f.Needed(), half) {
				hits++
			}
		}
		// Three standard errors of 2,000 rounds are 0.027.
		share := float64(hits) / rounds
		t.Logf("%d competitors: %d images, power %.3f", competitors, f.Needed(), share)
		if share < power-0.03 || share > power+0.03 {
			t.Errorf("%d competitors: %d images confirm in %.3f of "+
				"experiments", competitors, f.Needed(), share)
		}
		if !draw(f.Least(), 100) || draw(f.Least()-1, 100) {
			t.Errorf("%d competitors: %d images aren't the least that confirm a unanimous "+
				"lead", competitors, f.Least())
		}
	}
}
