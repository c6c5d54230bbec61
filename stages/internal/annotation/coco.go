package annotation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/runexp/runexp/stages"
)

// A COCO is an open file of annotations in COCO's format. Only the positions of the annotations are in
// memory.
type COCO struct {
	file       *os.File
	images     map[string]int // by file name: index into list
	list       []cocoImage
	Categories map[int64]string // names by id
}

// A cocoImage is an image of the file with the places of its annotations, in the order of the file.
type cocoImage struct {
	w, h  int
	spans []span
}

// A span is the position of an annotation in the file, and its category.
type span struct {
	category   int64
	start, end int64
}

const (
	maxFile       = 1 << 30 // bytes of a file of annotations; COCO's largest has 470 MB
	maxAnnotation = 1 << 26 // bytes of an annotation
	maxElements   = 1 << 24 // elements of a list: images or annotations
	maxCategories = 1 << 16
)

// OpenCOCO opens a file of annotations and lists its images, annotations and categories. Errors name the
// element of the list, and the annotation's id.
func OpenCOCO(file string) (c *COCO, err error) {
	f, err := stages.OpenFile(file)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
			err = fmt.Errorf("%s: %w", file, err)
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%d bytes exceed the limit of %d", info.Size(), int64(maxFile))
	}
	c = &COCO{file: f, images: map[string]int{}, Categories: map[int64]string{}}
	return c, c.index(info.Size())
}

// Close closes the file.
func (c *COCO) Close() error { return c.file.Close() }

// index reads the file once, element by element.
func (c *COCO) index(size int64) error {
	d := json.NewDecoder(io.NewSectionReader(c.file, 0, size))
	if err := expect(d, '{'); err != nil {
		return err
	}
	at := map[int64]int{} // by image id
	var spans []span
	var images []int64
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return placed(d, err)
		}
		switch name {
		case "images":
			err = each(d, "images", func(raw []byte, _, _ int64) error { return c.addImage(raw, at) })
		case "annotations":
			err = each(d, "annotations", func(raw []byte, start, end int64) error {
				var a struct {
					ID       json.Number `json:"id"`
					Image    *int64      `json:"image_id"`
					Category int64       `json:"category_id"`
				}
				if err := json.Unmarshal(raw, &a); err != nil {
					return err
				}
				if a.Image == nil {
					return fmt.Errorf("annotation %s has no image_id", a.ID)
				}
				spans, images = append(spans, span{a.Category, start, end}), append(images, *a.Image)
				return nil
			})
		case "categories":
			err = each(d, "categories", func(raw []byte, _, _ int64) error {
				var k struct {
					ID   int64  `json:"id"`
					Name string `json:"name"`
				}
				err := json.Unmarshal(raw, &k)
				if c.Categories[k.ID] = k.Name; len(c.Categories) > maxCategories {
					return fmt.Errorf("more than %d categories", maxCategories)
				}
				return err
			})
		default:
			err = skip(d)
		}
		if err != nil {
			return err
		}
	}
	if err := expect(d, '}'); err != nil {
		return err
	}
	for i, id := range images {
		k, ok := at[id]
		if !ok {
			return fmt.Errorf("annotations[%d] is about the image %d, which isn't listed", i, id)
		}
		c.list[k].spans = append(c.list[k].spans, spans[i])
	}
	if len(c.list) == 0 {
		return errors.New("no images: COCO's format has the lists images, annotations and categories")
	}
	return nil
}

func (c *COCO) addImage(raw []byte, at map[int64]int) error {
	var m struct {
		ID   *int64 `json:"id"`
		File string `json:"file_name"`
		W    int    `json:"width"`
		H    int    `json:"height"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	switch {
	case m.ID == nil || m.File == "":
		return errors.New("an image without id or file_name")
	case m.W < 1 || m.H < 1 || m.W > MaxPixels/m.H:
		return fmt.Errorf("image %d has %d×%d pixels", *m.ID, m.W, m.H)
	}
	if _, ok := at[*m.ID]; ok {
		return fmt.Errorf("two images have the id %d", *m.ID)
	}
	if _, ok := c.images[m.File]; ok {
		return fmt.Errorf("two images are called %q", m.File)
	}
	at[*m.ID], c.images[m.File] = len(c.list), len(c.list)
	c.list = append(c.list, cocoImage{w: m.W, h: m.H})
	return nil
}

// An Image is an image of a file of annotations.
type Image struct {
	W, H  int // before its EXIF orientation or after it, as in the file
	coco  *COCO
	spans []span
}

// Image finds an image by its path in the data set or, failing that, by its file name.
func (c *COCO) Image(id string) (*Image, bool) {
	k, ok := c.images[id]
	if !ok {
		k, ok = c.images[path.Base(id)]
	}
	if !ok {
		return nil, false
	}
	return &Image{c.list[k].w, c.list[k].h, c, c.list[k].spans}, true
}

// Of returns the image with the annotations of some categories only.
func (m *Image) Of(is func(category string) bool) *Image {
	out := *m
	out.spans = nil
	for _, s := range m.spans {
		if is(m.coco.Categories[s.category]) {
			out.spans = append(out.spans, s)
		}
	}
	return &out
}

// raw returns the bytes of annotations, one after another.
func (m *Image) raw() (list [][]byte, err error) {
	for _, s := range m.spans {
		b := make([]byte, s.end-s.start)
		if _, err := m.coco.file.ReadAt(b, s.start); err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, nil
}

// Digest digests the image's size and its annotations.
func (m *Image) Digest() (stages.Digest, error) {
	list, err := m.raw()
	text := fmt.Appendf(nil, "%d×%d", m.W, m.H)
	for _, b := range list {
		d := stages.Sum(b)
		text = append(text, d[:]...)
	}
	return stages.Sum(text), err
}

// An annotation is an element of COCO's list.
type cocoAnnotation struct {
	ID           json.Number     `json:"id"`
	Segmentation json.RawMessage `json:"segmentation"`
	Box          []float64       `json:"bbox"`
}

// annotations decodes the image's annotations one by one. An error names the annotation.
func (m *Image) annotations(use func(a *cocoAnnotation) error) error {
	list, err := m.raw()
	if err != nil {
		return err
	}
	for _, b := range list {
		var a cocoAnnotation
		if err := json.Unmarshal(b, &a); err != nil {
			return err
		}
		if err := use(&a); err != nil {
			return fmt.Errorf("annotation %s: %w", a.ID, err)
		}
	}
	return nil
}

// Mask returns the union of the image's regions, crowds included.
func (m *Image) Mask() (*Mask, error) {
	mask, err := NewMask(m.W, m.H)
	if err != nil {
		return nil, err
	}
	return mask, m.annotations(func(a *cocoAnnotation) error {
		if len(a.Segmentation) == 0 || string(a.Segmentation) == "null" {
			return errors.New("no segmentation")
		}
		return mask.AddRegion(a.Segmentation)
	})
}

// Boxes returns the boxes of the image's annotations, crowds included.
func (m *Image) Boxes() (list []Box, err error) {
	return list, m.annotations(func(a *cocoAnnotation) error {
		b, err := boxOf(a.Box)
		list = append(list, b)
		return err
	})
}

// boxOf converts COCO's left, top, width and height.
func boxOf(v []float64) (Box, error) {
	if len(v) != 4 {
		return Box{}, fmt.Errorf("a box of %d numbers: left, top, width and height are needed", len(v))
	}
	return Box{v[0], v[1], v[0] + v[2], v[1] + v[3]}.checked()
}

// AddRegion adds the region that a segmentation in JSON describes: a list of polygons, or run lengths,
// compressed or not.
func (m *Mask) AddRegion(segmentation []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(segmentation), []byte("{")) {
		return m.addRuns(segmentation)
	}
	var polygons [][]float64
	if err := json.Unmarshal(segmentation, &polygons); err != nil {
		return fmt.Errorf("segmentation: %w", err)
	}
	for i, corners := range polygons {
		runs, err := polygonRuns(corners, m.W, m.H)
		if err == nil {
			err = m.add(runs)
		}
		if err != nil {
			return fmt.Errorf("polygon %d: %w", i, err)
		}
	}
	return nil
}

// addRuns adds a region in run lengths.
func (m *Mask) addRuns(segmentation []byte) error {
	var s struct {
		Size   []int           `json:"size"` // height and width
		Counts json.RawMessage `json:"counts"`
	}
	if err := json.Unmarshal(segmentation, &s); err != nil {
		return fmt.Errorf("segmentation: %w", err)
	}
	if len(s.Size) != 2 || s.Size[0] != m.H || s.Size[1] != m.W {
		return fmt.Errorf("run lengths of the size %v in an image of %d×%d pixels", s.Size, m.W, m.H)
	}
	var runs []uint32
	var text string
	err := json.Unmarshal(s.Counts, &runs)
	if err != nil && json.Unmarshal(s.Counts, &text) == nil {
		runs, err = Decompress(text)
	}
	if err != nil {
		return fmt.Errorf("counts: %w", err)
	}
	return m.add(runs)
}

// expect reads a delimiter.
func expect(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if err != nil {
		return placed(d, err)
	}
	if t != want {
		return fmt.Errorf("byte %d: %v where %v should be", d.InputOffset(), t, want)
	}
	return nil
}

// each reads a list and calls use with the bytes of every element and their position.
func each(d *json.Decoder, name string, use func(raw []byte, start, end int64) error) error {
	if err := expect(d, '['); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var raw json.RawMessage
	for i := 0; d.More(); i++ {
		if i == maxElements {
			return fmt.Errorf("%s has more than %d elements", name, maxElements)
		}
		raw = raw[:0]
		if err := d.Decode(&raw); err != nil {
			return fmt.Errorf("%s[%d]: %w", name, i, placed(d, err))
		}
		end := d.InputOffset()
		if len(raw) > maxAnnotation {
			return fmt.Errorf("%s[%d]: %d bytes exceed the limit of %d", name, i, len(raw), maxAnnotation)
		}
		if err := use(raw, end-int64(len(raw)), end); err != nil {
			return fmt.Errorf("%s[%d]: %w", name, i, err)
		}
	}
	return expect(d, ']')
}

// skip reads an unneeded value, token by token.
func skip(d *json.Decoder) error {
	for depth := 0; ; {
		t, err := d.Token()
		if err != nil {
			return placed(d, err)
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// placed adds the position where reading ended, and names an unexpected end.
func placed(d *json.Decoder, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file ends within its JSON")
	}
	return fmt.Errorf("byte %d: %w", d.InputOffset(), err)
}
