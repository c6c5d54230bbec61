package stages

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular is the cause of [OpenFile]'s error for a folder, a pipe, a device or a socket.
var ErrNotRegular = errors.New("not a regular file")

// OpenFile opens a regular file for reading, following links. A pointer that Git LFS or git-annex leaves in
// place of a file is an error with a hint how to fetch the file. Every file named by an experiment is
// opened by OpenFile or [ReadFile]: reading a pipe would block forever, a device may never end, and opening
// either may have side effects.
func OpenFile(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, info)
	}
	if err != nil {
		return nil, err
	}
	// The file may have been replaced since Stat: hence O_NONBLOCK and the second check.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return Regular(f)
}

// Regular returns f if it is a regular file and no pointer, and closes it otherwise. Callers that open files
// without [OpenFile] must use O_NONBLOCK.
func Regular(f *os.File) (*os.File, error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(f.Name(), info)
	}
	if err == nil && info.Size() <= longestPointer {
		head := make([]byte, info.Size())
		n, _ := f.ReadAt(head, 0) // if it can't be read, readers report that
		if is := pointer(head[:n]); is != nil {
			err = &fs.PathError{Op: "open", Path: f.Name(), Err: is}
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func notRegular(path string, info fs.FileInfo) error {
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%s, %w", Kind(info.Mode()), ErrNotRegular)}
}

// Kind describes the kind of a file in words.
func Kind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a regular file"
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a special file"
}

// ReadFile reads a regular file of at most limit bytes.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, limit)
}

// ReadAll reads an open file of at most limit bytes from its start.
func ReadAll(f *os.File, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if n := info.Size(); n > limit {
		return nil, tooLarge(f, n, limit)
	}
	var b bytes.Buffer
	b.Grow(int(info.Size()) + bytes.MinRead)
	// A file may have grown since Stat, or report size 0 as those of /proc do.
	n, err := b.ReadFrom(io.NewSectionReader(f, 0, limit+1))
	if err == nil && n > limit {
		err = tooLarge(f, n, limit)
	}
	return b.Bytes(), err
}

func tooLarge(f *os.File, n, limit int64) error {
	return &fs.PathError{Op: "read", Path: f.Name(),
		Err: fmt.Errorf("%d bytes exceed the limit of %d", n, limit)}
}
