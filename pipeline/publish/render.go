package publish

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// A renderer writes one kind of file of a review folder. It reads nothing but the model.
type renderer struct {
	name   string
	files  []pattern // the files that it writes
	render func(f *Folder, add func(name string, b []byte))

	// read adds the content of a file of the renderer to d, and reports whether the file proves that runexp
	// wrote it. It is nil if no file of the renderer is read.
	read func(d *disk, name string, b []byte) bool
}

// A pattern names files as [path.Match] does, with git's attributes for them.
type pattern struct{ glob, attributes string }

// renderers lists all renderers by name: another one is a file render_<name>.go and a line here.
var renderers = []renderer{
	cellsRenderer,
	experimentRenderer,
	figuresRenderer,
	folderRenderer,
	itemsRenderer,
	latexRenderer,
	readmeRenderer,
	tablesRenderer,
}

// render returns the files of a folder.
func render(f *Folder) map[string][]byte {
	files := map[string][]byte{attributesFile: gitattributes()}
	for _, r := range renderers {
		r.render(f, func(name string, b []byte) { files[name] = b })
	}
	return files
}

// rendererOf returns the renderer that writes the file of a name, nil for none.
func rendererOf(name string) *renderer {
	i := slices.IndexFunc(renderers, func(r renderer) bool {
		return slices.ContainsFunc(r.files, func(p pattern) bool {
			ok, _ := path.Match(p.glob, name)
			return ok
		})
	})
	if i < 0 {
		return nil
	}
	return &renderers[i]
}

const (
	attributesFile = ".gitattributes"

	// folderMark begins .gitattributes, which is the first file of a new folder to be written.
	folderMark = "# A merge keeps the lines of both branches"

	// unionAttributes have git keep the lines of both branches. Hosts collapse files that are marked as
	// generated, so README.md and experiment.yaml, which people review, aren't.
	unionAttributes = "merge=union linguist-generated"
)

// gitattributes returns the attributes of all files. Files that git merges line by line come first.
func gitattributes() []byte {
	var patterns []pattern
	for _, r := range renderers {
		patterns = append(patterns, r.files...)
	}
	slices.SortStableFunc(patterns, func(a, b pattern) int {
		return strings.Compare(b.attributes, a.attributes)
	})
	var b bytes.Buffer
	b.WriteString(folderMark + ", and the next run those that are right.\n")
	for _, p := range patterns {
		if p.attributes != "" {
			fmt.Fprintf(&b, "%s %s\n", p.glob, p.attributes)
		}
	}
	return b.Bytes()
}

// subFolders lists the review folder itself and the folders in it.
func subFolders() []string {
	dirs := []string{"."}
	for _, r := range renderers {
		for _, p := range r.files {
			dirs = append(dirs, path.Dir(p.glob))
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// A disk is the content of a review folder on disk, by file. A cell may have several lines, since git keeps
// the lines of both branches.
type disk struct {
	ours     map[string]bool // files that runexp wrote for certain
	lines    map[string][]*Line
	items    map[string][]*ItemLine // by output
	tables   map[string][]*TableRow
	pictures map[string][]*Picture
	about    *about
}

// readFiles reads the files of a review folder.
func readFiles(files map[string][]byte) *disk {
	d := &disk{
		map[string]bool{}, map[string][]*Line{}, map[string][]*ItemLine{}, map[string][]*TableRow{},
		map[string][]*Picture{}, nil,
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		b := files[name]
		if name == attributesFile {
			d.ours[name] = bytes.Contains(b, []byte(folderMark))
		} else if r := rendererOf(name); r != nil && r.read != nil && r.read(d, name, b) {
			d.ours[name] = true
		}
	}
	if d.about == nil {
		d.about = legacyAbout(files["README.md"])
	}
	return d
}
