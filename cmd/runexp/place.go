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

// A place is the folder in which a command keeps its files: the root of the repository that contains the
// working folder, or the working folder itself.
type place struct{ root string }

func here() (place, error) {
	dir, err := os.Getwd()
	if err != nil {
		return place{}, environment(err)
	}
	return placeAt(dir), nil
}

// placeAt is [here] for another folder.
func placeAt(dir string) place {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return place{at}
		}
		if at == filepath.Dir(at) {
			return place{dir}
		}
	}
}

func (p place) store() string { return filepath.Join(p.root, ".runexp", "store") }
func (p place) runs() string  { return filepath.Join(p.root, ".runexp", "runs") }

// review returns the folder that people review.
func (p place) review(name string) string { return filepath.Join(p.root, "artifacts", name) }

// out returns the folder of a run with overrides: there is one for each set of overrides, so that a folder
// never mixes results of different settings.
func (p place) out(name string, o *plan.Overrides) string {
	return filepath.Join(p.root, ".runexp", "out", name, settings(o))
}

// longestSettings bounds how many letters of the overrides a folder's name has.
const longestSettings = 48

// settings names a set of overrides: the text itself if it is a valid folder name, or else its valid
// letters and a digest.
func settings(o *plan.Overrides) string {
	// The order of assignments matters: later ones replace earlier ones.
	parts := append(slices.Clone(o.Set), slices.Sorted(slices.Values(o.Only))...)
	if o.Precision != "" {
		parts = append(parts, "precision="+o.Precision)
	}
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

// withoutOthers replaces all characters except English letters, digits and marks by hyphens.
func withoutOthers(text, marks string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(alphanumeric+marks, r) {
			return r
		}
		return '-'
	}, text)
}

// quote quotes an argument for a shell.
func quote(arg string) string {
	if arg != "" && strings.Trim(arg, alphanumeric+"_-+=./:,@%") == "" {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// quoted quotes the arguments of a command line for a shell.
func quoted(args []string) string {
	var line []string
	for _, arg := range args {
		line = append(line, quote(arg))
	}
	return strings.Join(line, " ")
}

// prepare creates the folder .runexp, and excludes it from the user's commits.
func (p place) prepare() error {
	dir := filepath.Join(p.root, ".runexp")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return environment(err)
	}
	// An existing file is the user's, even if it is a dangling link.
	err := createFile(filepath.Join(dir, ".gitignore"), []byte("*\n"))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return environment(err)
	}
	return nil
}

// createFile writes a file that doesn't exist yet.
func createFile(file string, b []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// real returns an error if path is a symbolic link or, inside the place, leads through one: a repository
// can contain links to any folder, and the command neither writes nor removes anything behind them.
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

// realNamed is real for a path that the user gave: its parent folders may be links unless they lead out of
// the place.
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

// sameFolder reports whether two paths lead to the same folder, which needn't exist.
func sameFolder(a, b string) bool { return resolved(a) == resolved(b) }

// resolved returns the absolute path, with the links in its existing part resolved.
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

// relative returns the path of a file or folder relative to the place, if it is inside.
func (p place) relative(path string) (rel string, inside bool) {
	rel, err := filepath.Rel(p.root, path)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// within names a file relative to the place, or by its last element if it is outside, so that a name
// doesn't depend on the machine.
func (p place) within(file string) string {
	if abs, err := filepath.Abs(file); err == nil {
		if rel, inside := p.relative(abs); inside {
			return rel
		}
	}
	return filepath.Base(file)
}

// short names a folder relative to the place if it is inside.
func (p place) short(dir string) string {
	if rel, inside := p.relative(dir); inside {
		return rel
	}
	return dir
}
