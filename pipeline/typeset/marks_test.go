package typeset

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestMarksThatNothingLacks: a sentence stands where every row would have an asterisk, and no asterisk.
func TestMarksThatNothingLacks(t *testing.T) {
	table := func(mas, rise stages.Number) stages.Table {
		column := func(name string) []stages.Column {
			return []stages.Column{
				{Name: name, Direction: stages.Higher, Digits: 1, Label: strings.ToUpper(name)},
				{Name: name + " not confirmed", Marks: name, Unit: "the best, and those like it"}}
		}
		return stages.Table{Keys: []string{"method"}, Numbers: append(column("mas"), column("rise")...),
			Rows: []stages.Row{{Keys: []string{"ig"}, Numbers: []stages.Number{0.5, 1, 0.5, 1}},
				{Keys: []string{"random"}, Numbers: []stages.Number{0.1, mas, 0.1, rise}}}}
	}
	const legend, where = "\\* the best, and those like it\n", " has an asterisk, since each would: none " +
		"differs significantly from the best"
	for _, c := range []struct {
		mas, rise stages.Number
		stars     int
		want      string
	}{
		{0, 0, 2, legend},
		{1, 0, 1, legend + "\nNo number of MAS" + where + ".\n"},
		{1, 1, 0, "No number" + where + " of its column.\n"},
	} {
		text := Markdown(table(c.mas, c.rise))
		cells, notes, _ := strings.Cut(text, "\n\n")
		if got := strings.Count(cells, "*"); got != c.stars || notes != c.want {
			t.Errorf("marks %v and %v: %d asterisks, want %d:\n%s", c.mas, c.rise, got, c.stars, text)
		}
		latex := LaTeX(table(c.mas, c.rise))
		if got := strings.Count(latex, "{*}"); got != c.stars {
			t.Errorf("marks %v and %v: %d asterisks in LaTeX, want "+
				"%d:\n%s", c.mas, c.rise, got, c.stars, latex)
		}
		if bare := strings.TrimPrefix(c.want, legend); !strings.Contains(latex, strings.TrimSpace(bare)) {
			t.Errorf("LaTeX lacks %q:\n%s", bare, latex)
		}
	}
	// Of the first rows alone, all would have the mark.
	long := table(0, 0)
	rows := [][]string{{"ig", "0.5", "1"}, {"random", "0.1", "0"}}
	first := NewGrid([]string{"method", "mas", "mas not confirmed"}, long.Numbers, rows).First(1)
	if text := first.Markdown(); !strings.Contains(text, "0.5*") || strings.Contains(text, "random") {
		t.Errorf("the first row lacks its mark:\n%s", text)
	}
}
