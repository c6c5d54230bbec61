package publish

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

const cellsName = "cells"

// cellsRenderer writes cells/<stage>.jsonl, which has a line for each cell, sorted. The definition in a
// line decides whether the cell's rows, figures and texts are current.
var cellsRenderer = renderer{
	name:   cellsName,
	files:  []pattern{{"cells/*.jsonl", unionAttributes}},
	render: renderCells,
	read: func(d *disk, name string, b []byte) bool {
		elsewhere := func(l *Line) bool { return cellsFile(l.Cell) != name } // misplaced, or damaged
		d.lines[name] = slices.DeleteFunc(readLines(b), elsewhere)
		for _, l := range d.lines[name] {
			for port := range l.Rows {
				for _, base := range baseNames(stageOf(l.Cell), port) {
					d.ours["tables/"+base+".csv"] = true
				}
			}
		}
		return len(d.lines[name]) > 0
	},
}

// cellsFile returns the file of a cell's line.
func cellsFile(cell string) string { return "cells/" + escape(stageOf(cell)) + ".jsonl" }

func renderCells(f *Folder, add func(name string, b []byte)) {
	lines := map[string][][]byte{}
	sorted := slices.SortedStableFunc(slices.Values(f.Lines), func(a, b *Line) int {
		return cmp.Or(cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.raw, b.raw))
	})
	for _, l := range sorted {
		name := cellsFile(l.Cell)
		lines[name] = append(lines[name], l.encode())
	}
	for name, l := range lines {
		add(name, bytes.Join(l, nil))
	}
}

// A lineJSON is a line with its keys sorted. It has the mean of a cell with one port of scores. The means of
// several ports are in Scores, each in a lineJSON that has nothing else.
type lineJSON struct {
	Cell          string               `json:"cell,omitempty"`
	Cells         int                  `json:"cells,omitempty"`
	Definition    string               `json:"definition,omitempty"`
	Direction     stages.Direction     `json:"direction,omitempty"`
	ItemTolerance number               `json:"item_tolerance,omitempty"` // if it's larger than Tolerance
	Items         string               `json:"items,omitempty"`          // what has scores; "" for images
	MadeBy        string               `json:"made_by,omitempty"`
	Mean          *number              `json:"mean,omitempty"` // null if it's undefined
	N             *int                 `json:"n,omitempty"`
	Params        json.RawMessage      `json:"params,omitempty"`
	Rows          map[string]int       `json:"rows,omitempty"`
	Score         string               `json:"score,omitempty"`
	Scores        map[string]*lineJSON `json:"scores,omitempty"`
	Shown         json.RawMessage      `json:"shown,omitempty"`
	Tolerance     *number              `json:"tolerance,omitempty"`
	Undefined     *int                 `json:"undefined,omitempty"`
}

// encode returns the text of the line. A line that wasn't compared keeps the text it was read from.
func (l *Line) encode() []byte {
	if l.raw != "" {
		return []byte(l.raw + "\n")
	}
	v := lineJSON{Cell: l.Cell, Cells: l.Cells, Definition: l.Definition, Items: l.Items, MadeBy: l.MadeBy,
		Params: l.Params, Rows: l.Rows, Shown: l.Shown}
	if l.N >= 0 {
		v.N = &l.N
	}
	if len(l.Means) > 1 {
		v.Scores = map[string]*lineJSON{}
	}
	for i := range l.Means {
		m, s := &l.Means[i], &v
		if v.Scores != nil {
			s = &lineJSON{}
			v.Scores[m.Port] = s
		} else {
			v.Score = m.Port
		}
		s.Mean, s.Tolerance, s.Undefined = (*number)(&m.Value), (*number)(&m.Tolerance), &m.Undefined
		if m.Direction != stages.None {
			s.Direction = m.Direction
		}
		if m.ItemTolerance > m.Tolerance {
			s.ItemTolerance = number(m.ItemTolerance)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // there's nothing in a line that JSON can't hold
	}
	return b.Bytes()
}

// readLines reads lines that encode wrote, and skips everything else: conflict markers, garbage, half a line.
func readLines(b []byte) (lines []*Line) {
	for text := range strings.Lines(string(b)) {
		text = strings.TrimSpace(text)
		var v lineJSON
		if json.Unmarshal([]byte(text), &v) != nil || v.Cell == "" || !isDefinition(v.Definition) {
			continue
		}
		l := &Line{Cell: v.Cell, Cells: v.Cells, Definition: v.Definition, MadeBy: v.MadeBy, raw: text}
		l.Items, l.N, l.Params, l.Rows, l.Shown = v.Items, either(v.N, -1), v.Params, v.Rows, v.Shown
		if v.Score != "" {
			v.Scores = map[string]*lineJSON{v.Score: &v}
		}
		for _, port := range slices.Sorted(maps.Keys(v.Scores)) {
			if s := v.Scores[port]; s != nil {
				t := either(s.Tolerance, 0)
				l.Means = append(l.Means, Mean{
					Port: port, Direction: s.Direction, Value: float64(either(s.Mean, number(math.NaN()))),
					Undefined: either(s.Undefined, 0), Tolerance: float64(t),
					ItemTolerance: float64(max(t, s.ItemTolerance)),
				})
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// either returns *p, or a default if p is nil.
func either[T any](p *T, without T) T {
	if p == nil {
		return without
	}
	return *p
}

// isDefinition reports whether s has the form of a definition.
func isDefinition(s string) bool {
	return len(s) == 16 && strings.Trim(s, "0123456789abcdef") == ""
}
