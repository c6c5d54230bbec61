package attribute

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/itemfile"
	"github.com/runexp/runexp/stages/internal/npy"
)

// External maps are in a folder with one .npy file per item, in an .npz archive with one array per item, or
// in one .npy stack in the order of the items.

// maxMap is the largest size of a map's file in bytes.
const maxMap = 1 << 30

// mapFiles are the files of maps.
var mapFiles = itemfile.Kind{Noun: "map", Extensions: []string{".npy"}}

// externalSources finds the map of each item. The Note of a source is the array's name in an archive, or its
// index in a stack.
func externalSources(root string, ids []string) ([]stages.Source, error) {
	info, err := os.Stat(root)
	if err != nil {
		return nil, stages.BadField("path", "the maps: %w", err)
	}
	switch {
	case info.IsDir():
		return mapFiles.InFolder(root, ids)
	case strings.EqualFold(filepath.Ext(root), ".npz"):
		return archiveSources(root, ids)
	}
	return stackSources(root, ids)
}

func archiveSources(root string, ids []string) ([]stages.Source, error) {
	z, err := npy.OpenArchive(root)
	if err != nil {
		return nil, stages.BadField("path", "%w", err)
	}
	defer z.Close()
	arrays := z.Names()
	return mapFiles.Match(root, ids, func(name string) (stages.Source, bool, error) {
		_, held := slices.BinarySearch(arrays, name)
		return stages.Source{File: root, Note: name}, held, nil
	})
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
