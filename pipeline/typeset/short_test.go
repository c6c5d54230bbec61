package typeset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// shortOf returns a table for a page, from names of its columns of texts and the fields of its rows, which
// blanks separate.
func shortOf(s Short, keys string, numbers []stages.Column, rows ...string) Shortened {
	columns := strings.Fields(keys)
	for _, n := range numbers {
		columns = append(columns, n.Name)
	}
	var texts [][]string
	for _, row := range rows {
		texts = append(texts, strings.Fields(row))
	}
	return NewGrid(columns, numbers, texts).Short(s)
}

var page = Short{Rows: 30, Numbers: 8, Parts: 3, Items: 24, Across: "method"}

// The table of a ranking: intervals are behind their numbers, and counts that all rows have below the table.
func TestShortRanking(t *testing.T) {
	numbers := []stages.Column{
		{Name: "rank", Direction: stages.Lower},
		{Name: "kappa", Unit: "log-odds", Direction: stages.Higher, Digits: 2},
		{Name: "kappa low", Unit: "log-odds", Direction: stages.Higher, Digits: 2},
		{Name: "kappa high", Unit: "log-odds", Direction: stages.Higher, Digits: 2},
		{Name: "rank low", Direction: stages.Lower}, {Name: "rank high", Direction: stages.Lower},
		{Name: "wins", Unit: "comparisons", Direction: stages.Higher, Digits: 1},
		{Name: "of", Unit: "comparisons"}, {Name: "cases", Unit: "cases"}, {Name: "n", Unit: "images"},
		{Name: "undefined", Unit: "scores"},
	}
	got := shortOf(page, "method", numbers, "p 1 4.0368 3.5161 5.7926 1 2 154 168 12 288 0",
		"q 2 -1.5 -2 -1 1 3 3 168 12 288 0")
	want := `| method | rank ↓ [95 % interval] | κ (log-odds) ↑ [95 % interval] | wins (comparisons) ↑ |
| :-- | --: | --: | --: |
| p | 1 [1, 2] | 4.04 [3.52, 5.79] | 154 |
| q | 2 [1, 3] | -1.50 [-2.00, -1.00] | 3 |`
	if len(got.Tables) != 1 || got.Tables[0] != want {
		t.Errorf("the table is\n%s\nwant\n%s", strings.Join(got.Tables, "\n\n"), want)
	}
	if s := fmt.Sprint(got.Same); s != "[of 168 comparisons 12 cases 288 scores]" {
		t.Errorf("in every row are %s", s)
	}
	const over = "% Superscript and subscript: from the number to the ends of its 95 % interval over cases.\n"
	if text := LaTeX(stages.Table{Numbers: numbers}); !strings.Contains(text, over) {
		t.Errorf("intervals of resampled cases are told to be of images: %s", text)
	}
	// A number that any row has otherwise stays.
	got = shortOf(page, "method", numbers[6:], "p 154.5 168 12 24 0", "q 3 168 11 15 1")
	want = `| method | wins (comparisons) ↑ | cases | images | undefined scores |
| :-- | --: | --: | --: | --: |
| p | 154.5 | 12 | 24 | 0 |
| q | 3.0 | 11 | 15 | 1 |`
	if got.Tables[0] != want || fmt.Sprint(got.Same) != "[of 168 comparisons]" {
		t.Errorf("the table is\n%s\nwant\n%s\nand in every row are %s", got.Tables[0], want, got.Same)
	}
}

// A wide table is cut where the first word of its columns changes, with at most so many numbers in a row.
func TestShortOfManyColumns(t *testing.T) {
	numbers := []stages.Column{{Name: "mean rank", Digits: 2}, {Name: "first", Unit: "cases"}}
	row := "2.5 1"
	for _, metric := range []string{"rise", "mas", "mass", "road", "auc", "focus", "pic"} {
		for _, net := range []string{"vgg", "resnet", "vit", "swin"} {
			numbers = append(numbers, stages.Column{Name: metric + " " + net, Digits: 2},
				stages.Column{Name: metric + " " + net + " not confirmed", Marks: metric + " " + net})
			row += " 0.5 1"
		}
	}
	rows := make([]string, 40)
	for i := range rows {
		rows[i] = fmt.Sprintf("m%d %s", i, strings.Replace(row, "1", fmt.Sprint(i), 1))
	}
	got := shortOf(page, "method", numbers, rows...)
	var heads []string
	for _, table := range got.Tables {
		lines := strings.Split(table, "\n")
		heads = append(heads, lines[0])
		if len(lines) != 32 || strings.Count(lines[31], "0.50*") > 8 {
			t.Errorf("a table has %d lines, the last one %s", len(lines), lines[31])
		}
	}
	want := []string{
		"| method | mean rank | first (cases) | rise vgg | rise resnet | rise vit | rise swin |",
		"| method | mas vgg | mas resnet | mas vit | mas swin" +
			" | mass vgg | mass resnet | mass vit | mass swin |",
		"| method | road vgg | road resnet | road vit | road swin" +
			" | auc vgg | auc resnet | auc vit | auc swin |",
	}
	if !slices.Equal(heads, want) || got.More != 8 || got.MoreRows != 10 {
		t.Errorf("%d columns and %d rows are left out of\n%s", got.More, got.MoreRows,
			strings.Join(heads, "\n"))
	}
}

// A row of many numbers of one kind becomes a column: what changes in one method changes one line.
func TestShortTurns(t *testing.T) {
	var numbers []stages.Column
	for i := range 15 {
		numbers = append(numbers, stages.Column{Name: fmt.Sprintf("m%d", i), Unit: "share",
			Direction: stages.Higher, Digits: 1})
	}
	wide := numbers
	numbers = append(numbers, stages.Column{Name: "n", Unit: "images"})
	row := strings.Repeat(" 0.25", 14) + " 0.75 24"
	got := shortOf(page, "model order", numbers, "vgg morf"+row, "vgg lerf"+row)
	lines := strings.Split(got.Tables[0], "\n")
	if len(got.Tables) != 1 || len(lines) != 17 || lines[0] !=
		"| method | vgg, morf (share) ↑ | vgg, lerf (share) ↑ |" || lines[16] != "| m14 | 0.8 | 0.8 |" ||
		fmt.Sprint(got.Same) != "[24 images]" {
		t.Errorf("turned it is\n%s\nwith %s", got.Tables[0], got.Same)
	}
	// Numbers of two kinds aren't put below each other.
	other := slices.Clone(wide)
	other[3].Unit = "rank"
	got = shortOf(page, "model order", other, "vgg morf"+strings.TrimSuffix(row, " 24"))
	if len(got.Tables) != 2 {
		t.Errorf("of two kinds it is\n%s", strings.Join(got.Tables, "\n\n"))
	}
}

// The whiskers of a box plot are called low and high, and are no interval.
func TestShortWhiskers(t *testing.T) {
	names := []string{"low", "first quartile", "median", "third quartile", "high"}
	var numbers []stages.Column
	for _, name := range names {
		numbers = append(numbers, stages.Column{Name: name, Digits: 1})
	}
	rows := [][]string{{"p", "1.5", "2", "3", "4", "5"}, {"q", "1", "2", "3", "4", "5.5"}}
	text := NewGrid(append([]string{"method"}, names...), numbers, rows).LaTeX("")
	if strings.Contains(text, "^{") {
		t.Errorf("the quartiles are in LaTeX\n%s", text)
	}
	got := shortOf(page, "method", numbers, "p 1.5 2 3 4 5", "q 1 2 3 4 5.5").Tables[0]
	want := "| p | 1.5 | 2.0 | 3.0 | 4.0 | 5.0 |"
	if strings.Contains(got, "[") || !strings.Contains(got, want) {
		t.Errorf("the quartiles are\n%s\nwithout %s", got, want)
	}
	numbers = []stages.Column{{Name: "mean", Digits: 1}, {Name: "low", Digits: 1}, {Name: "high", Digits: 1}}
	got = shortOf(page, "method", numbers, "p 2 1 3").Tables[0]
	if want = "| p | 2.0 [1.0, 3.0] |"; !strings.Contains(got, want) {
		t.Errorf("the means are\n%s\nwithout %s", got, want)
	}
}

// TestVariants: headings name a variant of the scores' definition, and several in words.
func TestVariants(t *testing.T) {
	for variant, want := range map[string]string{"official": "(official)",
		stages.MixedVariants: "(several definitions)"} {
		table := stages.Table{Keys: []string{"method"}, Numbers: []stages.Column{{Name: "x",
			Variant: variant}},
			Rows: []stages.Row{{Keys: []string{"a"}, Numbers: []stages.Number{1}}}}
		short := shortOf(page, "method", table.Numbers, "a 1").Tables[0]
		for _, text := range []string{Markdown(table), LaTeX(table), short} {
			if !strings.Contains(text, "x "+want) {
				t.Errorf("%s isn't in %s", want, text)
			}
		}
	}
}
