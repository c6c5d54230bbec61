package publish

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A sheet is a CSV file: what this run has for it and, merged, what it shall
// say. Its columns are axes, keys, numbers, and the definition of the row's cell.
type sheet struct {
	file    string
	stage   string
	column  func(number string) string // names a number column in a [Deviation]
	axes    []string
	coords  []string // the names of the axes' columns
	keys    []string
	numbers []string
	extra   []string // columns that only rows of an earlier run have
	ranked  bool     // the order of the rows means something
	blocks  []*block
	count   func(c *Counts)

	rows []*record // merged
}

// A block holds the rows of one finished cell.
type block struct {
	cell    *Cell
	title   string
	keys    []string
	numbers []stages.Column
	rows    []blockRow
}

type blockRow struct {
	keys    []string
	numbers []stages.Number
}

// A record is one row of a CSV file.
type record struct {
	cell       string // owner, "" if it can't be told
	definition string
	fields     map[string]string
	pos        int  // where it stood on disk
	old        bool // of an earlier run
	used       bool
}

const definitionColumn = "definition"

// newSheet returns an empty sheet for an output port of a stage.
func (m *merge) newSheet(o output) *sheet {
	s := &sheet{file: m.names[o] + ".csv", stage: o.stage}
	for _, c := range m.cells {
		if c.Stage == o.stage {
			for _, at := range c.Coord {
				if !slices.Contains(s.axes, at.Axis) {
					s.axes = append(s.axes, at.Axis)
				}
			}
		}
	}
	slices.Sort(s.axes)
	return s
}

// name gives the axes columns, after the other columns are known. An axis that
// goes by the name of one of these becomes "cell.axis".
func (s *sheet) name() {
	taken := append(append([]string{definitionColumn}, s.keys...), s.numbers...)
	for _, axis := range s.axes {
		for slices.Contains(taken, axis) {
			axis = "cell." + axis
		}
		taken = append(taken, axis)
		s.coords = append(s.coords, axis)
	}
}

// columns lists the columns but the definition.
func (s *sheet) columns() []string {
	return slices.Concat(s.coords, s.keys, s.numbers, s.extra)
}

// owner returns the name of the cell that a record says it belongs to.
func (s *sheet) owner(r *record) string {
	if len(s.axes) == 0 {
		return s.stage
	}
	var at []string
	for i, column := range s.coords {
		id, ok := r.fields[column]
		if !ok {
			return ""
		}
		at = append(at, s.axes[i]+"="+id)
	}
	return s.stage + "[" + strings.Join(at, ",") + "]"
}

// record makes the record of a row.
func (s *sheet) record(b *block, row blockRow) *record {
	r := &record{cell: b.cell.Name, definition: b.cell.Definition.Short(), fields: map[string]string{}}
	for i, axis := range s.axes {
		for _, at := range b.cell.Coord {
			if at.Axis == axis {
				r.fields[s.coords[i]] = at.ID
			}
		}
	}
	for i, k := range b.keys {
		r.fields[k] = row.keys[i]
	}
	for i, n := range b.numbers {
		r.fields[n.Name] = format(float64(row.numbers[i]))
	}
	return r
}

// encode writes the sheet as CSV.
func (s *sheet) encode() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	columns := s.columns()
	w.Write(append(slices.Clone(columns), definitionColumn))
	for _, r := range s.rows {
		fields := make([]string, 0, len(columns)+1)
		for _, c := range columns {
			fields = append(fields, r.fields[c])
		}
		w.Write(append(fields, r.definition))
	}
	w.Flush() // a bytes.Buffer takes everything
	return b.Bytes()
}

// readSheet reads what encode wrote, skipping whatever else is there. A union of
// two branches' files may have two headers: each holds for what follows it.
func readSheet(b []byte) []*record {
	var rows []*record
	var header []string
	r := csv.NewReader(bytes.NewReader(b))
	r.FieldsPerRecord = -1
	r.LazyQuotes = true
	for {
		fields, err := r.Read()
		if err != nil {
			return rows
		}
		last := fields[len(fields)-1]
		if last == definitionColumn {
			header = fields[:len(fields)-1]
			continue
		}
		if len(fields) != len(header)+1 || !isDefinition(last) {
			continue
		}
		rec := &record{definition: last, fields: make(map[string]string, len(header))}
		for i, column := range header {
			rec.fields[column] = fields[i]
		}
		rows = append(rows, rec)
	}
}

// readHeader returns the columns of the first header in a sheet.
func readHeader(b []byte) []string {
	for text := range strings.Lines(string(b)) {
		text = strings.TrimRight(text, "\r\n")
		if !strings.HasSuffix(text, ","+definitionColumn) {
			continue
		}
		if header, err := csv.NewReader(strings.NewReader(text)).Read(); err == nil {
			return header[:len(header)-1]
		}
	}
	return nil
}
