package textfile

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// A table reads the records of a CSV file.
type table struct {
	csv     *csv.Reader
	budget  *budget
	offset  int64 // of the file's first byte that csv reads
	columns []string
	comma   rune
}

// A budget is a reader that fails when a record takes more than its bytes: a quote that isn't closed would
// have the rest of the file read.
type budget struct {
	r    io.Reader
	left int
}

func (b *budget) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("more than %d bytes in a record: is a quote not closed?", maxRecord)
	}
	n, err := b.r.Read(p)
	b.left -= n
	return n, err
}

// maxColumns limits the columns of a file.
const maxColumns = 1 << 12

// separators of columns; the one that the first line has most of counts.
const separators = ",;\t|"

// newTable reads the names of the columns. first is the file's beginning.
func newTable(r io.Reader, offset int64, first string) (*table, error) {
	first, _, _ = strings.Cut(first, "\n")
	t := &table{budget: &budget{r, maxRecord}, offset: offset, comma: ','}
	most := 0
	for _, c := range separators {
		if n := strings.Count(first, string(c)); n > most {
			t.comma, most = c, n
		}
	}
	t.csv = csv.NewReader(t.budget)
	t.csv.Comma, t.csv.FieldsPerRecord = t.comma, -1
	head, err := t.csv.Read()
	if err != nil {
		return nil, err
	}
	if len(head) > maxColumns {
		return nil, fmt.Errorf("%d columns, more than %d", len(head), maxColumns)
	}
	for _, name := range head {
		t.columns = append(t.columns, strings.TrimSpace(name))
	}
	return t, nil
}

// next returns the fields of the next record, and its place. The error is io.EOF after the last.
func (t *table) next() (fields []string, at place, err error) {
	t.budget.left = maxRecord
	at.offset = t.offset + t.csv.InputOffset()
	fields, err = t.csv.Read()
	if parse := new(csv.ParseError); errors.As(err, &parse) {
		at.line, err = parse.StartLine, fmt.Errorf("column %d: %w", parse.Column, parse.Err)
		if parse.Line != parse.StartLine {
			err = fmt.Errorf("to line %d, %w", parse.Line, err)
		}
		return nil, at, err
	}
	if err != nil {
		return nil, at, err
	}
	at.line, _ = t.csv.FieldPos(0)
	at.length = int(t.offset + t.csv.InputOffset() - at.offset)
	return fields, at, nil
}

// only returns the fields of the record in a part of the file.
func only(part []byte, comma rune) ([]string, error) {
	r := csv.NewReader(strings.NewReader(string(part)))
	r.Comma, r.FieldsPerRecord = comma, -1
	return r.Read()
}

// ofColumns returns the record in some fields, by the names of columns.
func ofColumns(fields, columns []string, n Fields) (r *Record, err error) {
	if len(fields) != len(columns) {
		return nil, fmt.Errorf("%d fields, and the first line has %d", len(fields), len(columns))
	}
	if slices.ContainsFunc(fields, func(f string) bool { return !utf8.ValidString(f) }) {
		return nil, errNotUTF8
	}
	field := func(name string) string {
		if i := slices.Index(columns, name); i >= 0 {
			return fields[i]
		}
		return ""
	}
	r = &Record{ID: strings.TrimSpace(field(n.ID)), Label: strings.TrimSpace(field(n.Label)),
		Text: field(n.Text)}
	for _, required := range []struct{ name, value string }{{n.ID, r.ID}, {n.Label, r.Label}} {
		if slices.Contains(columns, required.name) && required.value == "" {
			return nil, fmt.Errorf("the column %q is empty", required.name)
		}
	}
	if text := strings.TrimSpace(field(n.Rationale)); text != "" {
		r.Rationale, err = spans([]byte(text))
	}
	return r, err
}
