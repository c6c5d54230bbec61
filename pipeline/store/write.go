package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A stop is the error of a hook: the process is to be thought dead from here on,
// so nothing is cleaned up.
type stop struct{ error }

func (e stop) Unwrap() error { return e.error }

// A tear asks, as the error of a hook before a write, that the kill happens
// after so many bytes of it.
type tear int

func (t tear) Error() string { return fmt.Sprintf("killed after %d bytes", int(t)) }

// at marks a point between system calls.
func (s *Store) at(point string) error {
	if s.hook == nil {
		return nil
	}
	if err := s.hook(point); err != nil {
		return stop{err}
	}
	return nil
}

// write writes b to f with one system call.
func (s *Store) write(f *os.File, b []byte) error {
	if err := s.at("write"); err != nil {
		var t tear
		if errors.As(err, &t) {
			f.Write(b[:min(int(t), len(b))])
		}
		return err
	}
	if _, err := f.Write(b); err != nil {
		return s.writeErr(err)
	}
	return s.at("written")
}

// makeFolder makes the folder of path, for when opening path showed that it's
// not there.
func (s *Store) makeFolder(path string) error {
	if err := s.at("mkdir"); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return s.writeErr(err)
	}
	return nil
}

// open opens path for writing. It makes its folder if need be, and sets aside what
// stands in the way.
func (s *Store) open(path string, flag int, mode fs.FileMode) (*os.File, error) {
	for try := 1; ; try++ {
		if err := s.at("open"); err != nil {
			return nil, err
		}
		f, err := s.openFile(path, flag|os.O_CREATE, mode)
		if err == nil {
			return f, s.at("opened")
		}
		switch {
		case try == 5:
			return nil, s.writeErr(err)
		case errors.Is(err, fs.ErrNotExist):
			err = s.makeFolder(path)
		case errors.Is(err, errForeign):
			err = s.makeWay(path)
		default:
			err = s.writeErr(err)
		}
		if err != nil {
			return nil, err
		}
	}
}

// writeFile writes parts to the file at path, one after another. The file appears complete or not at all: a
// temporary file in the same folder is renamed.
func (s *Store) writeFile(path string, mode fs.FileMode, parts ...[]byte) (err error) {
	if filepath.Base(path) != formatName {
		if err := s.setUp(); err != nil {
			return err
		}
	}
	s.written.Store(true)
	temp := s.tempName(path)
	f, err := s.open(temp, os.O_WRONLY|os.O_EXCL, mode)
	defer func() {
		if err == nil || f == nil {
			return
		}
		f.Close()
		if !errors.As(err, new(stop)) {
			os.Remove(temp)
		}
	}()
	if err != nil {
		return err
	}
	for _, b := range parts {
		if len(b) == 0 {
			continue
		}
		if err := s.write(f, b); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return s.writeErr(err)
	}
	if err := s.at("rename"); err != nil {
		return err
	}
	if err := rename(temp, path); err != nil {
		// A folder can't be replaced by a file.
		if err := s.makeWay(path); err != nil {
			return err
		}
		if err := rename(temp, path); err != nil {
			return s.writeErr(err)
		}
	}
	return s.at("renamed")
}

const tempPrefix = ".tmp-"

// tempName returns a name beside path that no other writer uses, on this machine
// or another that shares the disk.
func (s *Store) tempName(path string) string {
	return filepath.Join(filepath.Dir(path), fmt.Sprintf("%s%016x-%d", tempPrefix, s.tempID, s.temp.Add(1)))
}
