package dataset

import (
	"cmp"

	"github.com/runexp/runexp/stages/internal/picture"
)

// Sample returns up to n labelled photographs of a folder and their labels, evenly spaced in its list so that
// they cover many classes. Unreadable files are left out.
func Sample(c Content, height, width, n int) (images [][]byte, labels []int64, err error) {
	p := *Folder.NewParams().(*FolderParams)
	p.Path, p.Masks, p.Boxes = c.Path, c.Masks, c.Boxes
	p.White = cmp.Or(c.White, p.White)
	if height == width {
		p.Resize, p.Crop = height, picture.Size{H: height, W: width}
	} else {
		p.Size = picture.Size{H: height, W: width}
	}
	l, err := listFolder(p)
	if err != nil {
		return nil, nil, err
	}
	var files []int
	for i, s := range l.sources {
		if label, err := noteLabel(s); err == nil && label >= 0 {
			files = append(files, i)
		}
	}
	n = min(n, len(files))
	for k := range n {
		s := l.sources[files[k*len(files)/n]]
		photo, err := readImage(p.framing(), s.File)
		if err != nil {
			continue
		}
		label, err := noteLabel(s)
		if err != nil {
			return nil, nil, err
		}
		images, labels = append(images, photo.image), append(labels, label)
	}
	return images, labels, nil
}
