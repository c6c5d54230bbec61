package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/runexp/runexp/registry"
)

// measure infers from the model's predictions for labelled images how the model is fed and how its classes
// are numbered.
func (s *starter) measure(ctx context.Context, u *ui, file string, look *registry.Look) error {
	if s.Folder.Labelled == 0 {
		s.Doubt = "no image has a class"
		return nil
	}
	m, err := registry.Measure(ctx, file, *look, &s.Model, s.Folder, u.measuring())
	switch {
	case ctx.Err() != nil:
		return err
	case err != nil:
		s.Doubt = fmt.Sprintf("nothing can be measured on these images: %v", err)
		return nil
	}
	s.Measured = m
	if m.Nested != nil {
		return misplaced(s.Folder.Path, m.Nested, m.Of)
	}
	if err := m.Unanswered(); err != nil {
		s.Doubt = err.Error()
		return nil
	}
	best, placed := m.Best()
	if !placed {
		s.Doubt = "with none the model is clearly better than guessing; " + m.Unplaced()
		return nil
	}
	feed, numbering := m.Feeds[best.Feed], m.Numberings[best.Numbering]
	s.Model.Measured, s.Numbering = &feed, &numbering
	s.Model.Feed.Height, s.Model.Feed.Width = feed.Size.H, feed.Size.W
	return nil
}

// misplaced returns the error for a folder that contains the folders of classes further down.
func misplaced(folder string, n *registry.Nested, classes int) error {
	at := filepath.Join(folder, filepath.FromSlash(n.Inside))
	best := filepath.Join(folder, filepath.FromSlash(n.Best))
	return usage(fmt.Errorf("%s holds %v and the model has %d classes: name %s", at, n, classes, best),
		"--images "+quote(best))
}

// measuring returns a function that shows the progress of measuring on a terminal.
func (u *ui) measuring() func(done, total int) {
	if !u.terminal {
		return nil
	}
	return func(done, total int) {
		fmt.Fprintf(u.err, "\rmeasuring how the model is fed: %d %%\x1b[K", 100*done/max(total, 1))
		if done >= total {
			fmt.Fprint(u.err, "\r\x1b[K")
		}
	}
}

// A row is a hypothesis, for people.
type row struct {
	Feed, Numbering string
	Right           string
	Log             string // log-likelihood per image
	Posterior       string
}

// Rows returns the relevant hypotheses: the likely ones, those that the images can't distinguish from
// these, and the most probable one of each numbering.
func (s *starter) Rows() (rows []row) {
	if s.Measured == nil {
		return nil
	}
	shown := map[int]bool{}
	for i, h := range s.Measured.Hypotheses {
		if i >= 3 && h.Posterior < 0.001 && shown[h.Numbering] || len(rows) == 8 {
			continue
		}
		shown[h.Numbering] = true
		rows = append(rows, s.row(h))
	}
	return rows
}

func (s *starter) row(h registry.Hypothesis) row {
	m := s.Measured
	return row{Feed: m.FeedName(h), Numbering: m.Numberings[h.Numbering].Text,
		Right: fmt.Sprintf("%d of %d", h.Right, h.Images), Log: signed(h.Mean),
		Posterior: probability(h.Posterior)}
}

// Presets describes all presets, with the accuracy of the best numbering for each.
func (s *starter) Presets() (lines []string) {
	for _, p := range s.Model.Presets {
		line := fmt.Sprintf("%-18s %s", p.Name, p.Doc)
		if s.Measured != nil && len(s.Measured.Hypotheses) > 0 {
			i := slices.IndexFunc(s.Measured.Hypotheses, func(h registry.Hypothesis) bool {
				f := s.Measured.Feeds[h.Feed]
				return f.Preset == p.Name && f.Order == "" && f.Declared == nil
			})
			if i >= 0 {
				h := s.Measured.Hypotheses[i]
				line += fmt.Sprintf(": right on %d of %d, %s", h.Right, h.Images, signed(h.Mean))
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// Right writes how often the model is right under the chosen hypothesis.
func (s *starter) Right() string {
	best, _ := s.Measured.Best()
	return fmt.Sprintf("%d of %d images", best.Right, best.Images)
}

// PerClass writes for how many images of each class the model is right, the worst class first.
func (s *starter) PerClass() (words []string) {
	m := s.Measured
	order := make([]int, len(m.PerClass))
	for i := range order {
		order[i] = i
	}
	share := func(g int) float64 { return float64(m.PerClass[g][0]) / float64(max(m.PerClass[g][1], 1)) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(share(a), share(b)) })
	const most = 12
	for _, g := range order[:min(most, len(order))] {
		words = append(words, fmt.Sprintf("%s %d/%d", printable(m.Classes[g]), m.PerClass[g][0],
			m.PerClass[g][1]))
	}
	if len(order) > most {
		words = append(words, fmt.Sprintf("%d more", len(order)-most))
	}
	return words
}

// Rest describes the hypotheses that the images can't distinguish, in two sentences, each "" if there is
// nothing to say: those that leave a doubt, and those that are unlikely for other reasons.
func (s *starter) Rest() (doubt, unlikely string) {
	if s.Model.Measured == nil {
		return "", ""
	}
	m := s.Measured
	best, _ := m.Best()
	doubtful, others := m.Rivals()
	if len(doubtful) > 0 {
		var words []string
		for _, h := range doubtful {
			words = append(words, fmt.Sprintf("%s (%s)", m.Name(h, best), probability(h.Posterior)))
		}
		doubt = fmt.Sprintf("these images don't tell %s (%s) from %s: which one was the model trained with?",
			m.Name(best, doubtful[0]), probability(best.Posterior), strings.Join(words, ", "))
	}
	const most = 3
	var words []string
	for _, h := range others[:min(most, len(others))] {
		word := m.Name(h, best) + " can't be told apart by these images"
		if why := m.Feeds[h.Feed].Unlikely; why != "" && h.Feed != best.Feed {
			word = fmt.Sprintf("%s, and %s", word, why)
		}
		words = append(words, word)
	}
	if n := len(others) - most; n > 0 {
		words = append(words, fmt.Sprintf("nor can %d others, less likely beforehand", n))
	}
	unlikely = strings.Join(words, "; ")
	return doubt, unlikely
}

// Warning describes the uncertainty of the choice, "" if there is none.
func (s *starter) Warning() string {
	doubt, _ := s.Rest()
	return doubt
}

// verdict prints what was measured.
func (s *starter) verdict(u *ui) {
	switch {
	case s.Doubt != "" && s.Given != "":
		fmt.Fprintf(u.out, "preset %s, as asked for, without a measurement: %s\n", s.Given, s.Doubt)
	case s.Doubt != "":
		fmt.Fprintln(u.out, "preset: a guess; "+s.Doubt)
	}
	if s.Model.Measured != nil {
		fmt.Fprintf(u.out, "preset %s, classes %s: the model is right on %s\n",
			s.Measured.Feeds[s.Measured.Hypotheses[0].Feed], s.Numbering.Text, s.Right())
	}
	if rows := s.Rows(); len(rows) > 1 {
		t := tabwriter.NewWriter(u.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "  probability\tlog-likelihood\tright\tpreset\tclasses")
		for _, r := range rows {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", r.Posterior, r.Log, r.Right, r.Feed, r.Numbering)
		}
		t.Flush()
	}
	doubt, unlikely := s.Rest()
	if doubt != "" {
		u.warn(doubt)
	}
	if unlikely != "" {
		fmt.Fprintln(u.out, unlikely)
	}
	if m := s.Measured; s.Model.Measured != nil {
		if best, _ := m.Best(); 2*best.Right < best.Images {
			u.warn(fmt.Sprintf("the model is wrong on most images even so (right on %s): it's weak on "+
				"them, or fed in a way that was not tried", s.Right()))
		}
		if m.Unreadable > 0 {
			u.warn(fmt.Sprintf("not measured on, as it can't be read: %d of %d photographs; the first: %v",
				m.Unreadable, m.Unreadable+m.Images, m.Unread))
		}
		if feeds := s.nan(); feeds != "" {
			u.warn("the model answers NaN to some of the images if it is fed by " + feeds +
				": they are out of the question, unless the model is defective")
		}
	}
}

// nan returns the names of the feeds with which the model answers NaN, except for unlikely ones.
func (s *starter) nan() string {
	var names []string
	for _, i := range s.Measured.NaN {
		if f := s.Measured.Feeds[i]; f.Unlikely == "" {
			names = append(names, f.String())
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// namesFrom returns the path of the file with the model's class names, relative to the experiment's folder;
// "" if the order of the classes needs no file. If only the model's file holds the names, they are written
// to a new file.
func (s *starter) namesFrom(dir string) (string, error) {
	switch {
	case s.Numbering == nil || s.Numbering.Names == "" && s.Numbering.Listed == nil:
		return "", nil
	case s.Numbering.Names != "":
		return seenFrom(dir, s.Numbering.Names)
	}
	name := s.Name + ".classes.txt"
	b := []byte(strings.Join(s.Numbering.Listed, "\n") + "\n")
	if old, err := os.ReadFile(filepath.Join(dir, name)); err == nil && bytes.Equal(old, b) {
		return name, nil
	}
	return name, s.create(dir, name, b)
}

// probability writes a probability with two digits, and one near 0 or 1 as a bound.
func probability(p float64) string {
	switch {
	case p < 0.001:
		return "< 0.001"
	case p > 0.999:
		return "> 0.999"
	}
	return fmt.Sprintf("%.2g", p)
}

// signed writes a number with a typographic minus sign.
func signed(v float64) string { return strings.Replace(fmt.Sprintf("%.2f", v), "-", "−", 1) }

// printable quotes a text that would break a line or a terminal.
func printable(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}
