// Package archive makes the content of an archive a folder: zip files (zip.go) and tar files, compressed by
// gzip or not (tar.go), are unpacked once (unpack.go) into the user's cache (cache.go).
//
// Archives are untrusted. A member that isn't a file or a folder inside the archive is an error, never
// skipped, and the number of members and of bytes is bounded, also in proportion to the archive's size.
// Errors name the archive, the member and the cause.
package archive

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Extensions are the extensions of archives, in lower case.
var Extensions = []string{".zip", ".tar", ".tar.gz", ".tgz"}

// Is reports whether a file is an archive, by its name.
func Is(file string) bool { return extension(file) != "" }

func extension(file string) string {
	name := strings.ToLower(filepath.Base(file))
	for _, ext := range Extensions {
		if strings.HasSuffix(name, ext) {
			return ext
		}
	}
	return ""
}

// Path returns the file or folder that a path names. A path of an archive stands for its content, and may
// continue inside it, as in photos.zip/val; any other path is returned unchanged. If an archive has a
// single folder at its top, paths may leave that out.
func Path(path string) (string, error) {
	path = filepath.Clean(path)
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case err == nil && info.Mode().IsRegular() && Is(at):
			content, err := open(at)
			if err != nil {
				return "", fmt.Errorf("the archive %q: %w", at, err)
			}
			top, err := top(content)
			whole, inner := filepath.Join(content, path[len(at):]), filepath.Join(top, path[len(at):])
			if whole != content && exists(whole) && !exists(inner) {
				return whole, err
			}
			return inner, err
		case err == nil || at == filepath.Dir(at):
			return path, nil
		}
	}
}

// top returns the single folder in a folder, or the folder itself.
func top(dir string) (string, error) {
	list, err := os.ReadDir(dir)
	if err == nil && len(list) == 1 && list[0].IsDir() {
		dir = filepath.Join(dir, list[0].Name())
	}
	return dir, err
}

// Shown returns err with the archive's path in place of the path of its content, which users don't know.
func Shown(err error, path, content string) error {
	if err == nil || path == content {
		return err
	}
	return shown{err, path, content}
}

type shown struct {
	error
	path, content string
}

func (e shown) Error() string { return strings.ReplaceAll(e.error.Error(), e.content, e.path) }
func (e shown) Unwrap() error { return e.error }
