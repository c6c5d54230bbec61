package fuse

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestMetaRankUnscored checks that a method without a defined score doesn't prevent the ranking of the
// others, and is counted.
func TestMetaRankUnscored(t *testing.T) {
	r := run(t,
		cell(stages.Higher, []float64{1, 0}, "method", "a", "model", "vgg"),
		cell(stages.Higher, []float64{0, 0}, "method", "b", "model", "vgg"),
		cell(stages.Higher, []float64{nan, nan}, "method", "zero", "model", "vgg"),
		cell(stages.Higher, []float64{1, 0}, "method", "a", "model", "vit"),
		cell(stages.Higher, []float64{0, 0}, "method", "b", "model", "vit"),
		cell(stages.Higher, []float64{nan, nan}, "method", "zero", "model", "vit"),
	)
	got := text(table(t, r, "ranking"))
	if !strings.HasPrefix(got, "a | 1 ") || !strings.Contains(got, "\nb | 2 ") ||
		!strings.HasSuffix(got, " 0.0 0 0 0 4\n") {
		t.Errorf("the ranking is\n%s", got)
	}
	if got := string(r.Payloads["answer"][0]); !strings.HasSuffix(got,
		" Not ranked: **zero** (all 4 scores are undefined).\n") {
		t.Error(got)
	}
}

// TestMetaRankMissing checks that a case without one method still compares the others, whether the method has
// no cell there or no defined score.
func TestMetaRankMissing(t *testing.T) {
	cells := []stages.Data{
		cell(stages.Higher, []float64{3, 3}, "method", "a", "model", "vgg"),
		cell(stages.Higher, []float64{2, 2}, "method", "b", "model", "vgg"),
		cell(stages.Higher, []float64{1, 1}, "method", "c", "model", "vgg"),
		cell(stages.Higher, []float64{1, 1}, "method", "a", "model", "vit"),
		cell(stages.Higher, []float64{2, 2}, "method", "b", "model", "vit"),
	}
	r := run(t, cells...)
	// κ_a − κ_b = 0 twice, κ_a − κ_c = κ_b − κ_c = ln 999 once each.
	if got, want := text(table(t, r, "ranking")), `a | 1 2.3023 NaN NaN NaN NaN 2.0 3 2 4 0
b | 1 2.3023 NaN NaN NaN NaN 2.0 3 2 4 0
c | 3 -4.6045 NaN NaN NaN NaN 0.0 2 1 2 0
`; got != want {
		t.Errorf("ranking\n%swant\n%s", got, want)
	}
	says(t, r, "**a** and **b** share the first place of 3: each wins 2 of 3 pairwise comparisons (κ = "+
		"2.30) in 2 cases (model), each over 2 images. Two cases agree weakly on the order (Spearman ρ = "+
		"-1.00). Missing in some cases: c (in 1 of 2).\n")
	undefined := run(t, append(cells, cell(stages.Higher, []float64{nan, nan}, "method", "c", "model",
		"vit"))...)
	if got, want := text(table(t, undefined, "ranking")),
		strings.ReplaceAll(text(table(t, r, "ranking")), " 1 2 0\n", " 1 2 2\n"); got != want {
		t.Errorf("with undefined scores the ranking is\n%swant\n%s", got, want)
	}
	if got := text(table(t, undefined, "cases")); !strings.Contains(got, "vit c | NaN NaN 0 2\n") {
		t.Errorf("cases\n%s", got)
	}
}

// TestMetaRankParts checks that methods that never met those of the ranking aren't ranked.
func TestMetaRankParts(t *testing.T) {
	r := run(t,
		cell(stages.Higher, []float64{1}, "method", "a", "model", "vgg"),
		cell(stages.Higher, []float64{2}, "method", "b", "model", "vgg"),
		cell(stages.Higher, []float64{1}, "method", "c", "model", "vit"),
		cell(stages.Higher, []float64{2}, "method", "d", "model", "vit"),
		cell(stages.Higher, []float64{1}, "method", "e", "model", "vit"),
	)
	says(t, r, "**d** ranks first of 3: it wins 2 of 2 pairwise comparisons (κ = 4.60), ahead of **c** with "+
		"0.5 (κ = -2.30), in one case (model=vit), over 1 image. Left out: model=vgg (only methods that "+
		"aren't ranked). Not ranked: **a** (no case compares it with the others); **b** (no case compares "+
		"it with the others).\n")
}

// TestMetaRankNothing checks that undefined scores alone give empty tables.
func TestMetaRankNothing(t *testing.T) {
	r := run(t, cell(stages.Higher, []float64{nan}, "method", "x"),
		cell(stages.Higher, []float64{nan}, "method", "y"))
	says(t, r, "No case compares two methods: there is nothing to rank. Left out: (the only one) (no score "+
		"is defined). Not ranked: **x** (all 1 scores are undefined); **y** (all 1 scores are undefined).\n")
	if len(table(t, r, "ranking").Rows) != 2 || len(table(t, r, "cases").Rows) != 0 {
		t.Error("the tables of nothing")
	}
}

// TestMetaRankIntervals checks the intervals of the table and what the answer makes of them.
func TestMetaRankIntervals(t *testing.T) {
	p := params()
	p.Resamples = 1000
	fuse := func(even float64) stagetest.Result {
		var cells []stages.Data
		for i := range 10 {
			net := string(rune('a' + i))
			cells = append(cells,
				cell(stages.Lower, []float64{float64(i % 2)}, "method", "odd", "net", net),
				cell(stages.Lower, []float64{even}, "method", "even", "net", net),
				cell(stages.Lower, []float64{2}, "method", "last", "net", net))
		}
		cells[0] = cell(stages.Lower, []float64{-2}, "method", "odd", "net", "a")
		cells[3] = cell(stages.Lower, []float64{-2}, "method", "odd", "net", "b")
		return stagetest.Run(t, MetaRank, p, map[string][]stages.Data{"scores": cells})
	}
	r := fuse(0.5)
	got := string(r.Payloads["answer"][0])
	if !strings.HasPrefix(got, "**odd** ranks first of 3: it wins 16 of 20") ||
		!strings.Contains(got, "Over resamples of the cases κ is ") ||
		!strings.Contains(got, " (95 %), and **even** may come first as well.") {
		t.Error(got)
	}
	for _, row := range table(t, r, "ranking").Rows {
		if n := row.Numbers; !(n[2] <= n[1] && n[1] <= n[3] && n[2] < n[3] && n[4] <= n[0] && n[0] <= n[5]) &&
			row.Keys[0] != "last" {
			t.Errorf("%s: rank %v in %v to %v, κ %v in %v to %v", row.Keys[0], n[0], n[4], n[5], n[1],
				n[2], n[3])
		}
	}
	if got := string(fuse(1.5).Payloads["answer"][0]); !strings.Contains(got, "and no other method "+
		"comes first.") {
		t.Error(got)
	}
}
