package dataset

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/sourcegraph/conc/iter"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/picture"
)

// FolderParams are the parameters of [Folder].
type FolderParams struct {
	Path        string       `yaml:"path" doc:"the folder of the images" file:"read"`
	List        string       `yaml:"list" doc:"a CSV file with the columns file and label; default: labels.csv in the folder, if it exists" file:"read"`
	Names       string       `yaml:"names" doc:"a text file with one class name per line; line i, from 0, names class i" file:"read"`
	Resize      int          `yaml:"resize" doc:"pixels of the shorter side, keeping the aspect ratio; 0: no resizing" min:"0" max:"16384"`
	Size        picture.Size `yaml:"size" doc:"exact size, one number for a square, or height and width as 240x320 or [240, 320]; default: no resizing"`
	Crop        picture.Size `yaml:"crop" doc:"centre crop after resizing, in the format of size; default: no crop"`
	Orientation string       `yaml:"orientation" doc:"exif: rotate by the EXIF orientation, as image viewers do; sensor: ignore it, as Pillow's open does" choices:"exif|sensor"`
	Filter      string       `yaml:"filter" doc:"interpolation; both filters antialias when downsampling" choices:"bilinear|bicubic"`
	Corrupt     string       `yaml:"corrupt" doc:"files that can't be decoded: fail reports an error that names them, skip leaves them out with a warning" choices:"fail|skip"`
}

// Validate rejects a missing path, and resize together with size.
func (p *FolderParams) Validate() error {
	if p.Path == "" {
		return stages.BadField("path", "path is required: the folder of the images")
	}
	if p.Resize > 0 && !p.Size.IsZero() {
		return stages.BadField("resize",
			"resize and size are mutually exclusive: resize keeps the aspect ratio, size sets it")
	}
	return nil
}

// Folder reads photographs into 8-bit RGB images, bit-identical to Pillow with torchvision's Resize and
// CenterCrop, after Pillow's exif_transpose. An item's id is the file's path relative to the folder, with
// slashes. A skipped file has no item on any port; without classes there are no labels.
//
// Facts: height and width on images if size or crop fixes them; classes and labels (newline-separated names)
// on labels if names, class folders or a CSV list with names define them.
var Folder = stages.New(stages.Def[FolderParams]{
	Name: "dataset/folder",
	Doc: `labelled photographs from a folder

Classes are defined by a CSV list with the columns file and label (a number, or a
name; names are numbered in sorted order), or by one folder per class, numbered in
sorted order or, if names is given, by the line that starts with the folder's name.
Images in the folder itself are unlabelled. Reads JPEG, PNG, WebP and BMP, detected
by content; grey images become RGB, the alpha channel is dropped, and the EXIF
orientation is applied before resizing.`,
	Version:  2,
	Relation: stages.Expand,
	Outputs: []stages.Port{
		{Name: "images", Type: stages.Images, Doc: "u8 [3,H,W]"},
		{Name: "labels", Type: stages.Labels, Doc: "the class, from 0"},
	},
	Defaults: FolderParams{Orientation: "exif", Filter: "bilinear", Corrupt: "fail"},
	Sources: func(p FolderParams, _ []string) ([]stages.Source, error) {
		l, err := listFolder(p)
		if err != nil {
			return nil, err
		}
		return l.sources, nil
	},
	Facts: folderFacts,
	Run:   runFolder,
})

func folderFacts(p FolderParams, _ map[string]stages.Facts) (map[string]stages.Facts, error) {
	l, err := listFolder(p)
	if err != nil {
		return nil, err
	}
	images, labels := stages.Facts{}, stages.Facts{}
	size := p.Crop
	if size.IsZero() {
		size = p.Size
	}
	if !size.IsZero() {
		images["height"], images["width"] = strconv.Itoa(size.H), strconv.Itoa(size.W)
	}
	if l.classes != nil {
		labels["classes"], labels["labels"] = strconv.Itoa(len(l.classes)), strings.Join(l.classes, "\n")
	}
	return map[string]stages.Facts{"images": images, "labels": labels}, nil
}

// named is the number of files that an error lists before it counts the rest.
const named = 10

func runFolder(ctx context.Context, p FolderParams, e *stages.Env) error {
	workers := e.Slot.Device().Threads
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	images, problems := make([][]byte, e.Len()), make([]error, e.Len())
	it := iter.Iterator[[]byte]{MaxGoroutines: workers}
	it.ForEachIdx(images, func(i int, image *[]byte) {
		if ctx.Err() == nil {
			*image, problems[i] = readImage(p, e.Source(i).File)
		}
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var bad []string
	for i, err := range problems {
		if err != nil {
			bad = append(bad, fmt.Sprintf("%q: %v", e.Source(i).ID, err))
			continue
		}
		e.Add("images", i, "", images[i])
		label, err := noteLabel(e.Source(i))
		if err != nil {
			return err
		}
		if label >= 0 {
			e.Add("labels", i, "", stages.NewTensor([]int64{label}, 1).Encode())
		}
	}
	if len(bad) > 0 {
		list := strings.Join(bad[:min(len(bad), named)], "; ")
		if len(bad) > named {
			list = fmt.Sprintf("%s; and %d more", list, len(bad)-named)
		}
		if p.Corrupt == "fail" {
			return fmt.Errorf("%d of %d files can't be read (corrupt: skip leaves them out): %s",
				len(bad), e.Len(), list)
		}
		e.Warn("%d of %d files are skipped: %s", len(bad), e.Len(), list)
	}
	e.Done(e.Len())
	return nil
}

// maxImage limits the size of an image file.
const maxImage = 1 << 28

// readImage decodes a file and returns its payload.
func readImage(p FolderParams, file string) ([]byte, error) {
	b, err := stages.ReadFile(file, maxImage)
	if err != nil {
		return nil, plain(err)
	}
	m, err := picture.Decode(b)
	if err != nil {
		return nil, err
	}
	if p.Orientation == "exif" {
		m = m.Oriented(picture.Orientation(b))
	}
	filter := picture.Bilinear()
	if p.Filter == "bicubic" {
		filter = picture.Bicubic()
	}
	if p.Resize > 0 {
		if m, err = m.ResizeShort(p.Resize, filter); err != nil {
			return nil, err
		}
	}
	if !p.Size.IsZero() {
		if m, err = m.Resize(p.Size.W, p.Size.H, filter); err != nil {
			return nil, err
		}
	}
	if !p.Crop.IsZero() {
		if m, err = m.Crop(p.Crop.W, p.Crop.H); err != nil {
			return nil, err
		}
	}
	return stages.NewTensor(m.Planes(), 3, m.H, m.W).Encode(), nil
}

// A source's note is its label, so that the payloads change with the label.
const unlabelled = "unlabelled"

func noteOf(label int) string {
	if label < 0 {
		return unlabelled
	}
	return "label=" + strconv.Itoa(label)
}

// noteLabel parses a note written by noteOf; -1 means unlabelled.
func noteLabel(s stages.Source) (int64, error) {
	if s.Note == unlabelled {
		return -1, nil
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(s.Note, "label="), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("source %q has the note %q, not a label", s.ID, s.Note)
	}
	return n, nil
}
