package dataset

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
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

// A Nested is a data set whose folders contain the folders of classes, as splits do.
type Nested struct {
	// the path of the folder that contains Folders, relative to the data set's; "" for the data set's
	// folder
	Inside  string
	Folders []string // such as train and val
	Classes int      // number of different names of folders in them
	Best    string   // the one to use for an experiment, with Inside
}

func (n *Nested) String() string {
	each := ""
	if len(n.Folders) > 1 {
		each = " each"
	}
	plural := "s"
	if len(n.Folders) == 1 {
		plural = ""
	}
	return fmt.Sprintf("%d folder%s (%s) of %d class folders%s", len(n.Folders), plural,
		strings.Join(n.Folders, ", "), n.Classes, each)
}

// A NestedError means that the folders of a data set are its splits, not classes.
type NestedError struct {
	Folder string
	Nested
}

func (e *NestedError) Error() string {
	at := filepath.ToSlash(filepath.Join(e.Folder, filepath.FromSlash(e.Best)))
	return fmt.Sprintf("%q holds %v, which are parts of a data set: path: %s takes one of them; names "+
		"lists them if they are classes", filepath.Join(e.Folder, filepath.FromSlash(e.Inside)), &e.Nested,
		at)
}

// firstSplits are the splits on which models are best explained, in order of preference.
var firstSplits = []string{"val", "valid", "validation", "valset", "test", "testing", "testset", "eval",
	"dev", "holdout"}

// nested returns how a data set of one folder a class is nested, nil if it isn't: its top folders contain
// no images themselves, and have the names of splits, or contain as many folders as the model has classes.
func nested(ids []string, classes int) *Nested {
	inside := ""
	for {
		below := map[string]map[string]bool{}
		for _, id := range ids {
			rest := strings.TrimPrefix(id, inside)
			top, rest, _ := strings.Cut(rest, "/")
			inner, _, deeper := strings.Cut(rest, "/")
			if !deeper {
				return nil // an image
			}
			if below[top] == nil {
				below[top] = map[string]bool{}
			}
			below[top][inner] = true
		}
		n := &Nested{Inside: inside, Folders: slices.Sorted(maps.Keys(below))}
		all := map[string]bool{}
		parts := true
		for top, inner := range below {
			maps.Copy(all, inner)
			parts = parts && called(splitNames, top)
		}
		n.Classes = len(all)
		best := slices.MinFunc(n.Folders, func(a, b string) int { return splitRank(a) - splitRank(b) })
		n.Best = path.Join(inside, best)
		switch {
		case parts || len(n.Folders) != classes && n.Classes == classes:
			return n
		case len(n.Folders) > 1:
			return nil
		}
		inside = n.Best + "/"
	}
}

func splitRank(name string) int {
	if i := slices.Index(firstSplits, strings.ToLower(name)); i >= 0 {
		return i
	}
	return len(firstSplits)
}

// The usual names of folders that contain splits of a data set, and of folders that contain annotations of
// its images.
var (
	splitNames = words("train training trainset val valid validation valset dev eval test testing testset " +
		"holdout unlabeled unlabelled train_val trainval")
	maskNames = words("mask masks segmentation segmentations seg segs gt groundtruth ground_truth " +
		"annotation annotations label labels trimap trimaps bbox bboxes boxes")
	imageNames = words("image images img imgs photo photos picture pictures jpegimages data")
)

func called(set map[string]bool, folder string) bool { return set["."+strings.ToLower(folder)] }

// splits returns an error for class folders that are splits of a data set, such as train and val, which
// contain the folders of classes.
func splits(folder string, classes []string, found []found) error {
	if !slices.ContainsFunc(classes, func(c string) bool { return !called(splitNames, c) }) {
		var ids []string
		for _, f := range found {
			ids = append(ids, f.id)
		}
		n := nested(ids, 0)
		if n != nil && (len(classes) > 1 || n.Classes > 1) {
			return &NestedError{folder, *n}
		}
		if len(classes) == 1 {
			return nil
		}
		at := filepath.Join(folder, classes[len(classes)-1])
		return fmt.Errorf("the folders %s of %q are parts of a data set and aren't classes: path: %s takes "+
			"one of them; names lists them if they are "+
			"classes", quoted(classes), folder, filepath.ToSlash(at))
	}
	return nil
}

func quoted(names []string) string {
	var list []string
	for _, n := range names {
		list = append(list, fmt.Sprintf("%q", n))
	}
	if n := len(list); n > 1 {
		return strings.Join(list[:n-1], ", ") + " and " + list[n-1]
	}
	return strings.Join(list, "")
}
