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
	dir    string
	root   *os.Root                // nil until it's needed
	at     func(what string) error // called before each system call that changes the folder
	create func(root *os.Root, name string) (file, error)
}

type file interface {
	io.Writer
	Sync() error
	Close() error
}

func createFile(root *os.Root, name string) (file, error) {
	return root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

func newWriter(dir string, o Options) *writer {
	w := &writer{dir: dir, at: o.step, create: o.create}
	if w.at == nil {
		w.at = func(string) error { return nil }
	}
	if w.create == nil {
		w.create = createFile
	}
	return w
}

// open opens the folder. A missing one is made, or stays missing: then there is no error and no root.
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

// remove removes a file. Another run may have done so before.
func (w *writer) remove(name string) error {
	if err := w.at("remove " + name); err != nil {
		return err
	}
	if err := w.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sweep removes what an interrupted run left.
func (w *writer) sweep() error {
	if err := w.open(false); w.root == nil {
		return err
	}
	for _, dir := range subFolders() {
		entries, err := entriesOf(w.root, dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !e.IsDir() && strings.HasPrefix(e.Name(), tempPrefix) {
				if err := w.remove(path.Join(dir, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// write brings the folder up to date. Lines in cells/ come last: they make claims of what is in the other
// files, so none may speak of a file that an interrupted run left behind.
func (w *writer) write(c *change) error {
	if len(c.verdict.Changed) == 0 {
		return nil
	}
	last := func(name string) int {
		switch {
		case strings.HasPrefix(name, "cells/"):
			return 3
		case slices.Contains(c.stale, name):
			return 2
		case name == "README.md":
			return 1
		}
		return 0
	}
	names := slices.Clone(c.verdict.Changed)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(last(a), last(b)) })
	for _, name := range names {
		var err error
		if slices.Contains(c.stale, name) {
			err = w.remove(name)
		} else {
			err = w.replace(name, c.files[name])
		}
		if err != nil {
			return err
		}
	}
	for _, dir := range subFolders()[1:] {
		// Empty folders don't exist for git, so they shouldn't for us.
		if entries, err := entriesOf(w.root, dir); err == nil && len(entries) == 0 {
			if err := w.at("remove " + dir); err != nil {
				return err
			}
			w.root.Remove(dir) // unless it's missing, or another run has put something there
		}
	}
	return nil
}

// replace writes a temporary file and renames it. Another run may sweep it away before that, so it's tried
// again.
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
	f, err := w.create(w.root, temp)
	if err != nil {
		return err
	}
	if err := w.at("write " + name); err != nil {
		f.Write(b[:len(b)/2])
		f.Close()
		return err
	}
	if _, err = f.Write(b); err == nil {
		err = f.Sync() // renamed before its bytes are on the disk, it could be empty after a power cut
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
