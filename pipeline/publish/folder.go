package publish

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/runexp/runexp/stages"
)

// Sizes of a review folder, in bytes.
const (
	budget    = 2 << 20 // of a folder: what exceeds it stays in the store
	readLimit = 64 << 20
)

// folderMark begins the first file of a review folder that is written.
const folderMark = "# A merge keeps the lines of both branches"

// What people review, README.md and experiment.yaml, isn't marked as generated: hosts
// fold such files away.
const gitattributes = folderMark + `, and the next run those that are right.
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
// run left. A missing folder has none. What stands in the place of a file or folder
// of ours and isn't one is an error: neither is anything beyond a link read or
// written, nor is a link replaced.
func List(dir string) ([]string, error) {
	root, err := openRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer root.Close()
	return list(root)
}

// openRoot opens a folder, through which nothing outside it can be reached.
func openRoot(dir string) (*os.Root, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is %s, not a folder", dir, stages.Kind(info.Mode()))
	}
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

func list(root *os.Root) ([]string, error) {
	var names []string
	for _, sub := range subFolders {
		entries, err := entriesOf(root, sub.name)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			temp := strings.HasPrefix(e.Name(), tempPrefix)
			if !temp && !slices.Contains(sub.names, e.Name()) && !slices.Contains(sub.ext, filepath.Ext(e.Name())) {
				continue
			}
			name := path.Join(sub.name, e.Name())
			switch {
			case e.Type().IsRegular():
				names = append(names, name)
			case !temp:
				return nil, notOurs(root, name, e.Type())
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// entriesOf lists one of our folders; none where it's missing.
func entriesOf(root *os.Root, name string) ([]fs.DirEntry, error) {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, notOurs(root, name, info.Mode())
	}
	return fs.ReadDir(root.FS(), name)
}

func notOurs(root *os.Root, name string, mode fs.FileMode) error {
	return fmt.Errorf("%s is %s, which runexp didn't put there: remove it, or publish elsewhere", filepath.Join(root.Name(), filepath.FromSlash(name)), stages.Kind(mode))
}

// open opens a file of a review folder for reading.
func open(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return stages.Regular(f)
}

// A File is one file of a review folder.
type File struct {
	Name   string // relative to the folder, with slashes
	Digest stages.Digest
}

// Files returns what [List] does, with digests of the contents. A run that
// finds the files as an earlier one left them has nothing to publish.
func Files(dir string) ([]File, error) {
	root, err := openRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer root.Close()
	names, err := list(root)
	if err != nil {
		return nil, err
	}
	var files []File
	for _, name := range names {
		d, err := digestOf(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		files = append(files, File{name, d})
	}
	return files, nil
}

func digestOf(root *os.Root, name string) (stages.Digest, error) {
	f, err := open(root, name)
	if err != nil {
		return stages.Digest{}, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return stages.Digest(h.Sum(nil)), err
}

// readFolder reads the files of a review folder that may be ours. A missing folder
// has none.
func readFolder(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	root, err := openRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return files, nil
	} else if err != nil {
		return nil, err
	}
	defer root.Close()
	names, err := list(root)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasPrefix(path.Base(name), tempPrefix) {
			continue
		}
		b, err := readOne(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		} else if err != nil {
			return nil, err
		}
		files[name] = b
	}
	return files, nil
}

// readOne reads a file; nil for one that's too large to be ours: it will be
// rewritten, or left alone.
func readOne(root *os.Root, name string) ([]byte, error) {
	f, err := open(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() > readLimit {
		return nil, err
	}
	return stages.ReadAll(f, readLimit)
}

// A ForeignError is the error for a folder that isn't empty and has nothing in it
// that runexp wrote: whatever it is, it's no review folder.
type ForeignError struct {
	Dir  string
	Some []string // of what is in it
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("the folder %s holds other files (%s) and nothing that runexp published: name a new or an empty one", e.Dir, strings.Join(e.Some, ", "))
}

// Check returns an error unless dir can become or stay a review folder: it's missing,
// empty, or has our mark, and where our files and folders go there's nothing else. Its
// last element must not be a link.
func Check(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is %s, not a folder: name another", dir, stages.Kind(info.Mode()))
	}
	root, err := openRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	all, err := entriesOf(root, ".")
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), tempPrefix) })
	names, err := list(root)
	if err != nil || len(all) == 0 {
		return err
	}
	for _, name := range names {
		if b, err := readOne(root, name); err == nil && marked(name, b) {
			return nil
		}
	}
	e := &ForeignError{Dir: dir}
	for _, entry := range all[:min(3, len(all))] {
		e.Some = append(e.Some, strconv.Quote(entry.Name()))
	}
	if len(all) > 3 {
		e.Some = append(e.Some, "…")
	}
	return e
}

// ours reports whether a file in a sub-folder is one of ours. Other people's files are
// left alone.
func (m *merge) ours(name string) bool { return m.tables[name] || marked(name, m.disk[name]) }

// marked reports whether a file says that runexp wrote it.
func marked(name string, b []byte) bool {
	switch folder, _, _ := strings.Cut(name, "/"); folder {
	case ".gitattributes":
		return bytes.Contains(b, []byte(folderMark))
	case "README.md", "experiment.yaml": // people write such files, too
		return false
	case "cells":
		return len(readLines(b)) > 0
	case "items":
		return len(readItems(b)) > 0 || isOldSheet(b)
	case "tables":
		return isOldSheet(b)
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
