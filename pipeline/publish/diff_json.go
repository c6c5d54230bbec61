package publish

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/runexp/runexp/stages"
)

// DiffData is a [Difference] for other programs. Its fields are promised by docs/stability.md.
type DiffData struct {
	Before   string     `json:"before"` // the names of the two versions
	Now      string     `json:"now"`
	Summary  string     `json:"summary"`
	Within   bool       `json:"within"` // the same cells and definitions, and all scores within their tolerances
	Answer   changeData `json:"answer"` // the first sentences, "" for none
	Items    string     `json:"items"`  // what scores are of: "images"
	Compared int        `json:"compared"`

	Added     []string       `json:"added"` // cells
	Removed   []string       `json:"removed"`
	Redefined map[string]int `json:"redefined"` // cells of each stage
	Params    []paramData    `json:"params"`
	Scores    []scoreData    `json:"scores"` // those that changed, in the order of cells
	Ranks     []rankData     `json:"ranks"`
	Rows      rowsData       `json:"rows"` // of tables with ranks that both have
}

type changeData struct {
	Before string `json:"before"`
	Now    string `json:"now"`
}

type paramData struct {
	Param  string          `json:"param"`
	Before json.RawMessage `json:"before"` // null if it isn't set
	Now    json.RawMessage `json:"now"`
	Cells  []string        `json:"cells"`
}

type scoreData struct {
	Cell      string           `json:"cell"`
	Score     string           `json:"score"` // the port
	Direction stages.Direction `json:"direction"`
	Before    meanData         `json:"before"`
	Now       meanData         `json:"now"`
	Paired    int              `json:"paired"` // items with a score in both
	Change    *float64         `json:"change"` // the mean of the paired differences; without pairs of the means
	Low       *float64         `json:"low"`    // the interval of the change, null without one
	High      *float64         `json:"high"`
	Verdict   string           `json:"verdict"`
	Within    *bool            `json:"within"` // its tolerance; null where the definition is another one
}

type meanData struct {
	Mean      *float64 `json:"mean"` // null if undefined
	N         int      `json:"n"`
	Undefined int      `json:"undefined"`
}

type rankData struct {
	Tables []string          `json:"tables"`
	Row    map[string]string `json:"row"`
	Before float64           `json:"before"`
	Now    float64           `json:"now"`
}

type rowsData struct {
	Added   []rowData `json:"added"`
	Removed []rowData `json:"removed"`
}

type rowData struct {
	Table string            `json:"table"`
	Row   map[string]string `json:"row"`
}

// Data returns the difference for other programs. Lists without entries are empty, not null.
func (d *Difference) Data() *DiffData {
	out := &DiffData{Before: d.A, Now: d.B, Summary: d.Summary(), Within: d.Within(),
		Answer: changeData{d.Answers[0], d.Answers[1]}, Items: d.Items, Compared: d.Compared,
		Added: notNull(d.Added), Removed: notNull(d.Removed), Redefined: d.Redefined, Params: []paramData{},
		Scores: []scoreData{}, Ranks: []rankData{}, Rows: rowsData{rowsOf(d.OnlyB), rowsOf(d.OnlyA)}}
	for _, p := range d.Params {
		out.Params = append(out.Params,
			paramData{p.Name, rawJSON(p.Before), rawJSON(p.Now), notNull(p.Cells)})
	}
	for i := range d.Scores {
		out.Scores = append(out.Scores, d.Scores[i].data())
	}
	for _, r := range d.Ranks {
		out.Ranks = append(out.Ranks, rankData{r.Tables, r.Row.byColumn(), r.Before, r.Now})
	}
	return out
}

func (s *ScoreChange) data() scoreData {
	out := scoreData{Cell: s.Cell, Score: s.B.Port, Direction: s.B.Direction, Paired: s.Paired,
		Before: meanData{finite(s.A.Value), s.NA, s.A.Undefined}, Verdict: s.Verdict(),
		Now: meanData{finite(s.B.Value), s.NB, s.B.Undefined}, Change: finite(s.Change)}
	if s.Paired > 1 {
		out.Low, out.High = finite(s.Low), finite(s.High)
	}
	if within := !s.Unreproduced; !s.Redefined {
		out.Within = &within
	}
	return out
}

// finite returns a number with nine digits, as tables have them, nil for one that JSON hasn't got.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	x, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 9, 64), 64)
	if err != nil {
		return nil
	}
	return &x
}

// rawJSON returns a value of a parameter.
func rawJSON(text string) json.RawMessage {
	if text == unset || !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}

func notNull(list []string) []string { return append([]string{}, list...) }

func rowsOf(keys []TableKey) []rowData {
	rows := []rowData{}
	for _, k := range keys {
		rows = append(rows, rowData{k.Table, k.byColumn()})
	}
	return rows
}

// byColumn returns the texts by their columns.
func (k TableKey) byColumn() map[string]string {
	of := map[string]string{}
	for i, c := range k.Columns {
		of[c] = k.Texts[i]
	}
	return of
}
