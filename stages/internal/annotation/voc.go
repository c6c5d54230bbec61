package annotation

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A VOC holds the annotations of one image of PASCAL VOC or ImageNet.
type VOC struct {
	W, H    int
	Objects []Object // in the order of the file
}

// An Object is one object of an image.
type Object struct {
	Class     string
	Difficult bool
	Box       Box
}

const (
	maxXML     = 1 << 20 // bytes of a file; ImageNet's largest has a few thousand
	maxObjects = 1 << 12
	maxDepth   = 32
)

// ReadVOC reads an annotation in XML. Errors name the file and the line.
func ReadVOC(file string) (*VOC, error) {
	b, err := stages.ReadFile(file, maxXML)
	if err != nil {
		return nil, err
	}
	v, line, err := ParseVOC(b)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", file, line, err)
	}
	return v, nil
}

// ParseVOC parses an annotation in XML; with an error it returns the line. Entities that XML doesn't define
// are errors, so that none can be defined by others.
//
// Edges of VOC's boxes are pixels, counted from 1, that belong to the box: pixels 3 to 5 are between 2 and
// 5.
func ParseVOC(b []byte) (v *VOC, line int, err error) {
	d := xml.NewDecoder(bytes.NewReader(b))
	// Names are ASCII, whatever the declared encoding is.
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	v = &VOC{}
	var path []string
	var text strings.Builder
	var edges [4]string
	line = 1
	for {
		t, err := d.Token()
		line, _ = d.InputPos()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			var syntax *xml.SyntaxError
			if errors.As(err, &syntax) {
				err = errors.New(syntax.Msg)
			}
			return nil, line, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			if path = append(path, t.Name.Local); len(path) > maxDepth {
				return nil, line, fmt.Errorf("more than %d elements in one another", maxDepth)
			}
			text.Reset()
			if strings.Join(path, "/") == "annotation/object" {
				if len(v.Objects) == maxObjects {
					return nil, line, fmt.Errorf("more than %d objects", maxObjects)
				}
				v.Objects, edges = append(v.Objects, Object{}), [4]string{}
			}
		case xml.CharData:
			text.Write(t)
		case xml.EndElement:
			if err := v.end(strings.Join(path, "/"), strings.TrimSpace(text.String()), &edges); err != nil {
				return nil, line, err
			}
			path = path[:len(path)-1]
			text.Reset()
		}
	}
	if v.W < 1 || v.H < 1 || v.W > MaxPixels/v.H {
		return nil, line, fmt.Errorf("an image of %d×%d pixels", v.W, v.H)
	}
	return v, line, nil
}

// end handles the text of an element that ends.
func (v *VOC) end(path, text string, edges *[4]string) (err error) {
	path, ok := strings.CutPrefix(path, "annotation/")
	if !ok {
		return nil
	}
	if inner, ok := strings.CutPrefix(path, "object/"); ok {
		o := &v.Objects[len(v.Objects)-1]
		switch inner {
		case "name":
			o.Class = text
		case "difficult":
			o.Difficult = text == "1"
		case "bndbox/xmin":
			edges[0] = text
		case "bndbox/ymin":
			edges[1] = text
		case "bndbox/xmax":
			edges[2] = text
		case "bndbox/ymax":
			edges[3] = text
		}
		return nil
	}
	switch path {
	case "size/width":
		v.W, err = strconv.Atoi(text)
	case "size/height":
		v.H, err = strconv.Atoi(text)
	case "object":
		o := &v.Objects[len(v.Objects)-1]
		if o.Class == "" {
			return errors.New("an object without a name")
		}
		var e [4]float64
		for k, text := range edges {
			if e[k], err = strconv.ParseFloat(text, 64); err != nil {
				return fmt.Errorf("an edge of a %s's box is %q, not a number", o.Class, text)
			}
		}
		o.Box, err = Box{e[0] - 1, e[1] - 1, e[2], e[3]}.checked()
	}
	return err
}
