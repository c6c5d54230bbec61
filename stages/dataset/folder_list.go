package dataset

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/archive"
	"github.com/runexp/runexp/stages/internal/classname"
)

// A listing is the content of a folder.
type listing struct {
	sources []stages.Source
	classes []string // names by class number; nil if there are none
	named   []string // the ones that are numbered by their order as text
	listed  bool     // by a list
	empty   []string // images that are listed without a label
	told    []string // remarks on differences from the folder or its list
}

// maxLabel limits class numbers, so that typing errors in a list are detected.
const maxLabel = 1 << 24

// listFolder lists images in a deterministic order: that of the CSV file, otherwise sorted by path.
func listFolder(p FolderParams) (*listing, error) { return listNamed(p, nil) }

// listNamed lists images with the names of all classes; nil stands for the names in the parameters.
func listNamed(p FolderParams, names []string) (*listing, error) {
	info, err := os.Stat(p.Path)
	if err != nil {
		return nil, fmt.Errorf("folder %q: %w", p.Path, plain(err))
	}
	if !info.IsDir() {
		texts := ""
		if slices.Contains([]string{".csv", ".tsv", ".json", ".jsonl", ".txt"}, filepath.Ext(p.Path)) {
			texts = "; dataset/text takes texts"
		}
		return nil, fmt.Errorf("%q is neither a folder nor an archive, whose name ends with %s%s", p.Path,
			strings.Join(archive.Extensions, ", "), texts)
	}
	if p.List == "" {
		p.findList()
	}
	if names == nil && p.Names != "" {
		if names, err = readNames(p.Names); err != nil {
			return nil, err
		}
	}
	if p.List != "" {
		return readList(p, names)
	}
	return walkFolder(p, names)
}

// findList finds the list in the folder of a data set: labels.csv, or Food-101's list of test images with
// the names of its classes.
func (p *FolderParams) findList() {
	found := func(name string) bool {
		info, err := os.Stat(filepath.Join(p.Path, name))
		return err == nil && info.Mode().IsRegular()
	}
	switch test, labels := filepath.Join("meta", "test.txt"), filepath.Join("meta", "labels.txt"); {
	case found("labels.csv"):
		p.List = filepath.Join(p.Path, "labels.csv")
	case found(test):
		p.List = filepath.Join(p.Path, test)
		if p.Names == "" && found(labels) {
			p.Names = filepath.Join(p.Path, labels)
		}
	}
}

// readNames reads one class name per line. Trailing line breaks are ignored.
func readNames(file string) ([]string, error) {
	b, err := readText(file)
	if err != nil {
		return nil, err
	}
	text := strings.TrimRight(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n")
	if text == "" {
		return nil, fmt.Errorf("%q is empty: one class name per line is needed", file)
	}
	names := strings.Split(text, "\n")
	for i, n := range names {
		names[i] = strings.TrimSpace(n)
		if names[i] == "" {
			return nil, fmt.Errorf("%s:%d: empty line: one class name per line is needed", file, i+1)
		}
	}
	return names, nil
}

// maxText and maxLines limit lists and names; ImageNet's list has 50 MB, and 1.3 million lines.
const (
	maxText  = 1 << 28
	maxLines = 1 << 24
)

func readText(file string) ([]byte, error) {
	b, err := stages.ReadFile(file, maxText)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", file, plain(err))
	}
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	if n := bytes.Count(b, []byte("\n")); n > maxLines {
		return nil, fmt.Errorf("%q has %d lines, more than %d", file, n, maxLines)
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return nil, fmt.Errorf("%q isn't UTF-8 text", file)
	}
	return b, nil
}

// An entry is a line of a list.
type entry struct {
	file, label string
	line        int
	bare        bool // file may lack its extension and its folder
}

func readList(p FolderParams, names []string) (*listing, error) {
	text, err := readText(p.List)
	if err != nil {
		return nil, err
	}
	entries, classes, told, err := parseList(p, text, names)
	if err != nil {
		return nil, err
	}
	entries, none, several, said, err := severalLabels(p.List, entries, classes)
	if err != nil {
		return nil, err
	}
	l := &listing{told: append(told, said...), listed: true}
	if l.classes, l.named, err = classesOfList(p, entries, classes, names); err != nil {
		return nil, err
	}
	find := finder{folder: p.Path, list: p.List, entries: entries}
	lost, err := l.add(p, &find, several)
	if err != nil {
		return nil, err
	}
	for _, e := range none {
		if id, err := find.find(e); err == nil {
			l.empty = append(l.empty, id)
		}
	}
	l.told = append(l.told, find.told...)
	if len(lost) == 0 {
		return l, nil
	}
	const count = "%d of %d files that %s lists aren't in the folder"
	many := fmt.Sprintf(count, len(lost), len(entries), filepath.Base(p.List))
	if p.Absent == "fail" || len(l.sources) == 0 {
		return nil, fmt.Errorf("%w (%s; absent: skip leaves such files out)", lost[0].err, many)
	}
	l.told = append(l.told, fmt.Sprintf("%s and are left out, first %q on line %d", many, lost[0].file,
		lost[0].line))
	return l, nil
}

// parseList reads the entries of a list and the names of its classes: the given names, or the names of its
// columns.
func parseList(p FolderParams, text []byte, names []string) (entries []entry, classes, told []string,
	err error) {
	columns, err := readIndicators(p.List, text)
	if err != nil {
		return nil, nil, nil, err
	}
	classes = names
	if columns != nil {
		if classes == nil && !allNumbers(columns.classes) {
			classes = columns.classes
		}
		entries, told = columns.entries, columns.told
	} else if entries, told, err = parseEntries(p, text); err != nil {
		return nil, nil, nil, err
	}
	if len(entries) == 0 {
		return nil, nil, nil, fmt.Errorf("%q lists no files", p.List)
	}
	return entries, classes, told, nil
}

// classesOfList returns the names of classes by number, nil if labels are numbers, and the names that are
// numbered in the order of the list.
func classesOfList(p FolderParams, entries []entry, classes, names []string) (
	all, named []string, err error,
) {
	if p.IDs != "" {
		if classes, err = renumber(p, entries, names); err != nil {
			return nil, nil, err
		}
	}
	numbers, err := checkLabels(p.List, entries, classes)
	if err != nil || classes != nil || numbers {
		return classes, nil, err
	}
	if err := checkCommas(p.List, entries); err != nil {
		return nil, nil, err
	}
	named = namesOf(entries)
	_, all, err = p.numbered(named)
	return all, named, err
}

// A lostEntry is an entry whose file isn't in the folder.
type lostEntry struct {
	entry
	err error
}

// add makes sources from the entries, whose images may have several labels, and returns the entries without
// a file.
func (l *listing) add(p FolderParams, find *finder, several bool) (lost []lostEntry, err error) {
	seen := map[string]int{}
	byName := map[string]int{} // classes found so far
	for _, e := range find.entries {
		label, err := p.classOf(e, l.classes, byName)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", p.List, e.line, err)
		}
		id, err := find.find(e)
		if err != nil {
			err = fmt.Errorf("%s:%d: %w", p.List, e.line, err)
		}
		if errors.As(err, new(absent)) {
			lost = append(lost, lostEntry{e, err})
			continue
		}
		if err != nil {
			return nil, err
		}
		file := filepath.Join(p.Path, filepath.FromSlash(id))
		if several {
			id = itemOf(id, label, l.classes)
		}
		if before := seen[id]; before > 0 {
			return nil, fmt.Errorf("%s:%d: duplicate file %q: first on line %d", p.List, e.line, e.file,
				before)
		}
		seen[id] = e.line
		l.sources = append(l.sources, stages.Source{ID: id, File: file, Note: noteOf(label)})
	}
	return lost, nil
}

// classNamed finds a class by its name, or else by a similar one ([classname.Is]), or else by one of its
// names that no other class has, as in lines that begin with a number.
func classNamed(classes []string, name string) int {
	if i := slices.Index(classes, name); i >= 0 {
		return i
	}
	if i := slices.IndexFunc(classes, func(c string) bool { return classname.Is(c, name) }); i >= 0 {
		return i
	}
	if found := classname.Find(classes, name); len(found) == 1 {
		return found[0]
	}
	return -1
}

// Usual names of a list's columns; the first name that occurs counts.
var (
	fileColumns = []string{"file", "filename", "file_name", "filepath", "file_path", "path", "image_path",
		"img_path", "image", "img", "image_name", "img_name", "image_id", "imageid", "img_id", "id", "name"}
	labelColumns = stages.LabelColumns
)

// columnOf finds the first of some names among columns. other is another column that may be meant, "" for
// none; it is set only if the found name isn't the documented one.
func columnOf(head, names []string) (at int, other string) {
	at = -1
	for _, name := range names {
		i := slices.IndexFunc(head, func(h string) bool {
			return strings.EqualFold(strings.ReplaceAll(strings.TrimSpace(h), " ", "_"), name)
		})
		switch {
		case i < 0 || at == i:
		case at < 0:
			at = i
		case !strings.EqualFold(strings.TrimSpace(head[at]), names[0]) && other == "":
			other = head[i]
		}
	}
	return at, other
}

// separatorOf returns the separator of a list's columns, by its first line.
func separatorOf(line string) rune {
	separator, most := ',', 0
	for _, r := range ",;\t|" {
		if n := strings.Count(line, string(r)); n > most {
			separator, most = r, n
		}
	}
	return separator
}

// readCSV reads a list with the names of its columns on the first line. If they aren't file and label, it
// remarks which columns it uses.
func readCSV(file string, b []byte) (entries []entry, told []string, err error) {
	r := csv.NewReader(bytes.NewReader(b))
	first, _, _ := strings.Cut(string(b), "\n")
	r.Comma = separatorOf(first)
	r.FieldsPerRecord = -1
	r.TrimLeadingSpace = true
	head, err := r.Read()
	if err != nil {
		return nil, nil, badCSV(file, err)
	}
	columns, err := readHead(file, head)
	if err != nil {
		return nil, nil, err
	}
	imageNet := len(head) == 2 && head[0] == "ImageId" && head[1] == "PredictionString"
	if !imageNet && !columns.documented(head) {
		told = append(told, fmt.Sprintf("%s: the columns %q and %q are read", filepath.Base(file),
			head[columns.file], head[columns.label]))
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return entries, told, nil
		}
		if err != nil {
			return nil, nil, badCSV(file, err)
		}
		line, _ := r.FieldPos(0)
		if len(record) != len(head) {
			return nil, nil, fmt.Errorf("%s:%d: %d fields, the first line has %d",
				file, line, len(record), len(head))
		}
		e := entry{file: strings.TrimSpace(record[columns.file]),
			label: strings.TrimSpace(record[columns.label]),
			line:  line, bare: imageNet}
		if imageNet {
			e.label, _, _ = strings.Cut(e.label, " ")
		}
		if e.file == "" {
			return nil, nil, fmt.Errorf("%s:%d: missing file or label", file, line)
		}
		if strings.ContainsAny(e.label+e.file, "\n\r") {
			return nil, nil, fmt.Errorf("%s:%d: line break inside a field", file, line)
		}
		entries = append(entries, e)
	}
}

// columns are the indices of the columns of files and labels.
type columns struct{ file, label int }

// documented reports whether the columns have the documented names.
func (c columns) documented(head []string) bool {
	return strings.EqualFold(strings.TrimSpace(head[c.file]), fileColumns[0]) &&
		strings.EqualFold(strings.TrimSpace(head[c.label]), labelColumns[0])
}

// readHead finds the columns of a list by their names.
func readHead(file string, head []string) (c columns, err error) {
	if len(head) == 2 && head[0] == "ImageId" && head[1] == "PredictionString" {
		// LOC_val_solution.csv: a class and a box for each object of an image
		return columns{0, 1}, nil
	}
	for _, kind := range []struct {
		at    *int
		names []string
	}{{&c.file, fileColumns}, {&c.label, labelColumns}} {
		at, other := columnOf(head, kind.names)
		switch {
		case at < 0:
			return c, fmt.Errorf("%s:1: no column %q among %q: the first line must name the columns",
				file, kind.names[0], head)
		case other != "" && kind.at == &c.label:
			return c, fmt.Errorf("%s:1: the columns %q and %q may both contain the labels: call one of "+
				"them label",
				file, head[at], other)
		}
		*kind.at = at
	}
	return c, nil
}

func badCSV(file string, err error) error {
	var p *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%q is empty", file)
	case errors.As(err, &p):
		return fmt.Errorf("%s:%d:%d: %w", file, p.Line, p.Column, p.Err)
	}
	return fmt.Errorf("%q: %w", file, err)
}
