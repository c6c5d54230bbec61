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
	Path        string       `yaml:"path" doc:"the folder that holds the images" file:"read"`
	List        string       `yaml:"list" doc:"a CSV file with the columns file and label; labels.csv in the folder is taken unasked" file:"read"`
	Names       string       `yaml:"names" doc:"a text file with one class name a line; line i, from 0, names class i" file:"read"`
	Resize      int          `yaml:"resize" doc:"pixels of the shorter side, keeping the shape; 0 leaves it as it is" min:"0" max:"16384"`
	Size        picture.Size `yaml:"size" doc:"exact size, one number for a square or height and width as 240x320 or [240, 320]; none leaves it as it is"`
	Crop        picture.Size `yaml:"crop" doc:"what is cut from the middle, after resizing; written as size is"`
	Orientation string       `yaml:"orientation" doc:"which way up photographs are: as their EXIF block says and every viewer shows them, or as the sensor stored them and Pillow's open gives them" choices:"exif|sensor"`
	Filter      string       `yaml:"filter" doc:"how pixels are interpolated; both average when shrinking" choices:"bilinear|bicubic"`
	Corrupt     string       `yaml:"corrupt" doc:"what to do about files that can't be decoded: fail, naming them, or go on without them, saying which" choices:"fail|skip"`
}

// Validate refuses two sizes at once, and a missing path.
func (p *FolderParams) Validate() error {
	if p.Path == "" {
		return stages.BadField("path", "path is missing: the folder that holds the images")
	}
	if p.Resize > 0 && !p.Size.IsZero() {
		return stages.BadField("resize",
			"resize and size exclude each other: resize keeps the shape, size gives it")
	}
	return nil
}

// Folder reads photographs. It makes 8-bit RGB images with the very pixels that Pillow and torchvision's
// Resize and CenterCrop give, turned as Pillow's exif_transpose turns them. An item's id is the file's path
// in the folder, with slashes. A file that is skipped makes no item on any port; without classes there are no
// labels.
//
// Facts: height and width on images where size or crop fixes them; classes and labels (newline-separated
// names) on labels where names, class folders or a list of class names tell them.
var Folder = stages.New(stages.Def[FolderParams]{
	Name: "dataset/folder",
	Doc: `labelled photographs from a folder

Classes come from a CSV list with the columns file and label (a number, or a name;
names are numbered in sorted order), or from one folder a class, in sorted order,
or, where names is given, from the line that begins with the folder's name. Images
that lie in the folder itself have no label. Reads JPEG, PNG, WebP and BMP, known by
their content; grey is repeated, transparency dropped, and the EXIF
orientation applied before images are resized.`,
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

// named is how many files an error lists before it counts the rest.
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
			return fmt.Errorf("of %d files %d can't be read (corrupt: skip goes on without them): %s",
				e.Len(), len(bad), list)
		}
		e.Warn("of %d files %d are skipped: %s", e.Len(), len(bad), list)
	}
	e.Done(e.Len())
	return nil
}

// maxImage bounds the file of an image.
const maxImage = 1 << 28

// readImage returns the payload made from a file.
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

// A source's note is its label, so that a changed label makes another payload.
const unlabelled = "unlabelled"

func noteOf(label int) string {
	if label < 0 {
		return unlabelled
	}
	return "label=" + strconv.Itoa(label)
}

// noteLabel reads what noteOf wrote; -1 for none.
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
