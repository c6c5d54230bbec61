package publish

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// Sizes of a review folder, in bytes.
const (
	budget    = 2 << 20 // of a folder: what exceeds it stays in the store
	readLimit = 64 << 20
)

// What people review, README.md and experiment.yaml, isn't marked as generated: hosts
// fold such files away.
const gitattributes = `# A merge keeps the lines of both branches, and the next run those that are right.
cells/*.jsonl merge=union linguist-generated
items/*.csv merge=union linguist-generated
tables/*.csv merge=union linguist-generated
figures/*.png binary
`

// subFolders are the folders of a review folder, itself first, and the names or
// the endings of our files in them.
var subFolders = [...]struct {
	name  string
	names []string
	ext   []string
}{
	{name: ".", names: []string{".gitattributes", "README.md", "experiment.yaml"}},
	{name: "cells", ext: []string{".jsonl"}},
	{name: "figures", ext: []string{".png", ".svg"}},
	{name: "items", ext: []string{".csv"}},
	{name: "tables", ext: []string{".csv"}},
}

const tempPrefix = ".publish-"

// List returns the names of the files in the review folder dir that may be
// ours, relative to it and with slashes, sorted, and those that an interrupted
// run left. A missing folder has none.
func List(dir string) ([]string, error) {
	var names []string
	for _, sub := range subFolders {
		entries, err := os.ReadDir(filepath.Join(dir, sub.name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if !slices.Contains(sub.names, e.Name()) && !slices.Contains(sub.ext, filepath.Ext(e.Name())) && !strings.HasPrefix(e.Name(), tempPrefix) {
				continue
			}
			kind := e.Type()
			if kind&fs.ModeSymlink != 0 {
				if info, err := os.Stat(filepath.Join(dir, sub.name, e.Name())); err == nil {
					kind = info.Mode()
				}
			}
			if kind.IsRegular() {
				names = append(names, path.Join(sub.name, e.Name()))
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// A File is one file of a review folder.
type File struct {
	Name   string // relative to the folder, with slashes
	Digest stages.Digest
}

// Files returns what [List] does, with digests of the contents. A run that
// finds the files as an earlier one left them has nothing to publish.
func Files(dir string) ([]File, error) {
	names, err := List(dir)
	if err != nil {
		return nil, err
	}
	var files []File
	for _, name := range names {
		d, err := digestOf(filepath.Join(dir, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		files = append(files, File{name, d})
	}
	return files, nil
}

func digestOf(file string) (stages.Digest, error) {
	f, err := os.Open(file)
	if err != nil {
		return stages.Digest{}, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return stages.Digest(h.Sum(nil)), err
}

func readFolder(dir string) (map[string][]byte, error) {
	names, err := List(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, name := range names {
		if strings.HasPrefix(path.Base(name), tempPrefix) {
			continue
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile, or a dangling link
		} else if err != nil {
			return nil, err
		}
		if info.Size() > readLimit {
			files[name] = nil // nothing we wrote: it will be rewritten, or left alone
			continue
		}
		b, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		files[name] = b
	}
	return files, nil
}

// ours reports whether a file in a sub-folder is one of ours. Other people's files are
// left alone.
func (m *merge) ours(name string) bool {
	b := m.disk[name]
	switch folder, _, _ := strings.Cut(name, "/"); folder {
	case "cells":
		return len(m.before[name]) > 0
	case "items":
		return len(readItems(b)) > 0 || isOldSheet(b)
	case "tables":
		return m.tables[name] || isOldSheet(b)
	default:
		_, ok := readMark(filepath.Ext(name), b)
		return ok
	}
}

// mergeStale finds the files that no cell has anything to do with.
func (m *merge) mergeStale() {
	for name := range m.disk {
		if _, ok := m.files[name]; ok || !strings.Contains(name, "/") || !m.ours(name) {
			continue
		}
		if m.partial {
			m.kept = append(m.kept, name)
			m.tally.add(kept, Row{File: name})
		} else {
			m.stale = append(m.stale, name)
			m.tally.add(removed, Row{File: name})
		}
	}
	slices.Sort(m.kept)
	slices.Sort(m.stale)
}

// changed lists the files whose bytes change.
func (m *merge) changed() []string {
	names := slices.Clone(m.stale)
	for name, b := range m.files {
		if old, ok := m.disk[name]; !ok || string(old) != string(b) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// size returns the size of the folder, as far as its files are decided.
func (m *merge) size() int {
	size := 0
	for _, b := range m.files {
		size += len(b)
	}
	for _, name := range m.kept {
		size += len(m.disk[name])
	}
	return size
}

func (m *merge) warnings() []string {
	if size := m.size(); size > budget {
		return []string{fmt.Sprintf("the review folder has %.1f MB, more than the %d MB that people like to find in a repository; publish fewer or smaller figures", float64(size)/(1<<20), budget>>20)}
	}
	return nil
}

// escape makes a name fit for a file: what experiments may call things stays as
// it is.
func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.' && i > 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "~%02x", c)
		}
	}
	return b.String()
}
