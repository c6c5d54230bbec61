package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

func contest() []stages.Data {
	up := stages.Measure{Unit: "probability", Direction: stages.Higher, High: 1, Tolerance: 1e-3}.Facts(nil)
	down := stages.Measure{Direction: stages.Lower}.Facts(nil)
	none := stages.Measure{}.Facts(nil)
	return []stages.Data{
		scoresOf(up, []string{"method", "ig", "metric", "insertion"}, 0.5, 0.6, 0.7, nan),
		scoresOf(up, []string{"method", "random", "metric", "insertion"}, 0.1, 0.2, 0.3, 0.9),
		scoresOf(up, []string{"method", "rise", "metric", "insertion"}, 0.5, 0.6, 0.7, 0.2),
		scoresOf(down, []string{"method", "ig", "metric", "deletion"}, 0.5, 0.4, 0.3, 0.4),
		scoresOf(down, []string{"method", "random", "metric", "deletion"}, 0.8, 0.7, 0.6, 0.7),
		scoresOf(down, []string{"method", "rise", "metric", "deletion"}, 0.1, 0.2, 0.1, 0.2),
		scoresOf(none, []string{"method", "ig", "metric", "time"}, 3),
		scoresOf(none, []string{"method", "rise", "metric", "time"}, 9),
	}
}

func TestLeaderboard(t *testing.T) {
	r := stagetest.Run(t, Leaderboard, nil, map[string][]stages.Data{"scores": contest()})
	// Insertion is ranked over three images: ig 0.6, rise 0.6, random 0.2. Insertion is ranked over three
	// images: ig 0.6, rise 0.6, random 0.2. Nothing is confirmed with so few.
	want := `method|mean rank|first|deletion|deletion not confirmed|insertion|insertion not confirmed|time|n|undefined
rise|1.25|2|0.15|1|0.5|1|9|1|0
ig|1.75|1|0.4|1|0.6|1|3|1|1
random|3|0|0.7|1|0.375|1|-|4|0
`
	if diff := cmp.Diff(want, text(decodeTable(t, r, "leaderboard"))); diff != "" {
		t.Error(diff)
	}
	// behind of random in insertion: 0.4 on each of three images, so no spread. deletion, ig − rise: 0.4,
	// 0.2, 0.2, 0.2: their signs are equal in 2 of 16 cases, times three pairs.
	want = `metric|method|mean|low|high|n|undefined|rank|behind|behind low|behind high|common mean|common n|p|p n
deletion|ig|0.4|0.3|0.5|4|0|2|0.25|0.2|0.4|0.4|4|0.375|4
deletion|random|0.7|0.6|0.8|4|0|3|0.55|0.5|0.7|0.7|4|0.375|4
deletion|rise|0.15|0.1|0.2|4|0|1|0|0|0|0.15|4|-|0
insertion|ig|0.6|0.5|0.7|3|1|1.5|0|0|0|0.6|3|-|0
insertion|random|0.375|0.1|0.9|4|0|3|0.4|0.4|0.4|0.2|3|0.75|3
insertion|rise|0.5|0.2|0.7|4|0|1.5|0|0|0|0.6|3|1|3
time|ig|3|-|-|1|0|-|-|-|-|-|0|-|0
time|rise|9|-|-|1|0|-|-|-|-|-|0|-|0
`
	if diff := cmp.Diff(want, text(decodeTable(t, r, "details"))); diff != "" {
		t.Error(diff)
	}
	wantAnswer := "**rise** ranks first in 2 of 2 cases (metric), with the best mean rank of 3, 1.25; " +
		"none can be told apart from the next. In deletion, **rise** leads **ig** by 0.25 " +
		"[0.2, 0.4] over 4 images, not confirmed (p = 0.38, n = 4). In insertion, **ig** and " +
		"**rise** tie first. With 3 to 4 images no difference can be confirmed, however large: it " +
		"takes at least 7. Brackets are the 95 % interval over images (BCa) of the paired " +
		"difference. Of fewer than 24 images intervals are too short: of 5 they hold the true mean in 82 " +
		"to 92 of 100 simulated experiments, and in 56 where scores are 0 or 1; where all scores are equal " +
		"they have no width. p is of Wilcoxon's signed-rank test, corrected by Holm for all pairs in " +
		"a case; at most 0.05 confirms. 1 of 26 scores is undefined; ranks use the images " +
		"that have a score of every competitor. Not ranked: time.\n"
	if diff := cmp.Diff(wantAnswer, string(r.Payloads["answer"][0])); diff != "" {
		t.Error(diff)
	}
	if r.Facts["answer"]["ext"] != "md" {
		t.Error("the answer doesn't say that it's Markdown")
	}
}

// TestLeaderboardLaws checks that ranks don't depend on the order of cells or on constant offsets of all
// scores.
func TestLeaderboardLaws(t *testing.T) {
	cells := contest()
	want := stagetest.Run(t, Leaderboard, nil, map[string][]stages.Data{"scores": cells})
	for i, j := 0, len(cells)-1; i < j; i, j = i+1, j-1 {
		cells[i], cells[j] = cells[j], cells[i]
	}
	got := stagetest.Run(t, Leaderboard, nil, map[string][]stages.Data{"scores": cells})
	if diff := cmp.Diff(want.Payloads, got.Payloads); diff != "" {
		t.Error(diff)
	}
}

func TestLeaderboardAnswers(t *testing.T) {
	up := stages.Measure{Direction: stages.Higher}.Facts(nil)
	at := func(method string, v ...float64) stages.Data {
		return scoresOf(up, []string{"method", method}, v...)
	}
	for name, tc := range map[string]struct {
		cells []stages.Data
		want  string
	}{
		"one": {[]stages.Data{at("ig", 1, 2)}, "Only **ig** competes"},
		"two": {[]stages.Data{at("a", 1, 2, 1, 2), at("b", 2, 3.1, 2, 3)},
			"**b** ranks first of 2, ahead of **a**; **b** and **a** (p = 0.12) can't be told apart. It " +
				"leads **a** by 1.02 [1, 1.1] over 4 images, not confirmed (p = 0.12, n = 4)."},
		"confirmed": {[]stages.Data{at("a", 1, 2, 1, 2, 1, 2), at("b", 2, 3, 2, 3, 2, 3.1)},
			"; they can be told apart. It leads **a** by 1.02 [1, 1.08] over 6 images, confirmed (p = " +
				"0.031, n = 6)."},
		"chance": {[]stages.Data{at("a", 1, 9), at("b", 2, 9)},
			"[0, 1] over 2 images, not confirmed (p = 1, n = 2)"},
		"equal":     {[]stages.Data{at("a", 1, 2), at("b", 2, 1)}, "All 2 come out equal in the one case."},
		"one image": {[]stages.Data{at("a", 1), at("b", 2)}, "It leads **a** by 1, on one image."},
		"two leaders": {[]stages.Data{at("a", 1), at("b", 2), at("c", 2)},
			"**b** and **c** tie first of 3; none can be told apart from the next."},
		"undefined": {[]stages.Data{at("a", nan), at("b", 2)}, "Nothing can be ranked: in none of 1 case"},
	} {
		r := stagetest.Run(t, Leaderboard, nil, map[string][]stages.Data{"scores": tc.cells})
		if got := string(r.Payloads["answer"][0]); !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	var many []stages.Data
	for _, c := range []string{"p", "q", "r", "s"} {
		for _, m := range []string{"a", "b"} {
			v := []float64{1, 2, 3, 4, 5, 6, 7, 8}
			if m == "b" && c != "s" {
				v = []float64{2, 3.1, 4, 5, 6, 7, 8.3, 9.4}
			}
			many = append(many, scoresOf(up, []string{"case", c, "method", m}, v...))
		}
	}
	r := stagetest.Run(t, Leaderboard, nil, map[string][]stages.Data{"scores": many})
	if got := string(r.Payloads["answer"][0]); !strings.Contains(got,
		"**b** ranks first in 4 of 4 cases (case), with the best mean rank of 2, 1.12; they can "+
			"be told apart in some case. The lead of the best over the second is confirmed in 3 of 4 "+
			"cases.") {
		t.Errorf("got %q", got)
	}
	// The only case shows its intervals.
	r = stagetest.Run(t, Leaderboard, nil, map[string][]stages.Data{"scores": {at("a", 1, 2, 3, 4),
		at("e", 1, 2.5, 3, 4)}})
	if got := text(decodeTable(t, r, "leaderboard")); !strings.HasPrefix(got,
		"method|mean rank|first|mean|mean not confirmed|low|high|n|undefined\n"+
			"e|1|1|2.625|1|1|4|4|0\n") {
		t.Error(got)
	}
	// All sentences have labels, of competitors and of cases.
	params := Leaderboard.NewParams().(*LeaderboardParams)
	params.Claims = []string{"b > a where case=p"}
	_, _, answer := shownAs(t, Leaderboard, params, map[string][]stages.Data{"scores": many[:4]}, nil,
		stages.Names{"case": {"p": "Case P", "q": "Case Q"}, "method": {"a": "Method A", "b": "Method B"}},
		nil, "answer")
	if got := string(answer); strings.Contains(got, "**a**") || strings.Contains(got, "**b**") ||
		!strings.Contains(got, "**Method B** ranks first in 2 of 2 cases") ||
		!strings.Contains(got, "In Case Q, **Method B** leads **Method A** by") ||
		!strings.Contains(got, "(case Case P)") {
		t.Error(got)
	}
	refuses(t, Leaderboard, &LeaderboardParams{Rank: "model"}, map[string][]stages.Data{"scores": contest()},
		`the axis "model" isn't collapsed, only method, metric`)
}
