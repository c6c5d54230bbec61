package dataset

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/english"
)

// An image with several labels has an item for each of them, named after the image and the label:
// photo.jpg/cat. A list has several labels of an image in one field, in columns of 0 and 1, or in several
// rows.

// severalLabels returns an entry for each label of entries. known are the names of classes, nil if the
// labels define them. several is false, and the entries are unchanged, if each has one label and no other
// entry has its file. If several is true, none are the entries of images without a label, which are left
// out.
func severalLabels(list string, entries []entry, known []string) (all, none []entry, several bool,
	told []string, err error) {
	commas := commasSeparate(entries, known)
	empty, many := -1, 0 // an entry without a label; images with several
	labels := make([][]string, len(entries))
	of := map[string][]string{} // labels by file
	for i, e := range entries {
		labels[i] = labelsIn(e.label, known, commas)
		if len(labels[i]) == 0 && empty < 0 {
			empty = i
		}
		before, twice := of[e.file]
		several = several || twice && !subset(labels[i], before) || len(labels[i]) > 1 || e.label == "[]"
		of[e.file] = append(before, labels[i]...)
	}
	switch {
	case !several && empty >= 0:
		return nil, nil, false, nil, fmt.Errorf("%s:%d: missing file or label", list, entries[empty].line)
	case !several:
		return entries, nil, false, nil, nil
	}
	for i, e := range entries {
		for k, label := range labels[i] {
			if !slices.Contains(labels[i][:k], label) {
				e.label = label
				all = append(all, e)
			}
		}
		if len(of[e.file]) == 0 {
			none = append(none, e)
		}
	}
	for _, l := range of {
		if len(l) > 1 {
			many++
		}
	}
	base := filepath.Base(list)
	if len(all) == 0 {
		return nil, nil, true, nil, fmt.Errorf("%s gives no image a label", list)
	}
	told = append(told, fmt.Sprintf("%s: %d of %s have several labels, and an item for each: %d items", base,
		many, english.Count(len(of), "image"), len(all)))
	if len(none) > 0 {
		told = append(told, fmt.Sprintf("%s: left out, as they have no label: %d of %s", base, len(none),
			english.Count(len(of), "image")))
	}
	return all, none, true, told, nil
}

func subset(a, b []string) bool {
	return !slices.ContainsFunc(a, func(x string) bool { return !slices.Contains(b, x) })
}

// labelsIn returns the labels in a field: separated by semicolons or bars, by blanks between numbers,
// inside brackets, or, if commas is set, separated by commas. The name of a class stays whole.
func labelsIn(field string, known []string, commas bool) []string {
	inner, list := field, len(field) > 1 && field[0] == '[' && field[len(field)-1] == ']'
	if list {
		inner = field[1 : len(field)-1]
	}
	switch {
	case slices.Contains(known, field):
		return []string{field}
	case list && strings.ContainsAny(inner, ",;|"):
		return partsOf(inner, ",;|")
	case strings.ContainsAny(inner, ";|"):
		return partsOf(inner, ";|")
	case allNumbers(strings.Fields(inner)):
		return partsOf(inner, " \t")
	case commas && strings.Contains(inner, ","):
		if parts := partsOf(inner, ","); allNumbers(parts) || areKnown(parts, known) {
			return parts
		}
	case list: // one
		return partsOf(inner, "\n")
	}
	if field == "" {
		return nil
	}
	return []string{field}
}

// partsOf splits a text at separators, and leaves out quotes and empty parts.
func partsOf(text, separators string) (parts []string) {
	between := func(r rune) bool { return strings.ContainsRune(separators, r) }
	for _, part := range strings.FieldsFunc(text, between) {
		part = strings.TrimSpace(part)
		for _, quote := range []string{`"`, `'`} {
			if len(part) > 1 && strings.HasPrefix(part, quote) && strings.HasSuffix(part, quote) {
				part = part[1 : len(part)-1]
			}
		}
		if part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// commasSeparate reports whether commas separate labels: known names of classes, or numbers, unless all of
// them may be numbers with a decimal comma, such as "3,0".
func commasSeparate(entries []entry, known []string) bool {
	for _, e := range entries {
		if !strings.Contains(e.label, ",") || slices.Contains(known, e.label) {
			continue
		}
		parts := partsOf(e.label, ",")
		if allNumbers(parts) && !(len(parts) == 2 && strings.Trim(parts[1], "0") == "") || areKnown(parts,
			known) {
			return true
		}
	}
	return false
}

func allNumbers(parts []string) bool {
	return len(parts) > 1 && !slices.ContainsFunc(parts,
		func(s string) bool { return !numeral.MatchString(s) })
}

// areKnown reports whether all of several parts are classes.
func areKnown(parts, known []string) bool {
	return len(parts) > 1 && known != nil &&
		!slices.ContainsFunc(parts, func(s string) bool { return classNamed(known, s) < 0 })
}

// checkCommas returns an error for a label with commas whose parts are labels too: it may be one or
// several.
func checkCommas(list string, entries []entry) error {
	alone := map[string]bool{}
	for _, e := range entries {
		alone[e.label] = true
	}
	for _, e := range entries {
		parts := partsOf(e.label, ",")
		if len(parts) > 1 && !slices.ContainsFunc(parts, func(s string) bool { return !alone[s] }) {
			return fmt.Errorf("%s:%d: the label %q may be one class or %d: write %q for these, or name the "+
				"classes with names", list, e.line, e.label, len(parts), strings.Join(parts, ";"))
		}
	}
	return nil
}

// itemOf names an item of an image with several labels.
func itemOf(id string, class int, classes []string) string {
	if classes == nil {
		return id + "/" + strconv.Itoa(class)
	}
	return id + "/" + classes[class]
}

// imageOf returns the path of an item's image relative to the folder.
func imageOf(s stages.Source) string {
	for id := s.ID; id != "" && id != "."; id = path.Dir(id) {
		if file := filepath.FromSlash(id); s.File == file ||
			strings.HasSuffix(s.File, string(filepath.Separator)+file) {
			return id
		}
	}
	return s.ID
}
