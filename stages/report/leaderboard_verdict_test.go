package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestNoAnswer: an answer begins by saying that there is none where nobody differs significantly from the
// best of a case, and why; an answer to claims stays first.
func TestNoAnswer(t *testing.T) {
	up := stages.Measure{Direction: stages.Higher}.Facts(nil)
	at := func(metric, method string, n int, score func(i int) float64) stages.Data {
		v := make([]float64, n)
		for i := range v {
			v[i] = score(i)
		}
		return scoresOf(up, []string{"method", method, "metric", metric}, v...)
	}
	even := func(i int) float64 { return float64(i % 2) }
	odd := func(i int) float64 { return float64(i%2)*-1 + 1.001 + float64(i)/1e4 }
	above := func(i int) float64 { return 2 + float64(i)/100 }
	board := func(n int, second func(int) float64) []stages.Data {
		return []stages.Data{at("mas", "a", n, even), at("mas", "b", n, second), at("rise", "a", n, even),
			at("rise", "b", n, odd)}
	}
	three := append(board(5, above), at("mas", "c", 5, above), at("rise", "c", 5, above))
	answered := []stages.Data{at("mas", "a", 6, even), at("mas", "b", 6, above), at("mas", "c", 6, above)}
	for _, c := range []struct {
		name   string
		cells  []stages.Data
		claims []string
		none   bool // correction
		want   string
		lacks  string
	}{
		{"too few", board(5, above), nil, false, "No answer: with 5 images no difference of 2 methods can " +
			"be confirmed, however large; it takes at least 6.\n\nWhat follows describes these images " +
			"alone. **b** ranks first in 2 of 2 cases",
			"With 5 images no"},
		{"nothing confirmed", board(8, odd), nil, false, "No answer: over 8 images none of 2 methods " +
			"differs significantly from the best in any of 2 cases.\n\nWhat follows describes these images " +
			"alone. **b** ranks first", ""},
		{"one case", board(8, odd)[:2], nil, false, "No answer: over 8 images none of 2 methods differs " +
			"significantly from the best.\n\nWhat follows describes these images alone. **b** ranks first " +
			"of 2", ""},
		{"one case confirms", board(8, above), nil, false, "**b** ranks first in 2 of 2 cases", "No answer"},
		{"without correction", three, nil, true, "No answer: with 5 images no difference of 3 methods can " +
			"be confirmed, however large; it takes at least 6.", "least 7"},
		{"corrected", three, nil, false, "No answer: with 5 images no difference of 3 methods can " +
			"be confirmed, however large; it takes at least 7.", ""},
		{"open claims", board(5, above), []string{"b > a where metric=mas"}, false,
			"No answer: with 5 images", ""},
		{"an answered claim", answered, []string{"b > a"}, false,
			"**b** has a larger mean (better) than **a**", ""},
		{"alone", board(5, above)[:1], nil, false, "Only **a** competes", "No answer"},
	} {
		p := Leaderboard.NewParams().(*LeaderboardParams)
		p.Rank, p.Claims = "method", c.claims
		if c.none {
			p.Correction = "none"
		}
		r := stagetest.Run(t, Leaderboard, p, map[string][]stages.Data{"scores": c.cells})
		tables := map[string]stages.Table{"details": decodeTable(t, r, "details"),
			"claims": decodeTable(t, r, "claims")}
		got := Leaderboard.HooksOf(p).Present(string(r.Payloads["answer"][0]), tables)
		if !strings.HasPrefix(got, c.want) || c.lacks != "" && strings.Contains(got, c.lacks) {
			t.Errorf("%s: got %q\nwant %q without %q", c.name, got, c.want, c.lacks)
		}
		if c.name == "an answered claim" && !strings.Contains(got, "\n\nNo answer: with 6 images no "+
			"difference of 3 methods can be confirmed, however large; it takes at least 7.\n\nWhat "+
			"follows ") {
			t.Errorf("%s: got %q", c.name, got)
		}
	}
}

// TestFamily: tests against the best alone are corrected for their number, need fewer images, and the answer
// and the marks tell which tests these are; the default is all pairs, and moves no key.
func TestFamily(t *testing.T) {
	up := stages.Measure{Direction: stages.Higher}.Facts(nil)
	var cells []stages.Data
	for k, method := range []string{"a", "b", "c", "d"} {
		v := make([]float64, 7)
		for i := range v {
			v[i] = 1/float64(k+1) + float64(i*(k+1))/1e3
		}
		cells = append(cells, scoresOf(up, []string{"method", method}, v...))
	}
	for family, want := range map[string]struct{ p, answer, marks string }{
		// Of 7 equal signs p is 2/2⁷ = 0.0156, times 6 pairs or 3 comparisons.
		"pairs": {"0.09375", "p is of Wilcoxon's signed-rank test, corrected by Holm for all pairs in a case",
			"Wilcoxon's signed-rank test at 0.05, corrected by Holm for all pairs"},
		"best": {"0.04688", "p is of Wilcoxon's signed-rank test, corrected by Holm for the comparisons " +
			"with the best of a case alone",
			"Wilcoxon's signed-rank test at 0.05, corrected by Holm for the comparisons with the best alone"},
	} {
		p := Leaderboard.NewParams().(*LeaderboardParams)
		if p.Family != "pairs" {
			t.Errorf("the default is %q", p.Family)
		}
		p.Rank, p.Family = "method", family
		r := stagetest.Run(t, Leaderboard, p, map[string][]stages.Data{"scores": cells})
		details := text(decodeTable(t, r, "details"))
		if got := strings.Count(details, "|"+want.p+"|7\n"); got != 3 {
			t.Errorf("%s: %d rows have p = %s:\n%s", family, got, want.p, details)
		}
		if got := string(r.Payloads["answer"][0]); !strings.Contains(got, want.answer) ||
			strings.Contains(got, "told apart") && family == "best" {
			t.Errorf("%s: %s", family, got)
		}
		hooks := Leaderboard.HooksOf(p)
		if hooks.Marks != want.marks {
			t.Errorf("%s: marks are by %s", family, hooks.Marks)
		}
		in := map[string]stages.Amount{"scores": {Items: 7, IDs: map[string]int{"method": 4}}}
		if nothing := hooks.Power(in).Nothing; nothing != (family == "pairs") {
			t.Errorf("%s: 7 images can confirm nothing: %v", family, nothing)
		}
	}
}

// TestNoAnswerToClaims: an answer to claims that no test can confirm begins with that, and no other.
func TestNoAnswerToClaims(t *testing.T) {
	up := stages.Measure{Direction: stages.Higher}.Facts(nil)
	for n, want := range map[int]string{
		3: "No answer: with 3 images no difference can be confirmed, however large; it takes at least 6, " +
			"and the counts are of directions alone.\n\nWhat follows describes these images alone. **a** " +
			"has a larger mean (better) than **b**: 1.0000 against 0.0000.\n",
		6: "**a** has a larger mean (better) than **b**: 1.0000 against 0.0000 (p = 0.031, n = 6). p is of",
	} {
		ones := slices.Repeat([]float64{1}, n)
		cells := []stages.Data{scoresOf(up, []string{"method", "a"}, ones...),
			scoresOf(up, []string{"method", "b"}, make([]float64, n)...)}
		p := &TableParams{Statistic: "mean", Rows: []string{"method"}, Correction: holm}
		p.Claims = []string{"a > b"}
		r := stagetest.Run(t, Table, p, map[string][]stages.Data{"values": cells})
		tables := map[string]stages.Table{"claims": decodeTable(t, r, "claims")}
		got := Table.HooksOf(p).Present(string(r.Payloads["answer"][0]), tables)
		if !strings.HasPrefix(got, want) {
			t.Errorf("%d images: got %q\nwant %q", n, got, want)
		}
	}
}

// TestPlainly: an answer doesn't contradict itself: neighbours that differ in a case are alike if p counts
// all cases, neighbours may differ in the other order, and a mean whose interval contains 0 isn't confirmed
// by ranks, which may even tell the opposite.
func TestPlainly(t *testing.T) {
	up := stages.Measure{Direction: stages.Higher}.Facts(nil)
	at := func(metric, method string, score func(i int) float64) stages.Data {
		v := make([]float64, 12)
		for i := range v {
			v[i] = score(i)
		}
		return scoresOf(up, []string{"method", method, "metric", metric}, v...)
	}
	base := func(i int) float64 { return float64(i) / 50 }
	more := func(x float64) func(i int) float64 {
		return func(i int) float64 { return base(i) + x*(1+float64(i)/100) }
	}
	rare := func(i int) float64 { // worse on all images but one
		if i == 0 {
			return 9
		}
		return base(i) - 0.1 - float64(i)/1000
	}
	nearly := func(i int) float64 { // rank sum 4 + 9, p of 0.042
		if i == 3 || i == 8 {
			return base(i) - 0.01*float64(i+1)
		}
		return base(i) + 0.01*float64(i+1)
	}
	for _, c := range []struct {
		name  string
		cells []stages.Data
		want  string
	}{
		{"opposite", []stages.Data{at("p", "a", base), at("p", "b", rare)}, "over 12 images, of which the " +
			"ranks differ significantly and the mean doesn't (p = 0.0"},
		{"alike", []stages.Data{at("p", "a", base), at("p", "b", more(0.1))}, "over 12 images, confirmed " +
			"(p = "},
		{"two cases, one of which confirms", []stages.Data{at("p", "a", base), at("p", "b", nearly),
			at("q", "a", base), at("q", "b", base)}, "can't be told apart if p counts all 2 cases. In p, " +
			"**b** leads"},
		{"the other order", []stages.Data{at("p", "a", base), at("p", "b", more(0.1)), at("p", "c",
			more(0.2)),
			at("q", "a", more(0.1)), at("q", "b", base), at("q", "c", more(0.2))},
			"**c** ranks first in 2 of 2"},
		{"all differ", []stages.Data{at("p", "a", base), at("p", "b", more(0.1)), at("q", "a", more(0.1)),
			at("q", "b", base), at("r", "a", base), at("r", "b", more(0.1))},
			"; they differ significantly in some case, whichever is better."},
	} {
		p := Leaderboard.NewParams().(*LeaderboardParams)
		r := stagetest.Run(t, Leaderboard, p, map[string][]stages.Data{"scores": c.cells})
		tables := map[string]stages.Table{"details": decodeTable(t, r, "details")}
		got := Leaderboard.HooksOf(p).Present(string(r.Payloads["answer"][0]), tables)
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q in it", c.name, got, c.want)
		}
	}
}
