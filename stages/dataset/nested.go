package dataset

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

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
