package score

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// ExternalParams are the parameters of [External].
type ExternalParams struct {
	Path      string   `yaml:"path" doc:"a CSV file whose first line names its columns" file:"read"`
	Where     []string `yaml:"where" doc:"which rows, as column=text, all of which must hold: method=${method} takes those of the cell's method"`
	Value     string   `yaml:"value" doc:"the column of the scores; empty or nan: undefined"`
	Item      string   `yaml:"item" doc:"the column of the images' ids; default: one row has the score of all, whose id is all"`
	Direction string   `yaml:"direction" doc:"which scores are better" choices:"higher|lower|none"`
	Unit      string   `yaml:"unit" doc:"the unit of the scores, such as share"`
}

// Validate requires a path, and conditions that name a column.
func (p ExternalParams) Validate() error {
	if p.Path == "" {
		return stages.BadField("path", "path is required: name the CSV file of the scores")
	}
	for _, w := range p.Where {
		if column, _, ok := strings.Cut(w, "="); !ok || column == "" {
			return stages.BadField("where", "where has %q, which isn't of the form column=text", w)
		}
	}
	return nil
}

// External reads scores that were published, or computed by another program.
var External = stages.New(stages.Def[ExternalParams]{
	Name: "score/external",
	Doc: `scores from a CSV file

Published scores, or those of another program, to stand in tables, leaderboards and
fusions next to one's own. Each cell takes the rows that its parameters say, with one
score an image, or one for all.`,
	Version:  1,
	Relation: stages.Each,
	Outputs:  []stages.Port{{Name: "scores", Type: stages.Scores, Doc: "the scores"}},
	Defaults: ExternalParams{Value: "value", Direction: string(stages.Higher)},
	Sources: func(p ExternalParams, _ []string) ([]stages.Source, error) {
		f, err := stages.OpenFile(p.Path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return p.rows(f)
	},
	Facts: func(p ExternalParams, _ map[string]stages.Facts) (map[string]stages.Facts, error) {
		m := stages.Measure{Unit: p.Unit, Direction: stages.Direction(p.Direction), Low: math.Inf(-1),
			High: math.Inf(1)}
		return map[string]stages.Facts{"scores": m.Facts(nil)}, nil
	},
	Run: func(_ context.Context, _ ExternalParams, e *stages.Env) error {
		for i := range e.Len() {
			x, err := strconv.ParseFloat(e.Source(i).Note, 64)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			e.Put("scores", i, stages.Scalar(x))
			e.Done(1)
		}
		return nil
	},
})

// maxScores limits the bytes of a file, maxColumns the columns of its table.
const (
	maxScores  = 1 << 28
	maxColumns = 1 << 12
)

func errScores(path string) error { return fmt.Errorf("%s has more than %d bytes", path, maxScores) }

// oneForAll is the id of a score that isn't of one image.
const oneForAll = "all"

// A scoreTable is a CSV file and what the parameters choose of it.
type scoreTable struct {
	ExternalParams
	*csv.Reader
	limited     *io.LimitedReader
	header      []string
	value, item int            // columns; −1 for no item
	conditions  map[int]string // the texts of columns
}

// rows returns a source for each row that the parameters choose: the score is its note, so that a score's key
// depends on no other row.
func (p ExternalParams) rows(file io.Reader) ([]stages.Source, error) {
	limited := &io.LimitedReader{R: file, N: maxScores + 1}
	t := &scoreTable{ExternalParams: p, Reader: csv.NewReader(limited), limited: limited}
	t.TrimLeadingSpace = true
	if err := t.readHeader(); err != nil {
		return nil, err
	}
	var sources []stages.Source
	lines := map[string]int{}
	for {
		row, err := t.Read()
		if limited.N == 0 {
			return nil, errScores(p.Path)
		} else if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Path, err) // with its line
		}
		if !holds(t.conditions, row) {
			continue
		}
		s, err := t.source(row, lines)
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	if len(sources) == 0 {
		return nil, stages.BadField("where", "%s has no row with %s", p.Path, strings.Join(p.Where, ", "))
	}
	return sources, nil
}

// readHeader reads the names of the columns, and finds those that parameters name.
func (t *scoreTable) readHeader() error {
	header, err := t.Read()
	if t.limited.N == 0 {
		return errScores(t.Path)
	} else if err != nil {
		return fmt.Errorf("%s: no line that names the columns: %w", t.Path, err)
	}
	if len(header) > maxColumns {
		return fmt.Errorf("%s has %d columns, more than %d", t.Path, len(header), maxColumns)
	}
	t.header = slices.Clone(header)
	t.header[0] = strings.TrimPrefix(header[0], "\ufeff") // of files that Excel wrote
	if t.value, err = t.column("value", t.Value); err != nil {
		return err
	}
	t.item = -1
	if t.Item != "" {
		if t.item, err = t.column("item", t.Item); err != nil {
			return err
		}
	}
	t.conditions = map[int]string{}
	for _, w := range t.Where {
		name, text, _ := strings.Cut(w, "=")
		i, err := t.column("where", name)
		if err != nil {
			return err
		}
		t.conditions[i] = text
	}
	return nil
}

// column returns the column that a parameter names.
func (t *scoreTable) column(field, name string) (int, error) {
	i := slices.Index(t.header, name)
	if i < 0 {
		return 0, stages.BadName(field, name, t.header, "%s has no column %q, only %s", t.Path, name,
			strings.Join(t.header, ", "))
	}
	return i, nil
}

// source returns the source of a row. lines has the lines of the ids before it.
func (t *scoreTable) source(row []string, lines map[string]int) (stages.Source, error) {
	line, _ := t.FieldPos(t.value)
	id := oneForAll
	if t.item >= 0 {
		id = row[t.item]
	}
	first, again := lines[id]
	switch {
	case id == "":
		return stages.Source{}, fmt.Errorf("%s:%d: the row has no %s", t.Path, line, t.Item)
	case again && t.item < 0:
		return stages.Source{}, fmt.Errorf("%s:%d: a second row that the parameters choose, after line %d: "+
			"name more columns in where, or the images' column in item", t.Path, line, first)
	case again:
		return stages.Source{}, fmt.Errorf("%s:%d: %q again, first in line %d", t.Path, line, id, first)
	}
	lines[id] = line
	x := math.NaN()
	if text := strings.TrimSpace(row[t.value]); text != "" {
		var err error
		if x, err = strconv.ParseFloat(text, 64); err != nil {
			return stages.Source{}, fmt.Errorf("%s:%d: the %s %q is no number", t.Path, line, t.Value, text)
		}
	}
	return stages.Source{ID: id, Note: strconv.FormatFloat(x, 'g', -1, 64)}, nil
}

// holds reports whether a row has the texts of some columns.
func holds(conditions map[int]string, row []string) bool {
	for i, text := range conditions {
		if row[i] != text {
			return false
		}
	}
	return true
}
