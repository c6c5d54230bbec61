package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"syscall"

	"github.com/runexp/runexp/stages"
)

// noteFiles records the files and folders that a cell's parameters name.
func (x *expander) noteFiles(m *cellBuild) {
	for i := range m.params.fields {
		f := &m.params.fields[i]
		for _, path := range filesOf(m.cell, f.Field) {
			if _, noted := x.plan.files[path]; noted || path == "" {
				continue
			}
			n := m.uses
			if a := x.assigned(m, f.Name); a != nil {
				n = cmp.Or(x.value(a.value, m.at), n)
			}
			x.plan.files[path] = n.diag("", "")
		}
	}
}

// filesOf returns the paths in a parameter, none if it isn't about files.
func filesOf(c *Cell, f stages.Field) []string {
	if !f.File {
		return nil
	}
	return textsOf(reflect.ValueOf(c.Params).Elem().FieldByIndex(f.Index))
}

// textsOf returns the texts of a parameter that is a text or a list of texts.
func textsOf(v reflect.Value) []string {
	if v.Kind() == reflect.String {
		return []string{v.String()}
	}
	return v.Interface().([]string)
}

// Missing returns a diagnostic for each file or folder that parameters name and that can't be read, except
// those that will be fetched. No other part of a plan looks at them.
func (p *Plan) Missing() Diags {
	var ds diagnostics
	for _, path := range slices.Sorted(maps.Keys(p.files)) {
		_, err := os.Stat(path)
		if err == nil || errors.Is(err, inFile) || p.remotes[path] != nil {
			continue
		}
		d, folder := p.files[path], filepath.Dir(path)
		switch {
		case !errors.Is(err, fs.ErrNotExist):
			d.Msg = fmt.Sprintf("%q: %v", path, cause(err))
		case !exists(folder):
			d.Msg = fmt.Sprintf("there is no file or folder %q, nor the folder %q", path, folder)
		default:
			d.Msg = fmt.Sprintf("there is no file or folder %q", path)
			d.Hint = similarFile(path)
		}
		if d.Hint == "" && !filepath.IsAbs(path) && d.Line > 0 {
			d.Hint = "paths are relative to the experiment's folder"
		}
		ds.add(d)
	}
	return ds.sorted()
}

// inFile is the error of a path that continues after a file, as a path into an archive does. The stage
// decides whether it is valid.
const inFile = syscall.ENOTDIR

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil || errors.Is(err, inFile)
}

// similarFile suggests a file of the same folder with a similar name.
func similarFile(path string) string {
	entries, _ := os.ReadDir(filepath.Dir(path))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return Guess(filepath.Base(path), names)
}

// Unreadable returns the error of listing the sources of c, nil if there is none. It is also nil if a file
// that a parameter names doesn't exist, which Missing reports.
func (c *Cell) Unreadable() error {
	if c.Stage.Sources == nil || c.Stage.Primary() >= 0 {
		return nil
	}
	for _, f := range stages.Fields(c.Params) {
		for _, path := range filesOf(c, f) {
			if path != "" && !exists(path) {
				return nil
			}
		}
	}
	list, err := c.Sources(nil)
	if err != nil {
		return err
	}
	for i := range list {
		for _, path := range []string{list[i].File, list[i].With[0], list[i].With[1]} {
			if _, err := os.Stat(path); path != "" && err != nil {
				return fmt.Errorf("%q: %w", path, cause(err))
			}
		}
	}
	if len(list) == 0 && c.Stage.Relation != stages.Whole {
		return ErrNoItem
	}
	return nil
}

// ErrNoItem is the error of a data set without a single item.
var ErrNoItem = errors.New("there is nothing to read: no item at all")

// Sources calls the stage's Sources with the ids of its primary input; without Sources it returns nil. It
// turns a panic into an error.
func (c *Cell) Sources(ids []string) (s []stages.Source, err error) {
	defer Catch(&err)
	return c.Stage.Sources(c.Params, ids)
}
