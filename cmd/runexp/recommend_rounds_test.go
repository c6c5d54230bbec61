package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
	"github.com/runexp/runexp/stages/stats"
)

// drawScores returns scores of candidates that differ by what lead gives alone: images are easy or hard
// for all.
func drawScores(r *rand.Rand, of []candidate, images int, lead func(k int) float64) map[string][]float64 {
	shared := make([]float64, images)
	for i := range shared {
		shared[i] = r.NormFloat64()
	}
	scores := map[string][]float64{}
	for k, c := range of {
		for i := range images {
			scores[c.id] = append(scores[c.id], 0.5+0.2*shared[i]+0.1*(r.NormFloat64()+lead(k)))
		}
	}
	return scores
}

// part returns the scores of some images.
func part(scores map[string][]float64, from, to int) map[string][]float64 {
	out := map[string][]float64{}
	for id, x := range scores {
		out[id] = x[from:to]
	}
	return out
}

// simulate plays a tournament on scores: rounds on the first half of the images, the test, of the control
// too, on images from held on. It returns the first of the rounds, and the finalists whose difference is
// confirmed.
func simulate(t *testing.T, of []candidate, scores map[string][]float64, held int) (string, []string) {
	t.Helper()
	const images = 20
	r, standings := round{len(of), 5}, []standing(nil)
	for ok := true; ok; {
		standings = ranked(of[:r.Candidates], part(scores, 0, r.Images), false)
		of = nil
		for _, s := range standings {
			of = append(of, s.candidate)
		}
		r, ok = next(r, make([]price, len(of)), images, time.Minute)
	}
	var data []stages.Data
	list := finalistsOf(standings, finalists)
	for _, s := range append(list, standing{candidate: candidate{id: control}}) {
		var payloads [][]byte
		for _, x := range scores[s.id][held : held+images] {
			payloads = append(payloads, stages.Scalar(x))
		}
		m := stages.Measure{Direction: stages.Higher, High: 1}
		d := stagetest.Items(m.Facts(nil), payloads...)
		d.Coord = []stages.Coord{{Axis: "method", ID: s.id}}
		data = append(data, d)
	}
	p := stats.Wilcoxon.NewParams().(*stats.WilcoxonParams)
	p.Among, p.Reference = "method", list[0].id
	out := stagetest.Run(t, stats.Wilcoxon, p, map[string][]stages.Data{"scores": data})
	table, err := stages.DecodeTable(out.Payloads["table"][0])
	if err != nil {
		t.Fatal(err)
	}
	var confirmed []string
	for _, row := range table.Rows {
		for k, c := range table.Numbers {
			if c.Name == "not confirmed" && row.Numbers[k] == 0 {
				confirmed = append(confirmed, row.Keys[0])
			}
		}
	}
	return list[0].id, confirmed
}

// numbered returns n candidates of n methods.
func numbered(n int) (of []candidate) {
	for k := range n {
		of = append(of, candidate{id: fmt.Sprintf("m%02d", k), method: fmt.Sprintf("m%02d", k)})
	}
	return of
}

// TestTournamentErrors holds what the report claims: of equal methods at most 5 of 100 tournaments
// confirm a difference, as the test has images that chose nothing. A test on the images that chose has
// many more, so that this test would notice it. Where one method leads, most tournaments find and confirm
// it.
func TestTournamentErrors(t *testing.T) {
	play := func(tournaments, candidates, held int, lead func(k int) float64) (some, all int) {
		for seed := range uint64(tournaments) {
			r := rand.New(rand.NewPCG(seed, 35))
			of := append(numbered(candidates), candidate{id: control})
			scores := drawScores(r, of, 40, lead)
			first, confirmed := simulate(t, of[:candidates], scores, held)
			if len(confirmed) > 0 {
				some++
			}
			if first == "m07" && len(confirmed) == finalists {
				all++
			}
		}
		return some, all
	}
	equal := func(int) float64 { return 0 }
	// Three standard deviations of 400 draws of 0.05 are 13.
	n, _ := play(400, 32, 20, equal)
	t.Logf("of equal methods %d of 400 tournaments confirm a difference", n)
	if n > 20+13 {
		t.Errorf("%d of 400 tournaments of equal methods confirm a difference", n)
	}
	n, _ = play(100, 256, 0, equal)
	t.Logf("on the images that chose, %d of 100 tournaments confirm a difference", n)
	if n < 15 {
		t.Errorf("on the images that chose, only %d of 100 tournaments confirm a difference", n)
	}
	if _, n := play(100, 32, 20, func(k int) float64 { return map[int]float64{7: 2.5}[k] }); n < 90 {
		t.Errorf("%d of 100 tournaments find the one method that is better", n)
	}
}

func TestSchedules(t *testing.T) {
	s, err := parseSchedule("30x2,15×6,8x16,4x24")
	if err != nil || s.String() != "30x2,15x6,8x16,4x24" || len(s.Rounds) != 3 || s.Final != (round{4, 24}) {
		t.Errorf("%v: %v", s, err)
	}
	for text, want := range map[string]string{
		"30":           "is no round",
		"30x2":         "at least one round, and the confirmation",
		"3x2,4x2,2x5":  "don't become fewer",
		"4x5,2x4,2x8":  "don't become fewer",
		"4x5,5x8":      "more candidates than the last round",
		"4x5,axb":      `"axb" is no round`,
		"0x5,2x2":      "is no round",
		"30x2,,15x6,2": `"" is no round`,
	} {
		if _, err := parseSchedule(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %q", text, err, want)
		}
	}
}

// TestRoundsKeepTheTime: what a round is estimated to take is within its share, and half of its
// candidates go on.
func TestRoundsKeepTheTime(t *testing.T) {
	prices := make([]price, 40)
	for k := range prices {
		prices[k] = price{image: 0.05 * float64(k+1), loading: 0.1}
	}
	for _, seconds := range []float64{1, 5, 20, 60, 600, 6000} {
		share := time.Duration(seconds * float64(time.Second))
		r := first(prices, 100, share/4, share)
		if took := total(prices[:r.Candidates]).seconds(r.Images); r.Candidates > 1 && took > seconds {
			t.Errorf("%v in a first round of %v: %.1f s", r, share, took)
		}
		if r.Candidates < len(prices) && total(prices[:r.Candidates+1]).seconds(1) <= seconds {
			t.Errorf("%v in a first round of %v: there is time for one more candidate", r, share)
		}
		if seconds >= 60 && r.Candidates < len(prices) {
			t.Errorf("%v in a first round of %v", r, share)
		}
		for ok := true; ok; {
			before := r
			if r, ok = next(before, prices[:before.Candidates], 100, share); !ok {
				break
			}
			took := total(prices[:r.Candidates]).seconds(r.Images - before.Images)
			if took > seconds || r.Images <= before.Images || r.Candidates > half(before.Candidates) {
				t.Errorf("%v after %v within %v: %.1f s", r, before, share, took)
			}
		}
		if r.Candidates > 2*finalists && seconds > 60 && r.Images < 100 {
			t.Errorf("the rounds end with %v", r)
		}
	}
	if r, ok := next(round{40, 100}, prices, 100, time.Hour); ok {
		t.Errorf("%v after all images were looked at", r)
	}
}

// TestComparisons holds the number of comparisons to the smallest p of the test, 2/2ⁿ.
func TestComparisons(t *testing.T) {
	for n, want := range map[int]int{0: 0, 5: 0, 6: 1, 7: 3, 8: 6, 9: 12} {
		if got := comparisons(n); got != want {
			t.Errorf("%d images can confirm one of %d comparisons, not %d", n, got, want)
		}
	}
}

func TestRankingOfARound(t *testing.T) {
	nan := math.NaN()
	of := []candidate{{id: "a", method: "x"}, {id: "b", method: "x"}, {id: "c", method: "y"},
		{id: "d", method: "z"}, {id: "e", method: "w"}}
	scores := map[string][]float64{"a": {0.5, 0.7, nan}, "b": {0.9, 0.1, 0.2}, "c": {0.5, 0.7, nan},
		"d": {1, nan, nan}, "e": {0.8, 0.8, 0.8}}
	own, same := distinct(of, scores)
	if len(own) != 4 || len(same) != 1 || same[0] != (absence{"c", "the scores of a"}) {
		t.Errorf("%v, and equal: %v", own, same)
	}
	for lower, want := range map[bool]string{false: "e a b d", true: "b a e d"} {
		list := ranked(own, scores, lower)
		var ids []string
		for _, s := range list {
			ids = append(ids, s.id)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("smaller is better: %v; ranked %s, not %s", lower, got, want)
		}
		// One setting a method, and none without a score on half of the images.
		if f := finalistsOf(list, 4); len(f) != 2 || f[0].id != ids[0] || f[0].method == f[1].method {
			t.Errorf("finalists %v", f)
		}
	}
}

func TestVerdicts(t *testing.T) {
	lead := func(x float64) *stages.Number { n := stages.Number(x); return &n }
	w := finalist{ID: "w", First: true}
	control := finalist{ID: control, Lead: lead(1), Confirmed: true}
	for want, of := range map[string][]finalist{
		"No answer among the finalists: no lead of w": {w, {ID: "a", Lead: lead(1)}, control},
		"Answer: w leads a; there is no answer between it and b.": {w,
			{ID: "a", Lead: lead(1), Confirmed: true}, {ID: "b", Lead: lead(-1)}, control},
		"Answer: w leads every other finalist.": {w, {ID: "a", Lead: lead(1), Confirmed: true}},
		"Answer: w, the first of the rounds, is confirmed to be worse than a.": {w, {ID: "a", Lead: lead(-1),
			Confirmed: true}},
	} {
		f := final{first: "w", of: of}
		if got := f.verdict(); !strings.HasPrefix(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
