package publish

import (
	"bytes"
	"encoding/csv"
	"iter"
	"slices"

	"github.com/runexp/runexp/pipeline/typeset"
)

// tablesRenderer writes tables/*.csv, with columns of axes, keys and numbers.
var tablesRenderer = renderer{
	name:  "tables",
	files: []pattern{{"tables/*.csv", unionAttributes}},
	render: func(f *Folder, add func(name string, b []byte)) {
		for _, s := range f.Sheets {
			add(s.File, encodeTable(s))
		}
	},
	read: func(d *disk, name string, b []byte) bool {
		d.tables[name] = readTable(b)
		return false // the lines in cells/ say which tables are ours
	},
}

func encodeTable(s *Sheet) []byte {
	columns := s.Columns()
	return encodeCSV(func(yield func([]string) bool) {
		yield(columns)
		for _, r := range s.Rows {
			fields := make([]string, len(columns))
			for i, c := range columns {
				fields[i] = r.get(c)
			}
			yield(fields)
		}
	})
}

// readTable reads rows that encodeTable wrote, and skips everything else.
func readTable(b []byte) (rows []*TableRow) {
	isHeader := func(header, fields []string) bool {
		_, number := typeset.Parse(fields[len(fields)-1])
		return header == nil || fields[0] == header[0] && !number
	}
	var of []string
	var places map[string]int
	for header, fields := range readCSV(b, isHeader) {
		if len(of) != len(header) || &of[0] != &header[0] {
			of, places = header, map[string]int{}
			for i := len(header) - 1; i >= 0; i-- {
				places[header[i]] = i
			}
		}
		rows = append(rows, &TableRow{columns: header, values: fields, places: places})
	}
	return rows
}

// readCSV yields the rows of a CSV file that are as long as their header, with the header. A union of two
// branches' files may have two headers: each is for the rows that follow it. Conflict markers are skipped,
// and so is half a line that an interrupted editor left at the end.
func readCSV(b []byte, isHeader func(header, fields []string) bool) iter.Seq2[[]string, []string] {
	return func(yield func(header, fields []string) bool) {
		r := csv.NewReader(bytes.NewReader(b[:bytes.LastIndexByte(b, '\n')+1]))
		r.FieldsPerRecord = -1
		r.LazyQuotes = true
		var header []string
		for {
			fields, err := r.Read()
			switch {
			case err != nil:
				return
			case hasConflict(fields[:1]):
			case isHeader(header, fields):
				header = slices.Clip(fields)
			case len(fields) == len(header) && !yield(header, fields):
				return
			}
		}
	}
}

// encodeCSV writes a CSV file.
func encodeCSV(rows iter.Seq[[]string]) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for r := range rows {
		w.Write(r)
	}
	w.Flush() // a bytes.Buffer takes everything
	return b.Bytes()
}
