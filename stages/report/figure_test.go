package report

import (
	"math"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// tableOf puts a table at the port table.
func tableOf(t stages.Table) map[string][]stages.Data {
	return map[string][]stages.Data{"table": {stagetest.Value(nil, t.Encode())}}
}

func numbersOf(names ...string) []stages.Column {
	return mapped(names, func(n string) stages.Column { return stages.Column{Name: n} })
}

func row(keys string, numbers ...stages.Number) stages.Row {
	return stages.Row{Keys: strings.Fields(keys), Numbers: numbers}
}

// drawn checks the files of a figure, and returns the SVG and the caption.
func drawn(t *testing.T, name string, r stagetest.Result) (svg, caption string) {
	t.Helper()
	look(t, name, r.Payloads["png"][0])
	svg, caption = string(r.Payloads["figure"][0]), r.Facts["figure"]["caption"]
	if !strings.HasSuffix(svg,
		"</svg>\n") || r.Facts["figure"]["ext"] != "svg" || r.Facts["png"]["ext"] != "png" ||
		!strings.HasPrefix(string(r.Payloads["pdf"][0]), "%PDF-") || r.Facts["pdf"]["ext"] != "pdf" ||
		caption == "" || r.Facts["png"]["caption"] != caption || r.Facts["pdf"]["caption"] != caption {
		t.Errorf("%s: facts %v and %v", name, r.Facts["figure"], r.Facts["png"])
	}
	return svg, caption
}

func shows(t *testing.T, what, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s lacks %q:\n%s", what, w, text)
		}
	}
}

func consistency() stages.Table {
	nan := stages.Number(math.NaN())
	return stages.Table{Title: "Rankings", Keys: []string{"case a", "case b"}, Numbers: numbersOf("rho", "n"),
		Rows: []stages.Row{row("vgg vit", 0.9, 5), row("vgg resnet", 0.8, 5), row("vit resnet", 0.6, 5),
			row("vit gelu", -0.25, 5), row("vgg gelu", nan, 1)}}
}

func TestHeatmap(t *testing.T) {
	p := &HeatmapParams{Rows: []string{"case a"}, Value: "rho", Bands: []float64{0.6, 0.8}, Digits: 2}
	svg, caption := drawn(t, "heatmap", stagetest.Run(t, Heatmap, p, tableOf(consistency())))
	shows(t, "the caption", caption,
		"Rankings: rho; of 4 numbers 1 above 0.8, 1 above 0.6 up to 0.8, 2 at most 0.6; "+
			"1 cell undefined.")
	shows(t, "the figure", svg, ">vgg<", ">vit<", ">resnet<", ">gelu<", ">0.90<", ">0.80<", ">−0.25<", ">–<")
	// The three bands have three colours: two cells in the lowest.
	for colour, want := range map[string]int{"#08346c": 2, "#66a4d0": 2} { // a cell and the key
		if n := strings.Count(svg, `fill="`+colour+`"`); n != want {
			t.Errorf("%d areas are %s, want %d", n, colour, want)
		}
	}
	// Collapsed axes are key columns.
	in := map[string][]stages.Data{"table": {
		stagetest.At(stagetest.Value(nil, consistency().Encode()), "metric", "mas"),
		stagetest.At(stagetest.Value(nil, consistency().Encode()), "metric", "gae")}}
	p = &HeatmapParams{Rows: []string{"case a", "case b"}, Columns: []string{"metric"}, Digits: 1,
		Title: "Both"}
	svg, _ = drawn(t, "heatmap-over", stagetest.Run(t, Heatmap, p, in))
	shows(t, "the figure", svg, ">vgg · vit<", ">mas<", ">gae<", ">Both<")
}

func TestHeatmapRefuses(t *testing.T) {
	in := tableOf(consistency())
	refuses(t, Heatmap, &HeatmapParams{Rows: []string{"model"}}, in,
		`the table has no key column "model", only case a, case b`)
	refuses(t, Heatmap, &HeatmapParams{Rows: []string{"case a"}, Value: "tau"}, in,
		`the table has no number column "tau", only rho, n`)
	refuses(t, Heatmap, &HeatmapParams{Rows: []string{"case a"}, Columns: []string{"case"}}, in,
		`no key column "case"`)
	twice := consistency()
	twice.Rows = append(twice.Rows, row("vgg vit", 1, 1))
	refuses(t, Heatmap, &HeatmapParams{Rows: []string{"case a"}}, tableOf(twice),
		`two rows of the table are at`)
	for _, p := range []HeatmapParams{{}, {Rows: []string{"a", "a"}},
		{Rows: []string{"a"}, Bands: []float64{2, 1}}} {
		if err := Heatmap.Check(&p, nil); err == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
}

func TestIntervals(t *testing.T) {
	nan := stages.Number(math.NaN())
	table := stages.Table{Title: "Meta-Rank", Keys: []string{"method"},
		Numbers: numbersOf("kappa", "low", "high"),
		Rows:    []stages.Row{row("ig", 1, 0.5, 1.5), row("rise", -1, -1.5, nan), row("zero", nan, nan, nan)}}
	p := &IntervalsParams{Label: "method", Value: "kappa", Low: "low", High: "high"}
	svg, caption := drawn(t, "intervals", stagetest.Run(t, Intervals, p, tableOf(table)))
	shows(t, "the caption", caption, "Meta-Rank: kappa from low to high; 1 row undefined.")
	shows(t, "the figure", svg, ">ig<", ">rise<", ">zero<", ">kappa<")
	refuses(t, Intervals, &IntervalsParams{Label: "model", Value: "kappa"}, tableOf(table),
		`no key column "model"`)
	refuses(t, Intervals, &IntervalsParams{Value: "mean"}, tableOf(table),
		`no number column "mean", only kappa, low, high`)
}

func TestCriticalDifference(t *testing.T) {
	table := stages.Table{Title: "Mean ranks of method", Ranked: true, Keys: []string{"method"},
		Numbers: numbersOf("mean rank", "critical difference"),
		Rows:    []stages.Row{row("ig", 1.2, 0.9), row("rise", 2, 0.9), row("zero", 2.8, 0.9)}}
	svg, caption := drawn(t, "critical-difference", stagetest.Run(t, CriticalDifference, nil, tableOf(table)))
	shows(t, "the caption", caption, "bars join what can't be told apart")
	shows(t, "the figure", svg, ">ig  1.20<", ">rise  2.00<", ">zero  2.80<", ">critical difference 0.90<")
	// Two groups: ig with rise, rise with zero; each bar is one line of width 3.
	at := strings.Index(svg, `stroke-width="3"`)
	bars, _, _ := strings.Cut(svg[at:], "/>")
	if n := strings.Count(bars, "M"); n != 2 {
		t.Errorf("%d bars, want 2: %s", n, bars)
	}
	table.Rows = append(table.Rows, row("none", stages.Number(math.NaN()), 0.9))
	_, caption = drawn(t, "critical-difference-none",
		stagetest.Run(t, CriticalDifference, nil, tableOf(table)))
	shows(t, "the caption", caption, "without a mean rank: none")
	refuses(t, CriticalDifference, nil, tableOf(consistency()),
		`the table "Rankings" isn't one of stats/friedman`)
}

func TestBoxplot(t *testing.T) {
	var cells []stages.Data
	for _, layer := range []string{"final", "input"} {
		cells = append(cells,
			scoresOf(stages.Facts{"unit": "share"},
				[]string{"layer", layer, "method", "ig", "setting", "GridPG"},
				1, 2, 3, 4, 5, 6, 7, 30),
			scoresOf(nil, []string{"layer", layer, "method", "ig", "setting", "DiFull"}, 1, 1, 1, 1, nan),
			scoresOf(nil, []string{"layer", layer, "method", "rise", "setting", "DiFull"}, nan, nan))
	}
	in := map[string][]stages.Data{"scores": cells}
	p := &BoxplotParams{X: "method", Group: "layer", Facet: []string{"setting"}, Columns: 2,
		Title: "Localisation"}
	r := stagetest.Run(t, Boxplot, p, in)
	svg, caption := drawn(t, "boxplot", r)
	shows(t, "the caption", caption, "Localisation: scores over 0 to 8 images",
		"boxes that are only a line (2)",
		"6 scores undefined or infinite left out")
	shows(t, "the figure", svg, ">GridPG<", ">DiFull<", ">rise<", ">final<", ">input<")
	want := "layer|method|setting|low|first quartile|median|third quartile|high|outside|n|undefined\n" +
		"final|ig|DiFull|1|1|1|1|1|0|4|1\ninput|ig|DiFull|1|1|1|1|1|0|4|1\n" +
		"final|rise|DiFull|-|-|-|-|-|0|0|2\ninput|rise|DiFull|-|-|-|-|-|0|0|2\n" +
		"final|ig|GridPG|1|2.5|4.5|6.5|7|1|8|0\ninput|ig|GridPG|1|2.5|4.5|6.5|7|1|8|0\n"
	if got := text(decodeTable(t, r, "numbers")); got != want {
		t.Errorf("got\n%s", got)
	}
	refuses(t, Boxplot, &BoxplotParams{X: "model"}, in, `the axis "model" isn't collapsed`)
	refuses(t, Boxplot, &BoxplotParams{X: "method", Group: "method"}, in, `named twice`)
	drawn(t, "boxplot-plain", stagetest.Run(t, Boxplot, &BoxplotParams{X: "method", Columns: 1},
		map[string][]stages.Data{"scores": cells[:1]}))
}
