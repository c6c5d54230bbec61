package publish

import (
	"bytes"
	"encoding/csv"
	"iter"
)

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
