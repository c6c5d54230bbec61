package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
)

// A place is where a command keeps what it makes: the folder of the repository that the working folder
// is part of, or the working folder.
type place struct{ root string }

func here() (place, error) {
	dir, err := os.Getwd()
	if err != nil {
		return place{}, environment(err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return place{at}, nil
		}
		if at == filepath.Dir(at) {
			return place{dir}, nil
		}
	}
}

func (p place) store() string { return filepath.Join(p.root, ".runexp", "store") }
func (p place) runs() string  { return filepath.Join(p.root, ".runexp", "runs") }

// review is the folder that people review.
func (p place) review(name string) string { return filepath.Join(p.root, "artifacts", name) }

// out is the folder of a narrowed or overridden run: one for each set of overrides, so that results of
// different settings never stand in one folder.
func (p place) out(name string, o *plan.Overrides) string {
	return filepath.Join(p.root, ".runexp", "out", name, settings(o))
}

// longestSettings is how many letters a folder's name has of overrides.
const longestSettings = 48

// settings names overrides: by themselves where a folder can be called so, else by their letters that
// can stand in a name and a digest.
func settings(o *plan.Overrides) string {
	// The order of assignments counts: of two the later one holds.
	parts := append(slices.Clone(o.Set), slices.Sorted(slices.Values(o.Only))...)
	if o.Limit > 0 {
		parts = append(parts, fmt.Sprintf("limit=%d", o.Limit))
	}
	text := strings.Join(parts, ",")
	name := strings.TrimLeft(withoutOthers(text, "._-=,"), ".")
	if name == text && len(name) <= longestSettings {
		return name
	}
	digest := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return fmt.Sprintf("%s-%.4x", name[:min(len(name), longestSettings-9)], digest)
}

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// withoutOthers replaces all but letters of English, digits and the marks given with hyphens.
func withoutOthers(text, marks string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(alphanumeric+marks, r) {
			return r
		}
		return '-'
	}, text)
}

// quote writes an argument as a shell takes it.
func quote(arg string) string {
	if arg != "" && strings.Trim(arg, alphanumeric+"_-+=./:,@%") == "" {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// quoted writes arguments as a line that a shell takes.
func quoted(args []string) string {
	var line []string
	for _, arg := range args {
		line = append(line, quote(arg))
	}
	return strings.Join(line, " ")
}

// prepare makes the folder .runexp, and keeps it out of the user's commits.
func (p place) prepare() error {
	dir := filepath.Join(p.root, ".runexp")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return environment(err)
	}
	// Whatever stands there is the user's, be it a link to nowhere.
	err := createFile(filepath.Join(dir, ".gitignore"), []byte("*\n"))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return environment(err)
	}
	return nil
}

// createFile writes a file that isn't there yet.
func createFile(file string, b []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// real returns an error if path is a symbolic link or, where it lies in the place, goes through one: a
// repository can carry links to anywhere, and nothing is written or removed beyond them.
func (p place) real(path string) error {
	at, err := filepath.Abs(path)
	if err != nil {
		return environment(err)
	}
	for first := true; ; first = false {
		if rel, inside := p.relative(at); !first && (!inside || rel == ".") {
			return nil
		}
		if info, err := os.Lstat(at); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			to, _ := os.Readlink(at)
			const text = "%s is a symbolic link, to %q, beyond which nothing is written: " +
				"name the folder itself"
			return environment(fmt.Errorf(text, p.short(at), to))
		}
		if at == filepath.Dir(at) {
			return nil
		}
		at = filepath.Dir(at)
	}
}

// realNamed is real for a path that the user gave: links above its last element are allowed as long as
// they don't lead out of the place.
func (p place) realNamed(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return environment(err)
	}
	root, errRoot := filepath.EvalSymlinks(p.root)
	above, errAbove := filepath.EvalSymlinks(filepath.Dir(abs))
	if errRoot == nil && errAbove == nil {
		if _, inside := (place{root}).relative(above); inside {
			return place{root}.real(filepath.Join(above, filepath.Base(abs)))
		}
	}
	return p.real(path)
}

// sameFolder reports whether two paths lead to one folder, whether it exists or not.
func sameFolder(a, b string) bool { return resolved(a) == resolved(b) }

// resolved is the absolute path without links, as far as it exists.
func resolved(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(resolved(dir), filepath.Base(path))
	}
	return path
}

// relative returns the path from the place to a file or folder, if it lies there.
func (p place) relative(path string) (rel string, inside bool) {
	rel, err := filepath.Rel(p.root, path)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// within names a file relative to the place, or by its last element if it lies elsewhere, so that no name is
// one machine's own.
func (p place) within(file string) string {
	if abs, err := filepath.Abs(file); err == nil {
		if rel, inside := p.relative(abs); inside {
			return rel
		}
	}
	return filepath.Base(file)
}

// short names a folder relative to the place if it lies there.
func (p place) short(dir string) string {
	if rel, inside := p.relative(dir); inside {
		return rel
	}
	return dir
}
