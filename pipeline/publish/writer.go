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

// write updates the folder dir, file by file, and never follows a link in it. Files that an interrupted run
// left are removed first. Lines in cells/ are written last: their definitions make the entries of other
// files current, so those must be on disk before.
func (c *change) write(dir string, wrap func(fileSystem) fileSystem) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	root, err := openRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	names, err := list(root)
	if err != nil {
		return err
	}
	var to fileSystem = rootSystem{root}
	if wrap != nil {
		to = wrap(to)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !isTemp(name) })
	names = append(names, c.verdict.Changed...)
	last := func(name string) int {
		order := []bool{
			strings.HasPrefix(name, "cells/"), slices.Contains(c.stale, name), name == "README.md",
			!isTemp(name), true,
		}
		return -slices.Index(order, true)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(last(a), last(b)) })
	for _, name := range names {
		if b, ok := c.files[name]; ok {
			err = replace(to, name, b)
		} else if err = to.Remove(name); errors.Is(err, fs.ErrNotExist) {
			err = nil // another run was faster
		}
		if err != nil {
			return err
		}
	}
	for _, sub := range subFolders()[1:] {
		if len(names) > 0 {
			to.Remove(sub) // fails for a folder with files; git knows no empty folders
		}
	}
	return nil
}

// replace writes a temporary file and renames it. Another run may remove it before it is renamed, so replace
// tries again.
func replace(to fileSystem, name string, b []byte) error {
	for try := 1; ; try++ {
		err := replaceOnce(to, name, b)
		if err == nil || try == 5 || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}

func replaceOnce(to fileSystem, name string, b []byte) error {
	if err := to.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	temp := path.Join(path.Dir(name), fmt.Sprintf("%s%016x", tempPrefix, rand.Uint64()))
	f, err := to.Create(temp)
	if err != nil {
		return err
	}
	if _, err = f.Write(b); err == nil {
		err = f.Sync() // a file renamed before its bytes are on disk could be empty after a power cut
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = to.Rename(temp, name)
	}
	if err != nil {
		to.Remove(temp)
	}
	return err
}
