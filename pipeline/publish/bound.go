package publish

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
)

// What is read of a review folder, be it a stranger's. The folders that runexp writes have a budget of 2 MB,
// but for their figures.
const (
	readLimit   = 64 << 20 // bytes of a file that may be ours
	folderLimit = 64 << 20 // bytes of all of them
	fieldsLimit = 1 << 23  // of all CSV files, each of which takes more memory than its bytes
	mostColumns = 4096     // of a table; the lines of items have as many as there are items
)

// A tally counts what is read of a folder.
type tally struct {
	dir           string
	bytes, fields int64
}

// size counts a file before it is read.
func (t *tally) size(name string, bytes int64) error {
	if t.bytes += bytes; bytes > readLimit {
		return fmt.Errorf("%s has %d bytes: no file of a review folder has more than %d",
			filepath.Join(t.dir, filepath.FromSlash(name)), bytes, readLimit)
	} else if t.bytes > folderLimit {
		return fmt.Errorf("the files of %s that runexp may have written have more than %d bytes together: "+
			"no review folder has", t.dir, folderLimit)
	}
	return nil
}

var pointer = []byte("version https://git-lfs.github.com/spec/")

// content holds the content of a file against what ours can be.
func (t *tally) content(name string, b []byte) error {
	at := filepath.Join(t.dir, filepath.FromSlash(name))
	if bytes.HasPrefix(b, pointer) {
		return fmt.Errorf("%s is a pointer of Git LFS, not the file: \"git lfs pull\" fetches it", at)
	}
	if path.Ext(name) != ".csv" {
		return nil
	}
	if t.fields += int64(bytes.Count(b, []byte(",")) + bytes.Count(b, []byte("\n"))); t.fields > fieldsLimit {
		return fmt.Errorf("the CSV files of %s have more than %d fields together: no review folder has", t.dir,
			fieldsLimit)
	}
	if path.Dir(name) == "tables" {
		for line := range bytes.Lines(b) {
			if n := bytes.Count(line, []byte(",")); n >= mostColumns && columns(line) > mostColumns {
				return fmt.Errorf("%s has a line of more than %d columns", at, mostColumns)
			}
		}
	}
	return nil
}

// columns counts the fields of a line; a comma in quotes separates none.
func columns(line []byte) int {
	n, quoted := 1, false
	for _, c := range line {
		if c == '"' {
			quoted = !quoted
		} else if c == ',' && !quoted {
			n++
		}
	}
	return n
}
