package publish

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/runexp/runexp/pipeline/typeset"
)

// readmeRenderer writes README.md: the answer in words, tables, figures and means, and the command that
// reproduces them. It is never read: folder.jsonl has as data what no other file has.
var readmeRenderer = renderer{
	name:  "readme",
	files: []pattern{{"README.md", ""}},
	render: func(f *Folder, add func(name string, b []byte)) {
		var b strings.Builder
		if err := readmeTemplate.Execute(&b, readme{f}); err != nil {
			panic(err) // the template is ours, and a strings.Builder takes everything
		}
		add("README.md", []byte(b.String()))
	},
}

//go:embed readme.md.tmpl
var readmeText string

var readmeTemplate = template.Must(template.New("README.md").Funcs(template.FuncMap{
	"inline": typeset.Inline, "alt": typeset.Alt, "target": typeset.Target, "plain": typeset.Plain,
	"count": count, "quotation": quotation,
}).Parse(readmeText))

// How much README.md shows. It links to the rest.
const (
	tableRows   = 30 // rows of a table
	openRows    = 15 // rows of a table that isn't collapsed
	scoreRows   = 60 // means
	mainFigures = 12 // figures of a stage
	namedCells  = 20 // names in a list of cells
)

// A readme is the data of readme.md.tmpl. Its methods return Markdown, or "" if they have nothing to show.
type readme struct{ *Folder }

func (readme) Budget() int { return budget >> 20 }

// A section shows the tables and figures of a stage.
type section struct {
	Stage    string
	Tables   []shownTable
	Pictures []*Picture
	Others   []*Picture // figures that are named only
}

// A shownTable is the rows of a table that README.md shows.
type shownTable struct {
	Title, File, Text string
	TeX               string // the LaTeX file, "" for none
	Open              bool   // it isn't collapsed
	Len, More         int    // the number of rows, and of those that aren't shown
	Legend            string // what an asterisk means

	N string // how many items each mean is of
}

// Sections lists the stages with tables and figures, published ones first.
func (r readme) Sections() []*section {
	var out []*section
	of := func(stage string) *section {
		i := slices.IndexFunc(out, func(s *section) bool { return s.Stage == stage })
		if i < 0 {
			i, out = len(out), append(out, &section{Stage: stage})
		}
		return out[i]
	}
	for _, sheet := range r.Sheets {
		s := of(sheet.Stage)
		t := r.table(sheet)
		t.Open = len(s.Tables) == 0 && t.Len <= openRows // the first table of a stage matters most
		s.Tables = append(s.Tables, t)
	}
	for _, p := range r.Pictures {
		if r.Shown(p) != p {
			continue
		}
		if s := of(p.Stage); len(s.Pictures) < mainFigures {
			s.Pictures = append(s.Pictures, p)
		} else {
			s.Others = append(s.Others, p)
		}
	}
	slices.SortFunc(out, func(a, b *section) int {
		return cmp.Or(cmp.Compare(r.rank(a.Stage), r.rank(b.Stage)), cmp.Compare(a.Stage, b.Stage))
	})
	return out
}

// kinds are the extensions of a figure's files. README.md shows the first kind that the figure has, and
// links to the others.
var kinds = [...]string{".svg", ".png", ".pdf", ".tex"}

// Links returns links to the other files of a figure.
func (r readme) Links(p *Picture) string {
	var links []string
	for _, q := range r.same(p) {
		if q != r.Shown(p) {
			kind := strings.ToUpper(strings.TrimPrefix(path.Ext(q.File), "."))
			links = append(links, "["+kind+"]("+typeset.Target(q.File)+")")
		}
	}
	return strings.Join(links, ", ")
}

// Shown returns the file that is shown of a figure.
func (r readme) Shown(p *Picture) *Picture { return r.same(p)[0] }

// same returns the files of a figure in the order of kinds.
func (r readme) same(p *Picture) (list []*Picture) {
	stem := strings.TrimSuffix(p.File, path.Ext(p.File))
	for _, ext := range kinds {
		for _, q := range r.Pictures {
			if q.File == stem+ext {
				list = append(list, q)
			}
		}
	}
	return list
}

// table returns the first rows of a table.
func (r readme) table(s *Sheet) shownTable {
	t := shownTable{Title: s.title(), File: s.File, TeX: s.latexFile(), Len: len(s.Rows)}
	g := r.gridOf(s, tableRows)
	t.More, t.Text, t.Legend = max(t.Len-tableRows, 0), g.Markdown(), g.Legend
	return t
}

// Scores returns the table of the cells' mean scores, nil without any.
func (r readme) Scores() *shownTable {
	var rows [][]string
	low, high := math.MaxInt, 0
	for _, l := range r.Lines {
		for _, m := range l.Means {
			low, high = min(low, l.N), max(high, l.N)
			mean := "" // undefined
			if !math.IsNaN(m.Value) {
				mean = typeset.Brief(m.Value, 4)
			}
			name := m.of(l.Cell)
			if l.Old {
				name += " (of an earlier run)"
			}
			name += typeset.Arrows[m.Direction]
			rows = append(rows, []string{name, mean, strconv.Itoa(l.N), strconv.Itoa(m.Undefined)})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	t := &shownTable{Len: len(rows), More: max(len(rows)-scoreRows, 0), N: strconv.Itoa(low)}
	if low != high {
		t.N = fmt.Sprintf("%d to %d", low, high)
	}
	head, rule := []string{"score", "mean", "n", "undefined"}, []string{":--", "--:", "--:", "--:"}
	t.Text = typeset.MarkdownTable(head, rule, rows[:t.Len-t.More])
	return t
}

// of returns the name of a mean: that of the cell, after the port if this isn't named like the stage or the
// type.
func (m *Mean) of(cell string) string {
	if stage := stageOf(cell); scoreName(stage, m.Port) != stage {
		return m.Port + " of " + cell
	}
	return cell
}

// Stored returns the names of the scores whose items are in the store alone, and an example of how to get
// them: a cell and its experiment.
func (r readme) Stored() map[string]string {
	var names []string
	out := map[string]string{"Experiment": "FILE"}
	for _, f := range r.Items {
		if f.Stored {
			names, out["Cell"] = append(names, typeset.Code(f.Score)), cmp.Or(out["Cell"], f.Cell)
		}
	}
	if names == nil {
		return nil
	}
	if s, ok := strings.CutPrefix(r.Command, "runexp run "); ok {
		out["Experiment"] = typeset.Plain(s)
	}
	out["Names"] = strings.Join(distinct(names, itself), ", ")
	return out
}

// Undefined lists the cells with undefined scores.
func (r readme) Undefined() string {
	var names []string
	for _, l := range r.Lines {
		for _, m := range l.Means {
			if m.Undefined > 0 {
				name := typeset.Inline(strings.TrimSuffix(m.of(l.Cell), l.Cell)) + typeset.Code(l.Cell)
				names = append(names, fmt.Sprintf("%s %d of %d", name, m.Undefined, l.N))
			}
		}
	}
	return some(names, namedCells)
}

// Makers lists the devices and runtimes that made the cells.
func (r readme) Makers() string {
	cells := map[string]int{}
	for _, l := range r.Lines {
		if l.MadeBy != "" {
			cells[typeset.Inline(l.MadeBy)]++
		}
	}
	if len(cells) == 1 {
		return slices.Collect(maps.Keys(cells))[0]
	}
	return strings.Join(counted(cells), "; ")
}

// passageEnd follows a text in README.md. Texts are marked for older builds, which read them there.
const passageEnd = "<!-- end of text -->"

func (p *Passage) String() string {
	return "<!-- text " + p.Cell + " " + p.Port + " -->\n" + p.Body + "\n" + passageEnd
}

// hasConflict reports whether lines contain git's conflict markers.
func hasConflict(lines []string) bool {
	return slices.ContainsFunc(lines, func(s string) bool {
		return strings.HasPrefix(s, "<<<<<<< ") || strings.HasPrefix(s, ">>>>>>> ") || s == "======="
	})
}
