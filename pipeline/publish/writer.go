package publish

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// writer changes a folder, file by file.
type writer struct {
	dir  string
	step func(what string) error
}

func (w *writer) at(what string) error {
	if w.step == nil {
		return nil
	}
	return w.step(what)
}

// sweep removes what an interrupted run left.
func (w *writer) sweep() error {
	for _, sub := range subFolders {
		entries, err := os.ReadDir(filepath.Join(w.dir, sub.name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), tempPrefix) {
				continue
			}
			if err := w.at("sweep " + e.Name()); err != nil {
				return err
			}
			if err := os.Remove(filepath.Join(w.dir, sub.name, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// write brings the folder to m, README.md last.
func (w *writer) write(m *merge) error {
	names := slices.DeleteFunc(slices.Clone(m.verdict.Changed), func(n string) bool { return n == "README.md" || slices.Contains(m.stale, n) })
	if slices.Contains(m.verdict.Changed, "README.md") {
		names = append(names, "README.md")
	}
	for _, name := range names {
		write := func(to io.Writer) error {
			_, err := to.Write(m.files[name])
			return err
		}
		if f := m.fresh[name]; f != nil {
			write = f.write
		}
		if err := w.replace(name, write); err != nil {
			return err
		}
	}
	for _, name := range m.stale {
		if err := w.at("remove " + name); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(w.dir, filepath.FromSlash(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, sub := range subFolders[1:] {
		// Empty folders don't exist for git, so they shouldn't for us.
		if entries, err := os.ReadDir(filepath.Join(w.dir, sub.name)); err == nil && len(entries) == 0 {
			if err := w.at("remove " + sub.name); err != nil {
				return err
			}
			os.Remove(filepath.Join(w.dir, sub.name)) // another run may have put something there
		}
	}
	return nil
}

// replace writes a file beside its place and renames it. Another run may sweep
// the file away before that, so it's tried again.
func (w *writer) replace(name string, write func(io.Writer) error) error {
	file := filepath.Join(w.dir, filepath.FromSlash(name))
	for try := 1; ; try++ {
		err := w.replaceOnce(file, name, write)
		if err == nil || try == 5 || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}

func (w *writer) replaceOnce(file, name string, write func(io.Writer) error) error {
	if err := w.at("mkdir " + name); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	if err := w.at("create " + name); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), tempPrefix)
	if err != nil {
		return err
	}
	if err := w.at("write " + name); err != nil {
		var b bytes.Buffer
		write(&b)
		f.Write(b.Bytes()[:b.Len()/2])
		f.Close()
		return err
	}
	err = write(f)
	if e := f.Chmod(0o644); err == nil {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		if err := w.at("rename " + name); err != nil {
			return err
		}
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
