package dataset

import (
	"context"
	"errors"
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
	Path        string       `yaml:"path" doc:"the folder of the images, or an archive" file:"read"`
	List        string       `yaml:"list" doc:"a CSV file with the columns file and label; default: labels.csv in the folder, if it exists" file:"read"`
	Names       string       `yaml:"names" doc:"a text file with one class name per line; line i, from 0, names class i" file:"read"`
	Resize      int          `yaml:"resize" doc:"pixels of the shorter side, keeping the aspect ratio; 0: no resizing" min:"0" max:"16384"`
	Size        picture.Size `yaml:"size" doc:"exact size, one number for a square, or height and width as 240x320 or [240, 320]; default: no resizing"`
	Crop        picture.Size `yaml:"crop" doc:"centre crop after resizing, in the format of size; default: no crop"`
	Orientation string       `yaml:"orientation" doc:"exif: rotate by the EXIF orientation, as image viewers do; sensor: ignore it, as Pillow's open does" choices:"exif|sensor"`
	Filter      string       `yaml:"filter" doc:"interpolation; both filters antialias when downsampling" choices:"bilinear|bicubic"`
	Corrupt     string       `yaml:"corrupt" doc:"files that can't be decoded: fail reports an error that names them, skip leaves them out with a warning" choices:"fail|skip"`
	Absent      string       `yaml:"absent" doc:"files of a list that aren't in the folder: fail reports an error, skip leaves them out with a warning" key:"-" choices:"fail|skip"`
	White       int          `yaml:"white" doc:"the value of white in pictures of 16-bit channels: 4095 if they hold 12 bits; of those, 8 remain" key:"added" min:"1" max:"65535"`
	IDs         string       `yaml:"ids" doc:"a text file with a class's number and name a line, for lists whose numbers aren't the model's, such as ImageNet's map_clsloc.txt" file:"read"`
	First       int          `yaml:"first" doc:"the number of the first class in a list, or in names with order: number" key:"-" min:"0" max:"1"`
	Order       string       `yaml:"order" doc:"of classes that have names alone: text, as torchvision's ImageFolder and Keras have it, or by the number in each name; auto: text, with a warning where the two differ" key:"-" choices:"auto|text|number"`
	Offset      int          `yaml:"offset" doc:"what is added to the numbers of classes: 1 for a model whose class 0 is a background" key:"-" min:"0" max:"1"`
	Masks       string       `yaml:"masks" doc:"the objects' masks: a folder with a PNG file an image, or COCO's annotations, a .json file" file:"read"`
	MaskSuffix  string       `yaml:"mask_suffix" doc:"what the names of masks have in place of the image's extension" key:"-"`
	Object      Values       `yaml:"object" doc:"the values of masks' pixels on the object, such as 1 or [1-254]; default: all but 0 and those of ignore" key:"added"`
	Ignore      Values       `yaml:"ignore" doc:"the values of masks' pixels that count neither as the object nor as its surroundings, such as 255, VOC's border; default: none" key:"added"`
	Boxes       string       `yaml:"boxes" doc:"boxes around the objects: a folder with a file in VOC's XML an image, or COCO's annotations, a .json file" file:"read"`
	Objects     string       `yaml:"objects" doc:"the annotated objects that count: all, or those of the image's class; a PNG file counts whole" key:"-" choices:"all|class"`

	Choice
}

func (p FolderParams) framing() framing {
	f := framing{p.Resize, p.Size, p.Crop, p.Orientation == "exif", p.Filter, p.White}
	if f.white == wholeRange {
		f.white = 0 // the high byte
	}
	return f
}

func (p *FolderParams) files() []*string {
	return []*string{&p.Path, &p.List, &p.Names, &p.IDs, &p.Masks, &p.Boxes}
}

// Validate rejects a missing path, and parameters that exclude each other.
func (p *FolderParams) Validate() error {
	if p.Path == "" {
		return stages.BadField("path", "path is required: the folder of the images")
	}
	if p.MaskSuffix == "" || strings.ContainsAny(p.MaskSuffix, `/\`) {
		return stages.BadField("mask_suffix", "mask_suffix %q isn't the end of a file's name", p.MaskSuffix)
	}
	if err := p.Choice.check(); err != nil {
		return err
	}
	return p.framing().check()
}

// wholeRange is the white of pictures that use all values of 16 bits.
const wholeRange = 1<<16 - 1

// Folder reads photographs into 8-bit RGB images, bit-identical to Pillow 11.3 (13 resizes some sizes
// otherwise) with torchvision's Resize and CenterCrop, after Pillow's exif_transpose. An item's id is the
// file's path relative to the folder, with slashes. A skipped file has no item on any port; without classes
// there are no labels.
//
// Facts: height and width on images if size or crop fixes them; classes and labels (newline-separated names)
// on labels if names, class folders or a CSV list with names define them.
var Folder = stages.New(stages.Def[FolderParams]{
	Name: "dataset/folder",
	Doc: `labelled photographs from a folder

Classes are defined by a CSV list with the columns file and label (a number, or a
name; names are numbered in sorted order), or by one folder per class, numbered in
sorted order or, if names is given, by the line that has the folder's name. Names such as
2 and class_10 sort otherwise as text than as numbers; order says which the model has.
Images in the folder itself are unlabelled. An archive counts as a folder, in every
parameter that names one, and a path may go on inside it: photos.zip/val. If all is in
one folder, paths may leave that out. Archives are unpacked once, into the user's cache;
images have the same keys as in a folder. Reads JPEG, PNG, WebP, BMP and TIFF, detected
by content; grey images become RGB, the alpha channel is dropped, and the EXIF
orientation is applied before resizing. Pixels are those of Pillow 11.3; Pillow 13
resizes some sizes otherwise. Files that aren't used are counted in a warning, which
the review folder repeats.

Labels of a list are whole numbers, 3, 3.0 or [3], or names. Other names of the two
columns are understood, such as image_id and class, as are semicolons, tabs, and paths
with backslashes, in other letters' case or from another folder; a warning names them.
An image with several labels, as cat;dog or [0, 1] in a field, in rows of its own or in
columns of 0 and 1, has an item for each, called photo.jpg/cat; one without any is left
out.

A list may also be one that a data set is published with: ImageNet's
LOC_val_solution.csv and ILSVRC2012_validation_ground_truth.txt, whose numbers need ids;
lines of a file and a label, as in val.txt and places365_val.txt; Food-101's
meta/test.txt, which is found without list. Masks and boxes follow the image through
orientation, resizing and crop, masks without interpolation. All values of a mask but 0
are the object, unless object and ignore say otherwise; a mask without background whose
values differ, and one of a few values with 255, VOC's border, is refused without them:
object: 1, ignore: 3 are those of a trimap, ignore: 255 VOC's.

What a data set's owners allow holds for its photographs in sheets, too, which a pull
request publishes. ImageNet's and Places365's are for non-commercial research and
education only, and Places365's may not be passed on; Food-101's aren't its authors', who
allow scientific fair use; NWPU-RESISC45's come from Google Earth, with its terms.

  images:
    uses: dataset/folder
    with:
      path: imagenet/val
      list: imagenet/LOC_val_solution.csv
      names: imagenet/LOC_synset_mapping.txt
      boxes: imagenet/Annotations/CLS-LOC/val
      resize: 256
      crop: 224
      count: 1000
      per_class: 1`,
	Version:  2,
	Relation: stages.Expand,
	Outputs: []stages.Port{
		{Name: "images", Type: stages.Images, Doc: "u8 [3,H,W]"},
		{Name: "labels", Type: stages.Labels, Doc: "the class, from 0"},
		{Name: "masks", Type: stages.Masks, Doc: "1 on the objects, 255 where ignored, with the parameter " +
			"masks"},
		{Name: "boxes", Type: stages.Boxes, Doc: "boxes around them, with the parameter boxes"},
	},
	Defaults: FolderParams{Orientation: "exif", Filter: "bilinear", Corrupt: "fail", Absent: "fail",
		White: wholeRange, MaskSuffix: ".png", Objects: "all", Order: autoOrder},
	Sources: folderSources,
	Facts:   folderFacts,
	Run:     runFolder,
	Hooks: func(p FolderParams) stages.Hooks {
		return stages.Hooks{Lacks: p.lacks, Most: oneEach, Remarks: p.remarks}
	},
})

// oneEach is [stages.Hooks.Most] of a data set that makes one item of a source, or none of one that it skips.
func oneEach(in map[string]stages.Amount) int { return in[stages.SourcesAmount].Items }

func (p FolderParams) lacks(port string, _ func(string) bool) error {
	if port == "masks" && p.Masks == "" || port == "boxes" && p.Boxes == "" {
		return fmt.Errorf("dataset/folder has %s if its parameter %s says where they are", port, port)
	}
	return nil
}

func folderSources(p FolderParams, _ []string) (sources []stages.Source, err error) {
	err = unpacked(p.files(), func() error {
		l, err := listFolder(p)
		if err != nil {
			return err
		}
		if sources, err = p.Choice.of(l.sources); err != nil {
			return err
		}
		if err := annotate(p, sources, l.classes); err != nil {
			return err
		}
		_, err = p.lookAtMasks(sources)
		return err
	})
	return sources, err
}

func folderFacts(p FolderParams, _ map[string]stages.Facts) (map[string]stages.Facts, error) {
	var l *listing
	err := unpacked(p.files(), func() (err error) {
		l, err = listFolder(p)
		return err
	})
	if err != nil {
		return nil, err
	}
	images, labels := stages.Facts{}, stages.Facts{}
	if size := p.framing().fixed(); !size.IsZero() {
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
	return unpacked(p.files(), func() error {
		a, err := openAnnotations(e.Slot, p)
		if err != nil {
			return err
		}
		return readAll(ctx, e, p.Corrupt, func(s stages.Source) ([]photograph, error) {
			label, err := noteLabel(s)
			if err != nil {
				return nil, err
			}
			regions, err := a.regions(s)
			if err != nil {
				return nil, err
			}
			photo, err := readImage(p.framing(), s.File, regions...)
			photo.label = label
			return []photograph{photo}, err
		})
	})
}

// readAll reads the photographs of a call on all threads, and puts them on the ports images, masks, boxes
// and labels.
func readAll(ctx context.Context, e *stages.Env, corrupt string,
	read func(s stages.Source) ([]photograph, error)) error {
	workers := e.Slot.Device().Threads
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	photos, problems := make([][]photograph, e.Len()), make([]error, e.Len())
	it := iter.Iterator[[]photograph]{MaxGoroutines: workers}
	it.ForEachIdx(photos, func(i int, p *[]photograph) {
		if ctx.Err() == nil {
			*p, problems[i] = read(e.Source(i))
		}
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var bad []string
	for i, err := range problems {
		if unclear := new(unclearMask); errors.As(err, &unclear) {
			return fmt.Errorf("%q: %w", e.Source(i).ID, err)
		}
		if err != nil {
			bad = append(bad, fmt.Sprintf("%q: %v", e.Source(i).ID, err))
			continue
		}
		for _, p := range photos[i] {
			e.Add("images", i, p.sub, p.image)
			if p.above > 0 {
				e.WarnItem(i, "%.2g %% of its pixels are above white, and are cut", 100*p.above)
			}
			if p.full {
				e.WarnItem(i, "every pixel of its mask is object: no metric of localisation tells maps "+
					"apart by it")
			}
			if p.mask != nil {
				e.Add("masks", i, p.sub, p.mask)
			}
			if p.boxes != nil {
				e.Add("boxes", i, p.sub, p.boxes)
			}
			if p.label >= 0 {
				e.Add("labels", i, p.sub, stages.NewTensor([]int64{p.label}, 1).Encode())
			}
		}
	}
	if len(bad) > 0 {
		list := strings.Join(bad[:min(len(bad), named)], "; ")
		if len(bad) > named {
			list = fmt.Sprintf("%s; and %d more", list, len(bad)-named)
		}
		if corrupt == "fail" {
			return fmt.Errorf("%d of %d files can't be read (corrupt: skip leaves them out): %s",
				len(bad), e.Len(), list)
		}
		e.Warn("%d of %d files are skipped: %s", len(bad), e.Len(), list)
	}
	e.Done(e.Len())
	return nil
}

// readImage decodes a file and returns its payloads.
func readImage(f framing, file string, regions ...region) (photograph, error) {
	m, err := f.decode(file)
	if err != nil {
		return photograph{}, err
	}
	return f.frame(m, regions...)
}

// A source's note is its label, so that the payloads change with the label, and, after a semicolon, the
// annotation of its objects.
const unlabelled = "unlabelled"

func noteOf(label int) string {
	if label < 0 {
		return unlabelled
	}
	return "label=" + strconv.Itoa(label)
}

// noteLabel parses a note written by noteOf; -1 means unlabelled.
func noteLabel(s stages.Source) (int64, error) {
	note, _, _ := strings.Cut(s.Note, ";")
	if note == unlabelled {
		return -1, nil
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(note, "label="), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("source %q has the note %q, not a label", s.ID, s.Note)
	}
	return n, nil
}
