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

const tempPrefix = ".publish-"

// openRoot opens a folder so that no link in it leads out of it.
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

// list returns the sorted names, relative and with slashes, of the files in a review folder that may be ours,
// and of those that an interrupted run left. A link, device or folder in the place of a file of ours is an
// error, and so is anything else in the place of a folder of ours: no link is followed or replaced.
func list(root *os.Root) (names []string, err error) {
	notOurs := func(name string, mode fs.FileMode) error {
		return fmt.Errorf("%s is %s, which runexp didn't put there: remove it, or publish elsewhere",
			filepath.Join(root.Name(), filepath.FromSlash(name)), stages.Kind(mode))
	}
	for _, dir := range subFolders() {
		info, err := root.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, notOurs(dir, info.Mode())
		}
		entries, err := fs.ReadDir(root.FS(), dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			switch ours := name == attributesFile || rendererOf(name) != nil; {
			case e.Type().IsRegular() && (ours || isTemp(name)):
				names = append(names, name)
			case ours && !isTemp(name):
				return nil, notOurs(name, e.Type())
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// isTemp reports whether an interrupted run left a file.
func isTemp(name string) bool { return strings.HasPrefix(path.Base(name), tempPrefix) }

// each calls do for the files that list returns. A missing folder has none; a file that is removed meanwhile
// is skipped.
func each(dir string, do func(name string, f *os.File) error) error {
	root, err := openRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer root.Close()
	names, err := list(root)
	for _, name := range names {
		if err != nil {
			break
		}
		f, e := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if e == nil {
			f, e = stages.Regular(f)
		}
		if e == nil {
			e = do(name, f)
			f.Close()
		}
		if !errors.Is(e, fs.ErrNotExist) {
			err = e
		}
	}
	return err
}

// A File is one file of a review folder.
type File struct {
	Name   string // relative to the folder, with slashes
	Digest stages.Digest
}

// Files lists the files of the review folder dir that may be ours, and those that an interrupted run left.
// While they don't change, a run with the same results has nothing to publish.
func Files(dir string) ([]File, error) {
	var files []File
	err := each(dir, func(name string, f *os.File) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.Size() > readLimit { // not ours; some devices have no end
			files = append(files, File{name, stages.Sum([]byte(info.ModTime().String()))})
			return nil
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		files = append(files, File{name, stages.Digest(h.Sum(nil))})
		return err
	})
	return files, err
}

func isComplete(name string) bool { return !isTemp(name) }

// readFolder reads the files of a review folder that may be ours, if their names are wanted.
func readFolder(dir string, wanted func(name string) bool) (map[string][]byte, error) {
	files, t := map[string][]byte{}, tally{dir: dir}
	err := each(dir, func(name string, f *os.File) error {
		if !wanted(name) {
			return nil
		}
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if err := t.size(name, info.Size()); err != nil {
			return err
		}
		if files[name], err = read(f); err != nil {
			return err
		}
		return t.content(name, files[name])
	})
	return files, err
}

// read reads a file. It returns nil for one that is too large to be ours, which is rewritten or left alone.
func read(f *os.File) ([]byte, error) {
	if info, err := f.Stat(); err != nil || info.Size() > readLimit {
		return nil, err
	}
	return stages.ReadAll(f, readLimit)
}

// A ForeignError is the error for a folder that has files, none of them written by runexp: it is no review
// folder.
type ForeignError struct {
	Dir  string
	Some []string // the quoted names of its files
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("the folder %s holds other files (%s) and nothing that runexp published: "+
		"name a new or an empty one", e.Dir, some(e.Some, 3))
}

// Check returns an error unless dir can become or stay a review folder: it is missing or empty, or a file
// in it shows that runexp wrote it, and nothing else is in the place of our files and folders. The last
// element of dir must not be a link.
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
	all, err := os.ReadDir(dir) // first: another run may be about to write the first file of ours
	all = slices.DeleteFunc(all, func(e fs.DirEntry) bool { return isTemp(e.Name()) })
	if err != nil || len(all) == 0 {
		return err
	}
	ours := errors.New("a file of ours")
	err = each(dir, func(name string, f *os.File) error {
		b, err := read(f)
		if err == nil && !isTemp(name) && readFiles(map[string][]byte{name: b}).ours[name] {
			return ours
		}
		return nil
	})
	if err == ours {
		return nil
	} else if err != nil {
		return err
	}
	e := &ForeignError{Dir: dir}
	for _, entry := range all {
		e.Some = append(e.Some, strconv.Quote(entry.Name()))
	}
	return e
}

// escape returns a name for a file. The names that experiments may give stay as they are.
func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if letter || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.' && i > 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "~%02x", c)
		}
	}
	return b.String()
}

// Limits of what is read from a review folder, which may be a stranger's. Folders that runexp writes have a
// budget of 2 MB, figures apart.
const (
	readLimit   = 64 << 20 // bytes of a file that may be ours
	folderLimit = 64 << 20 // bytes of all of them
	fieldsLimit = 1 << 23  // fields of all CSV files: a field takes more memory than its bytes on disk
	mostColumns = 4096     // columns of a table; a line of items has one for each item
)

// A tally counts what is read from a folder.
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
			"no review folder has as many", t.dir, folderLimit)
	}
	return nil
}

var pointer = []byte("version https://git-lfs.github.com/spec/")

// content returns an error for content that no file of ours has.
func (t *tally) content(name string, b []byte) error {
	at := filepath.Join(t.dir, filepath.FromSlash(name))
	if bytes.HasPrefix(b, pointer) {
		return fmt.Errorf("%s is a pointer of Git LFS, not the file: \"git lfs pull\" fetches it", at)
	}
	if path.Ext(name) != ".csv" {
		return nil
	}
	if t.fields += int64(bytes.Count(b, []byte(",")) + bytes.Count(b, []byte("\n"))); t.fields > fieldsLimit {
		return fmt.Errorf("the CSV files of %s have more than %d fields together: no review folder has "+
			"as many", t.dir, fieldsLimit)
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
