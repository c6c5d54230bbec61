package dataset

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
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
}

// maxLabel limits class numbers, so that typing errors in a list are detected.
const maxLabel = 1 << 24

// listFolder lists images in a deterministic order: that of the CSV file, otherwise sorted by path.
func listFolder(p FolderParams) (*listing, error) {
	info, err := os.Stat(p.Path)
	if err != nil {
		return nil, fmt.Errorf("folder %q: %w", p.Path, plain(err))
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%q is neither a folder nor an archive, whose name ends with %s", p.Path,
			strings.Join(archive.Extensions, ", "))
	}
	if p.List == "" {
		p.findList()
	}
	var names []string
	if p.Names != "" {
		if names, err = readNames(p.Names); err != nil {
			return nil, err
		}
	}
	if p.List != "" {
		return readList(p, names)
	}
	return walkFolder(p, names)
}

// findList finds the list that a data set has in its folder: labels.csv, or Food-101's list of test images
// with the names of its classes.
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
	list := p.List
	entries, err := readEntries(p)
	if err != nil {
		return nil, err
	}
	classes, number := names, false
	if p.IDs != "" {
		if classes, err = renumber(p, entries, names); err != nil {
			return nil, err
		}
		names = classes
	} else if names == nil {
		classes, number = classesOf(entries)
	}
	l := &listing{classes: classes}
	seen := map[string]int{}
	byName := map[string]int{} // classes that were looked up
	for _, e := range entries {
		if !filepath.IsLocal(filepath.FromSlash(e.file)) {
			return nil, fmt.Errorf("%s:%d: the file %q isn't inside the folder", list, e.line, e.file)
		}
		id, err := locate(p.Path, e)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", list, e.line, err)
		}
		if first := seen[id]; first > 0 {
			return nil, fmt.Errorf("%s:%d: duplicate file %q: first on line %d", list, e.line, e.file, first)
		}
		seen[id] = e.line
		label, err := strconv.Atoi(e.label)
		if err == nil {
			label -= p.First
		}
		switch {
		case err != nil && number:
			return nil, fmt.Errorf("%s:%d: label %q isn't a number, unlike the first label",
				list, e.line, e.label)
		case err != nil || !number && names == nil:
			known := false
			if label, known = byName[e.label]; !known {
				label = classNamed(classes, e.label)
				byName[e.label] = label
			}
			if label < 0 {
				return nil, fmt.Errorf("%s:%d: unknown class %q", list, e.line, e.label)
			}
		case label < 0 || label > maxLabel:
			return nil, fmt.Errorf("%s:%d: label %d isn't between 0 and %d", list, e.line, label, maxLabel)
		case names != nil && label >= len(names):
			return nil, fmt.Errorf("%s:%d: label %d has no name: there are %d names",
				list, e.line, label, len(names))
		}
		file := filepath.Join(p.Path, filepath.FromSlash(id))
		l.sources = append(l.sources, stages.Source{ID: id, File: file, Note: noteOf(label)})
	}
	if len(l.sources) == 0 {
		return nil, fmt.Errorf("%q lists no files", list)
	}
	return l, nil
}

// locate returns the path of a listed file relative to the folder. A list may leave out the extension, and
// the folder that all images or those of a class are in.
func locate(folder string, e entry) (string, error) {
	exact := path.Clean(e.file)
	names := []string{exact}
	if e.bare {
		for _, ext := range []string{".jpg", ".JPEG", ".jpeg", ".png"} {
			names = append(names, exact+ext, "images/"+exact+ext)
			if filepath.IsLocal(filepath.FromSlash(e.label)) {
				names = append(names, path.Join(e.label, exact+ext))
			}
		}
	}
	var why error
	for _, id := range names {
		info, err := os.Stat(filepath.Join(folder, filepath.FromSlash(id)))
		switch {
		case err == nil && info.Mode().IsRegular():
			return id, nil
		case err == nil && why == nil:
			why = fmt.Errorf("%q isn't a regular file", e.file)
		case why == nil:
			why = fmt.Errorf("file %q: %w", e.file, plain(err))
		}
	}
	return "", why
}

// classesOf returns the sorted class names, or number = true if labels are numbers. The first label decides.
func classesOf(entries []entry) (classes []string, number bool) {
	if len(entries) > 0 {
		if _, err := strconv.Atoi(entries[0].label); err == nil {
			return nil, true
		}
	}
	for _, e := range entries {
		classes = append(classes, e.label)
	}
	slices.Sort(classes)
	return slices.Compact(classes), false
}

// classNamed finds a class by its name, or else by what [classname.Is] takes for it.
func classNamed(classes []string, name string) int {
	if i := slices.Index(classes, name); i >= 0 {
		return i
	}
	return slices.IndexFunc(classes, func(c string) bool { return classname.Is(c, name) })
}

func readCSV(file string, b []byte) ([]entry, error) {
	r := csv.NewReader(bytes.NewReader(b))
	r.FieldsPerRecord = -1
	r.TrimLeadingSpace = true
	head, err := r.Read()
	if err != nil {
		return nil, badCSV(file, err)
	}
	at := map[string]int{}
	for i, name := range head {
		at[strings.ToLower(strings.TrimSpace(name))] = i
	}
	imageNet := len(head) == 2 && head[0] == "ImageId" && head[1] == "PredictionString"
	if imageNet { // LOC_val_solution.csv: a class and a box for each of an image's objects
		at = map[string]int{"file": 0, "label": 1}
	}
	for _, name := range []string{"file", "label"} {
		if _, ok := at[name]; !ok {
			return nil, fmt.Errorf("%s:1: no column %q among %q: the first line must name the columns",
				file, name, head)
		}
	}
	var entries []entry
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, badCSV(file, err)
		}
		line, _ := r.FieldPos(0)
		if len(record) != len(head) {
			return nil, fmt.Errorf("%s:%d: %d fields, the first line has %d",
				file, line, len(record), len(head))
		}
		e := entry{file: strings.TrimSpace(record[at["file"]]), label: strings.TrimSpace(record[at["label"]]),
			line: line, bare: imageNet}
		if imageNet {
			e.label, _, _ = strings.Cut(e.label, " ")
		}
		if e.file == "" || e.label == "" {
			return nil, fmt.Errorf("%s:%d: missing file or label", file, line)
		}
		if strings.ContainsAny(e.label+e.file, "\n\r") {
			return nil, fmt.Errorf("%s:%d: line break inside a field", file, line)
		}
		entries = append(entries, e)
	}
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
