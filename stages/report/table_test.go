package report

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

var nan = math.NaN()

// grid returns scores over two axes, with one cell missing and some undefined.
func grid() []stages.Data {
	up := stages.Measure{Unit: "share", Direction: stages.Higher, High: 1, Tolerance: 1e-3}.Facts(nil)
	return []stages.Data{
		scoresOf(up, []string{"method", "ig", "model", "vgg"}, 0.5, 0.9, 0.1),
		scoresOf(up, []string{"method", "ig", "model", "vit"}, 1, nan, 0),
		scoresOf(up, []string{"method", "rise", "model", "vgg"}, nan, nan, nan),
	}
}

func TestTable(t *testing.T) {
	in := map[string][]stages.Data{"values": grid()}
	for name, tc := range map[string]struct {
		p    TableParams
		want string
	}{
		"all rows": {TableParams{Statistic: "mean"},
			"method|model|mean|low|high|n|undefined\nig|vgg|0.5|0.1|0.9|3|0\nig|vit|0.5|0|1|2|1\n" +
				"rise|vgg|-|-|-|0|3\n"},
		"intervals": {TableParams{Statistic: "mean", Columns: []string{"model"}, Intervals: true},
			"method|vgg|vit|vgg low|vgg high|vit low|vit high|n|undefined\n" +
				"ig|0.5|0.5|0.1|0.9|0|1|2|1\nrise|-|-|-|-|-|-|0|3\n"},
		"columns": {TableParams{Statistic: "median", Columns: []string{"model"}},
			"method|vgg|vit|n|undefined\nig|0.5|0.5|2|1\nrise|-|-|0|3\n"},
		"rows": {TableParams{Statistic: "mean", Rows: []string{"model"}},
			"model|ig|rise|n|undefined\nvgg|0.5|-|0|3\nvit|0.5|-|2|1\n"},
		"both": {TableParams{Statistic: "mean", Rows: []string{"model"}, Columns: []string{"method"}},
			"model|ig|rise|n|undefined\nvgg|0.5|-|0|3\nvit|0.5|-|2|1\n"},
	} {
		if diff := cmp.Diff(tc.want,
			text(decodeTable(t, stagetest.Run(t, Table, &tc.p, in), "table"))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, p := range []TableParams{{Mark: "x"}, {Rows: []string{"a"}, Columns: []string{"a"}},
		{Rows: []string{"a", "a"}}, {Statistic: "median", Intervals: true}} {
		if err := Table.Check(&p, func(string) bool { return false }); err == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
	table := decodeTable(t, stagetest.Run(t, Table, nil, in), "table")
	want := stages.Column{Name: "mean", Unit: "share", Direction: stages.Higher, Tolerance: 1e-3, Digits: 4}
	if diff := cmp.Diff(want, table.Numbers[0]); diff != "" {
		t.Error(diff)
	}
	refuses(t, Table, &TableParams{Rows: []string{"metric"}}, in,
		`the axis "metric" isn't collapsed, only method, model`)
	three := []stages.Data{stagetest.At(grid()[0], "order", "morf")}
	third := decodeTable(t,
		stagetest.Run(t, Table,
			&TableParams{Statistic: "mean", Rows: []string{"order"}, Columns: []string{"model"}},
			map[string][]stages.Data{"values": three}), "table")
	if diff := cmp.Diff([]string{"order", "method"}, third.Keys); diff != "" {
		t.Errorf("an axis that is neither a row nor a column: %s", diff)
	}
}

func TestTableMedianOfEvenNumber(t *testing.T) {
	in := map[string][]stages.Data{"values": {scoresOf(nil, nil, 4, 1, 3, nan, 10)}}
	table := decodeTable(t, stagetest.Run(t, Table, &TableParams{Statistic: "median"}, in), "table")
	if got := table.Rows[0].Numbers[0]; got != 3.5 {
		t.Errorf("the median is %v, want 3.5", got)
	}
}
