package dataset

import (
	"bufio"
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// parseEntries reads the text of a list. Its name and its first line decide the format: CSV, or lines of
// text with a file and a label, with a file below its class's folder, or with a number.
func parseEntries(p FolderParams, b []byte) (entries []entry, told []string, err error) {
	first, _, _ := strings.Cut(string(b), "\n")
	if !strings.EqualFold(filepath.Ext(p.List), ".txt") || strings.Contains(first, ",") {
		return readCSV(p.List, b)
	}
	entries, err = readLines(p, b)
	return entries, nil, err
}

// readLines reads a list of lines of text.
func readLines(p FolderParams, b []byte) ([]entry, error) {
	var entries []entry
	scan := bufio.NewScanner(bytes.NewReader(b))
	scan.Buffer(nil, 1<<16)
	columns := 0
	for line := 1; scan.Scan(); line++ {
		text := strings.TrimSpace(scan.Text())
		if text == "" {
			continue
		}
		e := entry{file: text, line: line}
		k := strings.LastIndexAny(text, " \t")
		if columns == 0 {
			columns = min(k+2, 2)
		}
		switch {
		case (k < 0) != (columns == 1):
			return nil, fmt.Errorf("%s:%d: %q: the first line has %d columns", p.List, line, text, columns)
		case k >= 0:
			e.file, e.label = strings.TrimSpace(text[:k]), text[k+1:]
		case isNumber(text):
			e.file, e.label = "", text
		default:
			if e.label, e.bare = path.Dir(text), true; e.label == "." {
				return nil, fmt.Errorf("%s:%d: %q has no label, and isn't in the folder of a class", p.List,
					line,
					text)
			}
		}
		e.file = strings.TrimLeft(e.file, "/") // Places365 has paths from the data set's root
		entries = append(entries, e)
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("%q: %w", p.List, err)
	}
	if len(entries) > 0 && entries[0].file == "" {
		return numbered(p, entries)
	}
	return entries, nil
}

func isNumber(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil
}

// numbered assigns ImageNet's list of numbers, one a line, to the images of the folder whose names end with
// the number of the line.
func numbered(p FolderParams, entries []entry) ([]entry, error) {
	if p.IDs == "" && p.First == 0 {
		return nil, fmt.Errorf("%s numbers classes from 1, and the numbers of ImageNet's development "+
			"kit don't have the order of the networks' classes: ids names a file with their names, such as "+
			"map_clsloc.txt; first: 1 takes the numbers as they are", p.List)
	}
	w := walker{skip: p.annotates}
	nodes, err := w.entries(p.Path)
	if err != nil {
		return nil, err
	}
	var out []entry
	for _, n := range nodes {
		if n.dir || !w.image(n) {
			continue
		}
		stem := withoutExt(n.name)
		digits := stem[len(strings.TrimRight(stem, "0123456789")):]
		line, err := strconv.Atoi(digits)
		if err != nil || line < 1 || line > len(entries) {
			return nil, fmt.Errorf("%q has no line in %s: its name must end with a number from 1 to %d",
				n.file,
				p.List, len(entries))
		}
		e := entries[line-1]
		if e.file != "" {
			return nil, fmt.Errorf("%s:%d: %q isn't a number", p.List, e.line, e.file)
		}
		e.file = n.name
		out = append(out, e)
	}
	return out, nil
}

// renumber replaces the numbers of classes by their names in the file ids, and returns the names of all
// classes: names, or those of the file in sorted order.
func renumber(p FolderParams, entries []entry, names []string) ([]string, error) {
	b, err := readText(p.IDs)
	if err != nil {
		return nil, err
	}
	nameOf := map[string]string{}
	var all []string
	for line, text := range strings.Split(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n") {
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		number := slices.IndexFunc(fields, isNumber)
		name := slices.IndexFunc(fields, func(f string) bool { return !isNumber(f) })
		if number < 0 || name < 0 {
			return nil, fmt.Errorf("%s:%d: %q: a class's number and name are needed", p.IDs, line+1, text)
		}
		if _, twice := nameOf[canonical(fields[number])]; twice {
			return nil, fmt.Errorf("%s:%d: a second class has the number %s", p.IDs, line+1, fields[number])
		}
		nameOf[canonical(fields[number])] = fields[name]
		all = append(all, fields[name])
	}
	if names == nil {
		slices.Sort(all)
		names = slices.Compact(all)
	}
	for i := range entries {
		name, ok := nameOf[canonical(entries[i].label)]
		if !ok {
			return nil, fmt.Errorf("%s:%d: %s has no class %q", p.List, entries[i].line, p.IDs,
				entries[i].label)
		}
		entries[i].label = name
	}
	return names, nil
}

// canonical writes a whole number such as 3.0 or 03 as 3; other texts stay the same.
func canonical(text string) string {
	if n, _, whole := asNumber(text); whole {
		return strconv.Itoa(n)
	}
	return text
}
