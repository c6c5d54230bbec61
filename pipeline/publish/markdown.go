package publish

import (
	"strings"

	"github.com/runexp/runexp/stages"
)

// Markdown returns a table of Markdown: numbers with the decimals of their columns, and asterisks at those
// that are marked.
func Markdown(t stages.Table) string {
	g := tableGrid(t)
	text := g.markdown() + "\n"
	if g.legend != "" {
		text += "\n\\* " + inline(g.legend) + "\n"
	}
	return text
}

// markdown returns a table without its last newline.
func (g *grid) markdown() string {
	var head, rule []string
	for _, c := range g.columns {
		text, align := inline(c.label), ":--"
		if n := c.number; n != nil {
			align = "--:"
			if n.Variant != "" {
				text += " (" + inline(n.Variant) + ")"
			}
			if n.Unit != "" {
				text += ", " + inline(n.Unit)
			}
			text += arrows[n.Direction]
		}
		head, rule = append(head, text), append(rule, align)
	}
	var rows [][]string
	for i, texts := range g.rows {
		var fields []string
		for k, c := range g.columns {
			text := texts[k]
			if c.number != nil {
				text = decimals(text, c.number.Digits)
			}
			if g.marked[i][k] {
				text += "*"
			}
			fields = append(fields, text)
		}
		rows = append(rows, fields)
	}
	return markdownTable(head, rule, rows)
}

// markdownTable returns a table, in which fields aren't Markdown, without its last newline.
func markdownTable(head, rule []string, rows [][]string) string {
	lines := []string{"| " + strings.Join(head, " | ") + " |", "| " + strings.Join(rule, " | ") + " |"}
	for _, row := range rows {
		line := "|"
		for _, field := range row {
			line += " " + inline(field) + " |"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

var arrows = map[stages.Direction]string{stages.Higher: " ↑", stages.Lower: " ↓"}
