package attribute

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/npy"
)

// External maps are in a folder with one .npy file per item, in an .npz archive with one array per item, or
// in one .npy stack in the order of the items.

// maxMap is the largest size of a map's file in bytes.
const maxMap = 1 << 30

// candidates returns the names that an item's map may have: its id, with or without the extension of the
// picture.
func candidates(id string) []string {
	if short := strings.TrimSuffix(id, path.Ext(id)); short != id && short != "" {
		return []string{id, short}
	}
	return []string{id}
}

// externalSources finds the map of each item. The Note of a source is the array's name in an archive, or its
// index in a stack.
func externalSources(root string, ids []string) ([]stages.Source, error) {
	info, err := os.Stat(root)
	if err != nil {
		return nil, stages.BadField("path", "the maps: %w", err)
	}
	switch {
	case info.IsDir():
		return folderSources(root, ids)
	case strings.EqualFold(filepath.Ext(root), ".npz"):
		return archiveSources(root, ids)
	}
	return stackSources(root, ids)
}

func folderSources(root string, ids []string) ([]stages.Source, error) {
	return matchItems(root, ids, func(name string) (stages.Source, bool, error) {
		rel := filepath.FromSlash(name) + ".npy"
		if !filepath.IsLocal(rel) {
			return stages.Source{}, false, fmt.Errorf("%q would lie outside the folder", name)
		}
		file := filepath.Join(root, rel)
		if _, err := os.Stat(file); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return stages.Source{}, false, err
		}
		return stages.Source{File: file}, true, nil
	})
}

func archiveSources(root string, ids []string) ([]stages.Source, error) {
	z, err := npy.OpenArchive(root)
	if err != nil {
		return nil, stages.BadField("path", "%w", err)
	}
	defer z.Close()
	arrays := z.Names()
	return matchItems(root, ids, func(name string) (stages.Source, bool, error) {
		_, held := slices.BinarySearch(arrays, name)
		return stages.Source{File: root, Note: name}, held, nil
	})
}

// matchItems finds the map of every item under one of its candidate names, and refuses a map that matches two
// items.
func matchItems(root string, ids []string,
	find func(name string) (stages.Source, bool, error)) ([]stages.Source, error) {
	sources := make([]stages.Source, len(ids))
	owner := map[string]string{}
	var missing []string
	for i, id := range ids {
		found := false
		for _, name := range candidates(id) {
			s, ok, err := find(name)
			if err != nil {
				return nil, stages.BadField("path", "item %q: %w", id, err)
			}
			if !ok {
				continue
			}
			if other, twice := owner[name]; twice {
				return nil, stages.BadField("path", "%s: the map %q would be both of item %q and of %q", root,
					name, other, id)
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
		n := candidates(missing[0])
		return nil, stages.BadField("path", "%s has no map of %d of %d items: item %q would be %s.npy", root,
			len(missing), len(ids), missing[0], strings.Join(n, ".npy or "))
	}
	return sources, nil
}

func stackSources(root string, ids []string) ([]stages.Source, error) {
	s, err := npy.OpenStack(root)
	if err != nil {
		return nil, stages.BadField("path", "%w", err)
	}
	defer s.Close()
	if s.Len() != len(ids) {
		return nil, stages.BadField("path", "%s holds %d maps for %d items; an .npz archive or a folder "+
			"finds them by name", root, s.Len(), len(ids))
	}
	sources := make([]stages.Source, len(ids))
	for i, id := range ids {
		sources[i] = stages.Source{ID: id, File: root, Note: strconv.Itoa(i)}
	}
	return sources, nil
}

// A mapReader reads the maps of one call and keeps the archive or stack open.
type mapReader struct {
	archive *npy.Archive
	stack   *npy.Stack
}

// read returns the array that a source names.
func (r *mapReader) read(s stages.Source) (npy.Array, error) {
	switch {
	case s.Note == "":
		b, err := stages.ReadFile(s.File, maxMap)
		if err != nil {
			return npy.Array{}, err
		}
		a, err := npy.Decode(b)
		if err != nil {
			return a, fmt.Errorf("%s: %w", s.File, err)
		}
		return a, nil
	case strings.EqualFold(filepath.Ext(s.File), ".npz"):
		return r.fromArchive(s)
	}
	if r.stack == nil {
		stack, err := npy.OpenStack(s.File)
		if err != nil {
			return npy.Array{}, err
		}
		r.stack = stack
	}
	i, err := strconv.Atoi(s.Note)
	if err != nil {
		return npy.Array{}, err
	}
	a, err := r.stack.Row(i)
	if err != nil {
		return a, fmt.Errorf("%s: %w", s.File, err)
	}
	return a, nil
}

func (r *mapReader) fromArchive(s stages.Source) (a npy.Array, err error) {
	if r.archive == nil {
		if r.archive, err = npy.OpenArchive(s.File); err != nil {
			return a, err
		}
	}
	if a, err = r.archive.Read(s.Note); err != nil {
		return a, fmt.Errorf("%s: %w", s.File, err)
	}
	return a, nil
}

func (r *mapReader) close() {
	if r.archive != nil {
		r.archive.Close()
	}
	if r.stack != nil {
		r.stack.Close()
	}
}
