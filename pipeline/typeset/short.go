package typeset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A Short says how much of a grid a page shows.
type Short struct {
	Rows, Numbers, Parts int    // rows, numbers in a row, and tables that share the columns
	Items                int    // the most items that a score has: a larger n counts scores
	Across               string // what the columns of numbers are, for the header of a table that is turned
}

// A Shortened is a grid as tables of Markdown that are read without scrolling.
type Shortened struct {
	Tables   []string // the same rows with other columns
	Same     []string // numbers that are the same in every row, and in no table: "24 images"
	MoreRows int      // rows that no table has
	More     int      // columns that no table has
}

// Short returns the grid for a page. Intervals stand behind their number, counts that are the same in every
// row below the table, and a count of undefined scores that is 0 nowhere. A wide table of few rows is turned,
// and any other wide one cut where the first word of its columns changes.
func (g *Grid) Short(s Short) Shortened {
	var out Shortened
	columns := g.shortColumns(s, &out)
	rows := g.cells(columns)
	if turned, cells := g.turned(s, columns, rows); turned != nil {
		columns, rows = turned, cells
	}
	out.MoreRows = max(len(rows)-s.Rows, 0)
	rows = rows[:len(rows)-out.MoreRows]
	var keys, numbers []int
	for i, c := range columns {
		if c.numbers == 0 {
			keys = append(keys, i)
		} else {
			numbers = append(numbers, i)
		}
	}
	parts := pack(columns, numbers, s.Numbers)
	for n, part := range parts {
		if n >= s.Parts {
			out.More += len(part)
			continue
		}
		var head, rule []string
		shown := slices.Concat(keys, part)
		for _, i := range shown {
			head, rule = append(head, columns[i].head), append(rule, columns[i].align())
		}
		var texts [][]string
		for _, row := range rows {
			var fields []string
			for _, i := range shown {
				fields = append(fields, row[i])
			}
			texts = append(texts, fields)
		}
		out.Tables = append(out.Tables, MarkdownTable(head, rule, texts))
	}
	return out
}

// A shortColumn is a column of a table for a page.
type shortColumn struct {
	head    string // Markdown
	word    string // the first word of its name
	numbers int    // how many numbers a field has, 0 for a text
	of      int    // the column of the grid
}

func (c shortColumn) align() string {
	if c.numbers == 0 {
		return ":--"
	}
	return "--:"
}

// shortColumns returns the columns that tables have, and reports the others to out.
func (g *Grid) shortColumns(s Short, out *Shortened) (list []shortColumn) {
	for k, c := range g.columns {
		word, _, _ := strings.Cut(c.label, " ")
		switch {
		case c.number == nil:
			list = append(list, shortColumn{Inline(c.label), word, 0, k})
			continue
		case c.end:
			continue
		}
		if same, ok := g.everywhere(k); ok {
			if c.name != "undefined" || same != "0" {
				out.Same = append(out.Same, c.counted(same, s.Items))
			}
			continue
		}
		one := shortColumn{c.head(s.Items > 0 && g.most(k) > float64(s.Items)), word, 1, k}
		if c.ends != nil {
			one.head, one.numbers = one.head+" [95 % interval]", 3
		}
		if c.sd != nil {
			one.numbers++
		}
		list = append(list, one)
	}
	return list
}

// everywhere returns a count that all rows have, of which there are several.
func (g *Grid) everywhere(k int) (string, bool) {
	c := g.columns[k]
	counts := c.number.Digits == 0 && c.number.Direction == ""
	if len(g.rows) == 0 || !counts || len(g.rows) == 1 && c.name != "undefined" {
		return "", false
	}
	first := g.rows[0][k]
	for _, row := range g.rows {
		if row[k] != first || Decimals(first, 0) == "" {
			return "", false
		}
	}
	if x, ok := Parse(first); !ok || x != math.Trunc(x) || len(g.rows) == 1 && x != 0 {
		return "", false
	}
	return Decimals(first, 0), true
}

// most returns the largest number of a column.
func (g *Grid) most(k int) float64 {
	most := math.Inf(-1)
	for i := range g.rows {
		if x := g.at(i, k); x > most {
			most = x
		}
	}
	return most
}

// head returns the column's name for people, with its unit and the better direction.
func (c gridColumn) head(more bool) string {
	n, name := c.number, c.label
	if name == "kappa" {
		name = "κ"
	}
	switch {
	case c.name == "n" && n.Unit != "" && more:
		name = "scores"
	case c.name == "n" && n.Unit != "":
		name = n.Unit
	case c.sd != nil && n.Unit != "":
		name += " ± sd (" + n.Unit + ")"
	case c.sd != nil:
		name += " ± sd"
	case n.Unit == "" || n.Unit == name:
	case c.name == "undefined":
		name += " " + n.Unit
	default:
		name += " (" + n.Unit + ")"
	}
	return Inline(name+variantOf(n)) + Arrows[n.Direction]
}

// variantOf returns the variant of a column's numbers in parentheses, with a space before it; "" for none.
func variantOf(n *stages.Column) string {
	switch n.Variant {
	case "":
		return ""
	case stages.MixedVariants:
		return " (several definitions)"
	}
	return " (" + n.Variant + ")"
}

// counted returns a count with what it counts.
func (c gridColumn) counted(count string, items int) string {
	n, err := strconv.Atoi(count)
	switch unit := c.number.Unit; {
	case unit == "":
		return c.label + " " + count
	case c.name == "n" && items > 0 && (err != nil || n > items):
		return count + " scores"
	case c.name == "n" || unit == c.label:
		return count + " " + unit
	}
	return fmt.Sprintf("%s %s %s", c.label, count, c.number.Unit)
}

// cells returns the texts of rows.
func (g *Grid) cells(columns []shortColumn) (rows [][]string) {
	whole := make([]bool, len(columns)) // ranks and counts, which have a decimal only where there are ties
	for i, c := range columns {
		n := g.columns[c.of].number
		whole[i] = n != nil && (n.Name == "rank" || n.Unit == "cases" || n.Unit == "comparisons")
		for r := range g.rows {
			x := g.at(r, c.of)
			whole[i] = whole[i] && (math.IsNaN(x) || x == math.Trunc(x))
		}
	}
	for r, texts := range g.rows {
		var fields []string
		for i, c := range columns {
			text, n := texts[c.of], g.columns[c.of].number
			if n == nil {
				fields = append(fields, text)
				continue
			}
			digits := n.Digits
			if whole[i] {
				digits = 0
			}
			text = Decimals(text, digits)
			if sd := g.columns[c.of].sd; sd != nil && text != "" {
				if over := Decimals(texts[sd[0]], g.columns[sd[0]].number.Digits); over != "" {
					text += " ± " + over
				}
			}
			if g.marked[r][c.of] {
				text += "*"
			}
			if ends := g.columns[c.of].ends; ends != nil && text != "" {
				low, high := Decimals(texts[ends[0]], digits), Decimals(texts[ends[1]], digits)
				if low != "" && high != "" {
					text += " [" + low + ", " + high + "]"
				}
			}
			fields = append(fields, text)
		}
		rows = append(rows, fields)
	}
	return rows
}

// turned returns a table whose numbers are all of one kind with its rows as columns, nil unless it is too
// wide and so becomes narrow enough.
func (g *Grid) turned(s Short, columns []shortColumn, rows [][]string) (head []shortColumn,
	cells [][]string) {
	var keys, numbers []int
	for i, c := range columns {
		if c.numbers == 0 {
			keys = append(keys, i)
		} else {
			numbers = append(numbers, i)
		}
	}
	if len(numbers) <= s.Numbers || len(rows) == 0 || len(rows) > s.Numbers || len(keys) == 0 {
		return nil, nil
	}
	first := *g.columns[columns[numbers[0]].of].number
	for _, i := range numbers {
		n := *g.columns[columns[i].of].number
		if columns[i].numbers > 1 || n.Unit != first.Unit || n.Direction != first.Direction ||
			n.Digits != first.Digits || n.Variant != first.Variant {
			return nil, nil
		}
	}
	head = []shortColumn{{Inline(s.Across), "", 0, 0}}
	for _, row := range rows {
		var names []string
		for _, i := range keys {
			names = append(names, row[i])
		}
		c := gridColumn{label: strings.Join(names, ", "), number: &stages.Column{
			Unit: first.Unit, Direction: first.Direction, Variant: first.Variant}}
		head = append(head, shortColumn{c.head(false), names[0], 1, 0})
	}
	for _, i := range numbers {
		fields := []string{g.columns[columns[i].of].label}
		for _, row := range rows {
			fields = append(fields, row[i])
		}
		cells = append(cells, fields)
	}
	return head, cells
}

// pack divides columns among tables with at most so many numbers in a row. Neighbours with the same first
// word stay together where they fit into one table.
func pack(columns []shortColumn, numbers []int, most int) (parts [][]int) {
	total := 0
	for _, i := range numbers {
		total += columns[i].numbers
	}
	if total <= most {
		return [][]int{numbers}
	}
	room := 0
	for start := 0; start < len(numbers); {
		end, size := start, 0
		for end < len(numbers) && columns[numbers[end]].word == columns[numbers[start]].word {
			size += columns[numbers[end]].numbers
			end++
		}
		if size > room {
			parts, room = append(parts, nil), most
		}
		for ; start < end; start++ {
			i := numbers[start]
			if columns[i].numbers > room && len(parts[len(parts)-1]) > 0 {
				parts, room = append(parts, nil), most
			}
			parts[len(parts)-1] = append(parts[len(parts)-1], i)
			room -= columns[i].numbers
		}
	}
	return parts
}
