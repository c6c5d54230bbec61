package store

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// A fileSystem has the operations on names, each of which is a message to a file server, and the syncs of
// bytes and names. Tests count its calls, and imitate a server whose clients see each other's files late.
type fileSystem interface {
	OpenFile(path string, flag int, mode fs.FileMode) (*os.File, error)
	Lstat(path string) (fs.FileInfo, error)
	ReadDir(path string) ([]fs.DirEntry, error)
	MkdirAll(path string, mode fs.FileMode) error
	Rename(from, to string) error
	RemoveAll(path string) error
	Sync(f *os.File) error    // of a file, or of the names in a folder
	SyncAll(dir string) error // of the file system that holds dir
}

// osFiles is the file system of the machine.
type osFiles struct{}

func (osFiles) OpenFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, mode)
}
func (osFiles) Lstat(path string) (fs.FileInfo, error)       { return os.Lstat(path) }
func (osFiles) ReadDir(path string) ([]fs.DirEntry, error)   { return os.ReadDir(path) }
func (osFiles) MkdirAll(path string, mode fs.FileMode) error { return os.MkdirAll(path, mode) }
func (osFiles) Rename(from, to string) error                 { return os.Rename(from, to) }
func (osFiles) RemoveAll(path string) error                  { return os.RemoveAll(path) }
func (osFiles) Sync(f *os.File) error                        { return f.Sync() }
func (osFiles) SyncAll(dir string) error                     { return syncAll(dir) }

// syncFile syncs the bytes of an open file to the disk.
func (s *Store) syncFile(f *os.File) error {
	if err := s.at("sync"); err != nil {
		return err
	}
	return s.writeErr(s.fs.Sync(f))
}

// syncFolder syncs the names in a folder to the disk, if the file system supports that.
func (s *Store) syncFolder(dir string) error {
	if err := s.at("sync"); err != nil {
		return err
	}
	f, err := s.fs.OpenFile(dir, os.O_RDONLY, 0)
	if err != nil {
		return s.writeErr(err)
	}
	defer f.Close()
	if err = s.fs.Sync(f); errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return s.writeErr(err)
}

// syncStore syncs everything that was written to the disk.
func (s *Store) syncStore() error {
	if err := s.at("sync"); err != nil {
		return err
	}
	return s.writeErr(s.fs.SyncAll(s.dir))
}

// keptFiles are files that stay open for the next reader.
type keptFiles struct {
	mu   sync.Mutex // guards what follows
	open map[string]*keptFile
}

type keptFile struct {
	*os.File
	readers int
}

// readKept is read for a file that many readers ask for in turn. done ends the use of it.
func (s *Store) readKept(path string) (f *os.File, done func() error, err error) {
	if s.kept == nil {
		if f, err = s.read(path); err != nil {
			return nil, nil, err
		}
		return f, f.Close, nil
	}
	k := s.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	file := k.open[path]
	if file == nil {
		if f, err = s.read(path); err != nil {
			return nil, nil, err
		}
		for old, idle := range k.open {
			if len(k.open) >= s.maxLogs && idle.readers == 0 {
				idle.Close()
				delete(k.open, old)
			}
		}
		file = &keptFile{File: f}
		k.open[path] = file
	}
	file.readers++
	return file.File, func() error {
		k.mu.Lock()
		defer k.mu.Unlock()
		file.readers--
		return nil
	}, nil
}
