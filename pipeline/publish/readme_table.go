package publish

import (
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// table shows the first rows of a sheet, folded if they are many.
func (m *merge) table(p printer, s *sheet, open bool) {
	columns := s.columns()
	style := map[string]stages.Column{}
	var titles []string
	for _, b := range s.blocks {
		for _, n := range b.numbers {
			if _, ok := style[n.Name]; !ok {
				style[n.Name] = n
			}
		}
		if b.title != "" && !slices.Contains(titles, b.title) {
			titles = append(titles, b.title)
		}
	}
	title := path.Base(strings.TrimSuffix(s.file, ".csv"))
	if len(titles) == 1 {
		title = titles[0]
	}
	if open = open && len(s.rows) <= openRows; open {
		p("%s ([CSV](%s))\n\n", inline(title), s.file)
	} else {
		p("<details><summary>%s (%s)</summary>\n\n", inline(title), count(len(s.rows), "row", "rows"))
	}
	var head, rule []string
	for _, c := range columns {
		n, number := style[c]
		text := inline(c)
		if n.Variant != "" {
			text += " (" + inline(n.Variant) + ")"
		}
		if n.Unit != "" {
			text += ", " + inline(n.Unit)
		}
		switch n.Direction {
		case stages.Higher:
			text += " ↑"
		case stages.Lower:
			text += " ↓"
		}
		head = append(head, text)
		if number {
			rule = append(rule, "--:")
		} else {
			rule = append(rule, ":--")
		}
	}
	p("| %s |\n| %s |\n", strings.Join(head, " | "), strings.Join(rule, " | "))
	for _, r := range m.shownRows(s)[:min(tableRows, len(s.rows))] {
		var fields []string
		for _, c := range columns {
			if n, ok := style[c]; ok {
				fields = append(fields, decimals(r.fields.get(c), n.Digits))
			} else {
				fields = append(fields, inline(r.fields.get(c)))
			}
		}
		p("| %s |\n", strings.Join(fields, " | "))
	}
	p("\n")
	if n := len(s.rows) - tableRows; n > 0 {
		p("%s in [%s](%s).\n\n", count(n, "more row", "more rows"), s.file, s.file)
	}
	if !open {
		p("</details>\n\n")
	}
}

// shownRows returns the rows of a sheet as the experiment orders cells and ids, but
// for those whose order is a result.
func (m *merge) shownRows(s *sheet) []*record {
	blocks := map[string]*block{}
	for _, b := range s.blocks {
		blocks[b.cell.Name] = b
	}
	rows := slices.Clone(s.rows)
	slices.SortStableFunc(rows, func(x, y *record) int {
		if c := m.compareShown(x.cell, y.cell); c != 0 {
			return c
		}
		b := blocks[x.cell]
		if b == nil || b.ranked {
			return 0
		}
		for _, axis := range b.keys {
			if c := m.r.Order.Compare(axis, x.fields.get(axis), y.fields.get(axis)); c != 0 && m.r.Order[axis] != nil {
				return c
			}
		}
		return 0
	})
	return rows
}

// decimals writes a published number with so many digits after the point, and
// nothing where it's undefined.
func decimals(text string, digits int) string {
	x, ok := parse(text)
	switch {
	case !ok:
		return inline(text)
	case math.IsNaN(x):
		return ""
	}
	s := strconv.FormatFloat(x, 'f', digits, 64)
	if strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-")
	}
	return s
}
