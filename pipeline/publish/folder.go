package publish

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/runexp/runexp/stages"
)

// A Folder is the content of a review folder: of one that was read from disk, or of that merged with a run's
// results. A renderer reads nothing else. Numbers are the published ones; those of a run on another processor
// may differ slightly.
type Folder struct {
	Name, Title string
	Experiment  []byte   // experiment.yaml
	Command     string   // reproduces the run
	Publish     []string // as in Results, like the next four
	Narrowed    []string
	Remarks     []string
	Order       stages.Order
	Labels      stages.Names

	Lines    []*Line // of finished cells, in the order of README.md
	Sheets   []*Sheet
	Items    []*ItemFile // the largest first
	Pictures []*Picture  // in the order of README.md
	Passages []*Passage  // in the order of README.md

	Failed, Blocked []string // cells without a result
	Notes           []string // of a folder that was read: what README.md says of the run, in Markdown
	Kept            []string // files of an earlier run that stay because something failed
	Gone            []string // cells that the experiment no longer has; they stay because something failed

	place map[string]int // positions of the run's cells in README.md
}

// A Line is a finished cell: its definition, and the means of its scores.
type Line struct {
	common
	Cell       string
	Cells      int // how many cells of the run it stands for, 0 for one
	Definition string
	MadeBy     string
	N          int    // items, -1 for none
	Items      string // what has scores, in the plural, such as "texts"; "" for images
	Params     json.RawMessage
	Rows       map[string]int // how many rows its tables have, by port
	Shown      json.RawMessage
	Means      []Mean // by port

	raw   string // the text it was read from
	other bool   // its definition isn't the run's
}

// ItemNoun says in the plural what has scores, such as "images".
func (f *Folder) ItemNoun() string {
	var names []string
	for _, l := range f.Lines {
		if len(l.Means) > 0 {
			names = append(names, l.Items)
		}
	}
	return stages.CommonItems(names)
}

// A Mean is the mean of a cell's scores at one port.
type Mean struct {
	Port          string
	Direction     stages.Direction
	Value         float64 // NaN if it's undefined
	Undefined     int     // items without a score
	Tolerance     float64
	ItemTolerance float64 // of the score of one item; at least Tolerance
	Chance        float64 // the mean that guessing gives; 0 if that isn't known
}

// mean returns the mean at a port, or nil.
func (l *Line) mean(port string) *Mean {
	if i := slices.IndexFunc(l.Means, func(m Mean) bool { return m.Port == port }); i >= 0 {
		return &l.Means[i]
	}
	return nil
}

// A Sheet is a file of tables/: the tables of all cells of a stage at one port, below each other.
type Sheet struct {
	File    string // tables/leaderboard.csv
	Stage   string
	Titles  []string // of the cells' tables, each once
	Axes    []string // columns that name the cell
	Keys    []string // columns of texts
	Numbers []stages.Column
	Extra   []string                 // columns that only rows of an earlier run have
	Rows    []*TableRow              // by cell
	Tables  map[string]*stages.Table // of finished cells, by name

	axes []string // the axes that the columns of Axes are for
}

// Columns lists the columns.
func (s *Sheet) Columns() []string {
	columns := slices.Concat(s.Axes, s.Keys)
	for _, n := range s.Numbers {
		columns = append(columns, n.Name)
	}
	return append(columns, s.Extra...)
}

// A TableRow is a row of a table. Rows with the same columns have one list of them in memory.
type TableRow struct {
	common
	Cell string // "" for a row that names no cell

	table           *stages.Table // the table of its cell in the run, nil for none
	columns, values []string
	places          map[string]int // the first column of each name; nil for a row of a run
	pos             int            // its position on disk, -1 for a row of a run
}

// An ItemFile has the scores of cells with the same items.
type ItemFile struct {
	Name  string
	Score string // the score's name for people
	Cell  string // one of its cells
	Lines []*ItemLine

	Stored bool // it isn't written, since the folder has no room for it: the store has the scores
}

// An ItemLine is the scores of one cell. It may have as many items as a data set.
type ItemLine struct {
	common
	Cell   string
	IDs    []string // sorted; the lines of a file have one list in memory
	Values []float64

	tolerance float64
}

// A Picture is a file in figures/.
type Picture struct {
	common
	File    string
	Stage   string
	Cell    string
	Caption string
	Data    []byte // the file, with the caption in it

	readable bool
}

// A Passage is a text in README.md.
type Passage struct {
	common
	Cell, Port string
	Body       string

	stored string // what the stage wrote, where people read something else: "" for the same
}

// compareShown orders the names of cells as in README.md: the cells of the run in its order, then those
// that the experiment no longer has.
func (f *Folder) compareShown(a, b string) int {
	place := func(name string) int {
		if i, ok := f.place[name]; ok {
			return i
		}
		return len(f.place)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
}

// rank returns the position of a stage in the list of published ones; other stages come last.
func (f *Folder) rank(stage string) int {
	if i := slices.Index(f.Publish, stage); i >= 0 {
		return i
	}
	return len(f.Publish)
}
