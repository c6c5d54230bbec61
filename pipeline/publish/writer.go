package publish

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
)

// writer changes a folder, file by file, and never what a link in it leads to.
type writer struct {
	dir  string
	root *os.Root // nil until it's needed
	step func(what string) error
	disk disk
}

// A disk makes the files that a writer writes.
type disk interface {
	create(root *os.Root, name string) (file, error)
}

type file interface {
	io.Writer
	Sync() error
	Close() error
}

// realDisk is the disk of every writer outside tests.
type realDisk struct{}

func (realDisk) create(root *os.Root, name string) (file, error) {
	return root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// open opens the folder, and makes it where it's missing and make says so.
func (w *writer) open(make bool) error {
	if w.root != nil {
		return nil
	}
	if make {
		if err := os.MkdirAll(w.dir, 0o777); err != nil {
			return err
		}
	}
	root, err := openRoot(w.dir)
	if !make && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	w.root = root
	return err
}

func (w *writer) close() {
	if w.root != nil {
		w.root.Close()
	}
}

func (w *writer) at(what string) error {
	if w.step == nil {
		return nil
	}
	return w.step(what)
}

// sweep removes what an interrupted run left.
func (w *writer) sweep() error {
	if err := w.open(false); w.root == nil {
		return err
	}
	for _, sub := range subFolders {
		entries, err := entriesOf(w.root, sub.name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.IsDir() || !strings.HasPrefix(e.Name(), tempPrefix) {
				continue
			}
			if err := w.at("sweep " + e.Name()); err != nil {
				return err
			}
			if err := w.root.Remove(path.Join(sub.name, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// write brings the folder to m. Lines in cells/ come last: they make claims of what is
// in the other files, so none may speak of a file that an interrupted run left behind.
func (w *writer) write(m *merge) error {
	if len(m.verdict.Changed) == 0 {
		return nil
	}
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
		if err := w.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, sub := range subFolders[1:] {
		// Empty folders don't exist for git, so they shouldn't for us.
		if _, err := w.root.Lstat(sub.name); err != nil {
			continue
		}
		if entries, err := entriesOf(w.root, sub.name); err == nil && len(entries) == 0 {
			if err := w.at("remove " + sub.name); err != nil {
				return err
			}
			w.root.Remove(sub.name) // another run may have put something there
		}
	}
	return nil
}

// replace writes a file beside its place and renames it. Another run may sweep
// the file away before that, so it's tried again.
func (w *writer) replace(name string, b []byte) error {
	for try := 1; ; try++ {
		err := w.replaceOnce(name, b)
		if err == nil || try == 5 || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}

func (w *writer) replaceOnce(name string, b []byte) error {
	if err := w.at("mkdir " + name); err != nil {
		return err
	}
	if err := w.open(true); err != nil {
		return err
	}
	if err := w.root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	if err := w.at("create " + name); err != nil {
		return err
	}
	temp := path.Join(path.Dir(name), fmt.Sprintf("%s%016x", tempPrefix, rand.Uint64()))
	f, err := w.disk.create(w.root, temp)
	if err != nil {
		return err
	}
	if err := w.at("write " + name); err != nil {
		f.Write(b[:len(b)/2])
		f.Close()
		return err
	}
	if _, err = f.Write(b); err == nil {
		// Renamed before its bytes are on the disk, it could be empty after a power cut.
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		if err := w.at("rename " + name); err != nil {
			return err
		}
		err = w.root.Rename(temp, name)
	}
	if err != nil {
		w.root.Remove(temp)
	}
	return err
}
