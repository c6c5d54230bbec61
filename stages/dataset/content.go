package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Content describes a folder of images.
type Content struct {
	Path     string
	Images   int    // number of files with an image's extension
	Labelled int    // number of images with a class
	Classes  int    // number of their classes
	Masks    string // the folder with a mask for each image, "" without one
	Boxes    string // the folder with a file of boxes for each image, "" without one

	Told  []string // remarks: unused files, and files that are interpreted otherwise than written
	White int      // the value that is probably white in 16-bit pictures, 0 if they use their whole range

	// Absent is set if a list names files that aren't in the folder: they are left out, as by absent: skip.
	Absent bool

	// Incomplete names the image without a mask or boxes, because of which a folder can't be used.
	Incomplete []string
}

// Inspect counts the images that [Folder] would read, without decoding any. It finds masks and boxes in a
// folder masks, boxes or annotations inside the images' folder or next to it.
func Inspect(folder string) (Content, error) {
	p := *Folder.NewParams().(*FolderParams)
	p.Path = folder
	c := Content{Path: folder}
	sources, err := Folder.Sources(&p, nil)
	if errors.As(err, new(absent)) { // the list of a whole data set, copied with some of its images
		p.Absent, c.Absent = "skip", true
		sources, err = Folder.Sources(&p, nil)
	}
	for _, kind := range []struct {
		at          string
		param, uses *string
	}{
		{folderNamed(folder, "masks"), &p.Masks, &c.Masks},
		{folderNamed(folder, "boxes", "annotations"), &p.Boxes, &c.Boxes},
	} {
		if kind.at == "" {
			continue
		}
		*kind.param = kind.at
		some, failed := Folder.Sources(&p, nil)
		if failed == nil {
			sources, err, *kind.uses = some, nil, kind.at
			continue
		}
		*kind.param = ""
		if err != nil {
			return Content{}, failed // the other numbers depend on them
		}
		c.Incomplete = append(c.Incomplete, failed.Error())
	}
	if err != nil {
		return Content{}, err
	}
	c.Images = len(sources)
	p.Order = textOrder // whether another order is right depends on the model
	c.Told = p.remarks()
	err = unpacked(p.files(), func() error {
		l, err := listFolder(p)
		if err == nil {
			c.White, _ = p.white(l.sources)
		}
		return err
	})
	if err != nil {
		return Content{}, err
	}
	classes := map[int64]bool{}
	for _, s := range sources {
		if label, err := noteLabel(s); err == nil && label >= 0 {
			c.Labelled++
			classes[label] = true
		}
	}
	c.Classes = len(classes)
	return c, nil
}

// folderNamed returns the folder with one of the names, in any case, inside the images' folder or next to
// it; "" if there is none.
func folderNamed(folder string, names ...string) string {
	for _, parent := range []string{folder, filepath.Dir(filepath.Clean(folder))} {
		list, _ := os.ReadDir(parent) // a folder that can't be read is reported by Sources
		for _, e := range list {
			at := filepath.Join(parent, e.Name())
			named := slices.Contains(names, strings.ToLower(e.Name()))
			if e.IsDir() && named && at != filepath.Clean(folder) {
				return at
			}
		}
	}
	return ""
}
