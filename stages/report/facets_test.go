package report

import (
	"context"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// shownAs runs a stage with labels and families, and returns its figure, its caption and a table, if it has
// one.
func shownAs(t *testing.T, s stages.Stage, params any, in map[string][]stages.Data, order stages.Order,
	labels, families stages.Names, port string) (svg, caption string, table []byte) {
	t.Helper()
	e, err := stagetest.Env(&s, in)
	if err != nil {
		t.Fatal(err)
	}
	e.Order, e.Labels, e.Families = order, labels, families
	if err := s.Run(context.Background(), params, e); err != nil {
		t.Fatal(err)
	}
	for _, o := range e.Outputs {
		switch o.Port {
		case "figure":
			svg = string(o.Data)
		case port:
			table = o.Data
		}
	}
	return svg, e.OutFacts["figure"]["caption"], table
}

var netsAndLabels = stages.Names{
	"method": {"ig": "Integrated Gradients", "random": "Noise"}, "model": {"vgg": "VGG-16", "vit": "ViT-B"},
	"order": {"morf": "MoRF", "insertion": "Insertion"},
}

func hides(t *testing.T, what, text string, unwanted ...string) {
	t.Helper()
	for _, w := range unwanted {
		if strings.Contains(text, w) {
			t.Errorf("%s shows %q", what, w)
		}
	}
}

// TestCurvesGrid checks that a figure in rows and columns has labels, no constant axis, and one name a row
// and a column; and that its table has ids.
func TestCurvesGrid(t *testing.T) {
	var curves []stages.Data
	for _, method := range []string{"ig", "random"} {
		for _, place := range [][2]string{{"vgg", "morf"}, {"vgg", "insertion"}, {"vit", "morf"}} {
			curves = append(curves, curvesOf(4, 8, place[1], 2, 0.01, "method", method, "model", place[0],
				"order",
				place[1], "data", "shapes"))
		}
	}
	in := map[string][]stages.Data{"curves": curves}
	p := &CurvesParams{Line: "method", Response: "correct", Band: "auto", Scale: "row", Chance: 0.1,
		FacetRows: []string{"model"}, FacetColumns: []string{"order"}, Gap: "no insertion"}
	svg, caption, points := shownAs(t, Curves, p, in, nil, netsAndLabels, nil, "points")
	shows(t, "the figure", svg, ">Integrated Gradients<", ">Noise<", ">VGG-16<", ">ViT-B<", ">MoRF<",
		">Insertion<",
		">no insertion<", ">accuracy<", ">chance<")
	hides(t, "the figure", svg, "shapes", ">ig<", ">correct<")
	shows(t, "the caption", caption, "Mean accuracy over", "bands:",
		"Noise lies on Integrated Gradients.")
	got, err := stages.DecodeTable(points)
	if err != nil {
		t.Fatal(err)
	}
	if s := text(got); !strings.Contains(s, "\nshapes|ig|vgg|morf|") {
		t.Errorf("the table has no ids:\n%s", s)
	}
	// Without a grid, panels have the labels in their titles.
	svg, _, _ = shownAs(t, Curves, &CurvesParams{Line: "method", Response: "correct", Band: "none",
		Columns: 2,
		Facet:   []string{"order"}}, in, nil, netsAndLabels, nil, "points")
	shows(t, "the figure", svg, ">MoRF · VGG-16<", ">Insertion · VGG-16<", ">MoRF · ViT-B<")
	for _, tc := range []struct {
		p    CurvesParams
		want string
	}{
		{CurvesParams{FacetRows: []string{"method"}}, "named twice"},
		{CurvesParams{Facet: []string{"model"}, FacetRows: []string{"order"}}, "give one of these"},
		{CurvesParams{Scale: "row"}, "name facet_rows"},
		{CurvesParams{Area: []string{"ig"}}, "name two"},
		{CurvesParams{Area: []string{"ig", "rise"}}, `no line "rise"`},
		{CurvesParams{Area: []string{"ig", "ig"}}, "twice"},
	} {
		tc.p.Line, tc.p.Response = "method", "correct"
		refuses(t, Curves, &tc.p, in, tc.want)
	}
}

// TestCurvesArea checks that an area stands for the line that it is named by: the line isn't drawn, and the
// area is filled between the others.
func TestCurvesArea(t *testing.T) {
	var curves []stages.Data
	for i, part := range []string{"mr", "dr", "ap"} {
		facts := stages.Facts{"responses": "share"}
		y := [][]float64{{0, 0.9, 1}, {0, 0.5, 1}, {0, 0.4, 0}}[i]
		payload := stages.NewTensor(y, 1, 3).Encode()
		curves = append(curves, stagetest.At(stagetest.Items(facts, payload), "part", part))
	}
	in := map[string][]stages.Data{"curves": curves}
	draw := func(area ...string) string {
		p := &CurvesParams{Line: "part", Response: "share", Band: "none", Columns: 1, Area: area}
		svg, _, _ := shownAs(t, Curves, p, in, stages.Order{"part": {"mr", "dr", "ap"}},
			stages.Names{"part": {"ap": "AP"}}, nil, "points")
		return svg
	}
	const third = `stroke="#009e73"` // the colour of the third line
	none, two, three := draw(), draw("mr", "dr"), draw("mr", "dr", "ap")
	if !strings.Contains(none, third) || !strings.Contains(two, third) || strings.Contains(three, third) {
		t.Error("the area's own line is drawn, or another one isn't")
	}
	shows(t, "the figure", two, ">between mr and dr<", ">AP<")
	shows(t, "the figure", three, ">AP<")
	if f := strings.Count; f(two, `fill-opacity`) <= f(none, `fill-opacity`) {
		t.Error("no area is filled")
	}
}

// TestBoxplotGrid checks the labels, families and gaps of box plots, and where the line of chance is.
func TestBoxplotGrid(t *testing.T) {
	var cells []stages.Data
	add := func(chance float64, at ...string) {
		m := stages.Measure{Unit: "share", Direction: stages.Higher, Chance: chance}
		cells = append(cells, stagetest.At(stagetest.Items(m.Facts(nil), stages.Scalar(0.2),
			stages.Scalar(0.6),
			stages.Scalar(0.9)), at...))
	}
	for _, method := range []string{"ig", "rise", "saliency"} {
		add(0.25, "method", method, "model", "vgg", "setting", "gridpg", "layer", "input")
		add(0.25, "method", method, "model", "vgg", "setting", "gridpg", "layer", "final")
		add(0.25, "method", method, "model", "vit", "setting", "difull", "layer", "final")
	}
	in := map[string][]stages.Data{"scores": cells}
	labels := stages.Names{"method": {"ig": "IG"}, "model": {"vgg": "VGG", "vit": "ViT"},
		"layer": {"input": "first"}}
	families := stages.Names{"method": {"ig": "gradients", "saliency": "gradients"}}
	order := stages.Order{"method": {"ig", "rise", "saliency"}}
	p := &BoxplotParams{X: "method", Group: "layer", FacetRows: []string{"setting"},
		FacetColumns: []string{"model"},
		Gap:          "three layers", YTitle: "localisation score"}
	svg, caption, _ := shownAs(t, Boxplot, p, in, order, labels, families, "numbers")
	shows(t, "the figure", svg, ">IG<", ">VGG<", ">ViT<", ">gridpg<", ">difull<", ">gradients<", ">first<",
		">chance<",
		">localisation score<", ">three layers<")
	shows(t, "the caption", caption, "not in the experiment: first in difull · ViT (three layers)")
	if ig, saliency, rise := strings.Index(svg, ">IG<"), strings.Index(svg, ">saliency<"),
		strings.Index(svg, ">rise<"); ig > saliency || saliency > rise {
		t.Error("a family isn't together")
	}
	cells = cells[:1]
	add(0.5, "method", "rise", "model", "vgg", "setting", "gridpg", "layer", "input")
	svg, _, _ = shownAs(t, Boxplot, &BoxplotParams{X: "method"}, map[string][]stages.Data{"scores": cells},
		nil, nil,
		nil, "numbers")
	hides(t, "a panel of scores with several chances", svg, ">chance<", ">input<", ">vgg")
	add(0, "method", "zero", "model", "vgg", "setting", "gridpg", "layer", "input")
	cells[len(cells)-1] = stagetest.At(stagetest.Items(stages.Measure{}.Facts(nil), stages.Scalar(0)),
		"method", "zero",
		"model", "vgg", "setting", "gridpg", "layer", "input")
	refuses(t, Boxplot, &BoxplotParams{X: "method", Log: true}, map[string][]stages.Data{"scores": cells},
		"the score 0 has no logarithm")
}

// TestHeatmapOfPairs checks that pairs that a table has once, in whatever order, stand below the diagonal in
// the experiment's order, and that cells without a pair have no dash; undefined ones have.
func TestHeatmapOfPairs(t *testing.T) {
	nan := stages.Number(nan)
	table := stages.Table{Title: "Pairs", Keys: []string{"model", "against model"}, Numbers: numbersOf("rho"),
		Rows: []stages.Row{row("a b", 0.1), row("c b", 0.9), row("a c", nan)}}
	p := &HeatmapParams{Rows: []string{"model"}, Columns: []string{"against model"}, Bands: []float64{0.6,
		0.8},
		Names: []string{"weak", "moderate", "strong"}, Digits: 1, Sort: "none"}
	svg, caption, _ := shownAs(t, Heatmap, p, tableOf(table), stages.Order{"model": {"c", "b", "a"}},
		stages.Names{"model": {"a": "Net A"}}, nil, "")
	shows(t, "the figure", svg, ">strong: above 0.8<", ">moderate: 0.6 to 0.8<", ">weak: up to 0.6<",
		">Net A<", ">b<",
		">c<", ">0.1<", ">0.9<", ">–<")
	if n := strings.Count(svg, ">–<"); n != 1 {
		t.Errorf("%d dashes, want that of the undefined number", n)
	}
	if n := strings.Count(svg, ">b<"); n != 2 {
		t.Errorf("b stands %d times, want once as a row and once as a column", n)
	}
	for _, name := range []string{">Net A<", ">c<"} { // the first has no row, the last no column
		if n := strings.Count(svg, name); n != 1 {
			t.Errorf("%s stands %d times", name, n)
		}
	}
	shows(t, "the caption", caption, "of 2 numbers 1 above 0.8", "1 cell undefined")

	// Columns by their mean; rows of two orders stand apart.
	ranks := stages.Table{Title: "Ranks", Keys: []string{"order", "case", "method"},
		Numbers: numbersOf("rank"),
		Rows: []stages.Row{row("lerf e1 x", 2), row("morf e1 x", 2), row("lerf e1 y", 1), row("morf e1 y", 1),
			row("lerf e2 x", 1), row("lerf e2 y", 2), row("morf e2 x", 2), row("morf e2 y", 1)}}
	p = &HeatmapParams{Rows: []string{"order", "case"}, Columns: []string{"method"}, Value: "rank",
		Sort: "columns"}
	svg, _, _ = shownAs(t, Heatmap, p, tableOf(ranks), stages.Order{"order": {"lerf", "morf"}}, nil, nil, "")
	last := -1
	for _, name := range []string{">lerf · e1<", ">lerf · e2<", ">morf · e1<", ">morf · e2<"} {
		at := strings.Index(svg, name)
		if at < last {
			t.Errorf("%s isn't in its block", name)
		}
		last = at
	}
	if strings.Index(svg, ">y<") > strings.Index(svg, ">x<") {
		t.Error("columns aren't ordered by their mean")
	}
}

// TestColumnLabels checks that columns that are made of ids have their labels for people, and their ids as
// names.
func TestColumnLabels(t *testing.T) {
	e := &stages.Env{Labels: stages.Names{"model": {"vgg": "VGG-16"}, "set": {"a": "shapes"}}}
	axes := []string{"model", "set"}
	for _, tc := range []struct {
		ids  []string
		want string
	}{
		{[]string{"vgg", "b"}, "VGG-16 · b"}, {[]string{"vgg", "a"}, "VGG-16 · shapes"}, {[]string{"vit",
			"b"}, ""},
	} {
		if got := columnLabel(e, axes, tc.ids); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.ids, got, tc.want)
		}
	}
	_, _, b := shownAs(t, Table, &TableParams{Statistic: "mean", Columns: []string{"model"}, Intervals: true},
		map[string][]stages.Data{"values": grid()}, nil, e.Labels, nil, "table")
	got, err := stages.DecodeTable(b)
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{}
	for _, n := range got.Numbers {
		labels[n.Name] = n.Label
	}
	for name, want := range map[string]string{"vgg": "VGG-16", "vgg low": "VGG-16 low", "vit": "", "n": ""} {
		if l, ok := labels[name]; !ok || l != want {
			t.Errorf("the column %q has the label %q, want %q", name, l, want)
		}
	}
}
