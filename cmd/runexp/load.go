package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
)

// narrowFlags adds the flags that override or narrow an experiment.
func narrowFlags(f *flags) *plan.Overrides {
	o := &plan.Overrides{}
	f.list(&o.Set, "set", "")
	f.list(&o.Only, "only", "")
	f.count(&o.Limit, "limit", "")
	return o
}

// loadPlan loads the one experiment among a verb's arguments.
func loadPlan(verb string, args []string, o *plan.Overrides) (*plan.Plan, error) {
	file, err := one(verb, "an experiment file", args)
	if err != nil {
		return nil, err
	}
	return load(file, o)
}

func load(file string, o *plan.Overrides) (*plan.Plan, error) {
	p, err := plan.Load(file, registry.Builtin(), *o)
	var diags plan.Diags
	switch {
	case err == nil:
		return p, nil
	case errors.As(err, &diags):
		return nil, err
	}
	return nil, &usageError{err: err, hint: "give the path of an experiment file"}
}

// A place is where a command keeps what it makes: the folder of the repository
// that the working folder is part of, or the working folder.
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

// real returns an error if path is a symbolic link or, where it lies in the place,
// goes through one: a repository can carry links to anywhere, and nothing is written
// or removed beyond them.
func (p place) real(path string) error {
	at, err := filepath.Abs(path)
	if err != nil {
		return environment(err)
	}
	for first := true; ; first = false {
		rel, err := filepath.Rel(p.root, at)
		if inside := err == nil && rel != "." && filepath.IsLocal(rel); !inside && !first {
			return nil
		}
		info, err := os.Lstat(at)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			to, _ := os.Readlink(at)
			return environment(fmt.Errorf("%s is a symbolic link, to %q, beyond which nothing is written: name the folder itself", p.short(at), to))
		}
		if at == filepath.Dir(at) {
			return nil
		}
		at = filepath.Dir(at)
	}
}

// realNamed is real for a path that the user gave: links above its last element may
// be as long as they don't lead out of the place.
func (p place) realNamed(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return environment(err)
	}
	root, errRoot := filepath.EvalSymlinks(p.root)
	above, errAbove := filepath.EvalSymlinks(filepath.Dir(abs))
	if errRoot == nil && errAbove == nil {
		if rel, err := filepath.Rel(root, above); err == nil && filepath.IsLocal(rel) {
			return place{root}.real(filepath.Join(above, filepath.Base(abs)))
		}
	}
	return p.real(path)
}

func (p place) store() string { return filepath.Join(p.root, ".runexp", "store") }

// review is the folder that people review.
func (p place) review(name string) string { return filepath.Join(p.root, "artifacts", name) }
func (p place) runs() string              { return filepath.Join(p.root, ".runexp", "runs") }
