package publish

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/runexp/runexp/stages"
)

// A Folder is the content of a review folder as values: what is read from one on disk, and what [merge] makes
// of that and a run's results. It is all that a renderer reads. Numbers are as published, which another
// processor's may slightly differ from.
type Folder struct {
	Name, Title string
	Experiment  []byte       // experiment.yaml
	Command     string       // how to reproduce it
	Publish     []string     // names of the published stages, in the order of README.md
	Narrowed    []string     // in words, what was left out or overridden
	Remarks     []string     // in sentences, what of the data isn't used, or is taken otherwise
	Order       stages.Order // of every axis: its ids as the experiment writes them
	Labels      stages.Names // of the ids that have one

	Lines    []*Line // of finished cells, in the order in which README.md shows them
	Sheets   []*Sheet
	Items    []*ItemFile // the largest first
	Pictures []*Picture  // in the order in which README.md shows them, as the next
	Passages []*Passage

	Failed, Blocked []string // cells without a result
	Notes           []string // of a folder that was read: what README.md says of the run, in Markdown
	Kept            []string // files of an earlier run that stay because something failed
	Gone            []string // cells of an earlier run that the experiment no longer has, kept likewise

	place map[string]int // of the run's cells among those shown
}

// A Line is a finished cell: its definition, and the means of its scores.
type Line struct {
	common
	Cell       string
	Cells      int // how many it stands for, 0 for one
	Definition string
	MadeBy     string
	N          int // items, -1 for none
	Params     json.RawMessage
	Rows       map[string]int // of the tables, by port
	Shown      json.RawMessage
	Means      []Mean // by port

	raw   string // as it was read
	other bool   // of another definition than the run's
}

// A Mean is that of a cell's scores at one port.
type Mean struct {
	Port          string
	Direction     stages.Direction
	Value         float64 // NaN where it's undefined
	Undefined     int     // items without a score
	Tolerance     float64
	ItemTolerance float64 // of the score of one item; at least Tolerance
	Chance        float64 // the mean that guessing gives; 0 where that isn't known
}

// mean returns that of a port, or nil.
func (l *Line) mean(port string) *Mean {
	if i := slices.IndexFunc(l.Means, func(m Mean) bool { return m.Port == port }); i >= 0 {
		return &l.Means[i]
	}
	return nil
}

// A Sheet is a table: what all cells of a stage have at one port, below each other.
type Sheet struct {
	File    string // tables/leaderboard.csv
	Stage   string
	Titles  []string
	Axes    []string // columns that name the cell
	Keys    []string // columns of texts
	Numbers []stages.Column
	Extra   []string                 // columns that only rows of an earlier run have
	Rows    []*TableRow              // by cell
	Tables  map[string]*stages.Table // that finished cells have in it

	axes []string // the axes whose columns Axes names
}

// Columns lists the columns.
func (s *Sheet) Columns() []string {
	columns := slices.Concat(s.Axes, s.Keys)
	for _, n := range s.Numbers {
		columns = append(columns, n.Name)
	}
	return append(columns, s.Extra...)
}

// A TableRow is a row of a table. All rows with the same columns share their list.
type TableRow struct {
	common
	Cell string // "" if it can't be told

	table           *stages.Table // that its cell has now, nil for none
	columns, values []string
	places          map[string]int // of columns, the first of each name; nil if they must be looked for
	pos             int            // where it stood on disk, -1 for nowhere
}

// An ItemFile has the scores of the items of cells that have the same items.
type ItemFile struct {
	Name  string
	Score string // for people
	Cell  string // one of those in it
	Lines []*ItemLine

	Stored bool // the folder has no room for it: it stays in the store
}

// An ItemLine is what one cell has of its items. There may be as many as images.
type ItemLine struct {
	common
	Cell   string
	IDs    []string // sorted; lines of one file share them
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
	Data    []byte // of the file, which has the caption in it

	readable bool
}

// A Passage is a text in README.md.
type Passage struct {
	common
	Cell, Port string
	Body       string
}

// compareShown orders the names of cells as README.md shows them: as in the run, and after these those that
// are gone.
func (f *Folder) compareShown(a, b string) int {
	place := func(name string) int {
		if i, ok := f.place[name]; ok {
			return i
		}
		return len(f.place)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
}

// rank is the place of a stage in the list of what's published.
func (f *Folder) rank(stage string) int {
	if i := slices.Index(f.Publish, stage); i >= 0 {
		return i
	}
	return len(f.Publish)
}
