package webpage

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/results"
	"github.com/runexp/runexp/pipeline/typeset"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/interval"
)

// How much of a folder a page shows. For the rest it names the file.
const (
	mostRows    = 20000    // rows of a table
	mostLines   = 10000    // scores of cells
	mostValues  = 3 << 20  // scores of items
	mostFigures = 16 << 20 // bytes of all figures
)

// A model is what the page shows.
type model struct {
	Name     string   `json:"name"`
	Title    string   `json:"title,omitempty"`
	Command  string   `json:"command,omitempty"`
	Answers  []text   `json:"answers"`
	Notes    []string `json:"notes"` // paragraphs of Markdown; quotations are warnings
	MadeBy   []string `json:"madeBy"`
	Interval string   `json:"interval"`
	ItemNoun string   `json:"itemNoun"` // what has scores, in the plural: "images"
	Rank     string   `json:"rank"`     // the axis whose ids compete
	Ranked   []string `json:"ranked"`   // the scores by which they do
	Left     []string `json:"left"`     // sentences on what the page leaves out

	Axes    []axis       `json:"axes"`
	Items   [][]string   `json:"items"` // lists of ids
	Scores  []*score     `json:"scores"`
	Tables  []table      `json:"tables"`
	Winners *winnerTable `json:"winners,omitempty"`
	Figures []figure     `json:"figures"`

	Maps    []*mapStage `json:"maps"`
	Images  []imageList `json:"images"`
	Classes []classList `json:"classes"`
	Texts   *textPart   `json:"texts,omitempty"`

	Removals []*removal `json:"removals,omitempty"`
	Unshown  []string   `json:"unshown,omitempty"` // sentences on the removals that the page leaves out
	Changes  *changes   `json:"changes,omitempty"`

	blobs [][]byte       // compressed levels, to which Maps refer
	itemN map[string]int // positions in Items, by the joined ids
}

type text struct {
	Cell string `json:"cell"`
	Text string `json:"text"`
	Old  bool   `json:"old,omitempty"` // of an earlier run
}

type axis struct {
	Name string   `json:"name"`
	IDs  []string `json:"ids"`
}

type table struct {
	File    string     `json:"file"`
	Title   string     `json:"title"`
	Stage   string     `json:"stage"`
	Columns []column   `json:"columns"`
	Rows    [][]string `json:"rows"`
	Len     int        `json:"len"`
	Legend  string     `json:"legend,omitempty"` // what an asterisk means
	Bare    string     `json:"bare,omitempty"`   // where none is drawn

	Curves   []curveSource `json:"curves,omitempty"`   // what the table's stage reads
	Response string        `json:"response,omitempty"` // of the net, which it is made of
}

type column struct {
	Name      string           `json:"name"`
	Number    bool             `json:"number,omitempty"`
	Direction stages.Direction `json:"direction,omitempty"`
	Marks     string           `json:"marks,omitempty"`
	Drawn     bool             `json:"drawn,omitempty"` // as asterisks
}

type figure struct {
	File    string `json:"file"`
	Stage   string `json:"stage"`
	Caption string `json:"caption"`
	Source  string `json:"src"`              // a data URL
	Before  string `json:"before,omitempty"` // the figure of the version before, if it differs
}

// A number is written with six digits, and an undefined one as null.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if x := float64(n); !math.IsNaN(x) && !math.IsInf(x, 0) {
		return strconv.AppendFloat(nil, x, 'g', 6, 64), nil
	}
	return []byte("null"), nil
}

func newModel(now Source, before *Source) (*model, error) {
	f, err := now.Version.Folder()
	if err != nil {
		return nil, err
	}
	m := &model{
		Name: f.Name, Title: f.Title, Command: f.Command, ItemNoun: f.ItemNoun(),
		Interval: interval.Label(f.ItemNoun()), MadeBy: makers(f), itemN: map[string]int{},
		Notes: listOf(f.Notes),
		// The scripts expect lists, so that an empty one must not become null.
		Answers: []text{}, Left: []string{}, Axes: []axis{}, Items: [][]string{}, Scores: []*score{},
		Tables: []table{}, Figures: []figure{}, Maps: []*mapStage{}, Images: []imageList{},
		Classes: []classList{},
	}
	for _, p := range f.Answers() {
		m.Answers = append(m.Answers, text{p.Cell, p.Body, p.Old})
	}
	if now.Missing != "" {
		m.Left = append(m.Left, now.Missing)
	}
	m.setAxes(f)
	m.Rank, m.Ranked = contest(f)
	m.addScores(f)
	of := f.Readings()
	for _, s := range m.Scores {
		s.Reads = of[publish.StageOf(s.Cells[0].Cell)]
	}
	m.addTables(f)
	m.setCurves(f)
	m.setWinners()
	m.addFigures(f)
	maps := now.Maps
	if before != nil {
		old, err := before.Version.Folder()
		if err != nil {
			return nil, err
		}
		changed := versions(now.Maps, before.Maps)
		if m.Changes, err = m.compare(now, *before, f, old); err != nil {
			return nil, err
		}
		m.Changes.Was, _, _ = m.scoresOf(linesOf(old, changed), old.Items)
		maps = slices.Concat(maps, changed)
	}
	images := slices.DeleteFunc(slices.Clone(maps), func(p *results.CellMaps) bool { return !isOfImages(p) })
	if err := m.addMaps(images); err != nil {
		return nil, err
	}
	if err := m.addTexts(slices.DeleteFunc(slices.Clone(maps), isOfImages)); err != nil {
		return nil, err
	}
	return m, nil
}

func isOfImages(p *results.CellMaps) bool { return p.Words == nil }

// listOf returns a list that isn't null in JSON even if it is empty.
func listOf(list []string) []string { return append([]string{}, list...) }

// makers lists the devices and runtimes that made the cells.
func makers(f *publish.Folder) []string {
	names := map[string]bool{}
	for _, l := range f.Lines {
		if l.MadeBy != "" {
			names[l.MadeBy] = true
		}
	}
	return listOf(slices.Sorted(maps.Keys(names)))
}

// setAxes lists the axes of the folder's cells, with their ids in the experiment's order.
func (m *model) setAxes(f *publish.Folder) {
	ids := map[string]map[string]bool{}
	for _, l := range f.Lines {
		for _, at := range publish.CoordOf(l.Cell) {
			if ids[at.Axis] == nil {
				ids[at.Axis] = map[string]bool{}
			}
			ids[at.Axis][at.ID] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		list := slices.Collect(maps.Keys(ids[name]))
		slices.SortFunc(list, func(a, b string) int { return f.Order.Compare(name, a, b) })
		m.Axes = append(m.Axes, axis{name, list})
	}
}

// contest returns the axis whose ids compete and the scores by which they do. The first published stage
// that ranks an axis decides; without one, the ids of an axis called method compete by all scores.
func contest(f *publish.Folder) (axis string, scores []string) {
	for _, stage := range f.Publish {
		for _, l := range f.Lines {
			var p struct{ Rank string }
			if publish.StageOf(l.Cell) == stage && json.Unmarshal(l.Params, &p) == nil && p.Rank != "" {
				return p.Rank, publish.InputsOf(f.Experiment, stage)
			}
		}
	}
	return "method", []string{}
}

// list returns the position of a list of ids in Items.
func (m *model) list(ids []string) int {
	key := strings.Join(ids, "\x00")
	i, ok := m.itemN[key]
	if !ok {
		i = len(m.Items)
		m.itemN[key], m.Items = i, append(m.Items, ids)
	}
	return i
}

func (m *model) addTables(f *publish.Folder) {
	rank := func(s *publish.Sheet) int {
		if i := slices.Index(f.Publish, s.Stage); i >= 0 {
			return i
		}
		return len(f.Publish)
	}
	// The main table of a stage names no port, or else has the fewest columns of texts.
	words := func(s *publish.Sheet) int { return strings.Count(s.File, ".") }
	texts := func(s *publish.Sheet) int { return len(s.Axes) + len(s.Keys) }
	slices.SortStableFunc(f.Sheets, func(a, b *publish.Sheet) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a.Stage, b.Stage), words(a)-words(b),
			texts(a)-texts(b))
	})
	for _, s := range f.Sheets {
		t := table{File: s.File, Title: s.Titles[0], Stage: s.Stage, Len: len(s.Rows),
			Columns: []column{}, Rows: [][]string{}}
		columns := s.Columns()
		for _, name := range s.Keys {
			t.Columns = append(t.Columns, column{Name: name})
		}
		for _, n := range s.Numbers {
			t.Columns = append(t.Columns, column{n.Name, true, n.Direction, n.Marks, false})
		}
		for _, r := range s.Rows {
			t.Rows = append(t.Rows, r.Values(columns))
		}
		marks := typeset.MarksOf(columns, s.Numbers, t.Rows)
		t.Rows, t.Legend, t.Bare = t.Rows[:min(t.Len, mostRows)], marks.Legend, marks.Bare
		for i := range t.Columns {
			if of := t.Columns[i].Marks; of != "" {
				_, t.Columns[i].Drawn = marks.Drawn[of]
			}
		}
		m.Tables = append(m.Tables, t)
	}
}

var mediaTypes = map[string]string{".png": "image/png", ".svg": "image/svg+xml"}

func dataURL(file string, b []byte) string {
	return "data:" + mediaTypes[path.Ext(file)] + ";base64," + base64.StdEncoding.EncodeToString(b)
}

// addFigures adds the figures. A figure that is there as PNG and as SVG is added as SVG; PDFs and
// LaTeX aren't added, since no browser displays them as images.
func (m *model) addFigures(f *publish.Folder) {
	names := map[string]bool{}
	for _, p := range f.Pictures {
		names[p.File] = p.Readable()
	}
	size := 0
	for _, p := range f.Pictures {
		stem, isPNG := strings.CutSuffix(p.File, ".png")
		if isPNG && names[stem+".svg"] || path.Ext(p.File) == ".pdf" || path.Ext(p.File) == ".tex" {
			continue
		}
		if !p.Readable() {
			m.Left = append(m.Left, p.File+" can't be read: it is no picture that runexp wrote.")
			continue
		}
		if size += len(p.Data); size > mostFigures {
			m.Left = append(m.Left, p.File+" isn't shown: the page's figures would be too large.")
			continue
		}
		m.Figures = append(m.Figures, figure{File: p.File, Stage: p.Stage, Caption: p.Caption,
			Source: dataURL(p.File, p.Data)})
	}
}
