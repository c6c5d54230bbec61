package segments

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/itemfile"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/internal/picture"
)

// ExternalParams are the parameters of [External].
type ExternalParams struct {
	Path string `yaml:"path" doc:"a folder of <item id>.npy or <item id>.png; ids may lack the picture's extension" file:"read"`
}

// Validate requires a path.
func (p ExternalParams) Validate() error {
	if p.Path == "" {
		return stages.BadField("path", "path is required: name the folder of the label maps")
	}
	return nil
}

// labelFiles are the files of label maps, and maxLabels is the largest size of one in bytes.
var labelFiles = itemfile.Kind{Noun: "label map", Extensions: []string{".npy", ".png"}}

const maxLabels = 1 << 30

// External reads label maps that another program made.
var External = stages.New(stages.Def[ExternalParams]{
	Name: "segments/external",
	Doc: `label maps made by another program

Pixels of one number are a segment. A label map is an array of integers, [height, width],
in an .npy file, or a PNG file in grey or with a palette, of the image's size.`,
	Version:  1,
	Relation: stages.Each,
	Inputs: []stages.Port{{Name: "images", Type: stages.Images,
		Doc: "the images, of the label maps' size"}},
	Outputs: outputs(),
	Sources: func(p ExternalParams, ids []string) ([]stages.Source, error) {
		if info, err := os.Stat(p.Path); err != nil {
			return nil, stages.BadField("path", "the label maps: %w", err)
		} else if !info.IsDir() {
			return nil, stages.BadField("path", "%s isn't a folder: label maps are found by the items' ids, "+
				"one file each", p.Path)
		}
		return labelFiles.InFolder(p.Path, ids)
	},
	Run: func(ctx context.Context, _ ExternalParams, e *stages.Env) error {
		return each(ctx, e, func(i int) error {
			t, err := imageOf(e.In("images", i))
			if err != nil {
				return err
			}
			height, width := t.Shape[1], t.Shape[2]
			file := e.Source(i).File
			labels, err := readLabels(file, height, width)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			put(e, i, labels, height, width)
			return nil
		})
	},
})

// readLabels reads the label map of an image of height × width pixels.
func readLabels(file string, height, width int) ([]uint32, error) {
	b, err := stages.ReadFile(file, maxLabels)
	if err != nil {
		return nil, err
	}
	read := arrayLabels
	if strings.EqualFold(filepath.Ext(file), ".png") {
		read = pictureLabels
	}
	labels, h, w, err := read(b)
	if err == nil && (h != height || w != width) {
		err = fmt.Errorf("a label map of %d×%d pixels doesn't fit an image of %d×%d", h, w, height, width)
	}
	return labels, err
}

// arrayLabels reads an .npy file.
func arrayLabels(b []byte) (labels []uint32, height, width int, err error) {
	a, err := npy.Decode(b)
	if err != nil {
		return nil, 0, 0, err
	}
	t, err := a.Tensor()
	if err != nil {
		return nil, 0, 0, err
	}
	if t.DType == stages.F32 || t.DType == stages.F64 {
		return nil, 0, 0, fmt.Errorf("labels of type %s: a label map has integers, as astype(int) makes them",
			t.DType)
	}
	shape := t.Shape
	for len(shape) > 2 && shape[0] == 1 {
		shape = shape[1:]
	}
	if len(shape) != 2 {
		return nil, 0, 0, fmt.Errorf("a label map has shape [height, width], not %v", t.Shape)
	}
	labels = make([]uint32, t.Len())
	for i, v := range a.Int64s() {
		if v < 0 || v > math.MaxUint32 {
			return nil, 0, 0, fmt.Errorf("the label %d in row %d, column %d: labels go from 0 to %d", v,
				i/shape[1], i%shape[1], uint32(math.MaxUint32))
		}
		labels[i] = uint32(v)
	}
	return labels, shape[0], shape[1], nil
}

// pictureLabels reads a PNG file.
func pictureLabels(b []byte) (labels []uint32, height, width int, err error) {
	m, err := picture.DecodeIndices(b)
	if err != nil {
		return nil, 0, 0, err
	}
	const colours = 2 // the bit of PNG's colour type that pixels without a palette have colours by
	if !m.Palette && b[25]&colours != 0 {
		return nil, 0, 0, errors.New("a picture in colours: label maps are in grey or have a palette")
	}
	labels = make([]uint32, len(m.Pix))
	for i, v := range m.Pix {
		labels[i] = uint32(v)
	}
	return labels, m.H, m.W, nil
}
