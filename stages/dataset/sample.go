package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/archive"
	"github.com/runexp/runexp/stages/internal/picture"
)

// A Numbering is a hypothesis about which of a model's classes each class of a data set is, in the
// parameters of [Folder].
type Numbering struct {
	Order  string // "" for the default
	First  int
	Offset int
	Names  string   // a file with the names of the model's classes, "" for none
	Listed []string // names of the model's classes that are in no text file yet

	// its probability before the model is run; with the probability that no numbering is right, all add up
	// to 1
	Prior  float64
	Text   string  // the hypothesis in words
	labels []int64 // by source, -1 for an image without a class
}

// A Sample is the photographs of a data set that have a class, in an order in which all classes come early.
type Sample struct {
	Classes    []string // names
	Numberings []Numbering
	Unplaced   float64  // prior probability that no numbering is right
	Refused    []string // why other numberings aren't possible
	Nested     *Nested  // set if the folders of classes seem to be further down
	Side       int      // of the images, if all examined ones are squares of one size; else 0

	params  FolderParams
	sources []stages.Source
	group   []int // class of each source
}

// Len returns the number of photographs.
func (s *Sample) Len() int { return len(s.sources) }

// Group returns the class of a photograph among Classes.
func (s *Sample) Group(i int) int { return s.group[i] }

// Label returns the model's class of a photograph by one of the numberings.
func (s *Sample) Label(i, numbering int) int64 { return s.Numberings[numbering].labels[i] }

// Reader returns a function that reads a photograph as [Folder] does, cropped to a size.
func (s *Sample) Reader(i int) func(size picture.Size) ([]byte, error) {
	return func(size picture.Size) ([]byte, error) {
		p := s.params
		if size.H == size.W {
			p.Resize, p.Crop = size.H, size
		} else {
			p.Size = size
		}
		photo, err := readImage(p.framing(), s.sources[i].File)
		return photo.image, err
	}
}

// A Net is the model with which a data set is compared.
type Net struct {
	File    string // the model's; lists of class names may be next to it
	Classes int
	Names   []string // of the classes, as the file declares them; nil if it doesn't
}

// mostSampled limits the photographs of a sample.
const mostSampled = 1000

// SampleOf returns up to mostSampled photographs of a folder with all ways in which its classes may be
// numbered for a model. A sample without a numbering has the reasons in Refused.
func SampleOf(c Content, net Net) (s *Sample, err error) {
	p := *Folder.NewParams().(*FolderParams)
	p.Path, p.Masks, p.Boxes, p.White = c.Path, c.Masks, c.Boxes, cmp.Or(c.White, p.White)
	if c.Absent {
		p.Absent = "skip"
	}
	s = &Sample{}
	err = unpacked(p.files(), func() error {
		s.params = p
		return s.find(net, func(file string) string {
			if inner, ok := strings.CutPrefix(file, p.Path+string(filepath.Separator)); ok {
				return filepath.Join(c.Path, inner)
			}
			return file
		})
	})
	return s, err
}

// find lists the photographs and the numberings; shown returns the user's name of a file in an archive.
func (s *Sample) find(net Net, shown func(file string) string) error {
	base, err := listFolder(s.params)
	if err != nil {
		return err
	}
	var keep []int
	groups := map[string][]int{}
	for i, src := range base.sources {
		label, err := noteLabel(src)
		if err != nil {
			return err
		}
		if label < 0 {
			continue
		}
		name := fmt.Sprint(label)
		if label < int64(len(base.classes)) {
			name = base.classes[label]
		}
		groups[name] = append(groups[name], i)
	}
	s.Classes = slices.Sorted(maps.Keys(groups))
	// Images come in rounds of one image of each class, evenly spaced in each class's list.
	for round := 0; len(keep) < mostSampled; round++ {
		before := len(keep)
		for g, name := range s.Classes {
			if files := groups[name]; round < len(files) {
				keep = append(keep, spread(files, round))
				s.group = append(s.group, g)
			}
		}
		if len(keep) == before {
			break
		}
	}
	for _, i := range keep {
		s.sources = append(s.sources, base.sources[i])
	}
	s.measureSide()
	if base.named != nil && !base.listed {
		ids := make([]string, len(base.sources))
		for i, src := range base.sources {
			ids[i] = src.ID
		}
		s.Nested = nested(ids, net.Classes)
	}
	s.number(net, base, shown)
	return nil
}

// spread returns the element at a place of a list in an order that begins with elements far apart: the
// places in the order of their reversed bits.
func spread(list []int, place int) int {
	bits := 0
	for 1<<bits < len(list) {
		bits++
	}
	for k, seen := 0, 0; ; k++ {
		at := 0
		for b := range bits {
			at |= k >> b & 1 << (bits - 1 - b)
		}
		if at < len(list) {
			if seen == place {
				return list[at]
			}
			seen++
		}
	}
}

// measureSide compares the sizes of some photographs.
func (s *Sample) measureSide() {
	for i := range min(len(s.sources), 8) {
		photo, err := readImage(s.params.framing(), s.sources[i].File)
		if err != nil {
			continue
		}
		m, err := stages.DecodeTensor(photo.image)
		if err != nil || m.Shape[1] != m.Shape[2] || s.Side > 0 && s.Side != m.Shape[1] {
			s.Side = 0
			return
		}
		s.Side = m.Shape[1]
	}
}

// number finds the numberings.
func (s *Sample) number(net Net, base *listing, shown func(file string) string) {
	unplaced := 0.03
	if len(s.Classes) < net.Classes-1 && base.named != nil {
		unplaced = 0.3 // no order shows which of the model's classes these are
	}
	if net.Names != nil &&
		s.try(net, Numbering{Listed: net.Names, Prior: 20, Text: "by the names in the model's file"}, shown) {
		unplaced = 0.03
	}
	for _, file := range s.lists(net) {
		if s.try(net, Numbering{Names: file, Prior: 10, Text: fmt.Sprintf("by the names in %q",
			shown(file))}, shown) {
			unplaced = 0.03
		}
	}
	spaced := 0.3 // prior of a background
	if len(s.Classes) == net.Classes-1 {
		spaced = 1
	}
	if base.named == nil { // numbers, or names of a list that the data set has
		s.try(net, Numbering{Prior: 1, Text: "as they are numbered"}, shown)
		s.try(net, Numbering{First: 1, Prior: 1, Text: "as they are numbered, from 1"}, shown)
		if len(s.Classes) < net.Classes {
			s.try(net, Numbering{Offset: 1, Prior: 0.1 * spaced, Text: "as they are numbered, after a " +
				"background"},
				shown)
		}
	} else {
		order := ""
		if s.params.orderRemark(base, "") != nil {
			order = textOrder
		}
		s.try(net, Numbering{Order: order, Prior: 1, Text: "in the order of text"}, shown)
		s.try(net, Numbering{Order: numberOrder, Prior: 1, Text: "by the numbers in their names"}, shown)
		s.try(net, Numbering{Order: numberOrder, First: 1, Prior: 1,
			Text: "by the numbers in their names, from 1"}, shown)
		if len(s.Classes) < net.Classes {
			s.try(net, Numbering{Order: order, Offset: 1, Prior: 0.3 * spaced,
				Text: "in the order of text, after a background"}, shown)
			s.try(net, Numbering{Order: numberOrder, Offset: 1, Prior: 0.1 * spaced,
				Text: "by the numbers in their names, after a background"}, shown)
		}
	}
	total := 0.0
	for _, n := range s.Numberings {
		total += n.Prior
	}
	for i := range s.Numberings {
		s.Numberings[i].Prior *= (1 - unplaced) / total
	}
	s.Unplaced = unplaced
}

// try adds a numbering, unless it is impossible or equal to an earlier one. It reports whether it is
// possible.
func (s *Sample) try(net Net, n Numbering, shown func(string) string) bool {
	p := s.params
	p.Order, p.First, p.Offset, p.Names = n.Order, n.First, n.Offset, n.Names
	if n.Order == "" {
		p.Order = autoOrder
	}
	l, err := listNamed(p, n.Listed)
	if err == nil {
		byID := map[string]stages.Source{}
		for _, src := range l.sources {
			byID[src.ID] = src
		}
		for _, src := range s.sources {
			label, failed := noteLabel(byID[src.ID])
			switch {
			case failed != nil:
				err = failed
			case label < 0 || label >= int64(net.Classes):
				err = fmt.Errorf("label %d isn't one of the model's classes 0 to %d", label, net.Classes-1)
			}
			if err != nil {
				break
			}
			n.labels = append(n.labels, label)
		}
	}
	if err == nil && s.merges(n.labels) {
		err = errors.New("two classes of the images would be one of the model's")
	}
	if err != nil {
		s.Refused = append(s.Refused, n.Text+": "+err.Error())
		return false
	}
	if n.Names != "" {
		n.Names = shown(n.Names)
	}
	for i := range s.Numberings {
		if slices.Equal(s.Numberings[i].labels, n.labels) {
			s.Numberings[i].Prior += n.Prior
			return true
		}
	}
	s.Numberings = append(s.Numberings, n)
	return true
}

// merges reports whether labels give two classes one number.
func (s *Sample) merges(labels []int64) bool {
	of := map[int64]int{}
	for i, l := range labels {
		if g, ok := of[l]; ok && g != s.group[i] {
			return true
		}
		of[l] = s.group[i]
	}
	return false
}

// lists returns the text files next to the images and to the model that have a name for each of its
// classes, all different.
func (s *Sample) lists(net Net) (files []string) {
	var folders []string
	for _, dir := range []string{s.params.Path, filepath.Dir(s.params.Path), filepath.Dir(net.File)} {
		if dir = filepath.Clean(dir); !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	for _, dir := range folders {
		list, _ := os.ReadDir(dir) // a folder that can't be read has none
		for _, e := range list {
			file := filepath.Join(dir, e.Name())
			info, err := os.Stat(file)
			if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 || archive.Hidden(e.Name()) ||
				file == filepath.Clean(s.params.List) ||
				!slices.Contains([]string{".txt", ".names", ".labels", ".lst"},
					strings.ToLower(filepath.Ext(file))) {
				continue
			}
			names, err := readNames(file)
			if err != nil || len(names) != net.Classes {
				continue
			}
			sorted := slices.Sorted(slices.Values(names))
			if len(slices.Compact(sorted)) == len(names) {
				files = append(files, file)
			}
		}
	}
	return files
}
