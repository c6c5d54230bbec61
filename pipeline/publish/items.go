package publish

import (
	"bytes"
	"encoding/csv"
	"math"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// itemDigits is how many significant digits of the score of an item are published.
const itemDigits = 6

// itemHeader begins the line of ids in a file of items. No cell is called so.
const itemHeader = "cell/item"

// undefinedItem stands for a score that is undefined. Without a text of its own it
// couldn't be told from one that is missing.
const undefinedItem = "undefined"

// An itemLine is a line of a file of items: what one cell says of its items. There
// may be as many as images, so their scores are written out only where they must be.
type itemLine struct {
	cell    string
	ids     []string // sorted; lines of one file share them
	numbers []float64
	values  []string // by id, of lines that were read; nil for those that numbers tell
}

func formatItem(x float64) string { return string(appendItem(nil, x)) }

func appendItem(b []byte, x float64) []byte {
	if math.IsNaN(x) {
		return append(b, undefinedItem...)
	}
	return appendNumber(b, x, itemDigits)
}

// parseItem reads what formatItem wrote.
func parseItem(s string) (x float64, ok bool) {
	if s == undefinedItem {
		return math.NaN(), true
	}
	x, ok = parse(s)
	return x, ok && !math.IsNaN(x)
}

// withinItem is within, for a published score of an item: what was rounded away
// doesn't count.
func withinItem(published string, now, tolerance float64) (deviation float64, ok bool) {
	x, _ := parseItem(published)
	if published == formatItem(now) {
		return 0, true
	}
	rounded := 0.0
	if x != 0 {
		rounded = math.Pow10(int(math.Floor(math.Log10(math.Abs(x))))-itemDigits+1) / 2
	}
	d, _ := within(x, now, 0)
	return d, !math.IsInf(d, 0) && d <= (tolerance+rounded)*(1+1e-9)
}

// encodeItems writes lines with the same items, field by field: there may be many.
func encodeItems(lines []*itemLine) []byte {
	var out bytes.Buffer
	w, field := csv.NewWriter(&out), make([]string, 1)
	text := func(s string) {
		field[0] = s
		w.Write(field)
		w.Flush()                   // a bytes.Buffer takes everything
		out.Truncate(out.Len() - 1) // no end of a line yet
	}
	text(itemHeader)
	for _, id := range lines[0].ids {
		out.WriteByte(',')
		text(id)
	}
	for _, l := range lines {
		out.WriteByte('\n')
		text(l.cell)
		for i := range l.ids {
			out.WriteByte(',')
			if l.values != nil {
				text(l.values[i])
			} else {
				out.Write(appendItem(out.AvailableBuffer(), l.numbers[i]))
			}
		}
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// readItems reads what encodeItems wrote, skipping whatever else is there. A union of
// two branches' files may have two headers: each holds for what follows it.
func readItems(b []byte) []*itemLine {
	var lines []*itemLine
	var ids []string
	for values := range readCSV(b) {
		if values[0] == itemHeader {
			if !slices.Equal(ids, values[1:]) {
				ids = values[1:]
			}
		} else if len(ids) > 0 && len(values) == len(ids)+1 {
			lines = append(lines, &itemLine{cell: values[0], ids: ids, values: values[1:]})
		}
	}
	return lines
}

// itemFiles returns the files that the lines of one score go to, in the order of
// their names. Cells with the items of the first one share the file called like the
// score; those with other items have files of their own, named by these.
func itemFiles(name string, lines []*itemLine) (names []string, files map[string][]*itemLine) {
	files = map[string][]*itemLine{}
	for _, l := range lines {
		file := name + ".csv"
		if !slices.Equal(l.ids, lines[0].ids) {
			file = name + "@" + itemsDigest(l.ids) + ".csv"
		}
		if files[file] == nil {
			names = append(names, file)
		}
		files[file] = append(files[file], l)
	}
	slices.Sort(names)
	return names, files
}

func itemsDigest(ids []string) string {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Write(ids)
	w.Flush()
	return stages.Sum(b.Bytes()).Short()[:8]
}

// isItemFile reports whether a file has lines of the score called name: escaped names
// have no @.
func isItemFile(file, name string) bool {
	base, ok := strings.CutSuffix(file, ".csv")
	base, _, _ = strings.Cut(base, "@")
	return ok && base == name
}
