// Package publish keeps review folders: the small, stable text and pictures of
// an experiment that people read in a pull request.
//
// A folder is rewritten by definition and compared by value. Definitions stand in
// cells/ alone, one a cell, so that rows of the other files change only when their
// values do.
//
//   - A claim is a row, figure or text on disk of a cell that has the same
//     definition in cells/ as in the run. It stays as it is, and the run reproduces
//     it, or not: then it differs.
//   - Whatever is of another definition, or can't be read, is rewritten exactly.
//   - What belongs to no cell any more is removed, unless something failed.
//
// README.md is made from what ends up in the folder, never from a run's own
// slightly different numbers, so a colleague on another processor sees no change.
package publish

import (
	"cmp"
	"slices"

	"github.com/runexp/runexp/stages"
)

// A Review is everything that a run wants to publish.
type Review struct {
	Name, Title string
	Experiment  []byte       // experiment.yaml, resolved
	Command     string       // how to reproduce it: "runexp run experiments/x.yaml"
	Cells       []Cell       // every declared cell, in the order in which README.md shows them
	Publish     []string     // names of the published stages, in the order of README.md
	Narrowed    []string     // in words, what was left out or overridden; empty for the file as it stands
	Order       stages.Order // of every axis: its ids as the experiment writes them
	Notes       []string     // sentences for README.md that don't depend on the machine
}

// A State says how a cell ended.
type State int

const (
	Done    State = iota
	Failed        // it ran and gave no result
	Blocked       // it didn't run: something it needs failed, or the run was stopped
)

// A Cell is one stage at one combination of axes, and what it has to publish.
type Cell struct {
	Name       string // maps[method=ig,model=vgg]
	Stage      string // the stage's name in the experiment
	Coord      []stages.Coord
	State      State
	Definition stages.Digest
	Params     []byte // a JSON object with sorted keys; nil for none
	N          int    // items, -1 for a cell that makes a value
	MadeBy     string // "cpu, ONNX Runtime 1.24.1"; empty where nothing depends on it

	Scores  []Score
	Tables  []Table
	Figures []Figure
	Texts   []Text
}

// A Score is an output port of scores.
type Score struct {
	Port    string
	Measure stages.Measure
	Items   Items
}

// Items are the scores of all items, of which there may be many.
type Items interface {
	Len() int
	Value(i int) float64 // NaN where it's undefined
	ID(i int) (string, error)
}

// Values are items in memory.
type Values []Value

// Len returns the number of items.
func (v Values) Len() int { return len(v) }

// Value returns the score of item i.
func (v Values) Value(i int) float64 { return v[i].Value }

// ID returns the id of item i. The error is always nil.
func (v Values) ID(i int) (string, error) { return v[i].ID, nil }

// A Value is the score of one item, NaN where it's undefined.
type Value struct {
	ID    string
	Value float64
}

// A Table is an output port that carries a table.
type Table struct {
	Port  string
	Table stages.Table
}

// A Figure is an output port that carries a picture.
type Figure struct {
	Port    string
	Ext     string // png or svg
	Caption string // one line
	Data    []byte
}

// A Text is an output port that carries Markdown.
type Text struct {
	Port     string
	Markdown string
}

// Options say how to write a review folder.
type Options struct {
	// Accept rewrites the cells that differ: all their rows, figures and texts.
	Accept bool

	step func(what string) error // for tests: called before each system call that changes the folder
	disk disk                    // for tests: the real one without
}

// Write brings the review folder dir up to date with r and says how the two
// compare. It writes only files whose bytes change, each beside its place and
// then renamed: interrupted at any moment and called again, it leaves the same
// folder. Claims that differ stay, unless o.Accept is set.
func Write(dir string, r *Review, o Options) (Verdict, error) {
	if err := Check(dir); err != nil {
		return Verdict{}, err
	}
	w := writer{dir: dir, step: o.step, disk: o.disk}
	if w.disk == nil {
		w.disk = realDisk{}
	}
	defer w.close()
	if err := w.sweep(); err != nil {
		return Verdict{}, err
	}
	disk, err := readFolder(dir)
	if err != nil {
		return Verdict{}, err
	}
	m, err := compare(disk, r, nil)
	if err != nil {
		return Verdict{}, err
	}
	if differing := cellsOf(m.verdict.Differs); o.Accept && len(differing) > 0 {
		if m, err = compare(disk, r, differing); err != nil {
			return Verdict{}, err
		}
	}
	return m.verdict, w.write(m)
}

// Verify compares the review folder dir with r as [Write] does, and writes
// nothing.
func Verify(dir string, r *Review) (Verdict, error) {
	disk, err := readFolder(dir)
	if err != nil {
		return Verdict{}, err
	}
	m, err := compare(disk, r, nil)
	if err != nil {
		return Verdict{}, err
	}
	m.verdict.verified = true
	return m.verdict, nil
}

// merge is one comparison of a folder with a review, and the folder to be.
type merge struct {
	r       *Review
	cells   []*Cell         // by name
	shown   map[string]int  // place among r.Cells, by name
	forced  map[string]bool // names of cells that have no claims
	partial bool            // something failed: nothing is removed
	names   map[output]string
	disk    map[string][]byte // the files of the folder as it is
	tally   *tally
	verdict Verdict

	before      map[string][]*line  // on disk, by file
	definitions map[string][]string // on disk, by cell
	tables      map[string]bool     // the files of tables that lines on disk speak of

	files   map[string][]byte // the files of the folder as it shall be
	stale   []string          // files to remove
	kept    []string          // files that stay because something failed
	lines   []*line           // what README.md is made of
	sheets  []*sheet
	items   []*itemFile
	large   []*itemFile // those of items that stay in the store
	figures []shown
	texts   []passage
}

// compare compares a folder's files with a review. The cells in forced have no
// claims, whatever their definitions.
func compare(disk map[string][]byte, r *Review, forced map[string]bool) (*merge, error) {
	m := &merge{r: r, forced: forced, disk: disk, files: map[string][]byte{}, shown: map[string]int{}, tally: newTally()}
	for i := range r.Cells {
		c := &r.Cells[i]
		m.shown[c.Name] = i
		m.cells = append(m.cells, c)
		m.partial = m.partial || c.State != Done
	}
	slices.SortStableFunc(m.cells, func(a, b *Cell) int { return cmp.Compare(a.Name, b.Name) })
	m.names = fileNames(m.cells)

	m.readCells()
	m.mergeCells()
	if err := m.mergeItems(); err != nil {
		return nil, err
	}
	m.mergeTables()
	if err := m.mergeFigures(); err != nil {
		return nil, err
	}
	m.mergeTexts()
	m.files["experiment.yaml"] = r.Experiment
	m.files[".gitattributes"] = []byte(gitattributes)
	m.fitItems()
	m.mergeStale()
	m.files["README.md"] = m.readme()

	m.verdict = m.tally.verdict()
	m.verdict.Changed = m.changed()
	m.verdict.Warnings = m.warnings()
	return m, nil
}

// compareShown orders the names of cells as README.md shows them: as in the review,
// and after these those that are gone.
func (m *merge) compareShown(a, b string) int {
	place := func(name string) int {
		if i, ok := m.shown[name]; ok {
			return i
		}
		return len(m.shown)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
}

// An output names a port of a stage, and the sub-folder of its files.
type output struct{ folder, stage, port string }

// fileNames names the files of the outputs, without their endings. A port
// called like its stage or like its type isn't spelled out.
func fileNames(cells []*Cell) map[output]string {
	names := map[output]string{}
	users := map[string]int{}
	add := func(folder string, c *Cell, port string) {
		o := output{folder, c.Stage, port}
		if _, ok := names[o]; ok {
			return
		}
		names[o] = folder + "/" + baseNames(c.Stage, port)[0]
		users[names[o]]++
	}
	for _, c := range cells {
		for _, s := range c.Scores {
			add("items", c, s.Port)
		}
		for _, t := range c.Tables {
			add("tables", c, t.Port)
		}
		for _, f := range c.Figures {
			add("figures", c, f.Port)
		}
	}
	for o, name := range names {
		// A stage "pic" with a port "sic" beside a stage "pic.sic".
		if users[name] > 1 {
			names[o] = o.folder + "/" + baseNames(o.stage, o.port)[1]
		}
	}
	return names
}

// baseNames returns what the files of an output may be called, without their endings:
// the second name is for when the first belongs to another output too.
func baseNames(stage, port string) [2]string {
	full := escape(stage) + "." + escape(port)
	if slices.Contains([]string{stage, "score", "scores", "table", "figure"}, port) {
		return [2]string{escape(stage), full}
	}
	return [2]string{full, full}
}

// scoreName names a score for people.
func scoreName(stage, port string) string {
	if port == stage || port == "score" || port == "scores" {
		return stage
	}
	return stage + "." + port
}
