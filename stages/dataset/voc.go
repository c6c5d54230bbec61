package dataset

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/annotation"
	"github.com/runexp/runexp/stages/internal/picture"
)

// VOCParams are the parameters of [VOC].
type VOCParams struct {
	Path        string       `yaml:"path" doc:"the folder with JPEGImages, Annotations and ImageSets, or an archive and the path inside it, as in VOCtrainval.tar/VOC2012" file:"read"`
	Set         string       `yaml:"set" doc:"the images: a list in ImageSets/Main, or in another folder of ImageSets, as Segmentation/val" key:"-"`
	Label       string       `yaml:"label" doc:"the class that counts, of an image with several: that of the largest box, that of the first object of the file, or each in turn, an item a class" choices:"largest|first|each"`
	Difficult   bool         `yaml:"difficult" doc:"whether objects count that are marked as difficult"`
	Masks       bool         `yaml:"masks" doc:"whether there are masks; they exist for the images of ImageSets/Segmentation"`
	Objects     string       `yaml:"objects" doc:"what masks and boxes show: all objects of the class, or the one that the class is from" choices:"class|one"`
	Border      string       `yaml:"border" doc:"what masks' pixels of value 255 are, the borders of objects: as all around the object, or pixels that don't count" key:"added" choices:"background|ignored"`
	Resize      int          `yaml:"resize" doc:"pixels of the shorter side, keeping the aspect ratio; 0: no resizing" min:"0" max:"16384"`
	Size        picture.Size `yaml:"size" doc:"exact size, one number for a square, or height and width as 240x320 or [240, 320]; default: no resizing"`
	Crop        picture.Size `yaml:"crop" doc:"centre crop after resizing, in the format of size; default: no crop"`
	Orientation string       `yaml:"orientation" doc:"exif: rotate by the EXIF orientation, as image viewers do; sensor: ignore it, as Pillow's open does" choices:"exif|sensor"`
	Filter      string       `yaml:"filter" doc:"interpolation; both filters antialias when downsampling" choices:"bilinear|bicubic"`
	Corrupt     string       `yaml:"corrupt" doc:"files that can't be decoded: fail reports an error that names them, skip leaves them out with a warning" choices:"fail|skip"`

	Choice
}

func (p VOCParams) framing() framing {
	return framing{p.Resize, p.Size, p.Crop, p.Orientation == "exif", p.Filter, 0}
}

// Validate rejects a missing path, and parameters that exclude each other.
func (p *VOCParams) Validate() error {
	switch {
	case p.Path == "":
		return stages.BadField("path", "path is required: the folder VOCdevkit/VOC2012")
	case !filepath.IsLocal(filepath.FromSlash(p.Set)):
		return stages.BadField("set", "set %q isn't a list in ImageSets", p.Set)
	case p.Label == "each" && p.Objects == "one":
		return stages.BadField("objects", "with label: each, a class isn't from one object: objects is class")
	case p.Label == "each" && p.PerClass > 0:
		return stages.BadField("per_class", "with label: each, an image has several classes")
	}
	if err := p.Choice.check(); err != nil {
		return err
	}
	return p.framing().check()
}

// vocClasses are the classes of PASCAL VOC from 2007 on. Class i has the index i+1 in masks, 0 is the
// background and 255 is undecided.
var vocClasses = strings.Fields(`aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog ` +
	`horse
	motorbike person pottedplant sheep sofa train tvmonitor`)

// vocBorder is the value of the pixels that VOC leaves undecided: borders of objects and unmarked objects.
const vocBorder = 255

// VOC reads PASCAL VOC (Everingham et al., "The PASCAL Visual Object Classes Challenge", IJCV 2010). An
// item's id is the image's name; with label: each it is followed by the class, 2008_000002/tvmonitor.
//
// Facts: height and width on images, masks and boxes if size or crop fixes them; classes and labels
// (newline-separated names) on labels.
var VOC = stages.New(stages.Def[VOCParams]{
	Name: "dataset/voc",
	Doc: `photographs of PASCAL VOC with masks and boxes

An image has objects of one or several of twenty classes, numbered by their names in
sorted order; label says which one counts. Images without an object that counts are left
out. Masks and boxes follow the image through orientation, resizing and crop. Everingham
et al., IJCV 2010. The photographs come from Flickr, whose terms of use hold for them:
think of that before you commit a sheet of them.

A model of several classes at once has independent logits, output_kind: sigmoid-logits
unless its file ends with a Sigmoid: the probability of a class is then its sigmoid, in
curves too. Methods explain the image's class with target: label:

  photos: {uses: dataset/voc, with: {path: VOCdevkit/VOC2012, set: Segmentation/val, masks: true, size: 224}}
  model:  {uses: model/onnx, with: {path: voc.onnx, output_kind: sigmoid-logits}}
  maps:
    uses: attribute/grad-cam
    in: {model: model, images: photos, labels: photos.labels}
    with: {target: label}
  rank:   {uses: score/rank-accuracy, in: {maps: maps, masks: photos.masks}}
  energy: {uses: score/energy-pointing, in: {maps: maps, boxes: photos.boxes}}`,
	Version:  1,
	Relation: stages.Expand,
	Outputs: []stages.Port{
		{Name: "images", Type: stages.Images, Doc: "u8 [3,H,W]"},
		{Name: "labels", Type: stages.Labels, Doc: "the class that counts, 0 to 19"},
		{Name: "masks", Type: stages.Masks, Doc: "1 on the objects, with the parameter masks"},
		{Name: "boxes", Type: stages.Boxes, Doc: "boxes around the objects"},
	},
	Defaults: VOCParams{Set: "val", Label: "largest", Objects: "class", Border: "background",
		Orientation: "exif",
		Filter:      "bilinear",
		Corrupt:     "fail"},
	Sources: vocSources,
	Facts: func(p VOCParams, _ map[string]stages.Facts) (map[string]stages.Facts, error) {
		size := stages.Facts{}
		if s := p.framing().fixed(); !s.IsZero() {
			size["height"], size["width"] = strconv.Itoa(s.H), strconv.Itoa(s.W)
		}
		return map[string]stages.Facts{"images": size, "masks": size, "boxes": size, "labels": {
			"classes": strconv.Itoa(len(vocClasses)), "labels": strings.Join(vocClasses, "\n")}}, nil
	},
	Run:   runVOC,
	Hooks: func(p VOCParams) stages.Hooks { return stages.Hooks{Lacks: p.lacks, Most: p.most} },
})

// most returns how many items the first images of the set make: each makes one, or one of each of its
// classes.
func (p VOCParams) most(in map[string]stages.Amount) (items int) {
	if p.Label != "each" {
		return oneEach(in)
	}
	sources, err := vocSources(p, nil)
	if err != nil {
		return -1
	}
	for _, s := range sources[:min(len(sources), oneEach(in))] {
		note, err := noteOfVOC(s)
		if err != nil {
			return -1
		}
		items += len(note.Counts)
	}
	return items
}

// noteOfVOC reads the annotation in a source's note.
func noteOfVOC(s stages.Source) (note vocNote, err error) {
	_, text, _ := strings.Cut(s.Note, ";")
	return note, json.Unmarshal([]byte(text), &note)
}

func (p VOCParams) lacks(port string, _ func(string) bool) error {
	if port == "masks" && !p.Masks {
		return fmt.Errorf("dataset/voc has masks with masks: true")
	}
	return nil
}

// A vocNote is the part of an image's annotation in a source's note: the size of the image, and the classes
// that count with their objects.
type vocNote struct {
	W      int        `json:"w"`
	H      int        `json:"h"`
	Counts []vocCount `json:"counts"`
}

// A vocCount is a class with the boxes of its objects. Their pixels have the given value in the picture of
// classes, or in that of objects.
type vocCount struct {
	Class int              `json:"class"`
	Boxes []annotation.Box `json:"boxes"`
	Value int              `json:"value"`
}

func vocSources(p VOCParams, _ []string) (sources []stages.Source, err error) {
	err = unpacked([]*string{&p.Path}, func() error {
		sources, err = p.list()
		return err
	})
	return sources, err
}

// list returns the images of the set that have an object that counts.
func (p VOCParams) list() ([]stages.Source, error) {
	set := filepath.FromSlash(p.Set)
	if filepath.Base(set) == set {
		set = filepath.Join("Main", set)
	}
	list := filepath.Join(p.Path, "ImageSets", set+".txt")
	b, err := readText(list)
	if err != nil {
		return nil, err
	}
	var sources []stages.Source
	seen := map[string]bool{}
	for line, text := range strings.Split(string(b), "\n") {
		// The lists of a class have a second column: 1 for images that show it, -1 for others.
		fields := strings.Fields(text)
		if len(fields) == 0 || len(fields) > 1 && fields[1] == "-1" {
			continue
		}
		id := fields[0]
		if id != filepath.Base(id) || !filepath.IsLocal(id) {
			return nil, fmt.Errorf("%s:%d: %q isn't an image's name", list, line+1, id)
		}
		if seen[id] {
			return nil, fmt.Errorf("%s:%d: %q is listed twice", list, line+1, id)
		}
		seen[id] = true
		s, ok, err := p.source(id)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", list, line+1, err)
		}
		if ok {
			sources = append(sources, s)
		}
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("%q lists no image with an object that counts", list)
	}
	return p.Choice.of(sources)
}

// source reads the annotation of an image. ok is false if no object counts.
func (p VOCParams) source(id string) (s stages.Source, ok bool, err error) {
	v, err := annotation.ReadVOC(filepath.Join(p.Path, "Annotations", id+".xml"))
	if err != nil {
		return s, false, err
	}
	note := vocNote{W: v.W, H: v.H}
	chosen := -1 // the object that defines the label
	for i, o := range v.Objects {
		class := slices.Index(vocClasses, o.Class)
		if class < 0 {
			return s, false, fmt.Errorf("%q has an object of the unknown class %q", id, o.Class)
		}
		if o.Difficult && !p.Difficult {
			continue
		}
		if chosen < 0 || p.Label == "largest" && o.Box.Area() > v.Objects[chosen].Box.Area() {
			chosen = i
		}
		k := slices.IndexFunc(note.Counts, func(c vocCount) bool { return c.Class == class })
		if k < 0 {
			k, note.Counts = len(note.Counts), append(note.Counts, vocCount{Class: class, Value: class + 1})
		}
		note.Counts[k].Boxes = append(note.Counts[k].Boxes, o.Box)
	}
	if chosen < 0 {
		return s, false, nil
	}
	s = stages.Source{ID: id, File: filepath.Join(p.Path, "JPEGImages", id+".jpg")}
	pictures := "SegmentationClass"
	if p.Label != "each" {
		o := v.Objects[chosen]
		class := slices.Index(vocClasses, o.Class)
		note.Counts = slices.DeleteFunc(note.Counts, func(c vocCount) bool { return c.Class != class })
		if p.Objects == "one" {
			note.Counts[0].Boxes, note.Counts[0].Value = []annotation.Box{o.Box}, chosen+1
			pictures = "SegmentationObject"
		}
	}
	if p.Masks {
		s.With[withMask] = filepath.Join(p.Path, pictures, id+".png")
	}
	for _, file := range []string{s.File, s.With[withMask]} {
		if _, err := os.Stat(file); file != "" && err != nil {
			return s, false, fmt.Errorf("%q: %w", file, plain(err))
		}
	}
	text, err := json.Marshal(note)
	s.Note = noteOf(note.Counts[0].Class) + ";" + string(text)
	return s, true, err
}

func runVOC(ctx context.Context, p VOCParams, e *stages.Env) error {
	return readAll(ctx, e, p.Corrupt, func(s stages.Source) ([]photograph, error) {
		note, err := noteOfVOC(s)
		if err != nil {
			return nil, err
		}
		m, err := p.framing().decode(s.File)
		if err != nil {
			return nil, err
		}
		var indices *picture.Indices
		if file := s.With[withMask]; file != "" {
			if indices, err = readIndices(file); err != nil {
				return nil, err
			}
		}
		var photos []photograph
		for _, c := range note.Counts {
			regions := []region{{w: note.W, h: note.H, boxes: c.Boxes, boxed: true}}
			if indices != nil {
				value := uint16(c.Value)
				rule := maskRule{object: [][2]uint16{{value, value}}}
				if p.Border == "ignored" {
					rule.ignore = [][2]uint16{{vocBorder, vocBorder}}
				}
				mask, err := rule.apply(indices)
				if err != nil {
					return nil, err
				}
				regions = append(regions, region{w: mask.W, h: mask.H, mask: mask})
			}
			photo, err := p.framing().frame(m, regions...)
			if err != nil {
				return nil, err
			}
			photo.label = int64(c.Class)
			if p.Label == "each" {
				photo.sub = vocClasses[c.Class]
			}
			photos = append(photos, photo)
		}
		return photos, nil
	})
}
