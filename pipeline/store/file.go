package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/runexp/runexp/stages"
)

// Every file of the store is opened here. Nothing below the store's folder is reached through a link: a link
// may lead to other people's files, and the store appends, replaces and removes. Anything else in the place
// of one of its folders or files — a link, a pipe, a folder in the place of a file — is damage: readers have
// a miss, and a writer sets it aside.

// errForeign is the cause of an error about something else in the place of a folder or file of the store.
var errForeign = errors.New("the store didn't put it there")

// foreign is the error of something else at path.
func foreign(path string, mode fs.FileMode) error {
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%v: %w", stages.Kind(mode), errForeign)}
}

// lstat describes a file or folder of the store, which must be of a kind. Nothing above it is a link.
func (s *Store) lstat(path string, kind func(fs.FileMode) bool) (fs.FileInfo, error) {
	if err := s.realFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	info, err := s.fs.Lstat(path)
	if err == nil && !kind(info.Mode()) {
		err = foreign(path, info.Mode())
	}
	return info, err
}

// realFolder returns nil if dir, below the store's folder, exists and is no link, and nothing between them
// is. It remembers folders that it has found real.
func (s *Store) realFolder(dir string) error {
	if len(dir) <= len(s.dir) {
		return nil
	}
	s.folderMu.RLock()
	known := s.folders[dir]
	s.folderMu.RUnlock()
	if known {
		return nil
	}
	_, err := s.lstat(dir, fs.FileMode.IsDir)
	if err == nil {
		s.folderMu.Lock()
		s.folders[dir] = true
		s.folderMu.Unlock()
	}
	return err
}

func (s *Store) openFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	if err := s.realFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	f, err := s.fs.OpenFile(path, flag|noFollow|syscall.O_NONBLOCK, mode)
	if err == nil {
		f, err = stages.Regular(f)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
		if info, e := s.fs.Lstat(path); e == nil && !info.Mode().IsRegular() {
			err = foreign(path, info.Mode())
		}
	}
	return f, err
}

func (s *Store) read(path string) (*os.File, error) { return s.openFile(path, os.O_RDONLY, 0) }

// maxFile bounds the files that are read whole: the index, and logs of small facts.
const maxFile = 4 << 30

func (s *Store) readFile(path string) ([]byte, error) {
	f, err := s.read(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return stages.ReadAll(f, maxFile)
}

func (s *Store) size(path string) (int64, error) {
	info, err := s.lstat(path, fs.FileMode.IsRegular)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// entries lists a folder of the store. It returns none if the folder doesn't exist or isn't one.
func (s *Store) entries(dir string) ([]fs.DirEntry, error) {
	err := s.realFolder(dir)
	var list []fs.DirEntry
	if err == nil {
		list, err = s.fs.ReadDir(dir)
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

// hash returns the SHA-256 and the size of a file of the store.
func (s *Store) hash(ctx context.Context, path string) (d stages.Digest, size int64, err error) {
	f, err := s.read(path)
	if err != nil {
		return d, 0, err
	}
	return hashFile(ctx, f)
}

// hashFile returns the SHA-256 and the size of the bytes of a file that was just opened, and closes it.
func hashFile(ctx context.Context, f *os.File) (d stages.Digest, size int64, err error) {
	defer f.Close()
	return hashBytes(ctx, f)
}

// hashBytes is hashFile for bytes from anywhere.
func hashBytes(ctx context.Context, r io.Reader) (d stages.Digest, size int64, err error) {
	h := sha256.New()
	for ctx.Err() == nil {
		n, err := io.CopyN(h, r, 16<<20)
		if size += n; err == io.EOF {
			return stages.Digest(h.Sum(nil)), size, nil
		} else if err != nil {
			return d, size, err
		}
	}
	return d, size, context.Cause(ctx)
}

// A stop is the error of a hook: it stands for the end of the process, so nothing is cleaned up.
type stop struct{ error }

func (e stop) Unwrap() error { return e.error }

// A tear, as the error of a hook before a write, has the kill happen after this many bytes of the write.
type tear int

func (t tear) Error() string { return fmt.Sprintf("killed after %d bytes", int(t)) }

func (s *Store) at(point string) error {
	if s.opts.Hook == nil {
		return nil
	}
	if err := s.opts.Hook(point); err != nil {
		return stop{err}
	}
	return nil
}

// write writes b to f with one system call.
func (s *Store) write(f *os.File, b []byte) error {
	if err := s.at("write"); err != nil {
		if t, ok := errors.AsType[tear](err); ok {
			f.Write(b[:min(int(t), len(b))])
		}
		return err
	}
	if _, err := f.Write(b); err != nil {
		return s.writeErr(err)
	}
	return s.at("written")
}

// open opens path for writing. It makes the folder if needed, and sets aside anything else in its place.
func (s *Store) open(path string, flag int, mode fs.FileMode) (*os.File, error) {
	for try := 1; ; try++ {
		if err := s.at("open"); err != nil {
			return nil, err
		}
		f, err := s.openFile(path, flag|os.O_CREATE, mode)
		switch {
		case err == nil:
			return f, s.at("opened")
		case try < 5 && errors.Is(err, fs.ErrNotExist):
			if err = s.at("mkdir"); err == nil {
				err = s.makeFolder(filepath.Dir(path))
			}
		case try < 5 && errors.Is(err, errForeign):
			err = s.makeWay(path)
		default:
			err = s.writeErr(err)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (s *Store) openAppend(path string) (*os.File, error) {
	if err := s.setUp(); err != nil {
		return nil, err
	}
	s.written.Store(true)
	return s.open(path, os.O_WRONLY|os.O_APPEND, 0o666)
}

// writeFile writes pieces to the file at path, one after another. The file appears complete or not at all: a
// temporary file in the same folder is renamed.
func (s *Store) writeFile(path string, mode fs.FileMode, pieces ...[]byte) error {
	if err := s.setUp(); err != nil {
		return err
	}
	return s.replaceFile(path, mode, pieces...)
}

// replaceFile is writeFile in a store that may not be set up.
func (s *Store) replaceFile(path string, mode fs.FileMode, pieces ...[]byte) (err error) {
	return s.replaceBy(path, mode, false, func(write func([]byte) error) error {
		for _, b := range pieces {
			if len(b) == 0 {
				continue
			}
			if err := write(b); err != nil {
				return err
			}
		}
		return nil
	})
}

// replaceBy is replaceFile for bytes that come one after another. An error of from leaves what was there. A
// durable file has its name only when the disk has its bytes.
func (s *Store) replaceBy(path string, mode fs.FileMode, durable bool,
	from func(write func([]byte) error) error) (err error) {
	s.written.Store(true)
	temp := s.tempName(path)
	f, err := s.open(temp, os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		f.Close()
		if err != nil && !errors.As(err, new(stop)) {
			s.fs.RemoveAll(temp)
		}
	}()
	if err := from(func(b []byte) error { return s.write(f, b) }); err != nil {
		return err
	}
	if durable {
		if err := s.syncFile(f); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return s.writeErr(err)
	}
	if err := s.at("rename"); err != nil {
		return err
	}
	if s.fs.Rename(temp, path) != nil {
		// A folder can't be replaced by a file.
		if err := s.makeWay(path); err != nil {
			return err
		}
		if err := s.fs.Rename(temp, path); err != nil {
			return s.writeErr(err)
		}
	}
	return s.at("renamed")
}

const tempPrefix = ".tmp-"

// tempName returns a name in path's folder that no other writer uses, on this machine or another that shares
// the disk.
func (s *Store) tempName(path string) string {
	return filepath.Join(filepath.Dir(path), fmt.Sprintf("%s%016x-%d", tempPrefix, s.tempID, s.temp.Add(1)))
}

// remove removes a file that may be gone.
func (s *Store) remove(path string) error {
	if err := s.at("remove"); err != nil {
		return err
	}
	return s.writeErr(s.fs.RemoveAll(path))
}

// makeWay sets aside anything else in the place of the file path or of a folder above it.
func (s *Store) makeWay(path string) error {
	rel, err := filepath.Rel(s.dir, path)
	if err != nil {
		return err
	}
	at := s.dir
	for name := range strings.SplitSeq(rel, string(filepath.Separator)) {
		at = filepath.Join(at, name)
		info, err := s.fs.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return s.writeErr(err)
		}
		if at == path && !info.Mode().IsRegular() || at != path && !info.IsDir() {
			kind := stages.Kind(info.Mode())
			s.warn("store %q: %s is %v and is set aside in damaged", s.dir, filepath.ToSlash(rel), kind)
			return s.setAside(at, fmt.Sprintf("%s-%016x-%d", name, s.tempID, s.temp.Add(1)))
		}
	}
	return nil
}

// setAside moves a damaged file to damaged/ under a name, where a person can look at it until the store is
// collected.
func (s *Store) setAside(path, name string) error {
	if err := s.realFolder(filepath.Dir(path)); err != nil {
		return err
	}
	dir := filepath.Join(s.dir, "damaged")
	if errors.Is(s.realFolder(dir), errForeign) {
		away := s.tempName(dir)
		if err := s.fs.Rename(dir, away); err != nil {
			return s.writeErr(err)
		}
		defer s.fs.Rename(away, filepath.Join(dir, filepath.Base(away)))
	}
	if err := s.makeFolder(dir); err != nil {
		return err
	}
	if err := s.at("set aside"); err != nil {
		return err
	}
	return s.writeErr(s.fs.Rename(path, filepath.Join(dir, name)))
}

// makeFolder makes a folder in the store, with the store's permissions, whatever the user's umask is: in a
// store that a group shares, others must be able to remove files from it.
func (s *Store) makeFolder(dir string) error {
	var made []string // of the folders above, too
	for at := dir; len(at) > len(s.dir); at = filepath.Dir(at) {
		if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
			made = append(made, at)
		}
	}
	if err := s.fs.MkdirAll(dir, 0o777); err != nil {
		return s.writeErr(err)
	}
	if info, err := os.Stat(s.dir); err == nil {
		for _, at := range made {
			_ = os.Chmod(at, info.Mode()&(fs.ModePerm|fs.ModeSetgid)) // some file systems have no modes
		}
	}
	return nil
}

// writeErr adds to an error of the file system what it means for the store.
func (s *Store) writeErr(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("the disk of store %q is full; what is recorded is kept: %w", s.dir, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("store %q %w: %w", s.dir, ErrUnwritable, err)
	}
	return fmt.Errorf("store %q: %w", s.dir, err)
}
