package publish

import (
	"bytes"
	"encoding/csv"
	"iter"
	"slices"
)

// tablesRenderer writes tables/*.csv: axes, keys and numbers, a row a line.
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
		return false // lines in cells/ name ours
	},
}

func encodeTable(s *Sheet) []byte {
	columns := s.Columns()
	return encodeCSV(func(yield func([]string) bool) {
		yield(columns)
		for _, r := range s.Records {
			fields := make([]string, len(columns))
			for i, c := range columns {
				fields[i] = r.get(c)
			}
			yield(fields)
		}
	})
}

// readTable reads what encodeTable wrote, skipping whatever else is there. A union of two branches' files may
// have two headers: each holds for what follows it.
func readTable(b []byte) (records []*Record) {
	var header []string
	for fields := range readCSV(b) {
		if _, number := parse(fields[len(fields)-1]); header == nil || fields[0] == header[0] && !number {
			header = slices.Clip(fields)
		} else if len(fields) == len(header) {
			records = append(records, &Record{columns: header, values: fields})
		}
	}
	return records
}

// readCSV yields the records of a CSV file. What git and interrupted editors leave, conflict markers and half
// a line at the end, isn't among them.
func readCSV(b []byte) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		r := csv.NewReader(bytes.NewReader(b[:bytes.LastIndexByte(b, '\n')+1]))
		r.FieldsPerRecord = -1
		r.LazyQuotes = true
		for {
			values, err := r.Read()
			if err != nil || !hasConflict(values[:1]) && !yield(values) {
				return
			}
		}
	}
}

// encodeCSV writes a CSV file.
func encodeCSV(records iter.Seq[[]string]) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for r := range records {
		w.Write(r)
	}
	w.Flush() // a bytes.Buffer takes everything
	return b.Bytes()
}
