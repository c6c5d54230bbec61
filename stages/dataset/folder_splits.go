package dataset

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

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
