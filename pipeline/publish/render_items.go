package publish

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/typeset"
	"github.com/runexp/runexp/stages"
)

// itemsRenderer writes items/<score>.csv, with a row for each cell and a column for each item.
var itemsRenderer = renderer{
	name:  "items",
	files: []pattern{{"items/*.csv", unionAttributes}},
	render: func(f *Folder, add func(name string, b []byte)) {
		for _, file := range f.Items {
			if !file.Stored {
				add(file.Name, encodeItems(file.Lines))
			}
		}
	},
	read: func(d *disk, name string, b []byte) bool {
		lines := readItems(b)
		output, _, _ := strings.Cut(strings.TrimSuffix(name, ".csv"), "@") // no escaped name has an @
		d.items[output] = append(d.items[output], lines...)
		return len(lines) > 0
	},
}

// itemHeader begins the row of ids in a file of items. No cell has this name.
const itemHeader = "cell/item"

// undefinedItem is written for an undefined score. An empty field is a score that is missing.
const undefinedItem = "undefined"

func formatItem(x float64) string {
	if math.IsNaN(x) {
		return undefinedItem
	}
	return typeset.Format(x, itemDigits)
}

// parseItem reads a score that formatItem wrote.
func parseItem(s string) (x float64, ok bool) {
	if s == undefinedItem {
		return math.NaN(), true
	}
	x, ok = typeset.Parse(s)
	return x, ok && !math.IsNaN(x)
}

// encodeItems writes lines with the same items.
func encodeItems(lines []*ItemLine) []byte {
	var b bytes.Buffer
	writeItems(&b, lines)
	return b.Bytes()
}

func writeItems(to io.Writer, lines []*ItemLine) {
	w := csv.NewWriter(to)
	w.Write(append([]string{itemHeader}, lines[0].IDs...))
	fields := make([]string, 0, len(lines[0].IDs)+1)
	for _, l := range lines {
		fields = append(fields[:0], l.Cell)
		for _, x := range l.Values {
			fields = append(fields, formatItem(x))
		}
		w.Write(fields)
	}
	w.Flush()
}

// sizeOfItems returns how many bytes encodeItems returns, without holding more than one line in memory.
func sizeOfItems(lines []*ItemLine) int {
	var n counter
	writeItems(&n, lines)
	return int(n)
}

type counter int

func (n *counter) Write(b []byte) (int, error) {
	*n += counter(len(b))
	return len(b), nil
}

// readItems reads lines that encodeItems wrote. It skips everything else, and lines with an unreadable score.
func readItems(b []byte) (lines []*ItemLine) {
	isHeader := func(_, fields []string) bool { return fields[0] == itemHeader }
	ascending := func(a, b string) int { return cmp.Or(cmp.Compare(a, b), -1) }
	for header, fields := range readCSV(b, isHeader) {
		l := &ItemLine{Cell: fields[0], IDs: header[1:], Values: make([]float64, len(fields)-1)}
		readable := slices.IsSortedFunc(l.IDs, ascending)
		for i, s := range fields[1:] {
			var ok bool
			l.Values[i], ok = parseItem(s)
			readable = readable && ok
		}
		if readable {
			lines = append(lines, l)
		}
	}
	return lines
}

func itemsDigest(ids []string) string {
	return stages.Sum(encodeCSV(slices.Values([][]string{ids}))).Short()[:8]
}
