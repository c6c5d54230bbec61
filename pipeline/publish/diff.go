package publish

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/interval"
)

// A Difference is how two review folders differ.
type Difference struct {
	A, B      string         // names of the folders
	Answers   [2]string      // the first sentence of each answer, "" without one
	Added     []string       // cells of B only
	Removed   []string       // cells of A only
	Redefined map[string]int // cells whose parameters, inputs or code changed, by stage
	Params    []ParamChange
	Scores    []ScoreChange
	Items     string // what they are of, in the plural: "images"
	Compared  int    // scores that both have
	Ranks     []RankChange
	OnlyA     []TableKey // rows of A's tables with ranks that B hasn't got, in tables that both have
	OnlyB     []TableKey // those of B

	scored  map[string]int // Compared by cell
	leading *ranking       // the ranks that the summary speaks of, nil for none
}

// A ParamChange is a parameter with another value in some cells.
type ParamChange struct {
	Name        string // with the stage's: "maps.steps", or "seed"
	Before, Now string // the values as JSON, or "(not set)"
	Cells       []string
}

// A ScoreChange compares the means of a score in one cell.
type ScoreChange struct {
	Cell         string
	A, B         Mean
	NA, NB       int     // items
	Paired       int     // items with a score in both folders
	Change       float64 // the mean of the paired differences B − A; without pairs that of the means
	Low, High    float64 // the interval of Change if Paired > 1
	Largest      float64 // the largest paired difference
	Redefined    bool    // the cell's definition isn't the same: no tolerance speaks of the change
	Unreproduced bool    // the mean or an item is outside its tolerance, or others are undefined
}

// Diff compares two review folders. Scores are paired by item: how much items differ from each other
// doesn't widen the interval of a difference.
func Diff(a, b *Version) (*Difference, error) {
	x, err := a.open()
	if err != nil {
		return nil, err
	}
	y, err := b.open()
	if err != nil {
		return nil, err
	}
	d := &Difference{A: a.Name, B: b.Name, Redefined: map[string]int{}, scored: map[string]int{},
		Answers: [2]string{x.answer(), y.answer()}}
	d.cells(x, y)
	d.scores(x, y)
	d.ranks(x, y)
	return d, nil
}

// Empty reports that the folders have the same answer, cells, definitions, parameters and ranks, and every
// score to the last published digit.
func (d *Difference) Empty() bool {
	changes := len(d.Added) + len(d.Removed) + len(d.Redefined) + len(d.Params) + len(d.Scores) + len(d.Ranks)
	return d.Answers[0] == d.Answers[1] && changes == 0
}

// Within reports that the folders have the same cells and definitions, and all scores within their
// tolerances: each reproduces the other.
func (d *Difference) Within() bool {
	return len(d.Added)+len(d.Removed)+len(d.Redefined) == 0 &&
		!slices.ContainsFunc(d.Scores, func(s ScoreChange) bool { return s.Unreproduced })
}

// A publishedFolder is a review folder that is read for a comparison.
type publishedFolder struct {
	*disk
	cells  map[string]*Line
	scores map[[2]string]*ItemLine // of items, by output and cell
	seed   string
	stages []string // that the experiment publishes, in its order
}

func (v *Version) open() (*publishedFolder, error) {
	f := &publishedFolder{readFiles(v.files), map[string]*Line{}, map[[2]string]*ItemLine{}, "", nil}
	for _, lines := range f.lines { // a cell's lines are in one file
		for _, l := range lines {
			f.cells[l.Cell] = l
		}
	}
	for output, lines := range f.items {
		for _, l := range lines {
			f.scores[[2]string{output, l.Cell}] = l
		}
	}
	if len(f.cells) == 0 {
		return nil, fmt.Errorf("%q is not a review folder: there is no line in its cells/*.jsonl", v.Name)
	}
	var top struct {
		Seed    uint64
		Publish []string
	}
	if text, ok := v.files["experiment.yaml"]; ok && yaml.Unmarshal(text, &top) == nil {
		f.seed, f.stages = fmt.Sprint(top.Seed), top.Publish
	}
	return f, nil
}

// answer returns the first sentence of the answer.
func (f *publishedFolder) answer() string {
	var texts []string
	for _, p := range f.about.passages {
		texts = append(texts, p.Body)
	}
	return firstSentence(texts)
}

const unset = "(not set)"

// cells compares cells, definitions and parameters.
func (d *Difference) cells(x, y *publishedFolder) {
	if x.seed != y.seed {
		d.Params = append(d.Params, ParamChange{"seed", cmp.Or(x.seed, unset), cmp.Or(y.seed, unset), nil})
	}
	changes := map[[3]string][]string{} // cells by parameter and values
	for _, cell := range slices.Sorted(maps.Keys(x.cells)) {
		a, b := x.cells[cell], y.cells[cell]
		if b == nil {
			d.Removed = append(d.Removed, cell)
			continue
		}
		stage := stageOf(cell)
		if a.Definition != b.Definition {
			d.Redefined[stage]++
		}
		var p, q map[string]json.RawMessage
		json.Unmarshal(a.Params, &p) // what is no object has no parameters
		json.Unmarshal(b.Params, &q)
		names := maps.Collect(maps.All(p))
		maps.Copy(names, q)
		for name := range names {
			was, is := cmp.Or(string(p[name]), unset), cmp.Or(string(q[name]), unset)
			if key := [3]string{stage + "." + name, was, is}; was != is {
				changes[key] = append(changes[key], cell)
			}
		}
	}
	for _, cell := range slices.Sorted(maps.Keys(y.cells)) {
		if x.cells[cell] == nil {
			d.Added = append(d.Added, cell)
		}
	}
	compare := func(a, b [3]string) int { return slices.Compare(a[:], b[:]) }
	for _, key := range slices.SortedFunc(maps.Keys(changes), compare) {
		d.Params = append(d.Params, ParamChange{key[0], key[1], key[2], changes[key]})
	}
}

// ParamRows returns the changes of parameters as texts: the parameter, its two values, and where.
func (d *Difference) ParamRows() (rows [][]string) {
	for _, p := range d.Params {
		where := ""
		switch n := len(p.Cells); {
		case n == 1:
			where = p.Cells[0]
		case n > 1:
			where = strings.TrimSuffix(count(n, "cell")+" of "+sharedPlace(p.Cells), " of ")
		}
		rows = append(rows, []string{p.Name, p.Before, p.Now, where})
	}
	return rows
}

// sharedPlace returns the coordinates that all cells have, "" for none.
func sharedPlace(cells []string) string {
	shared := CoordOf(cells[0])
	for _, cell := range cells[1:] {
		of := CoordOf(cell)
		shared = slices.DeleteFunc(shared, func(c stages.Coord) bool { return !slices.Contains(of, c) })
	}
	var at []string
	for _, c := range shared {
		at = append(at, c.Axis+"="+c.ID)
	}
	return strings.Join(at, ", ")
}

// scores compares the scores of cells that both folders have. Those of A are the published ones, and those
// of B the run's.
func (d *Difference) scores(x, y *publishedFolder) {
	var items []string
	for _, cell := range slices.Sorted(maps.Keys(x.cells)) {
		a, b := x.cells[cell], cmp.Or(y.cells[cell], &Line{})
		for _, s := range a.Means {
			if t := b.mean(s.Port); t != nil {
				d.Compared++
				d.scored[cell]++
				c := compareScore(a, b, s, *t, x.itemsOf(cell, s.Port), y.itemsOf(cell, s.Port))
				if c.changed() {
					d.Scores, items = append(d.Scores, c), append(items, a.Items)
				}
			}
		}
	}
	d.Items = stages.CommonItems(items)
}

// itemsOf returns the scores of a cell's items, nil without any.
func (f *publishedFolder) itemsOf(cell, port string) *ItemLine {
	names := baseNames(stageOf(cell), port)
	of := func(name string) *ItemLine { return f.scores[[2]string{"items/" + name, cell}] }
	return cmp.Or(of(names[0]), of(names[1]))
}

// compareScore compares a mean s of cell a with t of cell b, and their items, if both folders have them.
func compareScore(a, b *Line, s, t Mean, p, q *ItemLine) ScoreChange {
	c := ScoreChange{Cell: a.Cell, A: s, B: t, NA: a.N, NB: b.N, Redefined: a.Definition != b.Definition}
	t.Tolerance = min(s.Tolerance, t.Tolerance)
	r := &report{}
	(&Line{N: a.N, Means: []Mean{s}}).compare(&Line{N: b.N, Means: []Mean{t}}, r)
	var diffs []float64
	if p != nil && q != nil {
		c.Unreproduced = !slices.Equal(p.IDs, q.IDs)
		for i, id := range p.IDs {
			k, ok := slices.BinarySearch(q.IDs, id)
			if !ok {
				continue
			}
			u, v := p.Values[i], q.Values[k]
			r.number("", "", u, v, min(s.ItemTolerance, t.ItemTolerance), itemDigits)
			if change := v - u; !math.IsNaN(change) && !math.IsInf(change, 0) {
				diffs = append(diffs, change)
				c.Largest = max(c.Largest, math.Abs(change))
			}
		}
	}
	c.Unreproduced = c.Unreproduced || len(r.rows) > 0
	same := s.Value == t.Value || math.IsNaN(s.Value) && math.IsNaN(t.Value)
	if c.Paired = len(diffs); c.Paired > 0 {
		c.Change, c.Low, c.High = interval.Mean(diffs)
	} else if !same {
		c.Change = t.Value - s.Value // NaN if a mean is undefined
	}
	return c
}

// changed reports whether the folders have different numbers.
func (c *ScoreChange) changed() bool {
	return c.Change != 0 || c.Largest != 0 || c.NA != c.NB || c.A.Undefined != c.B.Undefined || c.Unreproduced
}

// moved reports whether a change isn't that of the same computation within its tolerance.
func (s *ScoreChange) moved() bool { return s.Redefined || s.Unreproduced }

// The verdicts of changes.
const (
	better    = "better"
	worse     = "worse"
	changed   = "changed"   // its direction isn't known to be better
	uncertain = "uncertain" // the interval contains 0
	untested  = "untested"  // there is no interval
	tooFew    = "too few"   // items: no test could confirm a difference
	asBefore  = "as before" // the same computation gives it again, within its tolerance
)

// fewestItems is how many items it takes that a sign test can confirm a difference at all: without an
// effect, five of five change in the same direction in one of 16 samples.
const fewestItems = 6

// Verdict reports whether a score became better or worse, by the interval of its paired differences.
func (s *ScoreChange) Verdict() string {
	switch d := s.B.Direction; {
	case !s.moved():
		return asBefore
	case s.Paired < 2 || math.IsNaN(s.Low) || math.IsNaN(s.High):
		return untested
	case s.Paired < fewestItems:
		return tooFew
	case s.Low <= 0 && s.High >= 0:
		return uncertain
	case d == stages.Higher && s.Low > 0, d == stages.Lower && s.High < 0:
		return better
	case d == stages.Higher, d == stages.Lower:
		return worse
	}
	return changed
}

// Certain reports whether the interval of a change excludes 0: of enough items, and of another computation or
// one that isn't reproduced.
func (s *ScoreChange) Certain() bool {
	v := s.Verdict()
	return v == better || v == worse || v == changed
}
