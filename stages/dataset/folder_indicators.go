package dataset

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages/internal/english"
)

// Indicators are a list with a column for each class, 1 for images that show it, as in CheXpert and CelebA.
type indicators struct {
	classes []string // in the order of their columns
	columns []int    // the columns of the classes
	others  []string // the names of columns that aren't read
	entries []entry  // one for each class of an image, or one without a label
	told    []string
}

// indicatorValues are the values of such columns. −1 is "no" in CelebA, and "uncertain" in CheXpert.
var indicatorValues = map[string]int{"": 0, "0": 0, "0.0": 0, "false": 0, "1": 1, "1.0": 1, "true": 1,
	"-1": -1, "-1.0": -1}

// readIndicators reads such a list; nil if it is another one, or has a column of labels.
func readIndicators(file string, b []byte) (*indicators, error) {
	r := csv.NewReader(bytes.NewReader(b))
	first, _, _ := strings.Cut(string(b), "\n")
	r.Comma = separatorOf(first)
	r.TrimLeadingSpace = true
	head, err := r.Read()
	if err != nil {
		return nil, nil // readCSV reports the error
	}
	at, _ := columnOf(head, fileColumns)
	if label, _ := columnOf(head, labelColumns); at < 0 || label >= 0 {
		return nil, nil
	}
	rows, err := r.ReadAll()
	if err != nil {
		return nil, nil
	}
	x := &indicators{}
	shown, err := x.choose(file, head, rows, at)
	if err != nil || len(x.columns) < 2 || !shown {
		return nil, err
	}
	negative, err := x.read(file, rows, at)
	if err != nil {
		return nil, err
	}
	base := filepath.Base(file)
	x.told = append(x.told, fmt.Sprintf("%s: its %d columns %s are classes, of the images where they are 1",
		base, len(x.columns), someOf(x.classes)))
	if negative > 0 {
		x.told = append(x.told, fmt.Sprintf("%s: %d values are −1, and taken for no label", base, negative))
	}
	if len(x.others) > 0 {
		columns := english.Count(len(x.others), "column")
		x.told = append(x.told, fmt.Sprintf("%s: %s not read: %s", base, columns, someOf(x.others)))
	}
	return x, nil
}

// choose finds the columns that are indicators of classes, and reports whether one of their values is 1.
// Column at has the names of files.
func (x *indicators) choose(file string, head []string, rows [][]string, at int) (shown bool, err error) {
	for k, name := range head {
		switch all, any := indicates(rows, k); {
		case k == at:
		case !all || strings.TrimSpace(name) == "":
			x.others = append(x.others, name)
		case slices.Contains(x.classes, strings.TrimSpace(name)):
			return false, fmt.Errorf("%s:1: two columns are called %q", file, name)
		default:
			x.columns, x.classes = append(x.columns, k), append(x.classes, strings.TrimSpace(name))
			shown = shown || any
		}
	}
	return shown, nil
}

// read makes entries from the rows, and returns the number of values that are −1.
func (x *indicators) read(file string, rows [][]string, at int) (negative int, err error) {
	for i, row := range rows {
		e := entry{file: strings.TrimSpace(row[at]), line: i + 2}
		if e.file == "" {
			return 0, fmt.Errorf("%s:%d: missing file or label", file, e.line)
		}
		none := true
		for c, k := range x.columns {
			switch indicated(row[k]) {
			case 1:
				e.label, none = x.classes[c], false
				x.entries = append(x.entries, e)
			case -1:
				negative++
			}
		}
		if none {
			e.label = ""
			x.entries = append(x.entries, e)
		}
	}
	return negative, nil
}

// indicates reports whether all values of a column are indicators, and whether one is 1.
func indicates(rows [][]string, k int) (all, any bool) {
	for _, row := range rows {
		v := indicated(row[k])
		if v > 1 {
			return false, false
		}
		any = any || v == 1
	}
	return true, any
}

// indicated returns the value of an indicator, 2 for another field.
func indicated(field string) int {
	v, ok := indicatorValues[strings.ToLower(strings.TrimSpace(field))]
	if !ok {
		return 2
	}
	return v
}
