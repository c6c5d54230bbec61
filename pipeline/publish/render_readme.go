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
	"github.com/runexp/runexp/stages"
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
	openRows    = 15 // rows of a table that isn't the main one of its stage: a longer one is named only
	rowNumbers  = 8  // numbers in a row
	tableParts  = 3  // tables that share the columns of a wide one
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
	TeX               string   // the LaTeX file, "" for none
	Open, Named       bool     // it isn't collapsed; it is named only
	Len, More         int      // the number of rows, and of those that aren't shown
	Columns           int      // columns that aren't shown
	Notes             []string // sentences on its numbers

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
		s.Tables = append(s.Tables, r.table(sheet, len(s.Tables) == 0))
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

// table returns what README.md shows of a table. The first table of a stage matters most, and is open, unless
// it has the many numbers of the stage's figures.
func (r readme) table(s *Sheet, first bool) shownTable {
	t := shownTable{Title: s.title(), File: s.File, TeX: s.latexFile(), Len: len(s.Rows)}
	drawn := slices.ContainsFunc(r.Pictures, func(p *Picture) bool { return p.Stage == s.Stage })
	t.Open = first && (t.Len <= openRows || !drawn)
	if t.Named = !t.Open && t.Len > openRows; t.Named {
		return t
	}
	items := 0
	for _, l := range r.Lines {
		items = max(items, l.N)
	}
	g := r.gridOf(s, math.MaxInt)
	short := g.Short(typeset.Short{Rows: tableRows, Numbers: rowNumbers, Parts: tableParts, Items: items,
		Across: r.across(s)})
	t.Text, t.More, t.Columns = strings.Join(short.Tables, "\n\n"), short.MoreRows, short.More
	if len(short.Same) > 0 {
		t.Notes = append(t.Notes, "In every row: "+strings.Join(short.Same, ", ")+".")
	}
	if g.Legend != "" {
		t.Notes = append(t.Notes, `\* `+typeset.Inline(g.Legend))
	}
	if g.Bare != "" {
		t.Notes = append(t.Notes, typeset.Inline(g.Bare))
	}
	if text := r.unequal(s.Stage); first && text != "" {
		t.Notes = append(t.Notes, text)
	}
	return t
}

// across returns the axis whose ids name the columns of a table's numbers, "" for none.
func (r readme) across(s *Sheet) string {
	for _, axis := range slices.Sorted(maps.Keys(r.Order)) {
		for _, n := range s.Numbers {
			if slices.Contains(r.Order[axis], n.Name) {
				return axis
			}
		}
	}
	return ""
}

// namedCounts is how many counts of items are told one by one.
const namedCounts = 6

// unequal says of a stage that ranks cases how many items each has, which a rank doesn't show. It returns ""
// where all have as many.
func (r readme) unequal(stage string) string {
	for _, s := range r.Sheets {
		i := slices.IndexFunc(s.Numbers, func(n stages.Column) bool { return n.Name == "n" })
		ranks := slices.ContainsFunc(s.Numbers, func(n stages.Column) bool { return n.Name == "rank" })
		keys := slices.Concat(s.Axes, s.Keys)
		if s.Stage != stage || i < 0 || !ranks || len(keys) < 2 {
			continue
		}
		for _, key := range keys[:len(keys)-1] {
			most := s.countsBy(key)
			if len(slices.Compact(slices.Sorted(maps.Values(most)))) < 2 {
				continue
			}
			ids := slices.Collect(maps.Keys(most))
			slices.SortFunc(ids, func(a, b string) int {
				return cmp.Or(cmp.Compare(most[a], most[b]), cmp.Compare(a, b))
			})
			if len(ids) > namedCounts {
				ids = []string{ids[0], ids[len(ids)-1]}
			}
			var counts []string
			for _, id := range ids {
				counts = append(counts, fmt.Sprintf("%s %g", typeset.Inline(id), most[id]))
			}
			const text = "The means aren't over equally many %s: by %s, %s. In a rank all count the same."
			return fmt.Sprintf(text, cmp.Or(s.Numbers[i].Unit, "items"),
				typeset.Inline(key), strings.Join(counts, ", "))
		}
	}
	return ""
}

// countsBy returns the numbers of items by the texts in a column, nil unless rows with the same text have as
// many.
func (s *Sheet) countsBy(column string) map[string]float64 {
	of := map[string]float64{}
	for _, row := range s.Rows {
		n, ok := row.number("n")
		if !ok || math.IsNaN(n) {
			continue
		}
		id := row.get(column)
		if m, known := of[id]; known && m != n {
			return nil
		}
		of[id] = n
	}
	return of
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
