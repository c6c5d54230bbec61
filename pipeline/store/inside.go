package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/runexp/runexp/stages"
)

// Nothing below the store's folder is reached through a link: a link may lead to
// other people's files, and the store appends, replaces and removes. What stands in
// the place of one of its folders or files and isn't one — a link, a pipe, a folder
// where a file should be — is damage: readers have a miss, and a writer sets it
// aside.

// errForeign is the cause of an error about what stands in the place of a folder or
// file of the store.
var errForeign = errors.New("the store didn't put it there")

// foreign is the error for what stands at path.
func foreign(path string, mode fs.FileMode) error {
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%v: %w", stages.Kind(mode), errForeign)}
}

// maxLog bounds the logs and the index, which are read whole.
const maxLog = 4 << 30

// realFolder returns nil if dir, below the store's folder, is there and no link, and
// nothing between them is. What was found real is remembered.
func (s *Store) realFolder(dir string) error {
	above := filepath.Dir(dir)
	if len(dir) <= len(s.dir) || above == dir {
		return nil
	}
	s.folderMu.RLock()
	known := s.folders[dir]
	s.folderMu.RUnlock()
	if known {
		return nil
	}
	if err := s.realFolder(above); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err == nil && !info.IsDir() {
		err = foreign(dir, info.Mode())
	}
	if err != nil {
		return err
	}
	s.folderMu.Lock()
	defer s.folderMu.Unlock()
	if s.folders == nil {
		s.folders = map[string]bool{}
	}
	s.folders[dir] = true
	return nil
}

// openFile opens a regular file of the store.
func (s *Store) openFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	if err := s.realFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, flag|noFollow|syscall.O_NONBLOCK, mode)
	if err == nil {
		f, err = stages.Regular(f)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
		if info, e := os.Lstat(path); e == nil && !info.Mode().IsRegular() {
			err = foreign(path, info.Mode())
		}
	}
	return f, err
}

// read opens a file of the store for reading.
func (s *Store) read(path string) (*os.File, error) { return s.openFile(path, os.O_RDONLY, 0) }

// readFile reads a log or the index whole.
func (s *Store) readFile(path string) ([]byte, error) {
	f, err := s.read(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return stages.ReadAll(f, maxLog)
}

// size returns the size of a regular file of the store.
func (s *Store) size(path string) (int64, error) {
	if err := s.realFolder(filepath.Dir(path)); err != nil {
		return 0, err
	}
	return statSize(path)
}

// entries lists a folder of the store. One that isn't there has none, nor has what
// stands in its place.
func (s *Store) entries(dir string) ([]fs.DirEntry, error) {
	err := s.realFolder(dir)
	var list []fs.DirEntry
	if err == nil {
		list, err = os.ReadDir(dir)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, errForeign):
		s.warn("store %q: %v", s.dir, err)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("store %q: %w", s.dir, err)
	}
	return list, nil
}

// makeWay sets aside what stands in the place of the file path or of a folder above
// it.
func (s *Store) makeWay(path string) error {
	rel, err := filepath.Rel(s.dir, path)
	if err != nil {
		return err
	}
	at := s.dir
	for rest := rel; rest != ""; {
		var name string
		name, rest = first(rest)
		at = filepath.Join(at, name)
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return s.writeErr(err)
		}
		if rest != "" && !info.IsDir() || rest == "" && !info.Mode().IsRegular() {
			s.warn("store %q: %s is %v and is set aside in damaged", s.dir, filepath.ToSlash(rel), stages.Kind(info.Mode()))
			return s.setAside(at, fmt.Sprintf("%s-%016x-%d", name, s.tempID, s.temp.Add(1)))
		}
	}
	return nil
}

// first splits a path behind its first element.
func first(path string) (name, rest string) {
	for i := range len(path) {
		if os.IsPathSeparator(path[i]) {
			return path[:i], path[i+1:]
		}
	}
	return path, ""
}

// setAside moves what is damaged to damaged/ under a name, where a person can look
// at it until the store is collected.
func (s *Store) setAside(path, name string) error {
	if err := s.realFolder(filepath.Dir(path)); err != nil {
		return err
	}
	dir := filepath.Join(s.dir, "damaged")
	if err := s.realFolder(dir); errors.Is(err, errForeign) {
		away := s.tempName(dir)
		if err := rename(dir, away); err != nil {
			return s.writeErr(err)
		}
		if path == dir {
			path = away
		} else {
			defer rename(away, filepath.Join(dir, filepath.Base(away)))
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return s.writeErr(err)
	}
	if err := s.at("set aside"); err != nil {
		return err
	}
	if err := rename(path, filepath.Join(dir, name)); err != nil {
		return s.writeErr(err)
	}
	return nil
}
