package webpage

import (
	"reflect"
	"testing"
)

// TestWinners: ties share a case, a case without a rank has no winner, and the marks of a column of a case
// count who doesn't differ from its best.
func TestWinners(t *testing.T) {
	m := &model{Rank: "method", Axes: []axis{{"model", []string{"vit", "cnn"}}}, Tables: []table{
		{Len: 4, Columns: []column{{Name: "method"}, {Name: "a cnn", Number: true},
			{Name: "a cnn not confirmed", Number: true, Marks: "a cnn"}},
			Rows: [][]string{{"x", "1", "1"}, {"y", "1", "1"}, {"z", "0.9", "1"}, {"w", "0", "0"}}},
		{File: "ranks.csv", Len: 6, Columns: []column{{Name: "model"}, {Name: "metric"}, {Name: "method"},
			{Name: "rank", Number: true}},
			Rows: [][]string{{"cnn", "a", "x", "1.5"}, {"cnn", "a", "y", "1.5"}, {"cnn", "a", "z", "3"},
				{"cnn", "b", "x", ""}, {"vit", "a", "y", "2"}, {"vit", "a", "z", "1"}}},
	}}
	m.setWinners()
	want := &winnerTable{File: "ranks.csv", Axes: []string{"metric", "model"}, Rows: []string{"a"},
		Columns: []string{"vit", "cnn"},
		Cells:   [][]winner{{{IDs: []string{"z"}}, {IDs: []string{"x", "y"}, Near: 1}}}, Tested: true}
	if !reflect.DeepEqual(m.Winners, want) {
		t.Errorf("the winners are %+v, want %+v", m.Winners, want)
	}
	m.Winners, m.Tables = nil, m.Tables[:1]
	if m.setWinners(); m.Winners != nil {
		t.Errorf("a table without ranks has winners: %+v", m.Winners)
	}
}
