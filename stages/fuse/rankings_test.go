package fuse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

func compared(t *testing.T, cells ...stages.Data) stagetest.Result {
	t.Helper()
	p := &RankingsParams{defaults()}
	p.Rank = "method"
	return stagetest.Run(t, Rankings, p, map[string][]stages.Data{"scores": cells})
}

// TestRankings compares five fusions by hand, Bradley and Terry's with another algorithm for it (Hunter's
// MM).
func TestRankings(t *testing.T) {
	var cells []stages.Data
	for k := range 8 {
		for i, m := range []string{"a", "b", "c"} {
			x := float64(i)
			if i == 0 && k < 7 {
				x = 3
			}
			cells = append(cells, cell(stages.Higher, []float64{x, x}, "method", m, "seed", fmt.Sprint(k)))
		}
	}
	// In seed 7 the order is c, b, a; in the others a, c, b: c beats b always, a both 7 times of 8.
	r := compared(t, cells...)
	if got, want := text(table(t, r, "ranking")), `c | 1 2 2.0 2 2 1.6536 0.5625 0.2249 0.5000 8 16 0
a | 2 1 1.0 1 1 1.2973 0.8750 1.2252 1.0000 8 16 0
b | 3 3 3.0 3 3 -2.9509 0.0625 -1.4500 0.0000 8 16 0
`; got != want {
		t.Errorf("ranking\n%swant\n%s", got, want)
	}
	if got, want := text(table(t, r, "agreement")), `meta-rank borda | 0.33
meta-rank kemeny | 0.33
borda kemeny | 1.00
meta-rank bradley-terry | 0.33
borda bradley-terry | 1.00
kemeny bradley-terry | 1.00
meta-rank copeland | 0.33
borda copeland | 1.00
kemeny copeland | 1.00
bradley-terry copeland | 1.00
`; got != want {
		t.Errorf("agreement\n%swant\n%s", got, want)
	}
	says(t, r, "**c** is first by Meta-Rank; **a** is first by Borda, Kemeny, Bradley–Terry, Copeland, "+
		"of 3 methods in 8 cases (seed), each over 2 images. Their orders have a mean Kendall τ of 0.73; "+
		"Meta-Rank and Borda agree least (0.33).\n")
	present := RankingsParams{}
	got := Rankings.HooksOf(&present).Present(string(r.Payloads["answer"][0]),
		map[string]stages.Table{"ranking": table(t, r, "ranking")})
	if !strings.HasPrefix(got, "No answer: with 2 images no difference of 3 methods can be confirmed, "+
		"however large; it takes at least 7.\n\nWhat follows describes these images alone. **c** is "+
		"first") {
		t.Error(got)
	}
}

func TestRankingsAgree(t *testing.T) {
	var cells []stages.Data
	for i := range 16 {
		cells = append(cells, cell(stages.Lower, []float64{float64(i)}, "method", fmt.Sprintf("m%02d", i)))
	}
	cells = append(cells, cell(stages.Lower, []float64{nan}, "method", "zero"))
	r := compared(t, cells...)
	says(t, r, "All 5 fusions put **m00** first, of 16 methods in one case, over 1 image. They agree on "+
		"the whole order. Kemeny's order isn't exact, but a local optimum: more than 14 methods compete. "+
		"Not ranked: **zero** (all 1 scores are undefined).\n")
	if got := text(table(t, r, "ranking")); !strings.HasPrefix(got, "m00 | 1 1 1.0 1 1 ") ||
		!strings.Contains(got, "\nm15 | 16 16 16.0 16 16 ") ||
		!strings.HasSuffix(got, "\nzero | NaN NaN NaN NaN NaN NaN NaN NaN NaN 0 0 1\n") {
		t.Error(got)
	}
	says(t, compared(t, cells[16]), "No case compares two methods: there is nothing to rank. Left out: "+
		"(the only one) (no score is defined). Not ranked: **zero** (all 1 scores are undefined).\n")
}
