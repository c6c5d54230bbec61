package dataset

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages"
)

// A selection is the images of a data set, with the ones that are still kept.
type selection struct {
	SelectParams
	env       *stages.Env
	at        map[string]int // the position of an image, by id
	keep      []bool         // by image
	labels    []int64        // by image; nil without labels
	predicted []int64        // by image, the class predicted in the first cell; nil without targets
}

func newSelection(ctx context.Context, p SelectParams, e *stages.Env) (*selection, error) {
	images := e.Ports["images"][0].Items
	s := &selection{SelectParams: p, env: e, at: map[string]int{}, keep: make([]bool, images.Len())}
	for i := range s.keep {
		item, err := images.At(i)
		if err != nil {
			return nil, err
		}
		s.keep[i], s.at[item.ID] = true, i
	}
	if !e.Wired("labels") {
		return s, nil
	}
	var err error
	s.labels, err = s.classes(ctx, e.Ports["labels"][0], "labels")
	return s, err
}

// len returns the number of images that are kept.
func (s *selection) len() int {
	n := 0
	for _, kept := range s.keep {
		if kept {
			n++
		}
	}
	return n
}

// A criterion drops images, and counts those that no earlier criterion has dropped.
type criterion struct {
	name   string
	why    string // a description of the dropped images
	absent bool   // the table has no row for it
	apply  func(ctx context.Context, drop func(i int)) error
	lost   int
}

// criteria returns the criteria in the order in which they apply.
func (s *selection) criteria() []criterion {
	return []criterion{
		{name: "correct", why: "misclassified", apply: s.correct},
		{name: "at_least", why: "below the probability " + strconv.FormatFloat(s.AtLeast, 'g', -1, 64),
			apply: s.sure},
		{name: "maps", why: "explained by a map of zeros", absent: !s.env.Wired("maps"), apply: s.explained},
		{name: "per_class", why: fmt.Sprintf("beyond %d a class", s.PerClass), apply: s.firstOfClass},
		{name: "count", why: fmt.Sprintf("beyond %d", s.Count), apply: s.first},
	}
}

// correct drops the images whose label isn't predicted in every cell.
func (s *selection) correct(ctx context.Context, drop func(i int)) error {
	for _, d := range s.env.Ports["targets"] {
		classes, err := s.classes(ctx, d, "targets")
		if err != nil {
			return err
		}
		if s.predicted == nil {
			s.predicted = classes
		}
		for i, class := range classes {
			if s.Correct && (s.labels == nil || class < 0 || class != s.labels[i]) {
				drop(i)
			}
		}
	}
	return nil
}

// sure drops the images whose predicted class has a probability below at_least in some cell.
func (s *selection) sure(ctx context.Context, drop func(i int)) error {
	if s.AtLeast == 0 {
		return nil
	}
	for _, d := range s.env.Ports["probability"] {
		probability := make([]float64, len(s.keep))
		for i := range probability {
			probability[i] = math.NaN()
		}
		err := s.each(ctx, d, func(i int, payload []byte) (err error) {
			probability[i], err = stages.ScalarOf(payload)
			return err
		})
		if err != nil {
			return err
		}
		for i, p := range probability {
			if !(p >= s.AtLeast) {
				drop(i)
			}
		}
	}
	return nil
}

// explained drops the images with a map that is zero everywhere.
func (s *selection) explained(ctx context.Context, drop func(i int)) error {
	for _, d := range s.env.Ports["maps"] {
		err := s.each(ctx, d, func(i int, payload []byte) error {
			t, err := stages.DecodeTensor(payload)
			if err == nil && !slices.ContainsFunc(t.Float64s(), func(v float64) bool { return v != 0 }) {
				drop(i)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// firstOfClass drops the images after the first per_class of their class: of their label, or without labels
// of the class predicted in the first cell.
func (s *selection) firstOfClass(_ context.Context, drop func(i int)) error {
	if s.PerClass == 0 {
		return nil
	}
	classes := s.labels
	if classes == nil {
		classes = s.predicted
	}
	taken := map[int64]int{}
	for i, kept := range s.keep {
		if !kept {
			continue
		}
		if taken[classes[i]]++; taken[classes[i]] > s.PerClass {
			drop(i)
		}
	}
	return nil
}

// first drops the images after the first count.
func (s *selection) first(_ context.Context, drop func(i int)) error {
	if s.Count == 0 {
		return nil
	}
	taken := 0
	for i, kept := range s.keep {
		if !kept {
			continue
		}
		if taken++; taken > s.Count {
			drop(i)
		}
	}
	return nil
}

// pass passes on the items of a port that belong to kept images.
func (s *selection) pass(port string) error {
	for _, d := range s.env.Ports[port] {
		for i := range d.Items.Len() {
			item, err := d.Items.At(i)
			if err != nil {
				return err
			}
			if k, ok := s.at[item.ID]; !ok || !s.keep[k] {
				continue
			}
			if err := s.env.Pass(port, port, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// each calls use with the payloads of a port and the positions of their images.
func (s *selection) each(ctx context.Context, d stages.Data,
	use func(i int, payload []byte) error) error {
	for m, err := range d.All(ctx) {
		if err != nil {
			return err
		}
		i, ok := s.at[m.ID]
		if !ok {
			if i, ok = s.at[m.Origin]; !ok {
				continue
			}
		}
		if err := use(i, m.Data); err != nil {
			return fmt.Errorf("item %q: %w", m.ID, err)
		}
	}
	return nil
}

// classes returns the classes on a port by image, -1 for an image without one.
func (s *selection) classes(ctx context.Context, d stages.Data, port string) ([]int64, error) {
	classes := make([]int64, len(s.keep))
	for i := range classes {
		classes[i] = -1
	}
	return classes, s.each(ctx, d, func(i int, payload []byte) error {
		t, err := stages.DecodeTensor(payload)
		if err != nil {
			return err
		}
		if t.DType != stages.I64 || t.Len() != 1 {
			return fmt.Errorf("%s: %s of shape %v isn't one class", port, t.DType, t.Shape)
		}
		classes[i] = t.Int64s()[0]
		return nil
	})
}
