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
)

// walkFolder lists class folders, or, if the folder itself contains images, unlabelled images.
func walkFolder(p FolderParams, names []string) (*listing, error) {
	w, folder := walker{skip: p.annotates}, p.Path
	top, err := w.entries(folder)
	if err != nil {
		return nil, err
	}
	var found []found
	var classes []string
	loose := 0
	for _, e := range top {
		if !e.dir {
			if isImage(e.name) {
				loose++
				found = append(found, e.at(-1))
			} else {
				w.others++
			}
			continue
		}
		label := len(classes)
		if names != nil {
			if label = classNamed(names, e.name); label < 0 {
				return nil, fmt.Errorf("names has no class for the folder %q", e.file)
			}
		}
		before := len(found)
		if found, err = w.below(found, e, label); err != nil {
			return nil, err
		}
		if len(found) == before && names == nil {
			return nil, fmt.Errorf("the class folder %q contains no JPEG, PNG, WebP or BMP file", e.file)
		}
		classes = append(classes, e.name)
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("the folder %q contains no JPEG, PNG, WebP or BMP file (other files: %d)",
			folder, w.others)
	case loose > 0 && loose < len(found):
		return nil, fmt.Errorf("%q contains %d images next to class folders: move them into one, or list "+
			"them in a CSV file", folder, loose)
	case names != nil:
		classes = names
	case loose > 0:
		classes = nil
	}
	l := &listing{classes: classes}
	for _, f := range found {
		l.sources = append(l.sources, stages.Source{ID: f.id, File: f.file, Note: noteOf(f.label)})
	}
	return l, nil
}

type found struct {
	id, file string
	label    int
}

// annotates reports whether a file is a mask that lies next to its image, or the folder of masks or boxes.
func (p FolderParams) annotates(file string) bool {
	return p.Masks != "" && p.MaskSuffix != filepath.Ext(p.MaskSuffix) && strings.HasSuffix(file,
		p.MaskSuffix) || p.Masks != "" && file == filepath.Clean(p.Masks) ||
		p.Boxes != "" && file == filepath.Clean(p.Boxes)
}

// A walker lists folders recursively, following links.
type walker struct {
	skip   func(file string) bool
	others int      // number of files that aren't images
	listed int      // number of all files and folders, those that several links lead to once for each
	inside []string // the real paths of the enclosing folders, to detect loops
}

// maxListed bounds what is listed: links make a few folders any number of paths. ImageNet has 1.3 million files.
const maxListed = 1 << 24

// A node is a file or folder; id is its path relative to the top, with slashes.
type node struct {
	name, id, file string
	dir            bool
}

func (n node) at(label int) found { return found{n.id, n.file, label} }

// entries returns the sorted entries of a folder, without hidden ones.
func (w *walker) entries(folder string) ([]node, error) {
	list, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("folder %q: %w", folder, plain(err))
	}
	if w.listed += len(list); w.listed > maxListed {
		return nil, fmt.Errorf("more than %d files and folders, counting what several links lead to once for "+
			"each", maxListed)
	}
	var out []node
	for _, e := range list {
		n := node{name: e.Name(), id: e.Name(), file: filepath.Join(folder, e.Name()), dir: e.IsDir()}
		if archive.Hidden(n.name) || w.skip(n.file) {
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

// below appends the images in the folder n and its subfolders.
func (w *walker) below(to []found, n node, label int) ([]found, error) {
	real, err := filepath.EvalSymlinks(n.file)
	if err != nil {
		return nil, fmt.Errorf("folder %q: %w", n.file, plain(err))
	}
	if slices.Contains(w.inside, real) {
		return nil, fmt.Errorf("the link %q points to a folder that contains it", n.file)
	}
	w.inside = append(w.inside, real)
	defer func() { w.inside = w.inside[:len(w.inside)-1] }()
	list, err := w.entries(n.file)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		e.id = n.id + "/" + e.name
		switch {
		case e.dir:
			if to, err = w.below(to, e, label); err != nil {
				return nil, err
			}
		case isImage(e.name):
			to = append(to, e.at(label))
		default:
			w.others++
		}
	}
	return to, nil
}

func isImage(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".jpg", ".jpeg", ".jpe", ".png", ".webp", ".bmp":
		return true
	}
	return false
}

// plain strips the operation and the path from a file system error: messages here name the file already.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
