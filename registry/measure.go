package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/model"
)

// A Measured is how a model is fed and how its classes are numbered, inferred from its predictions for
// labelled photographs.
type Measured struct {
	model.Verdict
	*dataset.Sample // the folder's, with the numberings of its classes
	Feeds           []model.Feed
	Of              int // number of the model's classes
}

// measuring bounds the multiply-adds of a measurement: about ten seconds of a core.
const measuring = 500e9

// perValue is the number of multiply-adds that take as long as reading and normalising one value of an
// image.
const perValue = 2000

// Measure weighs all ways to feed an inspected model and to number its classes by the labelled
// photographs of a folder; with l.Preset only the ways of that preset. It measures nothing if there is no
// way to number the classes, or if the folder is Nested.
func Measure(ctx context.Context, file string, l Look, x *Inspection, folder Folder,
	progress func(done, total int)) (*Measured, error) {
	classes := max(x.Feed.Classes, 2) // a single output stands for two classes
	s, err := dataset.SampleOf(folder, dataset.Net{File: file, Classes: classes, Names: x.Declared.Names})
	if err != nil {
		return nil, err
	}
	m := &Measured{Sample: s, Of: classes}
	if s.Len() == 0 || s.Nested != nil || len(s.Numberings) == 0 {
		return m, nil
	}
	p := l.params(file)
	p.Layout = x.Feed.Layout
	if x.OpenSize || l.Size != "" {
		p.Size.H, p.Size.W = x.Feed.Height, x.Feed.Width
	}
	t, err := model.NewTrial(ctx, *p)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if l.Size == "" {
		m.Feeds = x.Feeds(s.Side, func(side int) bool { return t.RunsAt(ctx, side) })
	} else {
		m.Feeds = x.Feeds(0, func(int) bool { return false })
	}
	if l.Preset != "" {
		if err := m.only(l.Preset); err != nil {
			return nil, err
		}
	}
	q := model.Question{Feeds: m.Feeds, Other: s.Unplaced, Progress: progress,
		Passes: int(measuring / float64(x.MultiplyAdds+perValue*int64(x.Feed.Size())))}
	for _, n := range s.Numberings {
		q.Numberings = append(q.Numberings, n.Prior)
	}
	photos := make([]model.Labelled, s.Len())
	for i := range photos {
		photos[i] = model.Labelled{Group: s.Group(i), Image: s.Reader(i)}
		for k := range s.Numberings {
			photos[i].Labels = append(photos[i].Labels, s.Label(i, k))
		}
	}
	m.Verdict, err = t.Weigh(ctx, q, photos)
	return m, err
}

// only keeps the feeds of a preset, for which there may be several sizes.
func (m *Measured) only(preset string) error {
	m.Feeds = slices.DeleteFunc(m.Feeds, func(f model.Feed) bool {
		return f.Preset != preset || f.Order != "" || f.Declared != nil
	})
	total := 0.0
	for _, f := range m.Feeds {
		total += f.Prior
	}
	if total == 0 {
		return fmt.Errorf("the preset %s isn't one of the model's", preset)
	}
	for i := range m.Feeds {
		m.Feeds[i].Prior /= total
	}
	return nil
}

// Unanswered returns why nothing could be measured, nil if something was.
func (m *Measured) Unanswered() error {
	switch {
	case len(m.Hypotheses) > 0:
		return nil
	case m.Len() == 0:
		return errors.New("no image has a class")
	case len(m.Numberings) == 0:
		return fmt.Errorf("the images have %d classes and the model has %d: %s", len(m.Classes), m.Of,
			strings.Join(slices.Compact(slices.Clone(m.Refused)), "; "))
	}
	return errors.New("nothing was measured")
}

// FeedName describes how a hypothesis feeds the model, with the size if several were tried.
func (m *Measured) FeedName(h model.Hypothesis) string {
	f := m.Feeds[h.Feed]
	if slices.ContainsFunc(m.Feeds, func(g model.Feed) bool { return g.Size != f.Size }) {
		return fmt.Sprintf("%v of %d×%d pixels", f, f.Size.H, f.Size.W)
	}
	return f.String()
}

// Name returns the difference between two hypotheses.
func (m *Measured) Name(h, from model.Hypothesis) string {
	switch {
	case h.Numbering == from.Numbering:
		return m.FeedName(h)
	case h.Feed == from.Feed:
		return "classes " + m.Numberings[h.Numbering].Text
	}
	return m.FeedName(h) + " with classes " + m.Numberings[h.Numbering].Text
}

// Unplaced returns the remedy if no numbering of the classes fits.
func (m *Measured) Unplaced() string {
	if len(m.Classes) < m.Of {
		return fmt.Sprintf("which of the model's %d classes are the %d of the images? names: FILE of "+
			"dataset/folder places them, a text file with the model's classes, a line "+
			"each", m.Of, len(m.Classes))
	}
	return "are its classes numbered as theirs are, and is it fed in one of these ways? names: FILE of " +
		"dataset/folder numbers them, a text file with the model's classes, a line each"
}
