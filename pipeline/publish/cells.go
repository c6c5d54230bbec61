package publish

import (
	"bytes"
	"cmp"
	"encoding/json"
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
	rows       map[string]int // of the tables, by port
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

	itemTolerance float64 // of the score of one item; at least tolerance
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
		l.n = s.Items.Len()
		l.scores = append(l.scores, summaryScore{s.Port, string(s.Measure.Direction), round(m), undefined, s.Measure.Tolerance, max(s.Measure.Tolerance, s.Measure.ItemTolerance)})
	}
	slices.SortFunc(l.scores, func(a, b summaryScore) int { return cmp.Compare(a.port, b.port) })
	for _, t := range c.Tables {
		l.setRows(t.Port, len(t.Table.Rows))
	}
	return l
}

func (l *line) setRows(port string, n int) {
	if l.rows == nil {
		l.rows = map[string]int{}
	}
	l.rows[port] = n
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
		b = l.scores[0].appendItemTolerance(b, ",")
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
	for i, port := range slices.Sorted(maps.Keys(l.rows)) {
		if i == 0 {
			b = append(b, `,"rows":{`...)
		} else {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(appendString(b, port), ':'), int64(l.rows[port]), 10)
	}
	if len(l.rows) > 0 {
		b = append(b, '}')
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
			if n := len(b); len(s.appendItemTolerance(b, "")) > n {
				b = append(s.appendItemTolerance(b, ""), ',')
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

// appendItemTolerance appends the tolerance of one item's score, if it's another.
func (s *summaryScore) appendItemTolerance(b []byte, before string) []byte {
	if s.itemTolerance <= s.tolerance {
		return b
	}
	return append(append(append(b, before...), `"item_tolerance":`...), formatJSON(s.itemTolerance)...)
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
		l := &line{cell: v.Cell, definition: v.Definition, madeBy: v.MadeBy, n: -1, params: v.Params, rows: v.Rows, raw: text}
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
			l.scores = append(l.scores, summaryScore{port, s.Direction, mean, s.Undefined, float64(s.Tolerance), float64(max(s.Tolerance, s.ItemTolerance))})
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
