package publish

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A sheet is a CSV file: what this run has for it and, merged, what it shall
// say. Its columns are axes, keys and numbers.
type sheet struct {
	file    string
	stage   string
	column  func(number string) string // names a number column in a [Deviation]
	axes    []string
	coords  []string // the names of the axes' columns
	keys    []string
	numbers []string
	extra   []string // columns that only rows of an earlier run have
	blocks  []*block
	count   func(c *Counts)

	rows []*record // merged
}

// A block holds the rows of one finished cell.
type block struct {
	cell    *Cell
	title   string
	ranked  bool // the order of the rows is a result
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
	cell   string // owner, "" if it can't be told
	fields fields
	pos    int  // where it stood on disk
	old    bool // of an earlier run
	used   bool
}

// fields are the values of a row. All rows with the same columns share their list:
// there may be as many rows as images.
type fields struct{ columns, values []string }

func (f fields) get(column string) string {
	v, _ := f.lookup(column)
	return v
}

func (f fields) lookup(column string) (string, bool) {
	if i := slices.Index(f.columns, column); i >= 0 {
		return f.values[i], true
	}
	return "", false
}

// set changes the value of a column that's there.
func (f fields) set(column, value string) { f.values[slices.Index(f.columns, column)] = value }

// String tells rows apart, whatever the order of their columns.
func (f fields) String() string {
	pairs := make([]string, len(f.columns))
	for i, c := range f.columns {
		pairs[i] = fmt.Sprintf("%q:%q", c, f.values[i])
	}
	slices.Sort(pairs)
	return strings.Join(pairs, " ")
}

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
	taken := slices.Concat(s.keys, s.numbers)
	for _, axis := range s.axes {
		for slices.Contains(taken, axis) {
			axis = "cell." + axis
		}
		taken = append(taken, axis)
		s.coords = append(s.coords, axis)
	}
}

// columns lists the columns.
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
		id, ok := r.fields.lookup(column)
		if !ok {
			return ""
		}
		at = append(at, s.axes[i]+"="+id)
	}
	return s.stage + "[" + strings.Join(at, ",") + "]"
}

// columnsOf lists the columns that the rows of a block have values in.
func (s *sheet) columnsOf(b *block) []string {
	var columns []string
	for i, axis := range s.axes {
		if slices.ContainsFunc(b.cell.Coord, func(at stages.Coord) bool { return at.Axis == axis }) {
			columns = append(columns, s.coords[i])
		}
	}
	columns = append(columns, b.keys...)
	for _, n := range b.numbers {
		columns = append(columns, n.Name)
	}
	return columns
}

// record makes the record of a row; columns are those of its block.
func (s *sheet) record(b *block, columns []string, row blockRow) *record {
	values := make([]string, 0, len(columns))
	for _, axis := range s.axes {
		for _, at := range b.cell.Coord {
			if at.Axis == axis {
				values = append(values, at.ID)
			}
		}
	}
	for _, key := range row.keys {
		values = append(values, Field(key))
	}
	for _, x := range row.numbers {
		values = append(values, format(float64(x)))
	}
	return &record{cell: b.cell.Name, fields: fields{columns, values}}
}

// encode writes the sheet as CSV.
func (s *sheet) encode() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	columns := s.columns()
	w.Write(columns)
	for _, r := range s.rows {
		row := make([]string, 0, len(columns))
		for _, c := range columns {
			row = append(row, r.fields.get(c))
		}
		w.Write(row)
	}
	w.Flush() // a bytes.Buffer takes everything
	return b.Bytes()
}

// oldDefinition ends the header of a table as it was written when each row had its
// cell's definition.
const oldDefinition = "definition"

// isOldSheet reports whether a CSV file was written then.
func isOldSheet(b []byte) bool {
	for values := range readCSV(b) {
		return len(values) > 1 && values[len(values)-1] == oldDefinition
	}
	return false
}

// readSheet reads what encode wrote, skipping whatever else is there, and returns the
// rows and the columns of the first of them. A union of two branches' files may have
// two headers: each holds for what follows it.
func readSheet(b []byte) (rows []*record, columns []string) {
	var header []string
	for values := range readCSV(b) {
		if _, number := parse(values[len(values)-1]); header == nil || values[0] == header[0] && !number {
			header = values
			if columns == nil {
				columns = header
			}
		} else if len(values) == len(header) {
			n := len(header)
			if header[n-1] == oldDefinition {
				n--
			}
			rows = append(rows, &record{fields: fields{header[:n], values[:n]}})
		}
	}
	return rows, columns
}
