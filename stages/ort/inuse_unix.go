//go:build unix

package ort

import (
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// largestInUse bounds how much of such a file is read.
const largestInUse = 1 << 20

// beginningName is the prefix of a file's name until the file is locked.
const beginningName = ".begun-"

// create makes the file of this process. The file gets its name only once it is locked, so that no process
// takes it for a file of a dead process.
func (u *inUse) create() {
	if os.MkdirAll(u.dir, 0o777) != nil {
		return
	}
	if info, err := os.Lstat(u.dir); err != nil || !info.IsDir() {
		return // a link leads to a file that isn't ours
	}
	name := fmt.Sprintf("%d-%016x", os.Getpid(), rand.Uint64())
	begun, path := filepath.Join(u.dir, beginningName+name), filepath.Join(u.dir, name)
	fd, err := syscall.Open(begun, syscall.O_RDWR|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o666)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), path)
	if syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB) != nil || os.Rename(begun, path) != nil {
		f.Close()
		_ = os.Remove(begun)
		return
	}
	u.file = f
}

// abandoned returns the path and the text of a file whose process has ended.
func abandoned(dir string, e fs.DirEntry) (path, text string, ok bool) {
	path = filepath.Join(dir, e.Name())
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() || !e.Type().IsRegular() ||
		strings.HasPrefix(e.Name(), beginningName) {
		return path, "", false
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return path, "", false
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	if syscall.Flock(fd, syscall.LOCK_SH|syscall.LOCK_NB) != nil {
		return path, "", false
	}
	b, err := io.ReadAll(io.LimitReader(f, largestInUse))
	return path, string(b), err == nil
}
