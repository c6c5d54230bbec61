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

// cellsRenderer writes cells/<stage>.jsonl: a line a cell, sorted. Its definition is what makes rows, figures
// and texts claims.
var cellsRenderer = renderer{
	name:   "cells",
	files:  []pattern{{"cells/*.jsonl", unionAttributes}},
	render: renderCells,
	read: func(d *disk, name string, b []byte) bool {
		elsewhere := func(l *Line) bool { return cellsFile(l.Cell) != name } // some other line, or damaged
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

// A score in a line: of the cell itself if it has one port of scores, else by port in "scores".
type scoreJSON struct {
	Direction string         `json:"direction"`
	Mean      *stages.Number `json:"mean"` // null where undefined
	Tolerance stages.Number  `json:"tolerance"`
	Undefined int            `json:"undefined"`

	ItemTolerance stages.Number `json:"item_tolerance"` // where it's larger than Tolerance
}

type lineJSON struct {
	Cell       string               `json:"cell"`
	Definition string               `json:"definition"`
	MadeBy     string               `json:"made_by"`
	N          *int                 `json:"n"`
	Params     json.RawMessage      `json:"params"`
	Rows       map[string]int       `json:"rows"`
	Score      string               `json:"score"`
	Scores     map[string]scoreJSON `json:"scores"`
	scoreJSON
}

// encode returns the line with sorted keys; one that wasn't compared as it was read.
func (l *Line) encode() []byte {
	if l.raw != "" {
		return []byte(l.raw + "\n")
	}
	v := map[string]any{"cell": l.Cell, "definition": l.Definition}
	if l.MadeBy != "" {
		v["made_by"] = l.MadeBy
	}
	if l.N >= 0 {
		v["n"] = l.N
	}
	if len(l.Params) > 0 {
		v["params"] = l.Params
	}
	if len(l.Rows) > 0 {
		v["rows"] = l.Rows
	}
	if len(l.Means) == 1 {
		v["score"] = l.Means[0].Port
		l.Means[0].encode(v)
	} else if len(l.Means) > 1 {
		scores := map[string]any{}
		for i := range l.Means {
			s := map[string]any{}
			l.Means[i].encode(s)
			scores[l.Means[i].Port] = s
		}
		v["scores"] = scores
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // there's nothing in a line that JSON can't hold
	}
	return b.Bytes()
}

func (m *Mean) encode(v map[string]any) {
	v["mean"], v["tolerance"], v["undefined"] = formatJSON(m.Value), formatJSON(m.Tolerance), m.Undefined
	if m.Direction != "" && m.Direction != stages.None {
		v["direction"] = m.Direction
	}
	if m.ItemTolerance > m.Tolerance {
		v["item_tolerance"] = formatJSON(m.ItemTolerance)
	}
}

// readLines reads lines as encode writes them and skips whatever else is there: conflict markers, garbage,
// half a line.
func readLines(b []byte) []*Line {
	var lines []*Line
	for text := range strings.Lines(string(b)) {
		text = strings.TrimSpace(text)
		var v lineJSON
		if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &v) != nil {
			continue
		}
		if v.Cell == "" || !isDefinition(v.Definition) {
			continue
		}
		l := &Line{Cell: v.Cell, Definition: v.Definition, MadeBy: v.MadeBy, N: -1, raw: text}
		l.Params, l.Rows = v.Params, v.Rows
		if v.N != nil {
			l.N = *v.N
		}
		if v.Score != "" {
			v.Scores = map[string]scoreJSON{v.Score: v.scoreJSON}
		}
		for _, port := range slices.Sorted(maps.Keys(v.Scores)) {
			s := v.Scores[port]
			value := math.NaN()
			if s.Mean != nil {
				value = float64(*s.Mean)
			}
			l.Means = append(l.Means, Mean{
				Port: port, Direction: stages.Direction(s.Direction), Value: value, Undefined: s.Undefined,
				Tolerance: float64(s.Tolerance), ItemTolerance: float64(max(s.Tolerance, s.ItemTolerance)),
			})
		}
		lines = append(lines, l)
	}
	return lines
}

// isDefinition reports whether s is written like a definition.
func isDefinition(s string) bool {
	return len(s) == 16 && strings.Trim(s, "0123456789abcdef") == ""
}
