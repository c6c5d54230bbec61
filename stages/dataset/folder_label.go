package dataset

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/english"
)

// numeral matches a number as programs write it: 3, +3, 03, 3.0, 3e0.
var numeral = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

// absentLabels are the texts that programs write for a missing value: pandas, R, SQL, spreadsheets.
var absentLabels = []string{"nan", "NaN", "NAN", "-nan", "null", "NULL", "None", "<NA>", "NaT", "N/A",
	"#N/A", "inf",
	"-inf", "Inf", "-Inf"}

// asNumber returns the number in a label, if it is one: 3 for "3.0", "3e0" and "[3]". whole is false for
// one that isn't a whole number, or too large for a class.
func asNumber(label string) (n int, isNumber, whole bool) {
	text := label
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		text = strings.TrimSpace(strings.TrimSuffix(inner, "]"))
	}
	if !numeral.MatchString(text) {
		return 0, false, false
	}
	if n, err := strconv.Atoi(text); err == nil {
		return n, true, true
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || x != math.Trunc(x) {
		return 0, true, false
	}
	return int(min(max(x, -1), maxLabel+1)), true, true
}

// severalNumbers reports whether a label is a list of numbers, such as "0 1" or "[0, 1]".
func severalNumbers(label string) bool {
	parts := strings.FieldsFunc(strings.Trim(label, "[](){}"), func(r rune) bool {
		return strings.ContainsRune(" \t,;|", r)
	})
	return len(parts) > 1 && !slices.ContainsFunc(parts,
		func(s string) bool { return !numeral.MatchString(s) })
}

// checkLabels returns an error for missing labels, and for numbers among names. known are the names of
// classes; if they are nil, numbers reports whether the labels are numbers.
func checkLabels(list string, entries []entry, known []string) (numbers bool, err error) {
	var firstNumber, firstName *entry
	for i := range entries {
		e := &entries[i]
		_, isNumber, whole := asNumber(e.label)
		doubtful := isNumber && !whole || slices.Contains(absentLabels, e.label) || severalNumbers(e.label)
		switch {
		case doubtful && classNamed(known, e.label) >= 0:
		case isNumber && !whole:
			return false, fmt.Errorf("%s:%d: the label %q isn't a whole number", list, e.line, e.label)
		case isNumber:
			if firstNumber == nil {
				firstNumber = e
			}
		case slices.Contains(absentLabels, e.label):
			return false, fmt.Errorf("%s:%d: the label is missing: %q", list, e.line, e.label)
		case severalNumbers(e.label):
			return false, fmt.Errorf("%s:%d: the label %q is several numbers", list, e.line, e.label)
		case firstName == nil:
			firstName = e
		}
	}
	if firstNumber != nil && firstName != nil && known == nil {
		return false, fmt.Errorf("%s:%d: the label %q is a number, and on line %d %q is a name: labels are "+
			"all numbers or all names", list, firstNumber.line, firstNumber.label, firstName.line,
			firstName.label)
	}
	return firstNumber != nil, nil
}

// namesOf returns the labels, each once and sorted.
func namesOf(entries []entry) (classes []string) {
	for _, e := range entries {
		classes = append(classes, e.label)
	}
	slices.Sort(classes)
	return slices.Compact(classes)
}

// classOf returns the class of a label that checkLabels has accepted. seen caches the classes of names.
func (p FolderParams) classOf(e entry, classes []string, seen map[string]int) (int, error) {
	n, isNumber, _ := asNumber(e.label)
	if !isNumber {
		n, ok := seen[e.label]
		if !ok {
			n = classNamed(classes, e.label)
			seen[e.label] = n
		}
		if n < 0 {
			return 0, fmt.Errorf("unknown class %q", e.label)
		}
		return n, nil
	}
	switch n += p.Offset - p.First; {
	case n < 0 || n > maxLabel:
		return 0, fmt.Errorf("label %s isn't between %d and %d", e.label, p.First, maxLabel)
	case classes != nil && n >= len(classes):
		return 0, fmt.Errorf("label %d has no name: there are %d names", n, len(classes))
	}
	return n, nil
}

// The orders in which named classes are numbered.
const (
	autoOrder   = "auto"   // as text, with a warning if the numbers in names have another order
	textOrder   = "text"   // of the names as text, as in torchvision's ImageFolder and Keras
	numberOrder = "number" // by the number in a name
)

// maxNumber is the largest class number that a name can have.
const maxNumber = 1 << 16

// background is the name of class 0 if offset is 1.
const background = "background"

// numbered returns the numbers of classes with these names, which are sorted and distinct, and the names by
// number.
func (p FolderParams) numbered(names []string) (numbers []int, classes []string, err error) {
	if p.Order != numberOrder {
		for i := range names {
			numbers = append(numbers, i+p.Offset)
		}
		return numbers, append(slices.Repeat([]string{background}, p.Offset), names...), nil
	}
	found, err := numbersIn(names)
	if err != nil {
		return nil, nil, stages.BadField("order", "order is number: %w", err)
	}
	for i, n := range found {
		n += p.Offset - p.First
		if n < 0 {
			return nil, nil, stages.BadField("first", "first is %d, and %q has the number %d", p.First,
				names[i],
				found[i])
		}
		for len(classes) <= n { // a number that no name has
			classes = append(classes, strconv.Itoa(len(classes)-p.Offset+p.First))
		}
		numbers, classes[n] = append(numbers, n), names[i]
	}
	return numbers, classes, nil
}

// numbersIn returns the number in each name: the whole name, or the number at the beginning or at the end
// of all names.
func numbersIn(names []string) ([]int, error) {
	const digits = "0123456789"
	for _, part := range []func(name string) string{
		func(name string) string { return name },
		func(name string) string { return name[:len(name)-len(strings.TrimLeft(name, digits))] },
		func(name string) string { return name[len(strings.TrimRight(name, digits)):] },
	} {
		var numbers []int
		first := map[int]string{}
		for _, name := range names {
			n, err := strconv.Atoi(part(name))
			if err != nil || n < 0 {
				break
			}
			if n > maxNumber {
				return nil, fmt.Errorf("%q has a number beyond %d", name, maxNumber)
			}
			if other, twice := first[n]; twice {
				return nil, fmt.Errorf("%q and %q have the same number", other, name)
			}
			first[n] = name
			numbers = append(numbers, n)
		}
		if len(numbers) == len(names) {
			return numbers, nil
		}
	}
	return nil, fmt.Errorf("not all names of classes are numbers, or begin or end with one: %s", some(names))
}

// some quotes the first names of a list.
func some(names []string) string {
	var quoted []string
	for _, n := range names[:min(3, len(names))] {
		quoted = append(quoted, strconv.Quote(n))
	}
	if len(names) > 3 {
		quoted = append(quoted, "…")
	}
	return strings.Join(quoted, ", ")
}

// orderRemark returns a remark if the numbers in the names of classes have another order than their text,
// and order doesn't decide.
func (p FolderParams) orderRemark(l *listing, folder string) []string {
	numbers, err := numbersIn(l.named)
	if p.Order != autoOrder || len(l.named) == 0 || err != nil {
		return nil
	}
	last := len(numbers) - 1
	whole := strings.Trim(l.named[0], "0123456789") == ""
	if slices.IsSorted(numbers) && !(whole && (numbers[0] > 1 || numbers[last]-numbers[0] != last)) {
		return nil
	}
	return []string{fmt.Sprintf("the classes %s of %q are numbered in the order of text, in which %q is "+
		"class %d; order: number takes the numbers in their names, order: text the order of text without "+
		"this warning",
		some(l.named), folder, l.named[last], last+p.Offset)}
}

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
