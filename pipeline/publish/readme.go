package publish

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// How much README.md shows before it links to a file.
const (
	tableRows   = 30 // of a table
	openRows    = 15 // a longer table is folded
	scoreRows   = 60 // of the means
	mainFigures = 12
	namedCells  = 20
)

// readme makes README.md of what the folder says.
func (m *merge) readme() []byte {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	title := m.r.Title
	if title == "" {
		title = m.r.Name
	}
	p("# %s\n\n", inline(title))
	m.chances(p)
	m.answer(p)
	m.unfinished(p)
	for _, stage := range m.sections() {
		m.section(p, stage)
	}
	m.means(p)
	m.elsewhere(p)
	m.undefined(p)
	m.reproduce(p)
	return []byte(b.String())
}

type printer func(format string, args ...any)

// answer says in words what was found: the published texts, or without them who
// comes first in the first table.
func (m *merge) answer(p printer) {
	texts := slices.Clone(m.texts)
	slices.SortStableFunc(texts, func(a, b passage) int { return cmp.Compare(m.rank(a.stage), m.rank(b.stage)) })
	for i := range texts {
		if texts[i].old {
			p("*Of an earlier run, this one didn't finish it:*\n\n")
		}
		p("%s\n", &texts[i])
	}
	if len(texts) == 0 {
		if s := m.first(); s != "" {
			p("%s\n\n", s)
		}
	}
}

// rank is the place of a stage in the list of what's published.
func (m *merge) rank(stage string) int {
	if i := slices.Index(m.r.Publish, stage); i >= 0 {
		return i
	}
	return len(m.r.Publish)
}

// first says who comes first in the first table of which a number has a direction: if
// that is one number, of the places on one axis. Others have no single winner.
func (m *merge) first() string {
	sheets := slices.Clone(m.sheets)
	slices.SortStableFunc(sheets, func(a, b *sheet) int { return cmp.Compare(m.rank(a.stage), m.rank(b.stage)) })
	for _, s := range sheets {
		var scores []stages.Column
		for _, b := range s.blocks {
			for _, n := range b.numbers {
				if n.Direction == stages.Higher || n.Direction == stages.Lower {
					scores = append(scores, n)
				}
			}
		}
		if len(scores) == 0 {
			continue
		}
		if len(scores) > 1 || len(s.blocks) > 1 || len(s.keys) != 1 || s.keys[0] == "item" {
			return ""
		}
		return podium(s, scores[0])
	}
	return ""
}

// podium says in words who is first, second and third in a table by one of its numbers.
// Equal numbers are a tie.
func podium(s *sheet, n stages.Column) string {
	value := func(r *record) float64 { x, _ := parse(r.fields.get(n.Name)); return x }
	var rows []*record
	for _, r := range s.rows {
		if x, ok := parse(r.fields.get(n.Name)); ok && !math.IsNaN(x) && !r.old {
			rows = append(rows, r)
		}
	}
	if len(rows) < 2 {
		return ""
	}
	slices.SortStableFunc(rows, func(x, y *record) int {
		if n.Direction == stages.Higher {
			x, y = y, x
		}
		return cmp.Compare(value(x), value(y))
	})
	var first, next []string
	for i, r := range rows {
		name := "**" + inline(r.fields.get(s.keys[0])) + "**"
		number := " (" + decimals(r.fields.get(n.Name), n.Digits) + ")"
		switch {
		case value(r) == value(rows[0]):
			first = append(first, name)
		case i < 3:
			next = append(next, name+number)
		}
	}
	by := fmt.Sprintf("By %s (%s is better),", inline(n.Name), n.Direction)
	best := decimals(rows[0].fields.get(n.Name), n.Digits)
	switch {
	case len(first) == len(rows):
		return fmt.Sprintf("%s all %d tie at %s.", by, len(rows), best)
	case len(first) > 1:
		by = fmt.Sprintf("%s %s tie first of %d (%s)", by, some(first[:len(first)-1])+" and "+first[len(first)-1], len(rows), best)
	default:
		by = fmt.Sprintf("%s %s (%s) comes first of %d", by, first[0], best, len(rows))
	}
	if len(next) == 0 {
		return by + "."
	}
	return by + ", then " + strings.Join(next, " and ") + "."
}

// unfinished marks what failed.
func (m *merge) unfinished(p printer) {
	if !m.partial {
		return
	}
	published := map[string]bool{}
	for _, l := range m.lines {
		published[l.cell] = true
	}
	for _, part := range []struct {
		state State
		words string
	}{{Failed, "Failed"}, {Blocked, "Not run, because something it needs failed or the run was stopped"}} {
		var names []string
		for _, c := range m.cells {
			if c.State == part.state {
				name := code(c.Name)
				if published[c.Name] {
					name += " (shown as an earlier run left it)"
				}
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			p("> **%s** (%s): %s\n>\n", part.words, count(len(names), "cell", "cells"), some(names))
		}
	}
	p("> Nothing was removed. What these cells would have changed is as it was.\n\n")
}

// some joins the first names of a list.
func some(names []string) string {
	if len(names) <= namedCells {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:namedCells], ", "), len(names)-namedCells)
}

// sections lists the stages with tables and figures, published ones first.
func (m *merge) sections() []string {
	var out []string
	for _, s := range m.sheets {
		out = append(out, s.stage)
	}
	for _, f := range m.figures {
		out = append(out, f.stage)
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(m.rank(a), m.rank(b)), cmp.Compare(a, b)) })
	return slices.Compact(out)
}

func (m *merge) section(p printer, stage string) {
	p("## %s\n\n", inline(stage))
	open := true // the stage's first table says the most
	for _, s := range m.sheets {
		if s.stage == stage {
			m.table(p, s, open)
			open = false
		}
	}
	i := 0
	for _, f := range m.figures {
		if f.stage != stage {
			continue
		}
		switch i++; {
		case i <= mainFigures && f.caption != "":
			p("![%s](%s)\n\n*%s*\n\n", alt(f.caption), target(f.file), inline(f.caption))
		case i <= mainFigures:
			p("![%s](%s)\n\n", alt(f.cell), target(f.file))
		default:
			p("- [%s](%s)\n", inline(f.cell), target(f.file))
		}
	}
	if i > mainFigures {
		p("\n")
	}
}

// means shows the mean scores of the cells.
func (m *merge) means(p printer) {
	var rows []string
	low, high := math.MaxInt, 0
	for _, l := range m.lines {
		for _, s := range l.scores {
			low, high = min(low, l.n), max(high, l.n)
			mean := "" // undefined
			if !math.IsNaN(s.mean) {
				mean = brief(s.mean, 4)
			}
			name := s.portOf(l) + l.cell
			if l.old {
				name += " (of an earlier run)"
			}
			arrow := map[string]string{"higher": " ↑", "lower": " ↓"}[s.direction]
			rows = append(rows, fmt.Sprintf("| %s%s | %s | %d | %d |\n", inline(name), arrow, mean, l.n, s.undefined))
		}
	}
	if len(rows) == 0 {
		return
	}
	n := strconv.Itoa(low)
	if low != high {
		n = fmt.Sprintf("%d to %d", low, high)
	}
	p("## Scores\n\nEvery mean is over the defined scores of its n = %s items.\n\n", n)
	p("<details><summary>%s</summary>\n\n", count(len(rows), "mean", "means"))
	p("| score | mean | n | undefined |\n| :-- | --: | --: | --: |\n%s\n", strings.Join(rows[:min(scoreRows, len(rows))], ""))
	if more := len(rows) - scoreRows; more > 0 {
		p("%s in [cells](cells).\n\n", count(more, "more mean", "more means"))
	}
	p("</details>\n\n")
}

// portOf says which of its cell's scores it is, where the name of the cell doesn't.
func (s summaryScore) portOf(l *line) string {
	if scoreName(l.stage(), s.port) == l.stage() {
		return ""
	}
	return s.port + " of "
}

// elsewhere says which scores of items aren't in the folder, and how to get them.
func (m *merge) elsewhere(p printer) {
	if len(m.large) == 0 {
		return
	}
	var names []string
	for _, f := range m.large {
		if name := code(f.score); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	file := "FILE"
	if s, ok := strings.CutPrefix(m.r.Command, "runexp run "); ok {
		file = visible(oneLine.Replace(s))
	}
	p("To keep this folder below %d MB, the largest files of items stay in the store: %s. For one cell of them, this writes the scores:\n\n", budget>>20, strings.Join(names, ", "))
	p("    runexp get %s '%s' -o DIR\n\n", file, m.large[0].cell)
}

// undefined names the cells whose scores aren't all defined.
func (m *merge) undefined(p printer) {
	var names []string
	for _, l := range m.lines {
		for _, s := range l.scores {
			if s.undefined > 0 {
				names = append(names, fmt.Sprintf("%s%s %d of %d", inline(s.portOf(l)), code(l.cell), s.undefined, l.n))
			}
		}
	}
	if len(names) > 0 {
		p("Undefined, and in no mean: %s.\n\n", some(names))
	}
}

// reproduce says how to get this folder again and what made it.
func (m *merge) reproduce(p printer) {
	p("## How to reproduce\n\n")
	if m.r.Command != "" {
		p("    %s\n\n", visible(oneLine.Replace(m.r.Command)))
	}
	p("[experiment.yaml](experiment.yaml) is the experiment as it ran; cells/ has the parameters of each cell, with their defaults.\n")
	makers := map[string]int{}
	for _, l := range m.lines {
		if l.madeBy != "" {
			makers[l.madeBy]++
		}
	}
	var names []string
	for name := range makers {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) == 1 {
		p("Made by: %s.\n", inline(names[0]))
	} else if len(names) > 1 {
		for i, name := range names {
			names[i] = fmt.Sprintf("%s (%s)", inline(name), count(makers[name], "cell", "cells"))
		}
		p("Made by: %s.\n", strings.Join(names, "; "))
	}
	if len(m.r.Narrowed) > 0 {
		p("\n**Narrowed**, so this is not the whole experiment:\n\n")
		for _, s := range m.r.Narrowed {
			p("- %s\n", inline(s))
		}
	}
	if len(m.r.Notes) > 0 {
		p("\nNotes:\n\n")
		for _, s := range m.r.Notes {
			p("- %s\n", inline(s))
		}
	}
	if len(m.kept) > 0 {
		p("\nOf an earlier run, because something failed in this one:\n\n")
		for _, name := range m.kept {
			p("- [%s](%s)\n", alt(path.Base(name)), target(name))
		}
	}
}
