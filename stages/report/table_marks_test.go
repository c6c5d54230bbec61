package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// pairs returns a table as stats/wilcoxon makes it: rows of a competitor, further axes, the reference and
// whether the difference isn't confirmed.
func pairs(axes []string, rows ...[]string) stages.Data {
	t := stages.Table{Title: "pairs", Keys: append(axes, "reference"),
		Numbers: []stages.Column{{Name: "p"}, {Name: "not confirmed"}}}
	for _, r := range rows {
		last := len(r) - 1
		not := stages.Number(0)
		if r[last] == "not" {
			not = 1
		}
		t.Rows = append(t.Rows, stages.Row{Keys: r[:last], Numbers: []stages.Number{0.01, not}})
	}
	return stagetest.Value(nil, t.Encode())
}

// TestTableMarks: the best and all that can't be told apart from it are marked, in the columns asked for, and
// nothing is where every difference is confirmed.
func TestTableMarks(t *testing.T) {
	up := stages.Measure{Direction: stages.Higher, High: 1}.Facts(nil)
	var values []stages.Data
	for _, domain := range []string{"a", "b"} {
		for _, column := range []string{"LC", "Total"} {
			for k, method := range []string{"abslrp", "clrp", "rap"} {
				values = append(values, scoresOf(up,
					[]string{"column", column, "domain", domain, "method", method}, 0.5, 0.25*float64(k)))
			}
		}
	}
	everywhere := pairs([]string{"method", "domain"}, []string{"clrp", "a", "abslrp", "not"},
		[]string{"rap", "a", "abslrp", "yes"}, []string{"abslrp", "b", "rap", "yes"},
		[]string{"clrp", "b", "rap", "yes"})
	each := pairs([]string{"method", "column", "domain"}, []string{"clrp", "LC", "a", "rap", "not"},
		[]string{"clrp", "Total", "b", "rap", "not"}, []string{"abslrp", "Total", "b", "rap", "not"})
	inA := stagetest.At(pairs([]string{"method"}, []string{"clrp", "rap", "not"}), "domain", "a")
	inB := stagetest.At(pairs([]string{"method"}, []string{"clrp", "rap", "yes"}), "domain", "b")
	for name, tc := range map[string]struct {
		mark  string
		marks []stages.Data
		want  string // columns and methods with a mark
	}{
		"a column of each domain": {"Total", []stages.Data{everywhere}, "a Total: abslrp clrp\nb Total:\n"},
		"one column":              {"b Total", []stages.Data{everywhere}, "b Total:\n"},
		"all columns": {"", []stages.Data{everywhere},
			"a LC: abslrp clrp\na Total: abslrp clrp\nb LC:\nb Total:\n"},
		"by column": {"", []stages.Data{each},
			"a LC: clrp rap\na Total:\nb LC:\nb Total: abslrp clrp rap\n"},
		"of several cells": {"LC", []stages.Data{inA, inB}, "a LC: clrp rap\nb LC:\n"},
	} {
		p := &TableParams{Statistic: "mean", Rows: []string{"method"}, Columns: []string{"domain", "column"},
			Mark: tc.mark}
		in := map[string][]stages.Data{"values": values, "marks": tc.marks}
		table := decodeTable(t, stagetest.Run(t, Table, p, in), "table")
		got := ""
		for k, c := range table.Numbers {
			if c.Marks == "" {
				continue
			}
			got += c.Marks + ":"
			for _, r := range table.Rows {
				if r.Numbers[k] == 1 {
					got += " " + r.Keys[0]
				}
			}
			got += "\n"
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for want, tc := range map[string]struct {
		mark  string
		marks stages.Data
	}{
		`no column is called "Sum"`:     {"Sum", everywhere},
		`the table "pairs" is for each`: {"", pairs([]string{"model"}, []string{"vgg", "vit", "yes"})},
		`isn't one of stats/wilcoxon`:   {"", stagetest.Value(nil, stages.Table{Title: "pairs"}.Encode())},
		`damaged table`:                 {"", stagetest.Value(nil, []byte("{"))},
	} {
		p := &TableParams{Statistic: "mean", Rows: []string{"method"}, Columns: []string{"domain", "column"},
			Mark: tc.mark}
		refuses(t, Table, p, map[string][]stages.Data{"values": values, "marks": {tc.marks}}, want)
	}
}
