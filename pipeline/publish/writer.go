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

// A writer changes a folder, file by file, and never what a link in it leads to.
type writer struct {
	dir  string
	wrap func(fileSystem) fileSystem
	root *os.Root // nil until it's needed, as the next
	to   fileSystem
}

// A fileSystem has the system calls that change a folder.
type fileSystem interface {
	MkdirAll(name string, perm fs.FileMode) error
	Create(name string) (file, error)
	Rename(from, to string) error
	Remove(name string) error
}

type file interface {
	io.Writer
	Sync() error
	Close() error
}

type rootSystem struct{ *os.Root }

func (r rootSystem) Create(name string) (file, error) {
	return r.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// open opens the folder. Where it's missing there is no error and no root.
func (w *writer) open() error {
	root, err := openRoot(w.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	w.root, w.to = root, rootSystem{root}
	if w.wrap != nil {
		w.to = w.wrap(w.to)
	}
	return err
}

func (w *writer) close() {
	if w.root != nil {
		w.root.Close()
	}
}

// remove removes a file. Another run may have done so before.
func (w *writer) remove(name string) error {
	if err := w.to.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sweep removes what an interrupted run left.
func (w *writer) sweep() error {
	if err := w.open(); w.root == nil {
		return err
	}
	names, err := list(w.root)
	for _, name := range names {
		if err == nil && isTemp(name) {
			err = w.remove(name)
		}
	}
	return err
}

// write updates the folder. Lines in cells/ come last: they make claims of what is in the other files, so
// none may speak of a file that an interrupted run left behind.
func (w *writer) write(c *change) error {
	last := func(name string) int {
		order := []bool{strings.HasPrefix(name, "cells/"), c.files[name] == nil, name == "README.md", true}
		return -slices.Index(order, true)
	}
	names := slices.SortedStableFunc(slices.Values(c.verdict.Changed), func(a, b string) int {
		return cmp.Compare(last(a), last(b))
	})
	for _, name := range names {
		var err error
		if b, ok := c.files[name]; ok {
			err = w.replace(name, b)
		} else {
			err = w.remove(name)
		}
		if err != nil {
			return err
		}
	}
	for _, dir := range subFolders()[1:] {
		if len(names) > 0 {
			w.to.Remove(dir) // unless it has files: empty folders don't exist for git, nor for us
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
	if w.root == nil {
		if err := os.MkdirAll(w.dir, 0o777); err != nil {
			return err
		}
		if err := w.open(); err != nil {
			return err
		}
	}
	if err := w.to.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	temp := path.Join(path.Dir(name), fmt.Sprintf("%s%016x", tempPrefix, rand.Uint64()))
	f, err := w.to.Create(temp)
	if err != nil {
		return err
	}
	if _, err = f.Write(b); err == nil {
		err = f.Sync() // renamed before its bytes are on the disk, it could be empty after a power cut
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = w.to.Rename(temp, name)
	}
	if err != nil {
		w.to.Remove(temp)
	}
	return err
}
