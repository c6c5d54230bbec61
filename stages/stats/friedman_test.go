package stats

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

func TestFriedman(t *testing.T) {
	p := &FriedmanParams{Rank: "method", Alpha: 0.05}
	table, answer := run(t, Friedman, p, eight(stages.Higher)...)
	// As scipy.stats.friedmanchisquare and studentized_range(3, ∞); 3.3145/√2 · √(3·4/(6·8)) = 1.172.
	same(t, "the table", text(table), `a | 1.38 1.172 NaN 8 12.25 0.0022
c | 1.62 1.172 0.8713 8 12.25 0.0022
b | 3.00 1.172 0.0033 8 12.25 0.0022
`)
	same(t, "the answer", answer, "**a** has the best mean rank of 3, 1.38 over 8 images. The ranks differ "+
		"more than chance explains (Friedman, χ² = 12.2, p = 0.0022). Can't be told apart (Nemenyi, "+
		"α = 0.05, critical difference 1.17): **a** and **c**.\n")
	two, answer := run(t, Friedman, p, append(eight(stages.Higher, "metric", "x"),
		eight(stages.Lower, "metric", "y")...)...)
	if !strings.Contains(answer, "1.38 over 16 blocks (images in 2 cases)") || two.Rows[0].Keys[0] != "a" {
		t.Errorf("%s\n%s", text(two), answer)
	}
}

func TestFriedmanUndefined(t *testing.T) {
	p := &FriedmanParams{Rank: "method", Alpha: 0.05}
	const up = stages.Higher
	for want, cells := range map[string][]stages.Data{
		"Only **a** competes": {cell(up, []float64{1, 2}, "method", "a")},
		"All 2 have equal scores on every image.": {cell(up, []float64{1, 2}, "method", "a"),
			cell(up, []float64{1, 2}, "method", "b")},
		"Nothing can be ranked": {cell(up, []float64{nan}, "method", "a"),
			cell(up, []float64{nan}, "method", "b")},
		"Left out, without a common direction or image: y.": {
			cell(up, []float64{1, 2}, "method", "a", "metric", "x"),
			cell(up, []float64{1, 3}, "method", "b", "metric", "x"),
			cell(up, []float64{1, 2}, "method", "a", "metric", "y")},
		"Without a defined score: c.": {cell(up, []float64{1, 2}, "method", "a"),
			cell(up, []float64{1, 3}, "method", "b"), cell(up, []float64{nan, nan}, "method", "c")},
	} {
		if table, answer := run(t, Friedman, p, cells...); !strings.Contains(answer, want) {
			t.Errorf("%q isn't in %s\n%s", want, answer, text(table))
		}
	}
}
