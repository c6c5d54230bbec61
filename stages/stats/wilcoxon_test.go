package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/scores"
	"github.com/runexp/runexp/stages/stagetest"
)

func wilcoxon(set func(*WilcoxonParams)) *WilcoxonParams {
	p := WilcoxonParams{Among: "method", Reference: best, Alpha: 0.05, Correction: "holm",
		Family: scores.Pairs}
	if set != nil {
		set(&p)
	}
	return &p
}

// eight are the cells of one case: b is below a on every image, c on every other by about as much as above.
func eight(d stages.Direction, coord ...string) []stages.Data {
	a, b, c := ramp(8, 0.5, 0), ramp(8, 0.5, -0.01), ramp(8, 0.5, -0.001)
	c[1], c[3], c[5] = 0.5021, 0.5041, 0.5061
	at := func(method string) []string { return append([]string{"method", method}, coord...) }
	if d == stages.Lower {
		for _, v := range [][]float64{a, b, c} {
			for i := range v {
				v[i] = 1 - v[i]
			}
		}
	}
	return []stages.Data{cell(d, a, at("a")...), cell(d, b, at("b")...), cell(d, c, at("c")...)}
}

func TestWilcoxon(t *testing.T) {
	table, answer := run(t, Wilcoxon, wilcoxon(nil), eight(stages.Higher)...)
	// b: all 8 ranks are negative, p = 2/2⁸ and three times that by Holm, of all pairs. c: the ranks 2, 4
	// and 6 are positive, p as scipy.stats.wilcoxon has it. needed: statsmodels' TTestPower at 0.05/3 wants
	// 7 and 136 pairs; times π/3.
	same(t, "the table", text(table), `b a | 8 -0.0450 -9.0 -1.000 0.0 0.0078 0.0234 8 0
c a | 8 -0.0015 -0.3 -0.333 12.0 0.4609 0.4609 143 1
`)
	same(t, "the answer", answer, "**a** (0.5) has the best mean of 3: it is better than b (0.455, p = "+
		"0.023); it can't be told apart from c (p = 0.46). 1 of 2 differences from the reference is "+
		"confirmed (Wilcoxon signed-rank, α = 0.05, p corrected by Holm, paired over 8 images).\n")
	lower, _ := run(t, Wilcoxon, wilcoxon(nil), eight(stages.Lower)...)
	if lower.Rows[0].Numbers[3] != 1 || lower.Rows[0].Keys[1] != "a" {
		t.Errorf("where lower is better, b's scores are above a's: %v", lower.Rows[0])
	}
}

func TestWilcoxonReference(t *testing.T) {
	cells := append(eight(stages.Higher, "model", "vgg"), eight(stages.Higher, "model", "vit")...)
	table, answer := run(t, Wilcoxon, wilcoxon(func(p *WilcoxonParams) {
		p.Reference, p.Correction = "b", "none"
	}), cells...)
	if len(table.Rows) != 4 || strings.Join(table.Keys, " ") != "method model reference" ||
		strings.Join(table.Rows[2].Keys, " ") != "a vit b" {
		t.Errorf("keys %v, rows\n%s", table.Keys, text(table))
	}
	if p, corrected := table.Rows[0].Numbers[5], table.Rows[0].Numbers[6]; p != corrected {
		t.Errorf("p = %v, with correction none %v", p, corrected)
	}
	if !strings.HasPrefix(answer, "In vgg, **b** (0.455) is the reference for 2: a (0.5, p = "+
		"0.0078) and c (0.499, p = 0.0078) are better. In vit") {
		t.Error(answer)
	}
	_, err := stagetest.Try(Wilcoxon, wilcoxon(func(p *WilcoxonParams) { p.Reference = "d" }),
		map[string][]stages.Data{"scores": cells})
	if err == nil || !strings.Contains(err.Error(), `the axis "method" has no id "d"`) {
		t.Error(err)
	}
}

// TestWilcoxonUndefined shows what can't be tested as undefined, and says how many images it takes.
func TestWilcoxonUndefined(t *testing.T) {
	const up = stages.Higher
	table, answer := run(t, Wilcoxon, wilcoxon(nil),
		cell(up, []float64{.5, .6, nan}, "method", "a"),
		cell(up, []float64{.5, .6, .9}, "method", "b"),
		cell(up, []float64{.1, .3, .2}, "method", "c"),
		cell(up, []float64{nan, nan, nan}, "method", "d"))
	same(t, "the table", text(table), `b a | 2 0.0000 0.0 NaN 0.0 1.0000 1.0000 NaN 1
c a | 2 -0.3500 -63.6 -1.000 0.0 0.5000 1.0000 7 1
`)
	same(t, "the answer", answer, "**a** (0.55) has the best mean of 3: it can't be told apart from b "+
		"(equal scores) and c (p = 1). The reference has the better mean in 1 of 2 comparisons, none of "+
		"which can be confirmed with so few images, however large the difference: it takes at least 7 "+
		"(Wilcoxon signed-rank, α = 0.05, p corrected by Holm, paired over 2 images). Without a defined "+
		"score: d.\n")
	for _, cells := range [][]stages.Data{
		{cell(up, []float64{nan}, "method", "a"), cell(up, []float64{nan}, "method", "b")},
		{cell(up, []float64{1}, "method", "a")},
		{cell(stages.None, []float64{1}, "method", "a"), cell(stages.None, []float64{2}, "method", "b")},
		{cell(up, []float64{1, nan}, "method", "a"), cell(up, []float64{nan, 1}, "method", "b")},
	} {
		table, answer := run(t, Wilcoxon, wilcoxon(nil), cells...)
		if len(table.Rows) != 0 || !strings.HasPrefix(answer, "Nothing can be compared") {
			t.Errorf("%s\n%s", text(table), answer)
		}
	}
}

// TestWilcoxonNoAnswer: an answer begins by saying that there is none where no difference is confirmed.
func TestWilcoxonNoAnswer(t *testing.T) {
	const up = stages.Higher
	present := func(p *WilcoxonParams, cells ...stages.Data) string {
		table, answer := run(t, Wilcoxon, p, cells...)
		return Wilcoxon.HooksOf(p).Present(answer, map[string]stages.Table{"table": table})
	}
	few := []stages.Data{cell(up, []float64{.5, .6}, "method", "a"),
		cell(up, []float64{.1, .3}, "method", "c")}
	same(t, "too few", present(wilcoxon(nil), few...), "No answer: with 2 images no difference of 2 "+
		"methods can be confirmed, however large; it takes at least 6.\n\nWhat follows describes these "+
		"images alone. **a** (0.55) has the best mean of 2: "+
		"it can't be told apart from c (p = 0.5). The reference has the better mean in 1 of 1 comparison "+
		"(Wilcoxon signed-rank, α = 0.05, p corrected by Holm, paired over 2 images).\n")
	c := eight(up)
	for reference, want := range map[string]string{
		best: "No answer: over 8 images none of 2 methods differs significantly from the best.\n\nWhat " +
			"follows describes these images alone. **a**",
		"c": "No answer: over 8 images none of 2 methods differs significantly from the reference.\n\nWhat " +
			"follows describes these images alone. **c**",
	} {
		got := present(wilcoxon(func(p *WilcoxonParams) { p.Reference = reference }), c[0], c[2])
		if !strings.HasPrefix(got, want) {
			t.Errorf("against %s: %s", reference, got)
		}
	}
	if got := present(wilcoxon(nil), c...); strings.Contains(got, "No answer") {
		t.Errorf("b is confirmed to be worse: %s", got)
	}
}

// phased are cheap scores of three methods on 120 items, and exact ones of some.
func phased(pilot, second []int) map[string][]stages.Data {
	r := rand.New(rand.NewPCG(2, 3))
	in := map[string][]stages.Data{}
	for k, method := range []string{"a", "b", "c"} {
		var cheap, exact []float64
		for range 120 {
			y := r.NormFloat64() - 0.4*float64(k)
			exact = append(exact, y)
			cheap = append(cheap, y+0.5*float64(k)+0.1*r.NormFloat64())
		}
		some := func(values []float64, items []int) stages.Data {
			var v []float64
			var ids stages.ItemSlice
			for _, i := range items {
				id := fmt.Sprint("item ", i)
				v, ids = append(v, values[i]), append(ids, stages.Item{ID: id, Origin: id})
			}
			d := cell(stages.Higher, v, "method", method)
			d.Items = ids
			return d
		}
		all := make([]int, 120)
		for i := range all {
			all[i] = i
		}
		in["scores"] = append(in["scores"], some(cheap, all))
		in["pilot"] = append(in["pilot"], some(exact, pilot))
		in["exact"] = append(in["exact"], some(exact, second))
		in["all"] = append(in["all"], some(exact, all))
	}
	return in
}

// Exact scores of all images give what they give alone, and of some about that, where cheap ones have another
// best method.
func TestWilcoxonExact(t *testing.T) {
	items := make([]int, 120)
	for i := range items {
		items[i] = i * 7 % 120
	}
	in := phased(items[:40], items[40:])
	of := func(scores string, exact bool) (stages.Table, string) {
		ports := map[string][]stages.Data{"scores": in[scores]}
		if exact {
			ports["pilot"], ports["exact"] = in["pilot"], in["exact"]
		}
		r := stagetest.Run(t, Wilcoxon, wilcoxon(nil), ports)
		table, err := stages.DecodeTable(r.Payloads["table"][0])
		if err != nil {
			t.Fatal(err)
		}
		return table, string(r.Payloads["answer"][0])
	}
	want, _ := of("all", false)
	if got, _ := of("scores", true); text(got) != text(want) {
		t.Errorf("with all exact scores\n%s, want\n%s", text(got), text(want))
	}
	cheap, _ := of("scores", false)
	if cheap.Rows[0].Keys[1] == want.Rows[0].Keys[1] {
		t.Errorf("cheap scores have the best method of exact ones:\n%s", text(cheap))
	}
	in = phased(items[:30], items[30:70])
	got, answer := of("scores", true)
	for i, row := range got.Rows {
		for _, name := range []string{"mean difference", "effect", "p corrected", "needed"} {
			x, y := got.Number(row, name), want.Number(want.Rows[i], name)
			if !slices.Equal(row.Keys, want.Rows[i].Keys) || !(math.Abs(x-y) < max(0.05, 0.15*y)) {
				t.Errorf("%v: %s is %v, of all exact scores it is %v", row.Keys, name, x, y)
			}
		}
	}
	if !strings.Contains(answer, "70 of 120 images have exact scores.\n") {
		t.Errorf("the answer is %s", answer)
	}
}
