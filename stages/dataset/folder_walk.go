package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/archive"
	"github.com/runexp/runexp/stages/internal/picture"
)

// walkFolder lists class folders, or, if the folder itself contains images, unlabelled images.
func walkFolder(p FolderParams, names []string) (*listing, error) {
	w, folder := walker{skip: p.annotates}, p.Path
	found, classes, err := w.top(folder, names)
	if err != nil {
		return nil, err
	}
	loose := 0
	for _, f := range found {
		if f.label < 0 {
			loose++
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("the folder %q contains no %s file%s", folder, picture.Formats, others(w.left))
	case loose > 0 && loose < len(found):
		return nil, fmt.Errorf("%q contains %d images next to class folders: move them into one, or list "+
			"them in a CSV file", folder, loose)
	case names != nil:
		classes = names
	case loose > 0:
		classes = nil
	default:
		if err := splits(folder, classes, found); err != nil {
			return nil, err
		}
	}
	l := &listing{classes: classes}
	if names == nil && classes != nil {
		var numbers []int
		l.named = classes
		if numbers, l.classes, err = p.numbered(classes); err != nil {
			return nil, err
		}
		for i := range found {
			found[i].label = numbers[found[i].label]
		}
	}
	for _, f := range found {
		l.sources = append(l.sources, stages.Source{ID: f.id, File: f.file, Note: noteOf(f.label)})
	}
	return l, nil
}

type found struct {
	id, file string
	label    int // −1 for an image outside class folders
}

// annotates reports whether a file is a mask next to its image, the folder of masks or boxes, or a file
// that another parameter names.
func (p FolderParams) annotates(file string) bool {
	for _, known := range []string{p.Masks, p.Boxes, p.List, p.Names, p.IDs} {
		if known != "" && file == filepath.Clean(known) {
			return true
		}
	}
	return p.Masks != "" && p.MaskSuffix != filepath.Ext(p.MaskSuffix) && strings.HasSuffix(file,
		p.MaskSuffix)
}

// A walker lists folders recursively, following links.
type walker struct {
	skip   func(file string) bool
	left   tally    // of files that aren't images
	listed int      // number of all files and folders; each path through links counts
	inside []string // the real paths of the enclosing folders, to detect loops
}

// maxListed bounds the number of listed files: links give a few folders any number of paths. ImageNet has
// 1.3 million files.
const maxListed = 1 << 24

// A node is a file or folder; id is its path relative to the top, with slashes.
type node struct {
	name, id, file string
	dir            bool
}

func (n node) at(label int) found { return found{n.id, n.file, label} }

// image reports whether a file is an image that can be read, and counts one that can't.
func (w *walker) image(n node) bool {
	kind, picture, read := kindOf(n)
	if !read {
		if w.left == nil {
			w.left = tally{}
		}
		w.left.add(kind, group{1, picture, n.id})
	}
	return read
}

// entries returns the sorted entries of a folder, without hidden ones.
func (w *walker) entries(folder string) ([]node, error) {
	list, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("folder %q: %w", folder, plain(err))
	}
	if w.listed += len(list); w.listed > maxListed {
		return nil, fmt.Errorf("more than %d files and folders, each counted once for every path to it",
			maxListed)
	}
	var out []node
	for _, e := range list {
		n := node{name: e.Name(), id: e.Name(), file: filepath.Join(folder, e.Name()), dir: e.IsDir()}
		if archive.Hidden(n.name) || ofSystem(n.name) || w.skip(n.file) {
			continue
		}
		if e.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(n.file)
			if err != nil {
				return nil, fmt.Errorf("the link %q: %w", n.file, plain(err))
			}
			n.dir = info.IsDir()
		}
		out = append(out, n)
	}
	return out, nil
}

// top lists a folder of images, class folders or both. The names of classes are those of the folders, or
// given.
func (w *walker) top(folder string, names []string) (images []found, classes []string, err error) {
	entries, err := w.entries(folder)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !e.dir {
			if w.image(e) {
				images = append(images, e.at(-1))
			}
			continue
		}
		label := len(classes)
		if names != nil {
			if label = classNamed(names, e.name); label < 0 {
				return nil, nil, fmt.Errorf("names has no class for the folder %q", e.file)
			}
		}
		before, elsewhere := len(images), w.left
		w.left = nil
		if images, err = w.below(images, e, label); err != nil {
			return nil, nil, err
		}
		if len(images) == before && names == nil {
			return nil, nil, fmt.Errorf("the class folder %q contains no %s file%s", e.file, picture.Formats,
				others(w.left))
		}
		w.left = elsewhere.with(w.left)
		classes = append(classes, e.name)
	}
	return images, classes, nil
}

// below appends the images in the folder n and its subfolders.
func (w *walker) below(to []found, n node, label int) ([]found, error) {
	err := w.each(n, func(file node) {
		if w.image(file) {
			to = append(to, file.at(label))
		}
	})
	return to, err
}

// each calls use with all files in the folder n and its subfolders.
func (w *walker) each(n node, use func(file node)) error {
	real, err := filepath.EvalSymlinks(n.file)
	if err != nil {
		return fmt.Errorf("folder %q: %w", n.file, plain(err))
	}
	if slices.Contains(w.inside, real) {
		return fmt.Errorf("the link %q points to a folder that contains it", n.file)
	}
	w.inside = append(w.inside, real)
	defer func() { w.inside = w.inside[:len(w.inside)-1] }()
	list, err := w.entries(n.file)
	if err != nil {
		return err
	}
	for _, e := range list {
		if n.id != "" {
			e.id = n.id + "/" + e.name
		}
		if !e.dir {
			use(e)
		} else if err := w.each(e, use); err != nil {
			return err
		}
	}
	return nil
}

// plain strips the operation and the path from a file system error: messages here name the file already.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// unpacked calls read with archives unpacked: the paths of files and folders are then paths in the cache,
// and errors name the paths that the user knows.
func unpacked(paths []*string, read func() error) error {
	known := make([]string, len(paths))
	for i, path := range paths {
		var err error
		if known[i] = *path; *path == "" {
			continue
		}
		if *path, err = archive.Path(*path); err != nil {
			return err
		}
	}
	err := read()
	for i, path := range paths {
		err = archive.Shown(err, known[i], *path)
	}
	return err
}
