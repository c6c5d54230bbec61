package golden

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

//go:generate go test . -run TestList -update

//go:embed golden.csv
var listed []byte

// The states of an official file.
const (
	Tested        = "tested"
	NotYet        = "not yet"
	NotApplicable = "not applicable"
)

var header = []string{"file", "state", "tests", "note"}

// An Entry says what became of one official file.
type Entry struct {
	File  string   // below the folder of official numbers, with slashes
	State string   // Tested, NotYet or NotApplicable; empty in a new line
	Tests []string // folder.TestName, for Tested
	Note  string   // why not, or what of the file is tested
}

// List returns the entries of golden.csv, in its order.
func List() ([]Entry, error) { return parse(listed) }

func parse(b []byte) ([]Entry, error) {
	r := csv.NewReader(bytes.NewReader(b))
	r.FieldsPerRecord = len(header)
	lines, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 || !slices.Equal(lines[0], header) {
		return nil, fmt.Errorf("the list doesn't begin with the line %q", strings.Join(header, ","))
	}
	var entries []Entry
	for _, l := range lines[1:] {
		entries = append(entries, Entry{File: l[0], State: l[1], Tests: strings.Fields(l[2]), Note: l[3]})
	}
	return entries, nil
}

// Problems returns what is wrong with the entries by themselves.
func Problems(entries []Entry) []string {
	var c []string
	for i, e := range entries {
		if i > 0 && entries[i-1].File >= e.File {
			c = append(c, fmt.Sprintf("%s: the lines are not sorted, or two are equal", e.File))
		}
		switch {
		case e.State == Tested && len(e.Tests) == 0:
			c = append(c, fmt.Sprintf("%s: tested by nothing", e.File))
		case e.State != Tested && len(e.Tests) > 0:
			c = append(c, fmt.Sprintf("%s: %s, and yet it has tests", e.File, e.State))
		case (e.State == NotYet || e.State == NotApplicable) && e.Note == "":
			c = append(c, fmt.Sprintf("%s: %s, but why?", e.File, e.State))
		case e.State != Tested && e.State != NotYet && e.State != NotApplicable:
			c = append(c, fmt.Sprintf("%s: state %q is none of %q, %q, %q", e.File, e.State, Tested, NotYet,
				NotApplicable))
		}
	}
	return c
}

// files returns the files below dir, sorted, with slashes.
func files(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		found = append(found, filepath.ToSlash(rel))
		return err
	})
	slices.Sort(found)
	return found, err
}

// render writes the list: one line for each of files, with what the entries say of it. A file that they don't
// mention gets an empty state, for a person to fill.
func render(entries []Entry, files []string) []byte {
	known := map[string]Entry{}
	for _, e := range entries {
		known[e.File] = e
	}
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Write(header)
	for _, f := range files {
		e := known[f]
		w.Write([]string{f, e.State, strings.Join(e.Tests, " "), e.Note})
	}
	w.Flush()
	return b.Bytes()
}
