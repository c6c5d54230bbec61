package typeset

import (
	"strings"

	"github.com/runexp/runexp/stages"
)

// Markdown returns a table in Markdown. Numbers have the decimals of their columns, and marked ones an
// asterisk.
func Markdown(t stages.Table) string {
	g := tableGrid(t)
	text := g.Markdown() + "\n"
	if g.Legend != "" {
		text += "\n\\* " + Inline(g.Legend) + "\n"
	}
	if g.Bare != "" {
		text += "\n" + Inline(g.Bare) + "\n"
	}
	return text
}

// Markdown returns the grid as a table, without its last newline.
func (g *Grid) Markdown() string {
	var head, rule []string
	for _, c := range g.columns {
		text, align := Inline(c.label), ":--"
		if n := c.number; n != nil {
			align = "--:"
			text += Inline(variantOf(n))
			if n.Unit != "" {
				text += ", " + Inline(n.Unit)
			}
			text += Arrows[n.Direction]
		}
		head, rule = append(head, text), append(rule, align)
	}
	var rows [][]string
	for i, texts := range g.rows {
		var fields []string
		for k, c := range g.columns {
			text := texts[k]
			if c.number != nil {
				text = Decimals(text, c.number.Digits)
			}
			if g.marked[i][k] {
				text += "*"
			}
			fields = append(fields, text)
		}
		rows = append(rows, fields)
	}
	return MarkdownTable(head, rule, rows)
}

// MarkdownTable returns a table without its last newline. Fields are escaped; head and rule are Markdown.
func MarkdownTable(head, rule []string, rows [][]string) string {
	lines := []string{"| " + strings.Join(head, " | ") + " |", "| " + strings.Join(rule, " | ") + " |"}
	for _, row := range rows {
		line := "|"
		for _, field := range row {
			line += " " + Inline(field) + " |"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// Arrows follow the names of columns whose numbers have a better direction.
var Arrows = map[stages.Direction]string{stages.Higher: " ↑", stages.Lower: " ↓"}
