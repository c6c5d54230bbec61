package dataset

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A columnTable is a list of images with its columns.
type columnTable struct {
	file  string   // the name of the column of files
	names []string // of the other columns, in their order
	rows  []columnRow
}

// A columnRow is a line of a list.
type columnRow struct {
	file   string
	values stages.ItemColumns
	line   int
}

// readColumns reads a list with the names of its columns on the first line. Columns without a name, such as
// the index that pandas writes, are left out, as is the one of labels with noLabel.
func readColumns(file string, b []byte, noLabel bool) (t columnTable, err error) {
	r := csv.NewReader(bytes.NewReader(b))
	first, _, _ := strings.Cut(string(b), "\n")
	r.Comma = separatorOf(first)
	r.FieldsPerRecord = -1
	r.TrimLeadingSpace = true
	head, err := r.Read()
	if err != nil {
		return t, badCSV(file, err)
	}
	at, taken, err := t.readHead(file, head, noLabel)
	if err != nil {
		return t, err
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return t, badCSV(file, err)
		}
		line, _ := r.FieldPos(0)
		if len(record) != len(head) {
			return t, fmt.Errorf("%s:%d: %d fields, the first line has %d", file, line, len(record),
				len(head))
		}
		row := columnRow{strings.TrimSpace(record[at]), stages.ItemColumns{}, line}
		if row.file == "" {
			return t, fmt.Errorf("%s:%d: missing file", file, line)
		}
		for i, name := range taken {
			text := strings.TrimSpace(record[i])
			if strings.ContainsAny(text, "\n\r") {
				return t, fmt.Errorf("%s:%d: line break inside a field", file, line)
			}
			if text != "" && !slices.Contains(absentLabels, text) {
				row.values[name] = text
			}
		}
		t.rows = append(t.rows, row)
	}
	if len(t.rows) == 0 {
		return t, fmt.Errorf("%q lists no files", file)
	}
	return t, nil
}

// readHead reads the names of a list's columns. It returns the column of files, and those that are taken with
// their names.
func (t *columnTable) readHead(file string, head []string, noLabel bool) (at int, taken map[int]string,
	err error) {
	at, _ = columnOf(head, fileColumns)
	if at < 0 {
		return 0, nil, fmt.Errorf("%s:1: no column %q among %q: the first line must name the columns", file,
			fileColumns[0], head)
	}
	label := -1
	if noLabel {
		label, _ = columnOf(head, labelColumns)
	}
	taken = map[int]string{}
	for i, name := range head {
		name = strings.TrimSpace(name)
		switch {
		case i == at:
			t.file = name
		case i == label || name == "":
		case slices.Contains(t.names, name):
			return 0, nil, fmt.Errorf("%s:1: duplicate column %q", file, name)
		case strings.ContainsAny(name, "\n\r"):
			return 0, nil, fmt.Errorf("%s:1: line break in the name of a column", file)
		default:
			t.names, taken[i] = append(t.names, name), name
		}
	}
	if len(t.names) == 0 {
		return 0, nil, fmt.Errorf("%s:1: no column besides files and labels among %q", file, head)
	}
	return at, taken, nil
}

// paths finds the ids of images by their ends.
type paths struct {
	ids    map[string]bool
	byName map[string][]string // ids by the last part, without extension
}

func pathsOf(ids []string) paths {
	p := paths{map[string]bool{}, map[string][]string{}}
	for _, id := range ids {
		p.ids[id] = true
		p.byName[stem(id)] = append(p.byName[stem(id)], id)
	}
	return p
}

// stem returns the last part of a path, without its extension.
func stem(file string) string {
	base := path.Base(file)
	return strings.TrimSuffix(base, path.Ext(base))
}

// match returns the id that a listed path means: the same, or one of which it is the end or which is its
// end, with or without extension. It returns "" for none, and an error for several.
func (p paths) match(file string) (string, error) {
	file = path.Clean(strings.ReplaceAll(file, `\`, "/"))
	if p.ids[file] {
		return file, nil
	}
	end := func(a, b string) bool { return a == b || strings.HasSuffix(a, "/"+b) }
	var found []string
	for _, key := range []string{stem(file), path.Base(file)} { // a name without extension may have a dot
		for _, id := range p.byName[key] {
			bare := strings.TrimSuffix(id, path.Ext(id))
			same := end(id, file) || end(file, id) || path.Base(file) == key && end(bare, file)
			if same && !slices.Contains(found, id) {
				found = append(found, id)
			}
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("the file %q may be %q or %q", file, found[0], found[1])
}
