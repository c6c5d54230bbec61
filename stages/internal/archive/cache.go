package archive

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/runexp/runexp/stages"
)

// The cache has a folder for each archive, named by the digest of its bytes:
//
//	<digest>/content     what was unpacked
//	<digest>/complete    how many files and bytes these are
//	<path>.digest        the digest of the archive at a path, and the stamp that it had
//	<digest>.part-*      what is being unpacked; renamed to <digest> when it is complete
const (
	contentName  = "content"
	completeName = "complete"
	partMark     = ".part-"
)

// abandoned is the age of an unfinished folder from which on no process works on it any more.
const abandoned = 24 * time.Hour

// opened are the archives that this process has opened, by path and stamp, with their folders in the cache.
var opened = struct {
	sync.Mutex
	at map[string]string
}{at: map[string]string{}}

// open returns the folder with an archive's content, unpacking it if it isn't in the cache.
func open(file string) (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("the folder that it is unpacked in: %w", err)
	}
	c := cache{filepath.Join(user, "runexp", "archives"), defaultLimits}
	opened.Lock()
	defer opened.Unlock()
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	stamp, settled, err := stages.StampOf(abs)
	if err != nil {
		return "", err
	}
	key := fmt.Sprint(c.dir, abs, stamp)
	if dir, ok := opened.at[key]; ok && exists(dir) {
		return dir, nil
	}
	dir, err := c.open(abs, stamp, settled)
	if err != nil {
		return "", err
	}
	if settled {
		opened.at[key] = dir
	}
	return dir, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// A cache holds the content of archives.
type cache struct {
	dir string
	limits
}

func (c cache) open(file string, stamp stages.Stamp, settled bool) (content string, err error) {
	if err := os.MkdirAll(c.dir, 0o777); err != nil {
		return "", err
	}
	digest, err := c.digest(file, stamp, settled)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(c.dir, digest)
	content = filepath.Join(dir, contentName)
	if complete(dir) {
		return content, nil
	}
	c.sweep()
	part, err := os.MkdirTemp(c.dir, digest+partMark)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	n, err := c.unpack(file, filepath.Join(part, contentName))
	if err != nil {
		return "", err
	}
	if now, _, err := stages.StampOf(file); err != nil || now != stamp {
		return "", errors.Join(errors.New("it changed while it was being unpacked"), err)
	}
	if err := os.WriteFile(filepath.Join(part, completeName), []byte(n.String()), 0o666); err != nil {
		return "", err
	}
	// What another process has unpacked meanwhile is as good. A folder that lost files makes room.
	if !complete(dir) {
		if err := os.Rename(dir, part+".old"); err == nil {
			defer os.RemoveAll(part + ".old")
		}
		if err := os.Rename(part, dir); err != nil && !complete(dir) {
			return "", err
		}
	}
	return content, nil
}

// digest returns the digest of an archive's bytes. An earlier one is valid while the file has the same
// stamp.
func (c cache) digest(file string, stamp stages.Stamp, settled bool) (string, error) {
	memo := filepath.Join(c.dir, stages.Sum([]byte(file)).String()+".digest")
	known := fmt.Sprint(stamp, " ")
	if b, err := os.ReadFile(memo); err == nil {
		if digest, ok := strings.CutPrefix(string(b), known); ok && len(digest) == 2*sha256.Size {
			return digest, nil
		}
	}
	f, err := stages.OpenFile(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	digest := fmt.Sprintf("%x", h.Sum(nil))
	if settled {
		// If the note can't be written, or is cut, the archive is read again.
		_ = os.WriteFile(memo, []byte(known+digest), 0o666)
	}
	return digest, nil
}

// complete reports whether a folder has all unpacked files. Programs that clear caches remove files by
// their age, and a data set must not lose images silently.
func complete(dir string) bool {
	want, err := os.ReadFile(filepath.Join(dir, completeName))
	if err != nil {
		return false
	}
	var n amount
	err = filepath.WalkDir(filepath.Join(dir, contentName), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n.files, n.bytes = n.files+1, n.bytes+info.Size()
		}
		return err
	})
	return err == nil && n.String() == string(want)
}

// sweep removes the remains of killed processes.
func (c cache) sweep() {
	list, _ := filepath.Glob(filepath.Join(c.dir, "*"+partMark+"*"))
	for _, part := range list {
		if info, err := os.Stat(part); err == nil && time.Since(info.ModTime()) > abandoned {
			os.RemoveAll(part)
		}
	}
}
