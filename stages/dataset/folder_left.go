package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/picture"
)

// A tally counts files that aren't read, by their kind: the name of a format, or an extension with its dot.
type tally map[string]group

// A group is the files of a kind.
type group struct {
	n       int
	picture bool
	first   string // the id of one of them
}

func (t tally) add(kind string, g group) {
	old, ok := t[kind]
	if ok {
		g.first = old.first
	}
	t[kind] = group{old.n + g.n, g.picture, g.first}
}

// with returns t with the files of another tally.
func (t tally) with(other tally) tally {
	if t == nil {
		return other
	}
	for kind, g := range other {
		t.add(kind, g)
	}
	return t
}

// of returns the pictures of a tally, or its other files.
func (t tally) of(pictures bool) tally {
	out := tally{}
	for kind, g := range t {
		if g.picture == pictures {
			out[kind] = g
		}
	}
	return out
}

// total returns the number of files.
func (t tally) total() (n int) {
	for _, g := range t {
		n += g.n
	}
	return n
}

// Files with these extensions needn't be opened, since folders may have a million of them. All other files
// are recognised by their content.
var (
	imageExtensions = words("jpg jpeg jpe jfif jfi jif pjpeg pjp png apng webp bmp dib tif tiff")
	otherExtensions = words("txt csv tsv xml json jsonl yaml yml toml ini cfg md rst html htm py ipynb sh " +
		"m log tex bib pdf doc docx xls xlsx npy npz mat pkl pt pth onnx h5 hdf5 parquet db zip tar gz tgz " +
		"bz2 xz 7z rar mp4 avi mov mkv webm wav mp3")
	// Pictures whose content may not show their format.
	pictureExtensions = words("gif heic heif avif svg jxl jp2 j2k jpx dcm dicom psd exr hdr ico cur ppm " +
		"pgm pbm pnm fits fit nii npy tga pcx sgi xcf raw dng nef nrw cr2 cr3 arw sr2 srf orf rw2 raf pef " +
		"srw 3fr iiq erf kdc dcr")
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set["."+w] = true
	}
	return set
}

// kindOf returns the kind of a file, whether it is a picture, and whether that is read.
func kindOf(n node) (kind string, isPicture, read bool) {
	ext := strings.ToLower(path.Ext(n.name))
	switch {
	case imageExtensions[ext]:
		return ext, true, true
	case otherExtensions[ext]:
		return ext, pictureExtensions[ext], false
	}
	f, err := stages.OpenFile(n.file)
	switch {
	case errors.Is(err, stages.ErrPointer):
		return "pointer of Git LFS or git-annex", false, false
	case err == nil:
		defer f.Close()
		b := make([]byte, picture.KindBytes)
		k, _ := io.ReadFull(f, b)
		if kind, isPicture, read = picture.Kind(n.name, b[:k]); kind != "" {
			return kind, isPicture, read
		}
	}
	if ext == "" {
		return "without an extension", false, false
	}
	return ext, pictureExtensions[ext], false
}

// ofSystem reports whether the operating system puts such a file into folders.
func ofSystem(name string) bool {
	switch strings.ToLower(name) {
	case "thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r", "$recycle.bin", "system volume information",
		"@eadir":
		return true
	}
	return false
}

// String lists how many files of each kind there are: "20 HEIC, 4 .gif".
func (t tally) String() string {
	kinds := slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		return cmp.Or(t[b].n-t[a].n, cmp.Compare(a, b))
	})
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", t[kind].n, kind)
	}
	const most = 8
	if len(kinds) > most {
		kinds = append(kinds[:most], "and others")
	}
	return strings.Join(kinds, ", ")
}

// others describes the files of a folder without an image.
func others(t tally) string {
	if len(t) == 0 {
		return ", nor any other file"
	}
	return ": only " + t.String()
}
