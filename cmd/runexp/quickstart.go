package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/runexp/runexp/experiments"
	"github.com/runexp/runexp/registry"
)

// quickstartName is the argument of new for the sample experiment, and the sample's name.
const quickstartName = "quickstart"

// writeQuickstart writes the sample experiment into a folder, with its models and the schema for editors.
// If a file exists with other bytes, nothing is written.
func writeQuickstart(u *ui, dir string) error {
	p, err := here()
	if err != nil {
		return err
	}
	files := map[string][]byte{"schema.json": registry.Builtin().Schema()}
	err = fs.WalkDir(experiments.Quickstart, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[path], err = experiments.Quickstart.ReadFile(path)
		return err
	})
	if err != nil {
		return err
	}
	for path, b := range files {
		at := filepath.Join(dir, filepath.FromSlash(path))
		if err := p.realNamed(at); err != nil {
			return err
		}
		old, err := os.ReadFile(at)
		switch {
		case err == nil && string(old) == string(b):
			delete(files, path)
		case err == nil:
			return usage(fmt.Errorf("%s exists", at), "move it away, or name another folder")
		case !errors.Is(err, fs.ErrNotExist):
			return environment(err)
		}
	}
	for path, b := range files {
		at := filepath.Join(dir, filepath.FromSlash(path))
		if err = os.MkdirAll(filepath.Dir(at), 0o777); err == nil {
			err = createFile(at, b)
		}
		if err != nil {
			return environment(err)
		}
	}
	file := filepath.Join(dir, quickstartName+".yaml")
	fmt.Fprintln(u.out, file)
	u.hint("next: runexp run " + quote(file))
	return nil
}
