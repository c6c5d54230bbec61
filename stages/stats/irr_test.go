package stats

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/claims"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/stagetest"
)

// goldenCells returns the scores of a golden as cells, a method each.
func goldenCells(a npy.Array, coord ...string) []stages.Data {
	values, methods := a.Float64s(), a.Shape[1]
	var cells []stages.Data
	for k := range methods {
		var column []float64
		for i := k; i < len(values); i += methods {
			column = append(column, values[i])
		}
		cells = append(cells, cell(stages.Higher, column, append([]string{"method", fmt.Sprint(k)},
			coord...)...))
	}
	return cells
}

// TestOfficialReliability runs both stages on the tables of irr_icr.npz, whose orders are of scores that are
// better if larger.
func TestOfficialReliability(t *testing.T) {
	arrays := golden.Arrays(t, "../internal/stat/testdata/irr_icr.npz")
	same := func(key string, r stagetest.Result) {
		t.Helper()
		got, want := float64(tableOf(t, r, "table").Rows[0].Numbers[0]), arrays[key].Float64s()[0]
		if !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
	for _, set := range []string{"0", "1", "2", "3", "4"} {
		a := goldenCells(arrays["scores_a"+set], "metric", "a")
		b := goldenCells(arrays["scores_b"+set], "metric", "b")
		for variant, key := range map[string]string{official: "irr_order_a",
			paper: "grrrr_alpha_interval_rank_"} {
			r := stagetest.Run(t, IRR, &IRRParams{Rate: "method", Level: "interval", Variant: variant},
				map[string][]stages.Data{"scores": a})
			same(key+set, r)
		}
		for variant, key := range map[string]string{official: "icr_official_", paper: "icr_rowwise_rank_"} {
			r := stagetest.Run(t, ICR, &ICRParams{Rate: "method", Between: "metric", Variant: variant},
				map[string][]stages.Data{"scores": append(a, b...)})
			same(key+set, r)
		}
	}
}

func TestIRR(t *testing.T) {
	const up, down = stages.Higher, stages.Lower
	cells := []stages.Data{
		// All images agree; the third lacks a score.
		cell(up, []float64{.9, .8, .7}, "method", "a", "metric", "mas"),
		cell(up, []float64{.5, .4, nan}, "method", "b", "metric", "mas"),
		cell(up, []float64{.1, .2, .3}, "method", "c", "metric", "mas"),
		// Two images of opposite orders: Dₒ = 16/6, Dₑ = 48/30.
		cell(down, []float64{.1, .9}, "method", "a", "metric", "sic"),
		cell(down, []float64{.5, .5}, "method", "b", "metric", "sic"),
		cell(down, []float64{.9, .1}, "method", "c", "metric", "sic"),
		// A method without scores is left out; the others are equal on the first image: Dₒ = 1/4, Dₑ = 4/12.
		cell(up, []float64{nan, nan}, "method", "a", "metric", "aic"),
		cell(up, []float64{.5, .5}, "method", "b", "metric", "aic"),
		cell(up, []float64{.5, .1}, "method", "c", "metric", "aic"),
	}
	run := func(p IRRParams, cells ...stages.Data) stagetest.Result {
		p.Rate = "method"
		return stagetest.Run(t, IRR, &p, map[string][]stages.Data{"scores": cells})
	}
	r := run(IRRParams{Level: "interval", Variant: paper,
		List: claims.List{Claims: []string{"mas > sic, aic", "aic > sic"}}}, cells...)
	if got, want := text(tableOf(t, r, "table")), `aic | 0.250 2 2
mas | 1.000 2 1
sic | -0.667 2 0
`; got != want {
		t.Errorf("table\n%swant\n%s", got, want)
	}
	if got, want := string(r.Payloads["answer"][0]), "**mas** and **aic** order methods more consistently "+
		"over images than their rivals in **2 of 2** tests, by Krippendorff's α. Closest: mas (1.000; aic "+
		"0.250). Images are left out for undefined scores: 2 of aic; 1 of mas.\n"; got != want {
		t.Errorf("answer\n%swant\n%s", got, want)
	}
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "aic: a has no score and is left out") {
		t.Errorf("warnings %q", r.Warnings)
	}

	r = run(IRRParams{Level: "interval", Variant: paper,
		List: claims.List{Claims: []string{"sic > mas"}}}, cells...)
	same(t, "the answer", string(r.Payloads["answer"][0]), "**sic** doesn't order methods more consistently "+
		"over images than **mas**, by Krippendorff's α: -0.667 against 1.000. Images are left out for "+
		"undefined scores: 2 of aic; 1 of mas.\n")

	// One image tells nothing.
	r = run(IRRParams{Level: "interval", Variant: paper}, cell(up, []float64{1}, "method", "a"),
		cell(up, []float64{0}, "method", "b"))
	if got, want := text(tableOf(t, r, "table")), " | NaN 1 0\n"; got != want {
		t.Errorf("one image: %q, want %q", got, want)
	}
	if got, want := string(r.Payloads["answer"][0]), "No Krippendorff's α is defined.\n"; got != want {
		t.Errorf("answer %q, want %q", got, want)
	}
}

// TestNumbered: with three methods the official α depends on their numbers.
func TestNumbered(t *testing.T) {
	cells := []stages.Data{
		cell(stages.Higher, []float64{3, 2, 3}, "method", "a"),
		cell(stages.Higher, []float64{2, 3, 1}, "method", "b"),
		cell(stages.Higher, []float64{1, 1, 2}, "method", "c"),
	}
	for _, c := range []struct {
		numbered []string
		want     float64
	}{
		// Orders 012, 102, 021: sums of squares 2/3, 2, 2/3 by place, 6 of all. Dₒ = 2·10/3/9, Dₑ = 2·9·6/72.
		{nil, 1 - (20.0/27)/1.5},
		// b 0, c 1, a 2: orders 201, 021, 210, with sums of squares 8/3, 2, 2/3.
		{[]string{"b", "c", "a"}, 1 - (32.0/27)/1.5},
	} {
		table, _ := run(t, IRR, &IRRParams{Rate: "method", Level: "interval", Variant: official,
			NumberedParams: NumberedParams{c.numbered}}, cells...)
		if got := float64(table.Rows[0].Numbers[0]); !(math.Abs(got-c.want) <= 1e-12) {
			t.Errorf("numbered %v: α = %v, want %v", c.numbered, got, c.want)
		}
	}
}

func TestICR(t *testing.T) {
	const up, down = stages.Higher, stages.Lower
	cells := []stages.Data{
		cell(up, []float64{.9, .1, .5}, "method", "a", "baseline", "blur"),
		cell(up, []float64{.5, .5, .5}, "method", "b", "baseline", "blur"),
		cell(up, []float64{.1, .9, .5}, "method", "c", "baseline", "blur"),
		// The same order on the first image, the opposite on the second.
		cell(down, []float64{.1, .1, .1}, "method", "a", "baseline", "mean"),
		cell(down, []float64{.2, .2, .2}, "method", "b", "baseline", "mean"),
		cell(down, []float64{.3, .3, .3}, "method", "c", "baseline", "mean"),
		cell(up, []float64{.9, nan, .5}, "method", "a", "baseline", "random"),
		cell(up, []float64{.5, .5, .4}, "method", "b", "baseline", "random"),
		cell(up, []float64{.1, .9, .3}, "method", "c", "baseline", "random"),
	}
	run := func(p ICRParams) stagetest.Result {
		p.Rate, p.Between, p.Variant = "method", "baseline", paper
		return stagetest.Run(t, ICR, &p, map[string][]stages.Data{"scores": cells})
	}
	if got, want := text(tableOf(t, run(ICRParams{}), "table")), `blur mean | 0.000 2 0
blur random | 1.000 1 1
mean random | 1.000 2 1
`; got != want {
		t.Errorf("table\n%swant\n%s", got, want)
	}
	if got, want := text(tableOf(t, run(ICRParams{Reference: "mean"}), "table")), `blur | 0.000 2 0
random | 1.000 2 1
`; got != want {
		t.Errorf("with a reference\n%swant\n%s", got, want)
	}
	_, err := stagetest.Try(ICR, &ICRParams{Rate: "method", Between: "baseline", Reference: "black",
		Variant: paper}, map[string][]stages.Data{"scores": cells})
	if err == nil || !strings.Contains(err.Error(), `no id "black"`) {
		t.Errorf("error %v", err)
	}
}

// TestBothVariants: opposite orders by two metrics, on both images, are ρ = −1 for the paper and ½ for its
// code. Each column is that of its variant alone, and each sentence that of its column.
func TestBothVariants(t *testing.T) {
	up := []float64{.9, .8}
	cells := []stages.Data{
		cell(stages.Higher, up, "method", "a", "metric", "x"),
		cell(stages.Higher, []float64{0, 0}, "method", "b", "metric", "x"),
		cell(stages.Lower, up, "method", "a", "metric", "y"),
		cell(stages.Lower, []float64{0, 0}, "method", "b", "metric", "y"),
		cell(stages.Lower, up, "method", "c", "metric", "y"),
		cell(stages.Higher, []float64{.5, .1}, "method", "c", "metric", "x"),
	}
	runBoth := func(variant string) stagetest.Result {
		return stagetest.Run(t, ICR, &ICRParams{Rate: "method", Between: "metric", Variant: variant},
			map[string][]stages.Data{"scores": cells})
	}
	table, answer := tableOf(t, runBoth(both), "table"), string(runBoth(both).Payloads["answer"][0])
	for k, variant := range []string{paper, official} {
		alone := runBoth(variant)
		if got, want := table.Rows[0].Numbers[k], tableOf(t, alone, "table").Rows[0].Numbers[0]; got != want {
			t.Errorf("icr, %s: %v, want %v", variant, got, want)
		}
		sentence := strings.TrimSpace(string(alone.Payloads["answer"][0]))
		if !strings.Contains(answer, sentence) {
			t.Errorf("icr, %s: %q isn't in %q", variant, sentence, answer)
		}
	}
	if paper, official := table.Rows[0].Numbers[0], table.Rows[0].Numbers[1]; paper >= 0 || official <= 0 {
		t.Errorf("metrics that disagree have the ρ %v and, by the code, %v", paper, official)
	}
	of := func(variant string) stagetest.Result {
		return stagetest.Run(t, IRR, &IRRParams{Rate: "method", Level: "interval", Variant: variant},
			map[string][]stages.Data{"scores": cells})
	}
	table = tableOf(t, of(both), "table")
	for k, variant := range []string{paper, official} {
		for i, row := range tableOf(t, of(variant), "table").Rows {
			if got := table.Rows[i].Numbers[k]; got != row.Numbers[0] {
				t.Errorf("irr, %s: %v, want %v", variant, got, row.Numbers[0])
			}
		}
	}
	alpha, column := of(both).Payloads["alpha"], of(paper).Payloads["alpha"]
	if !reflect.DeepEqual(alpha, column) || of(both).Facts["alpha"]["variant"] != "" {
		t.Error("the port alpha of both isn't that of the paper")
	}
}
