package publish

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// A Difference says how two review folders differ.
type Difference struct {
	A, B    string   // the folders, as they were named
	Added   []string // cells of B only
	Removed []string // cells of A only
	// Redefined counts cells whose definition changed, by stage: what was asked
	// is another question, be it for parameters, inputs or code.
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
	Tolerance    float64 // that both declare
	Direction    string  // which is better
	Paired       int     // items defined in both; 0 if there's nothing to pair
	Change       float64 // mean of the paired differences B − A, or without pairs of the means
	Low, High    float64 // 95 % interval of Change, with Paired > 1
	Largest      float64 // the largest paired difference
	Unreproduced bool    // outside the tolerance: the mean, an item, or what is undefined
}

// A RankChange is a row of a table that changed its place.
type RankChange struct {
	Table string
	Row   string // its keys
	A, B  string // the rank, or the place in the file
}

// Diff compares two review folders. Scores are paired by item, so that the
// interval of a difference isn't widened by what all items have in common.
func Diff(a, b string) (*Difference, error) {
	x, err := openReview(a)
	if err != nil {
		return nil, err
	}
	y, err := openReview(b)
	if err != nil {
		return nil, err
	}
	d := &Difference{A: a, B: b}
	d.params(x, y)
	d.scores(x, y)
	d.ranks(x, y)
	return d, nil
}

// Empty reports that the folders say the same: the same cells, parameters and
// definitions, every score to the last published digit.
func (d *Difference) Empty() bool {
	return len(d.Added)+len(d.Removed)+len(d.Redefined)+len(d.Params)+len(d.Scores)+len(d.Ranks) == 0
}

// Within reports that the folders make the same claims, and that no score is
// farther off than its tolerance: each reproduces the other.
func (d *Difference) Within() bool {
	return len(d.Added)+len(d.Removed)+len(d.Redefined) == 0 &&
		!slices.ContainsFunc(d.Scores, func(s ScoreChange) bool { return s.Unreproduced })
}

// review is a review folder as it's read for comparison.
type review struct {
	lines map[string]*line
	files map[string][]byte
	seed  string
}

func openReview(dir string) (*review, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%q is not a review folder", dir)
	}
	files, err := readFolder(dir)
	if err != nil {
		return nil, err
	}
	r := &review{lines: map[string]*line{}, files: files}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(name, "cells/") {
			for _, l := range readLines(files[name]) {
				r.lines[l.cell] = l
			}
		}
	}
	if len(r.lines) == 0 {
		return nil, fmt.Errorf("%q is not a review folder: there is no line in %s", dir, filepath.Join(dir, "cells"))
	}
	var top struct {
		Seed uint64 `yaml:"seed"`
	}
	if text, ok := files["experiment.yaml"]; ok && yaml.Unmarshal(text, &top) == nil {
		r.seed = fmt.Sprint(top.Seed)
	}
	return r, nil
}

// params compares cells, definitions and parameters.
func (d *Difference) params(x, y *review) {
	if x.seed != y.seed {
		d.Params = append(d.Params, ParamChange{Name: "seed", A: x.seed, B: y.seed})
	}
	redefined := map[string]int{}
	changes := map[[4]string]*ParamChange{}
	for _, cell := range slices.Sorted(maps.Keys(x.lines)) {
		a, b := x.lines[cell], y.lines[cell]
		if b == nil {
			d.Removed = append(d.Removed, cell)
			continue
		}
		if a.definition != b.definition {
			redefined[a.stage()]++
		}
		p, q := object(a.params), object(b.params)
		names := map[string]bool{}
		for name := range p {
			names[name] = true
		}
		for name := range q {
			names[name] = true
		}
		for name := range names {
			if bytes.Equal(p[name], q[name]) {
				continue
			}
			key := [4]string{a.stage(), name, string(p[name]), string(q[name])}
			if changes[key] == nil {
				changes[key] = &ParamChange{Stage: key[0], Name: name, A: key[2], B: key[3]}
			}
			changes[key].Cells = append(changes[key].Cells, cell)
		}
	}
	for _, cell := range slices.Sorted(maps.Keys(y.lines)) {
		if x.lines[cell] == nil {
			d.Added = append(d.Added, cell)
		}
	}
	for _, stage := range slices.Sorted(maps.Keys(redefined)) {
		d.Redefined = append(d.Redefined, StageCount{stage, redefined[stage]})
	}
	for _, c := range changes {
		d.Params = append(d.Params, *c)
	}
	slices.SortFunc(d.Params, func(a, b ParamChange) int {
		return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Name, b.Name), cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B))
	})
}

// object splits a JSON object, nil if it isn't one.
func object(b []byte) map[string]json.RawMessage {
	var o map[string]json.RawMessage
	if len(b) == 0 || json.Unmarshal(b, &o) != nil {
		return nil
	}
	return o
}

// scores compares the scores of cells that both have.
func (d *Difference) scores(x, y *review) {
	items := map[string][2]map[string]map[string]float64{} // by score: in A and B, by cell and item
	for _, cell := range slices.Sorted(maps.Keys(x.lines)) {
		a, b := x.lines[cell], y.lines[cell]
		if b == nil {
			continue
		}
		for _, s := range a.scores {
			t := b.score(s.port)
			if t == nil {
				continue
			}
			d.Compared++
			key := a.stage() + "." + s.port
			if _, ok := items[key]; !ok {
				items[key] = [2]map[string]map[string]float64{x.items(a.stage(), s.port), y.items(a.stage(), s.port)}
			}
			c := compareScore(cell, s, *t, a.n, b.n, items[key][0][cell], items[key][1][cell])
			if c.Change != 0 || c.Largest != 0 || c.NA != c.NB || c.UndefinedA != c.UndefinedB || c.Unreproduced {
				d.Scores = append(d.Scores, c)
			}
		}
	}
}

func compareScore(cell string, s, t summaryScore, na, nb int, p, q map[string]float64) ScoreChange {
	c := ScoreChange{
		Cell: cell, Port: s.port, A: s.mean, B: t.mean, NA: na, NB: nb, UndefinedA: s.undefined, UndefinedB: t.undefined,
		Tolerance: min(s.tolerance, t.tolerance), Direction: t.direction,
	}
	var diffs []float64
	off := na != nb || s.undefined != t.undefined
	if p == nil || q == nil {
		p, q = nil, nil // one folder leaves them in the store
	}
	off = off || len(p) != len(q)
	for _, id := range slices.Sorted(maps.Keys(p)) {
		u := p[id]
		v, both := q[id]
		if !both {
			off = true
			continue
		}
		if _, ok := within(u, v, min(s.itemTolerance, t.itemTolerance)); !ok {
			off = true
		}
		if !math.IsNaN(u) && !math.IsNaN(v) && !math.IsInf(u, 0) && !math.IsInf(v, 0) {
			diffs = append(diffs, v-u)
			c.Largest = max(c.Largest, math.Abs(v-u))
		}
	}
	_, ok := within(s.mean, t.mean, c.Tolerance)
	c.Unreproduced = off || !ok
	c.Paired = len(diffs)
	if c.Paired == 0 {
		if s.mean != t.mean { // also when one of them is undefined
			c.Change = t.mean - s.mean
		}
		if math.IsNaN(s.mean) && math.IsNaN(t.mean) {
			c.Change = 0
		}
		return c
	}
	c.Change, c.Low, c.High = interval(diffs)
	return c
}

// items reads the scores of the items of a port, by cell and item.
func (r *review) items(stage, port string) map[string]map[string]float64 {
	out := map[string]map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		file, ok := strings.CutPrefix(name, "items/")
		if names := baseNames(stage, port); !ok || !isItemFile(file, names[0]) && !isItemFile(file, names[1]) {
			continue
		}
		for _, l := range readItems(r.files[name]) {
			if at, _, _ := strings.Cut(l.cell, "["); at != stage {
				continue // of another output with the same name
			}
			if out[l.cell] == nil {
				out[l.cell] = map[string]float64{}
			}
			for i, id := range l.ids {
				if x, ok := parseItem(l.values[i]); ok {
					out[l.cell][id] = x
				}
			}
		}
	}
	return out
}

// ranks compares the places of the rows of tables that both have: the column
// "rank", or without one the order of the rows.
func (d *Difference) ranks(x, y *review) {
	for _, name := range slices.Sorted(maps.Keys(x.files)) {
		if !strings.HasPrefix(name, "tables/") || y.files[name] == nil {
			continue
		}
		table := strings.TrimSuffix(strings.TrimPrefix(name, "tables/"), ".csv")
		before, header := readSheet(x.files[name])
		after, _ := readSheet(y.files[name])
		a, b := places(before, after, header)
		for _, row := range slices.Sorted(maps.Keys(a)) {
			if p, ok := b[row]; ok && p != a[row] {
				d.Ranks = append(d.Ranks, RankChange{table, row, a[row], p})
			}
		}
	}
}
