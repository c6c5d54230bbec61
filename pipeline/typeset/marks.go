package typeset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// Marks are the asterisks of a table, of which README.md, LaTeX and the page draw the same.
type Marks struct {
	Drawn  map[string]int // the position of the column of marks, by the name of the marked column
	Legend string         // what an asterisk means, "" if none is drawn
	Bare   string         // a sentence on the columns whose marks aren't drawn, "" for none
}

// MarksOf finds the marks of rows of published texts. Marks that every row of a column would carry tell
// nothing of any row: they aren't drawn, and Bare reports it.
func MarksOf(columns []string, numbers []stages.Column, rows [][]string) Marks {
	m := Marks{Drawn: map[string]int{}}
	var bare []string
	for i, name := range columns {
		k := slices.IndexFunc(numbers, func(n stages.Column) bool { return n.Name == name })
		if k < 0 || numbers[k].Marks == "" {
			continue
		}
		n := &numbers[k]
		full, some := true, false
		of := slices.Index(columns, n.Marks)
		for _, row := range rows {
			x, ok := Parse(row[i])
			if of >= 0 {
				_, shown := Parse(row[of])
				ok = ok && shown
			}
			some = some || ok
			full = full && (!ok || x == 1)
		}
		switch {
		case !some: // no number to mark
		case full:
			bare = append(bare, label(numbers, n.Marks))
		default:
			m.Drawn[n.Marks], m.Legend = i, n.Unit
		}
	}
	switch {
	case len(bare) == 0:
	case len(m.Drawn) == 0:
		m.Bare = "No number has an asterisk, since each would: none differs significantly from the best of " +
			"its column."
	case len(bare) == 1:
		m.Bare = fmt.Sprintf("No number of %s has an asterisk, since each would: none differs significantly "+
			"from the best.", bare[0])
	default:
		last := len(bare) - 1
		m.Bare = fmt.Sprintf("No number of %s and %s has an asterisk, since each would: none differs "+
			"significantly from the best of its column.", strings.Join(bare[:last], ", "), bare[last])
	}
	return m
}

// label returns what people read as the name of a column.
func label(numbers []stages.Column, name string) string {
	for _, n := range numbers {
		if n.Name == name {
			return cmp.Or(n.Label, name)
		}
	}
	return name
}
