package publish

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// readmeRenderer writes README.md: the answer in words, tables, figures and means, and how to reproduce them.
var readmeRenderer = renderer{
	name:  "readme",
	files: []pattern{{"README.md", ""}},
	render: func(f *Folder, add func(name string, b []byte)) {
		r := readme{Folder: f}
		r.write()
		add("README.md", []byte(r.out.String()))
	},
	read: func(d *disk, _ string, b []byte) bool {
		d.passages = readPassages(b)
		return false // people write such files, too
	},
}

// How much README.md shows before it links to a file.
const (
	tableRows   = 30 // of a table
	openRows    = 15 // a longer table is folded
	scoreRows   = 60 // of the means
	mainFigures = 12
	namedCells  = 20
)

type readme struct {
	*Folder
	out strings.Builder
}

// p prints.
func (r *readme) p(format string, args ...any) { fmt.Fprintf(&r.out, format, args...) }

func (r *readme) write() {
	r.p("# %s\n\n", inline(cmp.Or(r.Title, r.Name)))
	for _, s := range r.guesses() {
		r.p("%s\n", s)
	}
	r.answer()
	r.unfinished()
	for _, stage := range r.sections() {
		r.section(stage)
	}
	r.means()
	r.elsewhere()
	r.undefined()
	r.reproduce()
}

// answer says in words what was found: the published texts, or without them who comes first in the first
// table.
func (r *readme) answer() {
	for _, p := range r.answers() {
		if p.Old {
			r.p("*Of an earlier run, this one didn't finish it:*\n\n")
		}
		r.p("%s\n", p)
	}
	if s := r.first(); s != "" && len(r.Passages) == 0 {
		r.p("%s\n\n", s)
	}
}

// unfinished names the cells that failed.
func (r *readme) unfinished() {
	if len(r.Failed)+len(r.Blocked) == 0 {
		return
	}
	published := map[string]bool{}
	for _, l := range r.Lines {
		published[l.Cell] = true
	}
	list := func(words string, cells []string) {
		var names []string
		for _, cell := range cells {
			name := code(cell)
			if published[cell] {
				name += " (shown as an earlier run left it)"
			}
			names = append(names, name)
		}
		if n := len(names); n > 0 {
			r.p("> **%s** (%s): %s\n>\n", words, count(n, "cell", "cells"), some(names, namedCells))
		}
	}
	list("Failed", r.Failed)
	list("Not run, because something it needs failed or the run was stopped", r.Blocked)
	r.p("> Nothing was removed. What these cells would have changed is as it was.\n\n")
}

// sections lists the stages with tables and figures, published ones first.
func (r *readme) sections() []string {
	var out []string
	for _, s := range r.Sheets {
		out = append(out, s.Stage)
	}
	for _, p := range r.Pictures {
		out = append(out, p.Stage)
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(r.rank(a), r.rank(b)), cmp.Compare(a, b))
	})
	return slices.Compact(out)
}

func (r *readme) section(stage string) {
	r.p("## %s\n\n", inline(stage))
	open := true // the stage's first table says the most
	for _, s := range r.Sheets {
		if s.Stage == stage {
			r.table(s, open)
			open = false
		}
	}
	i := 0
	for _, f := range r.Pictures {
		if f.Stage != stage {
			continue
		}
		switch i++; {
		case i <= mainFigures && f.Caption != "":
			r.p("![%s](%s)\n\n*%s*\n\n", alt(f.Caption), target(f.File), inline(f.Caption))
		case i <= mainFigures:
			r.p("![%s](%s)\n\n", alt(f.Cell), target(f.File))
		default:
			r.p("- [%s](%s)\n", inline(f.Cell), target(f.File))
		}
	}
	if i > mainFigures {
		r.p("\n")
	}
}

// table shows the first rows of a table, folded if they are many.
func (r *readme) table(s *Sheet, open bool) {
	title := path.Base(strings.TrimSuffix(s.File, ".csv"))
	if len(s.Titles) == 1 {
		title = s.Titles[0]
	}
	if open = open && len(s.Records) <= openRows; open {
		r.p("%s ([CSV](%s))\n\n", inline(title), s.File)
	} else {
		r.p("<details><summary>%s (%s)</summary>\n\n", inline(title), count(len(s.Records), "row", "rows"))
	}
	columns := s.Columns()
	numbers := make([]*stages.Column, len(columns)) // nil for texts
	var head, rule []string
	for i, c := range columns {
		text, align := inline(c), ":--"
		if k := slices.IndexFunc(s.Numbers, func(n stages.Column) bool { return n.Name == c }); k >= 0 {
			n := &s.Numbers[k]
			numbers[i], align = n, "--:"
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
	for _, record := range r.Shown(s)[:min(tableRows, len(s.Records))] {
		var fields []string
		for i, c := range columns {
			text := record.get(c)
			if n := numbers[i]; n != nil {
				text = decimals(text, n.Digits)
			}
			fields = append(fields, text)
		}
		rows = append(rows, fields)
	}
	markdownTable(&r.out, head, rule, rows)
	r.p("\n")
	if n := len(s.Records) - tableRows; n > 0 {
		r.p("%s in [%s](%s).\n\n", count(n, "more row", "more rows"), s.File, s.File)
	}
	if !open {
		r.p("</details>\n\n")
	}
}

// markdownTable writes a table, in which fields aren't Markdown.
func markdownTable(b *strings.Builder, head, rule []string, rows [][]string) {
	fmt.Fprintf(b, "| %s |\n| %s |\n", strings.Join(head, " | "), strings.Join(rule, " | "))
	for _, row := range rows {
		b.WriteByte('|')
		for _, field := range row {
			b.WriteString(" " + inline(field) + " |")
		}
		b.WriteByte('\n')
	}
}

var arrows = map[stages.Direction]string{stages.Higher: " ↑", stages.Lower: " ↓"}

// means shows the mean scores of the cells.
func (r *readme) means() {
	var rows [][]string
	low, high := math.MaxInt, 0
	for _, l := range r.Lines {
		for _, m := range l.Means {
			low, high = min(low, l.N), max(high, l.N)
			mean := "" // undefined
			if !math.IsNaN(m.Value) {
				mean = brief(m.Value, 4)
			}
			name := m.of(l.Cell) + l.Cell
			if l.Old {
				name += " (of an earlier run)"
			}
			name += arrows[m.Direction]
			rows = append(rows, []string{name, mean, strconv.Itoa(l.N), strconv.Itoa(m.Undefined)})
		}
	}
	if len(rows) == 0 {
		return
	}
	n := strconv.Itoa(low)
	if low != high {
		n = fmt.Sprintf("%d to %d", low, high)
	}
	r.p("## Scores\n\nEvery mean is over the defined scores of its n = %s items.\n\n", n)
	r.p("<details><summary>%s</summary>\n\n", count(len(rows), "mean", "means"))
	head, rule := []string{"score", "mean", "n", "undefined"}, []string{":--", "--:", "--:", "--:"}
	markdownTable(&r.out, head, rule, rows[:min(scoreRows, len(rows))])
	r.p("\n")
	if more := len(rows) - scoreRows; more > 0 {
		r.p("%s in [cells](cells).\n\n", count(more, "more mean", "more means"))
	}
	r.p("</details>\n\n")
}

// of names which of its cell's means it is, where the name of the cell doesn't.
func (m *Mean) of(cell string) string {
	if stage := stageOf(cell); scoreName(stage, m.Port) == stage {
		return ""
	}
	return m.Port + " of "
}

// elsewhere names the scores of items that aren't in the folder, and how to get them.
func (r *readme) elsewhere() {
	var names []string
	cell := ""
	for _, f := range r.Items {
		if f.Stored {
			names, cell = append(names, code(f.Score)), cmp.Or(cell, f.Cell)
		}
	}
	if len(names) == 0 {
		return
	}
	file := "FILE"
	if s, ok := strings.CutPrefix(r.Command, "runexp run "); ok {
		file = visible(oneLine.Replace(s))
	}
	r.p("To keep this folder below %d MB, the largest files of items stay in the store: %s. "+
		"For one cell of them, this writes the scores:\n\n",
		budget>>20, strings.Join(distinct(names, itself), ", "))
	r.p("    runexp get %s '%s' -o DIR\n\n", file, cell)
}

// undefined names the cells whose scores aren't all defined.
func (r *readme) undefined() {
	var names []string
	for _, l := range r.Lines {
		for _, m := range l.Means {
			if m.Undefined > 0 {
				name := inline(m.of(l.Cell)) + code(l.Cell)
				names = append(names, fmt.Sprintf("%s %d of %d", name, m.Undefined, l.N))
			}
		}
	}
	if len(names) > 0 {
		r.p("Undefined, and in no mean: %s.\n\n", some(names, namedCells))
	}
}

// reproduce says how to get this folder again and what made it.
func (r *readme) reproduce() {
	r.p("## How to reproduce\n\n")
	if r.Command != "" {
		r.p("    %s\n\n", visible(oneLine.Replace(r.Command)))
	}
	r.p("[experiment.yaml](experiment.yaml) is the experiment as it ran; " +
		"cells/ has the parameters of each cell, with their defaults.\n")
	cells := map[string]int{} // by what made them
	for _, l := range r.Lines {
		if l.MadeBy != "" {
			cells[l.MadeBy]++
		}
	}
	var makers []string
	for _, name := range slices.Sorted(maps.Keys(cells)) {
		maker := inline(name)
		if len(cells) > 1 {
			maker += fmt.Sprintf(" (%s)", count(cells[name], "cell", "cells"))
		}
		makers = append(makers, maker)
	}
	if len(makers) > 0 {
		r.p("Made by: %s.\n", strings.Join(makers, "; "))
	}
	if len(r.Narrowed) > 0 {
		r.p("\n**Narrowed**, so this is not the whole experiment:\n\n")
		for _, s := range r.Narrowed {
			r.p("- %s\n", inline(s))
		}
	}
	if len(r.Kept) > 0 {
		r.p("\nOf an earlier run, because something failed in this one:\n\n")
		for _, name := range r.Kept {
			r.p("- [%s](%s)\n", alt(path.Base(name)), target(name))
		}
	}
}

// A text in README.md is between two comments, the first of which names its cell and its port; older ones
// have a definition, too.
var passageStart = regexp.MustCompile(`^<!-- text (\S+) (\S+)(?: [0-9a-f]{16})? -->$`)

const passageEnd = "<!-- end of text -->"

func (p *Passage) String() string {
	return "<!-- text " + p.Cell + " " + p.Port + " -->\n" + p.Body + "\n" + passageEnd + "\n"
}

// readPassages reads the texts in a README.md.
func readPassages(b []byte) []*Passage {
	var out []*Passage
	var open *Passage
	var body []string
	for text := range strings.Lines(string(b)) {
		text = strings.TrimRight(text, "\r\n")
		if f := passageStart.FindStringSubmatch(text); f != nil {
			open, body = &Passage{Cell: f[1], Port: f[2]}, nil
		} else if open != nil && text == passageEnd {
			open.Body = strings.Join(body, "\n")
			if !hasConflict(body) {
				out = append(out, open)
			}
			open = nil
		} else if open != nil {
			body = append(body, text)
		}
	}
	return out
}

// hasConflict reports whether lines contain git's conflict markers.
func hasConflict(lines []string) bool {
	return slices.ContainsFunc(lines, func(s string) bool {
		return strings.HasPrefix(s, "<<<<<<< ") || strings.HasPrefix(s, ">>>>>>> ") || s == "======="
	})
}
