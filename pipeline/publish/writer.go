package publish

import (
	"cmp"
	"errors"
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

// write brings the folder to m. Lines in cells/ come last: they make claims of what is
// in the other files, so none may speak of a file that an interrupted run left behind.
func (w *writer) write(m *merge) error {
	last := func(name string) int {
		switch {
		case strings.HasPrefix(name, "cells/"):
			return 3
		case slices.Contains(m.stale, name):
			return 2
		case name == "README.md":
			return 1
		}
		return 0
	}
	names := slices.Clone(m.verdict.Changed)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(last(a), last(b)) })
	for _, name := range names {
		if !slices.Contains(m.stale, name) {
			if err := w.replace(name, m.files[name]); err != nil {
				return err
			}
			continue
		}
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
func (w *writer) replace(name string, b []byte) error {
	file := filepath.Join(w.dir, filepath.FromSlash(name))
	for try := 1; ; try++ {
		err := w.replaceOnce(file, name, b)
		if err == nil || try == 5 || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}

func (w *writer) replaceOnce(file, name string, b []byte) error {
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
		f.Write(b[:len(b)/2])
		f.Close()
		return err
	}
	_, err = f.Write(b)
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
