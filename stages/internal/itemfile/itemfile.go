// Package itemfile finds the files, or the arrays of an archive, that another program made of items, by the
// items' ids.
package itemfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A Kind is a kind of files: its noun, as "map", and the extensions that a file may have.
type Kind struct {
	Noun       string
	Extensions []string
}

// names returns the names that an item's file may have, without its own extension: the id, with or without
// the extension of the picture.
func names(id string) []string {
	if short := strings.TrimSuffix(id, path.Ext(id)); short != id && short != "" {
		return []string{id, short}
	}
	return []string{id}
}

// Match finds the source of every item under one of its names, and refuses one that matches two items. root
// is the folder or archive, for messages; errors are of the parameter path.
func (k Kind) Match(root string, ids []string,
	find func(name string) (stages.Source, bool, error)) ([]stages.Source, error) {
	sources := make([]stages.Source, len(ids))
	owner := map[string]string{}
	var missing []string
	for i, id := range ids {
		found := false
		for _, name := range names(id) {
			s, ok, err := find(name)
			if err != nil {
				return nil, stages.BadField("path", "item %q: %w", id, err)
			}
			if !ok {
				continue
			}
			if other, twice := owner[name]; twice {
				return nil, stages.BadField("path", "%s: the %s %q would be both of item %q and of %q", root,
					k.Noun, name, other, id)
			}
			owner[name] = id
			s.ID = id
			sources[i], found = s, true
			break
		}
		if !found {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		var files []string
		for _, extension := range k.Extensions {
			for _, name := range names(missing[0]) {
				files = append(files, name+extension)
			}
		}
		return nil, stages.BadField("path", "%s has no %s of %d of %d items: item %q would be %s", root,
			k.Noun, len(missing), len(ids), missing[0], strings.Join(files, " or "))
	}
	return sources, nil
}

// InFolder finds the file of every item in a folder.
func (k Kind) InFolder(root string, ids []string) ([]stages.Source, error) {
	return k.Match(root, ids, func(name string) (found stages.Source, ok bool, err error) {
		for _, extension := range k.Extensions {
			rel := filepath.FromSlash(name) + extension
			if !filepath.IsLocal(rel) {
				return found, false, fmt.Errorf("%q would lie outside the folder", name)
			}
			file := filepath.Join(root, rel)
			switch _, err := os.Stat(file); {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return found, false, err
			case ok:
				return found, false, fmt.Errorf("%s and %s are both its %s", filepath.Base(found.File),
					filepath.Base(file), k.Noun)
			default:
				found, ok = stages.Source{File: file}, true
			}
		}
		return found, ok, nil
	})
}
