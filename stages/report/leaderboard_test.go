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
	// Insertion is ranked over three images: ig 0.6, rise 0.6, random 0.2.
	want := `method|mean rank|first|deletion|insertion|time|n|undefined
rise|1.25|2|0.15|0.5|9|1|0
ig|1.75|1|0.4|0.6|3|1|1
random|3|0|0.7|0.375|-|4|0
`
	if diff := cmp.Diff(want, text(decodeTable(t, r, "leaderboard"))); diff != "" {
		t.Error(diff)
	}
	// behind of random in insertion: 0.4 on each of three images, so no spread. deletion, ig − rise: 0.4,
	// 0.2, 0.2, 0.2: mean 0.25, deviation 0.1, t(0.975, 3) = 3.1824, half width 0.15912.
	want = `metric|method|mean|low|high|n|undefined|rank|behind|behind low|behind high|paired n
deletion|ig|0.4|0.2701|0.5299|4|0|2|0.25|0.09088|0.4091|4
deletion|random|0.7|0.5701|0.8299|4|0|3|0.55|0.3909|0.7091|4
deletion|rise|0.15|0.05813|0.2419|4|0|1|0|0|0|4
insertion|ig|0.6|0.3516|0.8484|3|1|1.5|0|0|0|3
insertion|random|0.375|-0.1969|0.9469|4|0|3|0.4|0.4|0.4|3
insertion|rise|0.5|0.1563|0.8437|4|0|1.5|0|0|0|3
time|ig|3|-|-|1|0|-|-|-|-|0
time|rise|9|-|-|1|0|-|-|-|-|0
`
	if diff := cmp.Diff(want, text(decodeTable(t, r, "details"))); diff != "" {
		t.Error(diff)
	}
	wantAnswer := "**rise** has the best mean rank of 3, 1.25 over 2 cases (metric), ahead of **ig** with " +
		"1.75. " +
		"In deletion, **rise** leads **ig** by 0.25 [0.0909, 0.409], more than chance explains (95 % " +
		"interval, paired over 4 images). " +
		"In insertion, **ig** and **rise** tie first. " +
		"1 of 26 scores is undefined; ranks use the images that have a score of every competitor. Not " +
		"ranked: time.\n"
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
			"**b** is best of 2, ahead of **a**. It leads **a** by 1.02 ["},
		"chance":    {[]stages.Data{at("a", 1, 9), at("b", 2, 9)}, "which chance alone may explain"},
		"equal":     {[]stages.Data{at("a", 1, 2), at("b", 2, 1)}, "All 2 come out equal in the one case."},
		"one image": {[]stages.Data{at("a", 1), at("b", 2)}, "It leads **a** by 1, on one image."},
		"two leaders": {[]stages.Data{at("a", 1), at("b", 2), at("c", 2)},
			"**b** and **c** tie first of 3.\n"},
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
			v := []float64{1, 2, 3}
			if m == "b" && c != "s" {
				v = []float64{2, 3.1, 4}
			}
			many = append(many, scoresOf(up, []string{"case", c, "method", m}, v...))
		}
	}
	r := stagetest.Run(t, Leaderboard, nil, map[string][]stages.Data{"scores": many})
	if got := string(r.Payloads["answer"][0]); !strings.Contains(got,
		"more than chance explains in 3 of 4 cases") {
		t.Errorf("got %q", got)
	}
	refuses(t, Leaderboard, &LeaderboardParams{Rank: "model"}, map[string][]stages.Data{"scores": contest()},
		`the axis "model" isn't collapsed, only method, metric`)
}
