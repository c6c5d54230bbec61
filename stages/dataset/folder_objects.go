package dataset

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/annotation"
	"github.com/runexp/runexp/stages/internal/classname"
	"github.com/runexp/runexp/stages/internal/picture"
)

// The parts of a note after the label. Images in COCO's annotations share a file, so the digest of an
// image's annotations is noted; a PNG or XML file is one of the source's files.
const (
	notePNG   = "; mask"
	noteMask  = "; mask="
	noteXML   = "; boxes"
	noteBoxes = "; boxes="
	noteClass = "; of=" // the last part: the name of the class whose objects count
	withMask  = 0       // index into [stages.Source.With]
	withBoxes = 1
	extXML    = ".xml"
	extCOCO   = ".json"
)

func isCOCO(file string) bool { return strings.EqualFold(filepath.Ext(file), extCOCO) }

// annotate adds to sources the places of their masks and boxes.
func annotate(p FolderParams, sources []stages.Source, classes []string) error {
	if p.Masks == "" && p.Boxes == "" {
		return nil
	}
	if p.Objects == "class" && classes == nil {
		return errors.New("objects: class needs the names of classes: give names, or a list with them")
	}
	files := map[string]*annotation.COCO{}
	defer func() {
		for _, c := range files {
			c.Close()
		}
	}()
	for _, file := range []string{p.Masks, p.Boxes} {
		if isCOCO(file) && files[file] == nil {
			c, err := annotation.OpenCOCO(file)
			if err != nil {
				return err
			}
			files[file] = c
		}
	}
	for i := range sources {
		s := &sources[i]
		class, err := p.countedClass(s, classes)
		if err != nil {
			return err
		}
		for _, r := range []regionFiles{
			{p.Masks, p.MaskSuffix, noteMask, notePNG, "mask", withMask},
			{p.Boxes, extXML, noteBoxes, noteXML, "file of boxes", withBoxes},
		} {
			if r.from == "" {
				continue
			}
			if c := files[r.from]; c != nil {
				err = r.noteImage(s, c, class)
			} else {
				err = r.noteFile(s)
			}
			if err != nil {
				return err
			}
		}
		if class != "" {
			s.Note += noteClass + class
		}
	}
	return nil
}

// countedClass returns the name of the class whose objects count for a source, "" if all count.
func (p FolderParams) countedClass(s *stages.Source, classes []string) (string, error) {
	label, err := noteLabel(*s)
	if err != nil || p.Objects != "class" {
		return "", err
	}
	if label < 0 || label >= int64(len(classes)) {
		return "", fmt.Errorf("%q has no class whose objects could count", s.ID)
	}
	return classes[label], nil
}

// regionFiles are the masks or the boxes of images: a file of COCO's annotations, or a folder with a file
// for each image.
type regionFiles struct {
	from, suffix string // the suffix of a file in a folder
	digest, file string // the parts of notes
	what         string
	at           int // index into [stages.Source.With]
}

// noteImage notes the digest of a source's objects in COCO's annotations.
func (r regionFiles) noteImage(s *stages.Source, c *annotation.COCO, class string) error {
	m, err := imageIn(c, r.from, imageOf(*s), class)
	if err != nil {
		return err
	}
	d, err := m.Digest()
	if err != nil {
		return fmt.Errorf("%s: %w", r.from, err)
	}
	s.Note += r.digest + d.String()
	return nil
}

// noteFile notes the file of a source in a folder.
func (r regionFiles) noteFile(s *stages.Source) error {
	file := filepath.Join(r.from, filepath.FromSlash(withoutExt(imageOf(*s))+r.suffix))
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("%q has no %s, and every image needs one: %q: %w", s.ID, r.what, file, plain(err))
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("the %s of %q, %q, isn't a regular file", r.what, s.ID, file)
	}
	s.With[r.at], s.Note = file, s.Note+r.file
	return nil
}

func withoutExt(id string) string { return strings.TrimSuffix(id, path.Ext(id)) }

// imageIn finds an image in a file of COCO's annotations, with the objects of a class, or with all if it is
// "".
func imageIn(c *annotation.COCO, file, id, class string) (*annotation.Image, error) {
	m, ok := c.Image(id)
	if !ok {
		return nil, fmt.Errorf("%s lists no image %q", file, id)
	}
	if class == "" {
		return m, nil
	}
	return m.Of(func(category string) bool { return classname.Is(class, category) }), nil
}

// annotations are the open files of COCO's annotations, by path.
type annotations struct {
	params FolderParams
	coco   map[string]*annotation.COCO
}

// openAnnotations opens the annotations for a call. The slot keeps the files open.
func openAnnotations(slot stages.Slot, p FolderParams) (*annotations, error) {
	a := &annotations{p, map[string]*annotation.COCO{}}
	for _, file := range []string{p.Masks, p.Boxes} {
		if !isCOCO(file) {
			continue
		}
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		key := fmt.Sprintf("annotations %q %d %v", file, info.Size(), info.ModTime())
		c, err := slot.Share(key, info.Size()/16, func() (io.Closer,
			error) {
			return annotation.OpenCOCO(file)
		})
		if err != nil {
			return nil, err
		}
		a.coco[file] = c.(*annotation.COCO)
	}
	return a, nil
}

// regions returns the objects of a source, as its note says.
func (a *annotations) regions(s stages.Source) (list []region, err error) {
	_, rest, _ := strings.Cut(s.Note, ";")
	rest, class, _ := strings.Cut(";"+rest, noteClass)
	if file := s.With[withMask]; file != "" {
		m, err := readMask(a.params.maskRule(), file)
		if err != nil {
			return nil, err
		}
		list = append(list, region{w: m.W, h: m.H, mask: m})
	}
	if file := s.With[withBoxes]; file != "" {
		v, err := annotation.ReadVOC(file)
		if err != nil {
			return nil, err
		}
		r := region{w: v.W, h: v.H, boxed: true}
		for _, o := range v.Objects {
			if class == "" || classname.Is(class, o.Class) {
				r.boxes = append(r.boxes, o.Box)
			}
		}
		list = append(list, r)
	}
	for _, part := range strings.SplitAfter(rest, "; ") {
		part = "; " + strings.TrimSuffix(part, "; ")
		digest, masked := strings.CutPrefix(part, noteMask)
		file := a.params.Masks
		if !masked {
			if digest, masked = strings.CutPrefix(part, noteBoxes); !masked {
				continue
			}
			file, masked = a.params.Boxes, false
		}
		r, err := cocoRegion(a.coco[file], file, imageOf(s), class, digest, masked)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// readMask reads a PNG file of a mask.
func readMask(rule maskRule, file string) (*picture.RGB, error) {
	m, err := readIndices(file)
	if err != nil {
		return nil, err
	}
	mask, err := rule.apply(m)
	if err != nil {
		return nil, fmt.Errorf("the mask %q: %w", file, err)
	}
	return mask, nil
}

// readIndices reads a PNG file of masks.
func readIndices(file string) (*picture.Indices, error) {
	b, err := stages.ReadFile(file, maxImage)
	if err != nil {
		return nil, fmt.Errorf("the mask %q: %w", file, plain(err))
	}
	m, err := picture.DecodeIndices(b)
	if err != nil {
		return nil, fmt.Errorf("the mask %q: %w", file, err)
	}
	return m, nil
}

// cocoRegion reads the mask or the boxes of an image, whose annotations must have the given digest.
func cocoRegion(c *annotation.COCO, file, id, class, digest string, masked bool) (r region, err error) {
	m, err := imageIn(c, file, id, class)
	if err != nil {
		return r, err
	}
	if d, err := m.Digest(); err != nil || d.String() != digest {
		return r, fmt.Errorf("%q changed while it was in use", file)
	}
	r = region{w: m.W, h: m.H, boxed: !masked}
	if !masked {
		r.boxes, err = m.Boxes()
	} else if mask, e := m.Mask(); e != nil {
		err = e
	} else {
		rows := mask.Rows()
		r.mask = maskOf(m.W, m.H, func(i int) bool { return rows[i] != 0 })
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}
