package store

import (
	"errors"
	"os"
	"syscall"
)

// syncFile hands the bytes of an open file to the disk.
func (s *Store) syncFile(f *os.File) error {
	if err := s.at("sync"); err != nil {
		return err
	}
	return s.writeErr(f.Sync())
}

// syncFolder hands the names in a folder to the disk, where file systems know of that.
func (s *Store) syncFolder(dir string) error {
	if err := s.at("sync"); err != nil {
		return err
	}
	f, err := os.Open(dir)
	if err != nil {
		return s.writeErr(err)
	}
	defer f.Close()
	if err = f.Sync(); errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return s.writeErr(err)
}

// syncStore hands to the disk all that was written.
func (s *Store) syncStore() error {
	if err := s.at("sync"); err != nil {
		return err
	}
	return s.writeErr(syncAll(s.dir))
}
