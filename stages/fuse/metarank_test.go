package fuse

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/stagetest"
)

var nan = math.NaN()

// cell returns one cell of scores.
func cell(d stages.Direction, scores []float64, coord ...string) stages.Data {
	var payloads [][]byte
	for _, x := range scores {
		payloads = append(payloads, stages.Scalar(x))
	}
	m := stages.Measure{Unit: "probability", Direction: d, High: 1, Tolerance: 1e-4}
	return stagetest.At(stagetest.Items(m.Facts(nil), payloads...), coord...)
}

// params are the defaults without intervals.
func params() *MetaRankParams {
	p := &MetaRankParams{Params: defaults()}
	p.Rank = "method"
	return p
}

func run(t *testing.T, cells ...stages.Data) stagetest.Result {
	t.Helper()
	return stagetest.Run(t, MetaRank, params(),
		map[string][]stages.Data{"scores": cells})
}

func table(t *testing.T, r stagetest.Result, port string) stages.Table {
	t.Helper()
	if len(r.Payloads[port]) != 1 {
		t.Fatalf("%s: %d payloads", port, len(r.Payloads[port]))
	}
	tab, err := stages.DecodeTable(r.Payloads[port][0])
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// text formats rows as "keys | numbers".
func text(t stages.Table) string {
	var b strings.Builder
	for _, r := range t.Rows {
		b.WriteString(strings.Join(r.Keys, " "))
		b.WriteString(" |")
		for i, n := range r.Numbers {
			fmt.Fprintf(&b, " %.*f", t.Numbers[i].Digits, float64(n))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func says(t *testing.T, r stagetest.Result, want string) {
	t.Helper()
	if got := string(r.Payloads["answer"][0]); got != want {
		t.Errorf("the answer is\n%swant\n%s", got, want)
	}
}

func TestMetaRank(t *testing.T) {
	const up, down = stages.Higher, stages.Lower
	r := run(t,
		cell(up, []float64{.9, .8}, "method", "ig", "order", "lerf"),
		cell(up, []float64{.5, .4}, "method", "random", "order", "lerf"),
		cell(up, []float64{.6, nan}, "method", "cam", "order", "lerf"),
		cell(down, []float64{.1, .3}, "method", "ig", "order", "morf"),
		cell(down, []float64{.1, .2}, "method", "cam", "order", "morf"),
		cell(down, []float64{.6, .5}, "method", "random", "order", "morf"),
	)
	// Over both images: lerf, of the first alone, ig > cam > random; morf cam > ig > random.
	if got, want := text(table(t, r, "ranking")), `cam | 1 2.3023 NaN NaN NaN NaN 3.0 4 2 3 1
ig | 1 2.3023 NaN NaN NaN NaN 3.0 4 2 3 0
random | 3 -4.6045 NaN NaN NaN NaN 0.0 4 2 3 0
`; got != want {
		t.Errorf("ranking\n%swant\n%s", got, want)
	}
	if got, want := text(table(t, r, "cases")), `lerf cam | 0.6000 2 1 1
lerf ig | 0.9000 1 1 0
lerf random | 0.5000 3 1 0
morf cam | 0.1500 1 2 0
morf ig | 0.2000 2 2 0
morf random | 0.5500 3 2 0
`; got != want {
		t.Errorf("cases\n%swant\n%s", got, want)
	}
	if got, want := text(table(t, r, "pairs")), `cam ig | 1.0 2 0.5000 0.0000
cam random | 2.0 2 1.0000 6.9068
ig cam | 1.0 2 0.5000 0.0000
ig random | 2.0 2 1.0000 6.9068
random cam | 0.0 2 0.0000 -6.9068
random ig | 0.0 2 0.0000 -6.9068
`; got != want {
		t.Errorf("pairs\n%swant\n%s", got, want)
	}
	says(t, r,
		"**cam** and **ig** share the first place of 3: each wins 3 of 4 pairwise comparisons (κ = "+
			"2.30) in 2 cases (order), each over 1 to 2 images."+
			" Two cases agree weakly on the order (Spearman ρ = 0.50)."+
			" 1 of 12 scores is undefined; an image counts in a case only if every method "+
			"there has a score.\n")
	if r.Facts["answer"]["ext"] != "md" {
		t.Error("the answer isn't markdown")
	}
	cases := table(t, r, "cases")
	if c := cases.Numbers[0]; c.Direction != stages.None || c.Tolerance != 1e-4 || c.Unit != "probability" {
		t.Errorf("the column of means of both directions is %+v", c)
	}
}

func TestMetaRankLeavesOut(t *testing.T) {
	r := run(t,
		cell(stages.Higher, []float64{1, 0}, "method", "a", "model", "vgg"),
		cell(stages.Higher, []float64{0, 0}, "method", "b", "model", "vgg"),
		cell(stages.Higher, []float64{0, 0}, "method", "a", "model", "vit"),
		cell(stages.Higher, []float64{nan, 1}, "method", "a", "model", "resnet"),
		cell(stages.Higher, []float64{1, nan}, "method", "b", "model", "resnet"),
	)
	says(t, r,
		"**a** ranks first of 2: it wins 1 of 1 pairwise comparisons (κ = 3.45), ahead of **b** with 0 "+
			"(κ = -3.45), in one case (model=vgg), over 2 images."+
			" Left out: model=resnet (no image has a score of every method); model=vit (only a has "+
			"scores).\n")
	if len(r.Warnings) != 2 || !strings.Contains(r.Warnings[1], "model=vit is left out: only a") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

func TestMetaRankSmall(t *testing.T) {
	says(t, run(t, cell(stages.Higher, []float64{1}, "method", "a")),
		"Only **a** competes: there is nothing to rank.\n")
	says(t,
		run(t, cell(stages.Lower, []float64{1}, "method", "a"),
			cell(stages.Lower, []float64{1}, "method", "b")),
		"All 2 methods come out equal in one case, over 1 image.\n")
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
	says(t, run(t, cells...),
		"**c** ranks first of 3: it wins 9 of 16 pairwise comparisons (κ = 1.65), ahead of **a** with "+
			"14 (κ = 1.30), in 8 cases (seed), each over 2 images."+
			" Log-odds reward beating one rival every time more than winning more comparisons."+
			" Another has the best mean in 7 of 8 cases: seed=0 (a); seed=1 (a); seed=2 (a); seed=3 (a); "+
			"seed=4 (a); and 2 more. The cases agree moderately on the order (mean Spearman ρ = 0.62 "+
			"over 28 pairs of cases).\n")
}

// TestMetaRankOrder checks that the order of the cells doesn't matter.
func TestMetaRankOrder(t *testing.T) {
	var cells []stages.Data
	for _, model := range []string{"x", "y"} {
		for i, m := range []string{"a", "b", "c"} {
			cells = append(cells,
				cell(stages.Higher, []float64{float64(i*i%3) + 0.1, 0.3, 0.7}, "method", m, "model", model))
		}
	}
	want := run(t, cells...)
	for i, k := 0, len(cells)-1; i < k; i, k = i+1, k-1 {
		cells[i], cells[k] = cells[k], cells[i]
	}
	got := run(t, cells...)
	for _, port := range []string{"ranking", "pairs", "cases", "answer"} {
		if string(got.Payloads[port][0]) != string(want.Payloads[port][0]) {
			t.Errorf("%s depends on the order of cells", port)
		}
	}
}

func TestMetaRankRefuses(t *testing.T) {
	for _, c := range []struct {
		cells []stages.Data
		part  string
	}{
		{[]stages.Data{cell(stages.Higher, []float64{1}, "model", "x")},
			`the axis "method" isn't collapsed, only model`},
		{[]stages.Data{cell(stages.None, []float64{1}, "method", "x")}, `the directions "none" and "none"`},
		{[]stages.Data{cell(stages.Higher, []float64{1}, "method", "x"),
			cell(stages.Lower, []float64{1}, "method", "y")}, `"higher" and "lower" can't be compared`},
		{[]stages.Data{cell(stages.Higher, []float64{1}, "method", "x"),
			cell(stages.Higher, []float64{1}, "method", "x")}, "1 cells have the ids of others"},
		{[]stages.Data{cell(stages.Higher, []float64{math.Inf(1)}, "method", "x")}, "isn't finite"},
	} {
		_, err := stagetest.Try(MetaRank, params(),
			map[string][]stages.Data{"scores": c.cells})
		if err == nil || !strings.Contains(err.Error(), c.part) {
			t.Errorf("error %v, want one with %q", err, c.part)
		}
	}
	if err := (Params{}).Validate(); err == nil {
		t.Error("an empty axis is accepted")
	}
}

// TestGoldenFusion runs the stage on the tables of meta_rank_reference.npz, one cell per number, and compares
// κ and P.
func TestGoldenFusion(t *testing.T) {
	arrays := golden.Arrays(t, "../internal/stat/testdata/meta_rank_reference.npz")
	for set := range 5 {
		auc := arrays[fmt.Sprintf("auc%d", set)]
		values := auc.Float64s()
		n, m := auc.Shape[0], auc.Shape[1]
		var cells []stages.Data
		for c, higher := range arrays[fmt.Sprintf("higher_better%d", set)].Float64s() {
			d := stages.Lower
			if higher == 1 {
				d = stages.Higher
			}
			for p := range m {
				cells = append(cells,
					cell(d, values[c*m+p:c*m+p+1], "method", fmt.Sprintf("m%02d", p), "case",
						fmt.Sprintf("c%02d", c)))
			}
		}
		r := run(t, cells...)
		kappa := arrays[fmt.Sprintf("kappa%d_eps0.001", set)].Float64s()
		ranking := table(t, r, "ranking")
		if len(ranking.Rows) != m || float64(ranking.Rows[0].Numbers[8]) != float64(n) {
			t.Fatalf("set %d: %d rows over %v cases", set, len(ranking.Rows), ranking.Rows[0].Numbers[8])
		}
		for _, row := range ranking.Rows {
			var p int
			fmt.Sscanf(row.Keys[0], "m%d", &p)
			if got := float64(row.Numbers[1]); !(math.Abs(got-kappa[p]) <= 1e-9) {
				t.Errorf("set %d: κ of %s is %v, want %v", set, row.Keys[0], got, kappa[p])
			}
		}
		share := arrays[fmt.Sprintf("P%d", set)].Float64s()
		for _, row := range table(t, r, "pairs").Rows {
			var p, q int
			fmt.Sscanf(row.Keys[0], "m%d", &p)
			fmt.Sscanf(row.Keys[1], "m%d", &q)
			if got := float64(row.Numbers[2]); !(math.Abs(got-share[p*m+q]) <= 1e-12) {
				t.Errorf("set %d: share of %v is %v, want %v", set, row.Keys, got, share[p*m+q])
			}
		}
	}
}

// TestMetaRankTies checks that a tie isn't reported as a win.
func TestMetaRankTies(t *testing.T) {
	var cells []stages.Data
	for order, values := range map[string][3]float64{"lerf": {1, 1, 0}, "morf": {1, 0.5, 0}} {
		for i, m := range []string{"a", "b", "c"} {
			cells = append(cells, cell(stages.Higher, []float64{values[i]}, "method", m, "order", order))
		}
	}
	r := run(t, cells...)
	if got, want := string(r.Payloads["answer"][0]), "No other has a better mean in any case; in 1 of 2 it "+
		"ties."; !strings.Contains(got, want) {
		t.Errorf("the answer is %q, want %q in it", got, want)
	}
}

// TestMetaRankNoAnswer: where each method may come first over resamples of the cases, or the cases have too
// few images for any test, the answer begins with that; where one may not, it doesn't.
func TestMetaRankNoAnswer(t *testing.T) {
	const up = stages.Higher
	n := 7
	present := func(cells ...stages.Data) string {
		p := params()
		p.Resamples = 1000
		r := stagetest.Run(t, MetaRank, p, map[string][]stages.Data{"scores": cells})
		tables := map[string]stages.Table{"ranking": table(t, r, "ranking"), "claims": table(t, r, "claims")}
		return MetaRank.HooksOf(p).Present(string(r.Payloads["answer"][0]), tables)
	}
	in := func(model string, means ...float64) (cells []stages.Data) {
		for i, method := range []string{"a", "b", "c"}[:len(means)] {
			cells = append(cells, cell(up, slices.Repeat(means[i:i+1], n), "method", method, "model", model))
		}
		return cells
	}
	const rest = "\n\nWhat follows describes these "
	split := slices.Concat(in("x", 3, 2, 1), in("y", 1, 3, 2), in("z", 2, 1, 3), in("w", 3, 2, 1))
	if got := present(split...); !strings.HasPrefix(got, "No answer: over resamples of 4 cases each of 3 "+
		"methods may come first."+rest+"cases alone. **a** ranks first of 3") {
		t.Error(got)
	}
	// One case has no interval; c is last in every case.
	last := slices.Concat(in("x", 3, 2, 1), in("y", 2, 3, 1), in("z", 3, 2, 1))
	for _, cells := range [][]stages.Data{split[:3], last} {
		if got := present(cells...); strings.Contains(got, "No answer") {
			t.Error(got)
		}
	}
	// Each case has the same order, which no resample changes.
	got := present(slices.Concat(in("x", 3, 2, 1), in("y", 3, 2, 1))...)
	if !strings.Contains(got, "It wins alike in all 2 cases, so that resamples of them don't tell how "+
		"sure its κ is.") || strings.Contains(got, "Over resamples") {
		t.Error(got)
	}
	seven := split[3:6]
	n = 6
	for _, cells := range [][]stages.Data{in("x", 3, 2, 1), slices.Concat(in("x", 3, 2, 1), in("y", 3, 2, 1)),
		slices.Concat(in("x", 1, 1, 1), in("y", 1, 1, 1))} {
		if got := present(cells...); !strings.HasPrefix(got, "No answer: with 6 images no difference of 3 "+
			"methods can be confirmed, however large; it takes at least 7."+rest+"images alone. ") {
			t.Error(got)
		}
	}
	// A case with seven images, and one of two methods, in which six suffice.
	for _, cells := range [][]stages.Data{slices.Concat(in("x", 3, 2, 1), seven), slices.Concat(
		in("x", 3, 2, 1), in("y", 3, 2))} {
		if got := present(cells...); strings.Contains(got, "No answer") {
			t.Error(got)
		}
	}
}
