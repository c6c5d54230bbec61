package publish

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A line is a cell in cells/<stage>.jsonl.
type line struct {
	cell       string
	definition string
	madeBy     string
	n          int // -1 for none
	params     json.RawMessage
	scores     []summaryScore // by port
	raw        string         // as it was read
	old        bool           // of an earlier run
}

// A summaryScore is what a line says of one port of scores.
type summaryScore struct {
	port      string
	direction string
	mean      float64
	undefined int
	tolerance float64
}

// stage returns the stage in the cell's name.
func (l *line) stage() string {
	stage, _, _ := strings.Cut(l.cell, "[")
	return stage
}

// score returns what the line says of a port, or nil.
func (l *line) score(port string) *summaryScore {
	for i := range l.scores {
		if l.scores[i].port == port {
			return &l.scores[i]
		}
	}
	return nil
}

// lineOf makes the line of a finished cell.
func lineOf(c *Cell) *line {
	l := &line{cell: c.Name, definition: c.Definition.Short(), madeBy: c.MadeBy, n: c.N, params: compact(c.Params)}
	for _, s := range c.Scores {
		m, undefined := mean(s.Items)
		l.n = len(s.Items)
		l.scores = append(l.scores, summaryScore{s.Port, string(s.Measure.Direction), round(m), undefined, s.Measure.Tolerance})
	}
	slices.SortFunc(l.scores, func(a, b summaryScore) int { return cmp.Compare(a.port, b.port) })
	return l
}

// compact puts a JSON object on one line; nil if it isn't JSON.
func compact(params []byte) json.RawMessage {
	var b bytes.Buffer
	if len(params) == 0 || json.Compact(&b, params) != nil {
		return nil
	}
	return b.Bytes()
}

// A score in a line: of the cell itself if it has one port of scores, else by
// port in "scores".
type scoreJSON struct {
	Direction string         `json:"direction,omitempty"`
	Mean      *stages.Number `json:"mean"` // null where undefined
	Tolerance stages.Number  `json:"tolerance"`
	Undefined int            `json:"undefined"`
}

type lineJSON struct {
	Cell       string               `json:"cell"`
	Definition string               `json:"definition"`
	MadeBy     string               `json:"made_by"`
	N          *int                 `json:"n"`
	Params     json.RawMessage      `json:"params"`
	Score      string               `json:"score"`
	Scores     map[string]scoreJSON `json:"scores"`
	scoreJSON
}

// encode writes the line with sorted keys.
func (l *line) encode() []byte {
	if l.raw != "" {
		return []byte(l.raw + "\n")
	}
	b := make([]byte, 0, 256)
	b = appendString(append(b, `{"cell":`...), l.cell)
	b = appendString(append(b, `,"definition":`...), l.definition)
	single := len(l.scores) == 1
	if single {
		b = l.scores[0].appendDirection(b, ",")
	}
	if l.madeBy != "" {
		b = appendString(append(b, `,"made_by":`...), l.madeBy)
	}
	if single {
		b = append(append(b, `,"mean":`...), formatJSON(l.scores[0].mean)...)
	}
	if l.n >= 0 {
		b = strconv.AppendInt(append(b, `,"n":`...), int64(l.n), 10)
	}
	if len(l.params) > 0 {
		b = append(append(b, `,"params":`...), l.params...)
	}
	if single {
		s := &l.scores[0]
		b = appendString(append(b, `,"score":`...), s.port)
		b = append(append(b, `,"tolerance":`...), formatJSON(s.tolerance)...)
		b = strconv.AppendInt(append(b, `,"undefined":`...), int64(s.undefined), 10)
	} else if len(l.scores) > 0 {
		b = append(b, `,"scores":{`...)
		for i := range l.scores {
			s := &l.scores[i]
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, s.port), ":{"...)
			if n := len(b); len(s.appendDirection(b, "")) > n {
				b = append(s.appendDirection(b, ""), ',')
			}
			b = append(append(b, `"mean":`...), formatJSON(s.mean)...)
			b = append(append(b, `,"tolerance":`...), formatJSON(s.tolerance)...)
			b = append(strconv.AppendInt(append(b, `,"undefined":`...), int64(s.undefined), 10), '}')
		}
		b = append(b, '}')
	}
	return append(b, "}\n"...)
}

// appendDirection appends which scores are better, if that's known.
func (s *summaryScore) appendDirection(b []byte, before string) []byte {
	if s.direction == "" || s.direction == string(stages.None) {
		return b
	}
	return appendString(append(append(b, before...), `"direction":`...), s.direction)
}

// appendString appends a JSON string, with <, > and & as they are.
func appendString(b []byte, s string) []byte {
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) < 0 {
		return append(append(append(b, '"'), s...), '"')
	}
	var q bytes.Buffer
	e := json.NewEncoder(&q)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // there's no string that JSON can't hold
	}
	return append(b, bytes.TrimSpace(q.Bytes())...)
}

// readLines reads what encode wrote, skipping whatever else is there: conflict
// markers, garbage, half a line.
func readLines(b []byte) []*line {
	var lines []*line
	for text := range strings.Lines(string(b)) {
		text = strings.TrimSpace(text)
		var v lineJSON
		if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &v) != nil || v.Cell == "" || !isDefinition(v.Definition) {
			continue
		}
		l := &line{cell: v.Cell, definition: v.Definition, madeBy: v.MadeBy, n: -1, params: v.Params, raw: text}
		if v.N != nil {
			l.n = *v.N
		}
		if v.Score != "" {
			v.Scores = map[string]scoreJSON{v.Score: v.scoreJSON}
		}
		for _, port := range slices.Sorted(maps.Keys(v.Scores)) {
			s := v.Scores[port]
			mean := math.NaN()
			if s.Mean != nil {
				mean = float64(*s.Mean)
			}
			l.scores = append(l.scores, summaryScore{port, s.Direction, mean, s.Undefined, float64(s.Tolerance)})
		}
		lines = append(lines, l)
	}
	return lines
}

// isDefinition reports whether s is written like a definition.
func isDefinition(s string) bool {
	if len(s) != 16 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// mergeCells makes cells/*.jsonl.
func (m *merge) mergeCells() {
	files := map[string][]*Cell{}
	for _, c := range m.cells {
		name := "cells/" + escape(c.Stage) + ".jsonl"
		files[name] = append(files[name], c)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		lines := m.mergeLines(name, files[name])
		if len(lines) == 0 {
			continue
		}
		var b bytes.Buffer
		for _, l := range lines {
			b.Write(l.encode())
		}
		m.files[name] = b.Bytes()
		m.lines = append(m.lines, lines...)
	}
}

func (m *merge) mergeLines(file string, cells []*Cell) []*line {
	disk := map[string][]*line{}
	for _, l := range readLines(m.disk[file]) {
		if !slices.ContainsFunc(disk[l.cell], func(o *line) bool { return o.raw == l.raw }) {
			disk[l.cell] = append(disk[l.cell], l)
		}
	}
	var out []*line
	keep := func(l *line) {
		l.old = true
		out = append(out, l)
		m.tally.add(kept, Row{File: file, Cell: l.cell})
	}
	for _, c := range cells {
		onDisk := disk[c.Name]
		delete(disk, c.Name)
		if c.State == Done {
			out = append(out, m.mergeLine(file, c, onDisk))
			continue
		}
		for _, l := range onDisk {
			keep(l)
		}
	}
	for name, gone := range disk {
		for _, l := range gone {
			if m.partial {
				keep(l)
			} else {
				m.tally.add(removed, Row{File: file, Cell: name})
			}
		}
	}
	slices.SortFunc(out, func(a, b *line) int { return cmp.Or(cmp.Compare(a.cell, b.cell), cmp.Compare(a.raw, b.raw)) })
	return out
}

// mergeLine compares a finished cell with the lines on disk and returns the
// line to publish.
func (m *merge) mergeLine(file string, c *Cell, disk []*line) *line {
	now := lineOf(c)
	var claim *line
	for _, l := range disk {
		// Of contradicting claims, as two branches leave them, the one that holds.
		if m.claims(c, l.definition) && (claim == nil || !agree(claim, now) && agree(l, now)) {
			claim = l
		}
	}
	if claim == nil {
		o := added
		if len(disk) > 0 {
			o = rewritten
		}
		m.tally.add(o, Row{File: file, Cell: c.Name})
		return now
	}

	row := Row{File: file, Cell: c.Name, Deviation: math.Inf(1)}
	same := true
	exact := func(column string, old, new int) {
		if old != new {
			row.Column, row.Old, row.New = column, strconv.Itoa(old), strconv.Itoa(new)
			m.tally.add(differs, row)
			same = false
		}
	}
	exact("n", claim.n, now.n)
	for i := range now.scores {
		s := &now.scores[i]
		old := claim.score(s.port)
		if old == nil {
			m.tally.add(added, Row{File: file, Cell: c.Name})
			continue
		}
		name := scoreName(c.Stage, s.port)
		label := func(column string) string {
			if len(now.scores) > 1 {
				return s.port + " " + column
			}
			return column
		}
		exact(label("undefined"), old.undefined, s.undefined)
		d, ok := within(old.mean, s.mean, s.tolerance)
		if !ok {
			r := Row{File: file, Cell: c.Name, Column: label("mean"), Old: format(old.mean), New: format(s.mean), Deviation: d, Tolerance: s.tolerance}
			m.tally.add(differs, r)
		} else {
			m.tally.counts.Scores++
		}
		m.tally.deviation(fmt.Sprintf("%s mean", name), d, s.tolerance)
		s.mean, s.undefined = round(old.mean), old.undefined
	}
	if len(now.scores) == 0 && same {
		m.tally.counts.Cells++
	}
	now.n, now.madeBy = claim.n, claim.madeBy
	return now
}

// agree reports whether a claim holds.
func agree(claim, now *line) bool {
	for _, s := range now.scores {
		old := claim.score(s.port)
		if old == nil || old.undefined != s.undefined {
			return false
		}
		if _, ok := within(old.mean, s.mean, s.tolerance); !ok {
			return false
		}
	}
	return claim.n == now.n
}
