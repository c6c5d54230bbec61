package publish

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"gopkg.in/yaml.v3"
)

// A Difference says how two review folders differ.
type Difference struct {
	A, B    string   // the folders, as they were named
	Added   []string // cells of B only
	Removed []string // cells of A only
	// Redefined counts cells whose definition changed, by stage: what was asked is another question, be it
	// for parameters, inputs or code.
	Redefined []StageCount
	Params    []ParamChange
	Scores    []ScoreChange
	Compared  int // scores that both have
	Ranks     []RankChange
}

// A StageCount counts cells of a stage.
type StageCount struct {
	Stage string
	Cells int
}

// A ParamChange is a parameter that changed alike in some cells of a stage.
type ParamChange struct {
	Stage string // empty for the experiment itself
	Name  string
	A, B  string // as JSON; empty where it isn't set
	Cells []string
}

// A ScoreChange compares the means of a score in one cell.
type ScoreChange struct {
	Cell, Port   string
	A, B         float64 // NaN where undefined
	NA, NB       int     // items
	UndefinedA   int
	UndefinedB   int
	Tolerance    float64          // that both declare
	Direction    stages.Direction // which is better
	Paired       int              // items defined in both; 0 if there's nothing to pair
	Change       float64          // mean of the paired differences B − A, or without pairs of the means
	Low, High    float64          // 95 % interval of Change, with Paired > 1
	Largest      float64          // the largest paired difference
	Unreproduced bool             // outside the tolerance: the mean, an item, or what is undefined
}

// A RankChange is a row of a table that changed its place.
type RankChange struct {
	Table string
	Row   string // its keys
	A, B  string // the rank, or the place in the file
}

// Diff compares two review folders. Scores are paired by item, so that the interval of a difference isn't
// widened by what all items have in common.
func Diff(a, b string) (*Difference, error) {
	x, err := openFolder(a)
	if err != nil {
		return nil, err
	}
	y, err := openFolder(b)
	if err != nil {
		return nil, err
	}
	d := &Difference{A: a, B: b}
	d.params(x, y)
	d.scores(x, y)
	d.ranks(x, y)
	return d, nil
}

// Empty reports that the folders say the same: the same cells, parameters and definitions, every score to the
// last published digit.
func (d *Difference) Empty() bool {
	return len(d.Added)+len(d.Removed)+len(d.Redefined)+len(d.Params)+len(d.Scores)+len(d.Ranks) == 0
}

// Within reports that the folders make the same claims, and that no score is farther off than its tolerance:
// each reproduces the other.
func (d *Difference) Within() bool {
	return len(d.Added)+len(d.Removed)+len(d.Redefined) == 0 &&
		!slices.ContainsFunc(d.Scores, func(s ScoreChange) bool { return s.Unreproduced })
}

// A published folder is a review folder as it's read for comparison.
type publishedFolder struct {
	*disk
	cells map[string]*Line
	items map[string]map[at][]item // by file
	seed  string
}

func openFolder(dir string) (*publishedFolder, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%q is not a review folder", dir)
	}
	files, err := readFolder(dir)
	if err != nil {
		return nil, err
	}
	f := &publishedFolder{disk: readFiles(files), cells: map[string]*Line{}, items: map[string]map[at][]item{}}
	for _, name := range slices.Sorted(maps.Keys(f.lines)) {
		for _, l := range f.lines[name] {
			f.cells[l.Cell] = l
		}
	}
	if len(f.cells) == 0 {
		return nil, fmt.Errorf("%q is not a review folder: there is no line in %s", dir, filepath.Join(dir, "cells"))
	}
	var top struct {
		Seed uint64 `yaml:"seed"`
	}
	if text, ok := files["experiment.yaml"]; ok && yaml.Unmarshal(text, &top) == nil {
		f.seed = fmt.Sprint(top.Seed)
	}
	return f, nil
}

// params compares cells, definitions and parameters.
func (d *Difference) params(x, y *publishedFolder) {
	if x.seed != y.seed {
		d.Params = append(d.Params, ParamChange{Name: "seed", A: x.seed, B: y.seed})
	}
	redefined := map[string]int{}
	changes := map[[4]string]*ParamChange{}
	for _, cell := range slices.Sorted(maps.Keys(x.cells)) {
		a, b := x.cells[cell], y.cells[cell]
		if b == nil {
			d.Removed = append(d.Removed, cell)
			continue
		}
		stage := stageOf(cell)
		if a.Definition != b.Definition {
			redefined[stage]++
		}
		p, q := object(a.Params), object(b.Params)
		names := maps.Clone(p)
		maps.Copy(names, q)
		for name := range names {
			key := [4]string{stage, name, string(p[name]), string(q[name])}
			if key[2] == key[3] {
				continue
			}
			if changes[key] == nil {
				changes[key] = &ParamChange{Stage: stage, Name: name, A: key[2], B: key[3]}
			}
			changes[key].Cells = append(changes[key].Cells, cell)
		}
	}
	for _, cell := range slices.Sorted(maps.Keys(y.cells)) {
		if x.cells[cell] == nil {
			d.Added = append(d.Added, cell)
		}
	}
	for _, stage := range slices.Sorted(maps.Keys(redefined)) {
		d.Redefined = append(d.Redefined, StageCount{stage, redefined[stage]})
	}
	for _, key := range slices.SortedFunc(maps.Keys(changes), func(a, b [4]string) int { return slices.Compare(a[:], b[:]) }) {
		d.Params = append(d.Params, *changes[key])
	}
}

// object splits a JSON object; what isn't one is empty.
func object(b []byte) map[string]json.RawMessage {
	o := map[string]json.RawMessage{}
	if json.Unmarshal(b, &o) != nil || o == nil {
		return map[string]json.RawMessage{}
	}
	return o
}

// scores compares the scores of cells that both have: B's with A's as a run's are with those that are
// published.
func (d *Difference) scores(x, y *publishedFolder) {
	for _, cell := range slices.Sorted(maps.Keys(x.cells)) {
		a, b := x.cells[cell], y.cells[cell]
		if b == nil {
			continue
		}
		for _, s := range a.Means {
			t := b.mean(s.Port)
			if t == nil {
				continue
			}
			d.Compared++
			k := baseNames(stageOf(cell), s.Port)
			c := compareScore(a, b, s, *t, x.itemsOf(cell, k), y.itemsOf(cell, k))
			if c.Change != 0 || c.Largest != 0 || c.NA != c.NB || c.UndefinedA != c.UndefinedB || c.Unreproduced {
				d.Scores = append(d.Scores, c)
			}
		}
	}
}

// itemsOf returns the scores of a cell's items from the files that may have them.
func (f *publishedFolder) itemsOf(cell string, names [2]string) []item {
	for _, name := range names {
		name = "items/" + name
		if f.items[name] == nil {
			f.items[name] = f.disk.items(name)
		}
		if rows := f.items[name][at{cell: cell}]; rows != nil {
			return rows
		}
	}
	return nil
}

// compareScore compares a mean s of cell a with t of cell b, and their items, if both folders have them.
func compareScore(a, b *Line, s, t Mean, p, q []item) ScoreChange {
	c := ScoreChange{
		Cell: a.Cell, Port: s.Port, A: s.Value, B: t.Value, NA: a.N, NB: b.N, UndefinedA: s.Undefined, UndefinedB: t.Undefined,
		Tolerance: min(s.Tolerance, t.Tolerance), Direction: t.Direction,
	}
	t.Tolerance = c.Tolerance
	r := &report{}
	(&Line{N: a.N, Means: []Mean{s}}).compare(&Line{N: b.N, Means: []Mean{t}}, r)
	var diffs []float64
	if p != nil && q != nil {
		for i := range q {
			q[i].tolerance = min(s.ItemTolerance, t.ItemTolerance)
		}
		r.pair = func(u, v float64) {
			if change := v - u; !math.IsNaN(change) && !math.IsInf(u, 0) && !math.IsInf(v, 0) {
				diffs = append(diffs, change)
				c.Largest = max(c.Largest, math.Abs(change))
			}
		}
		mergeRows(claimed, r, p, q)
	}
	c.Unreproduced = len(r.rows) > 0
	if c.Paired = len(diffs); c.Paired > 0 {
		c.Change, c.Low, c.High = interval(diffs)
	} else if s.Value != t.Value && !(math.IsNaN(s.Value) && math.IsNaN(t.Value)) { // also when one of them is undefined
		c.Change = t.Value - s.Value
	}
	return c
}

// ranks compares the places of the rows of tables that both have: the column "rank", or without one the order
// of the rows.
func (d *Difference) ranks(x, y *publishedFolder) {
	for _, name := range slices.Sorted(maps.Keys(x.tables)) {
		a, b := places(x.tables[name], y.tables[name])
		for _, row := range slices.Sorted(maps.Keys(a)) {
			if p, ok := b[row]; ok && p != a[row] {
				d.Ranks = append(d.Ranks, RankChange{strings.TrimSuffix(path.Base(name), ".csv"), row, a[row], p})
			}
		}
	}
}

// places returns the ranks of the rows that two versions of a table share: the column "rank", or without one
// the place among these rows. The file doesn't tell which columns are keys; they come first, so it is the
// fewest columns that tell all rows apart.
func places(a, b []*Record) (pa, pb map[string]string) {
	if len(a) == 0 || len(b) == 0 {
		return nil, nil
	}
	header := a[0].columns
	for n := 1; n <= len(header) && header[n-1] != "rank"; n++ {
		x, y := byKeys(a, header[:n]), byKeys(b, header[:n])
		if x != nil && y != nil {
			return placesOf(a, header[:n], y), placesOf(b, header[:n], x)
		}
	}
	return nil, nil
}

// byKeys indexes rows by their keys, nil if two rows have the same.
func byKeys(rows []*Record, keys []string) map[string]*Record {
	out := map[string]*Record{}
	for _, r := range rows {
		out[r.texts(keys)] = r
	}
	if len(out) < len(rows) {
		return nil
	}
	return out
}

// texts joins the texts in some columns.
func (r *Record) texts(columns []string) string {
	var texts []string
	for _, c := range columns {
		texts = append(texts, r.get(c))
	}
	return strings.Join(texts, ", ")
}

func placesOf(rows []*Record, keys []string, shared map[string]*Record) map[string]string {
	out := map[string]string{}
	for _, r := range rows {
		k := r.texts(keys)
		if shared[k] == nil {
			continue
		}
		rank, ok := r.lookup("rank")
		if !ok {
			rank = strconv.Itoa(len(out) + 1)
		}
		out[k] = rank
	}
	return out
}
