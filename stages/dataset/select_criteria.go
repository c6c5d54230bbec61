package dataset

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

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
		s.predictions(),
		{name: "at_least", why: "below the probability " + numberText(s.AtLeast), apply: s.sure},
		{name: "at_most", why: "above the probability " + numberText(s.AtMost), absent: s.AtMost == 0,
			apply: s.unsure},
		{name: "classes", why: "of other classes", absent: len(s.Classes) == 0, apply: s.ofClasses},
		{name: "maps", why: "explained by a map of zeros", absent: !s.env.Wired("maps"), apply: s.explained},
		{name: "per_class", why: fmt.Sprintf("beyond %d a class", s.PerClass), apply: s.firstOfClass},
		{name: "least_sure", why: fmt.Sprintf("surer than the %d of least probability", s.LeastSure),
			absent: s.LeastSure == 0, apply: s.leastSure},
		{name: "count", why: fmt.Sprintf("beyond %d", s.Count), apply: s.first},
	}
}

// predictions returns the criterion correct, or wrong.
func (s *selection) predictions() criterion {
	if s.Wrong {
		return criterion{name: "wrong", why: "not misclassified", apply: s.correct}
	}
	return criterion{name: "correct", why: "misclassified", apply: s.correct}
}

// correct drops the images whose label isn't predicted in every cell, or for wrong those whose label is
// predicted in some cell, or unknown.
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
			known := s.labels != nil && class >= 0 && s.labels[i] >= 0
			right := known && class == s.labels[i]
			if s.Wrong && (!known || right) || s.Correct && !s.Wrong && !right {
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
	return s.eachProbability(ctx, func(i int, p float64) {
		if !(p >= s.AtLeast) {
			drop(i)
		}
	})
}

// unsure drops the images whose predicted class has a probability above at_most, or none, in some cell.
func (s *selection) unsure(ctx context.Context, drop func(i int)) error {
	if s.AtMost == 0 {
		return nil
	}
	return s.eachProbability(ctx, func(i int, p float64) {
		if !(p <= s.AtMost) {
			drop(i)
		}
	})
}

// eachProbability calls use with every image's probability in every cell, NaN for none.
func (s *selection) eachProbability(ctx context.Context, use func(i int, p float64)) error {
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
			use(i, p)
		}
	}
	return nil
}

// leastSure drops the images after the least_sure ones with the lowest mean probability, of equal ones the
// later, and those that have none in some cell.
func (s *selection) leastSure(ctx context.Context, drop func(i int)) error {
	if s.LeastSure == 0 {
		return nil
	}
	sum := make([]float64, len(s.keep)) // over the same number of cells
	if err := s.eachProbability(ctx, func(i int, p float64) { sum[i] += p }); err != nil {
		return err
	}
	var order []int
	for i, kept := range s.keep {
		switch {
		case kept && math.IsNaN(sum[i]):
			drop(i)
		case kept:
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sum[a], sum[b]) })
	for _, i := range order[min(s.LeastSure, len(order)):] {
		drop(i)
	}
	return nil
}

// ofClasses drops the images of other classes than those of the parameter classes.
func (s *selection) ofClasses(_ context.Context, drop func(i int)) error {
	if len(s.Classes) == 0 {
		return nil
	}
	of, names := s.labels, s.env.Facts("labels")["labels"]
	if of == nil {
		of, names = s.predicted, cmp.Or(s.env.Facts("targets")["labels"], s.env.Facts("model")["labels"])
	}
	var list []string
	if names != "" {
		list = strings.Split(names, "\n")
	}
	kept := map[int64]bool{}
	for _, name := range s.Classes {
		class := classNamed(list, name)
		if n, err := strconv.Atoi(name); class < 0 && err == nil && n >= 0 && (list == nil || n < len(list)) {
			class = n
		}
		if class < 0 {
			return stages.BadField("classes", "no class is called %q, or has this number", name)
		}
		kept[int64(class)] = true
	}
	for i, class := range of {
		if !kept[class] {
			drop(i)
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
