package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/interval"
)

// A final is the outcome of the confirmation. Its images are none on which the rounds chose, and its first
// candidate is the first of the rounds, so that its tests are those of hypotheses made beforehand.
type final struct {
	images int
	of     []finalist // by their means, best first
	first  string     // of the rounds
	answer string     // of stats/wilcoxon
	needed float64    // the most images that a comparison would have taken, 0 if none is open
}

// A finalist is a candidate, or the control, in the confirmation.
type finalist struct {
	ID        string         `json:"id"`
	Uses      string         `json:"uses"`
	With      string         `json:"with,omitempty"`
	Mean      stages.Number  `json:"mean"`
	Low       stages.Number  `json:"low"`
	High      stages.Number  `json:"high"`
	First     bool           `json:"first"`          // of the rounds; the others are compared with it
	Lead      *stages.Number `json:"lead,omitempty"` // of the first over this one; positive if it is better
	LeadLow   *stages.Number `json:"lead_low,omitempty"`
	LeadHigh  *stages.Number `json:"lead_high,omitempty"`
	P         *stages.Number `json:"p,omitempty"` // corrected by Holm
	Confirmed bool           `json:"confirmed"`   // the difference, of either sign
}

// confirm tests the finalists on images that no round has had.
func (t *tournament) confirm(ctx context.Context) error {
	if len(t.schedule.Rounds) == 0 { // none has ended in time
		for _, s := range t.standings {
			t.untried = append(t.untried, absence{s.id, errTime.Error()})
		}
		return nil
	}
	if t.schedule.decided() || t.end.IsZero() {
		r := t.schedule.Final
		if r.Images > t.held() {
			return misuse("--rounds: the confirmation has %d images, and half of the %d are left for it",
				r.Images, t.Folder.Images)
		}
		return t.test(ctx, finalistsOf(t.standings, r.Candidates), r.Images)
	}
	list := finalistsOf(t.standings, finalists)
	images := t.affordable(list, t.held())
	list = list[:min(len(list), max(comparisons(images), 1)+1)]
	// Time alone decides how many images there are: by what half of the estimate takes.
	began, sure := time.Now(), images/2
	if err := t.test(ctx, list, sure); err != nil || t.final == nil {
		return err
	}
	each := time.Since(began).Seconds() / float64(sure*len(t.final.of)) * float64(len(list)+1)
	left := time.Duration(reserve * float64(time.Until(t.end)))
	if images = more(sure, t.held(), price{image: each}, left); images > sure {
		if err := t.test(ctx, list, images); err != nil {
			return err
		}
	}
	t.schedule.Final = round{len(list), t.final.images}
	t.remember()
	return nil
}

// held is the number of images that are kept from the rounds.
func (t *tournament) held() int { return t.Folder.Images - t.Folder.Images/2 }

// affordable returns how many images the time allows for a confirmation.
func (t *tournament) affordable(list []standing, most int) int {
	var prices []price
	for _, c := range t.lineUp(list, most) {
		prices = append(prices, t.prices[c.id])
	}
	left := time.Duration(float64(time.Until(t.end)) * reserve / t.slower)
	return more(0, most, total(prices), left)
}

// lineUp returns finalists, and the control if a test of so many images can confirm one more comparison.
func (t *tournament) lineUp(list []standing, images int) (of []candidate) {
	for _, s := range list {
		of = append(of, s.candidate)
	}
	if comparisons(images) >= len(list) {
		of = append(of, t.baseline(control))
	}
	return of
}

// test sets the final of finalists on so many images, unless the time ends before. A final of fewer images
// stays then.
func (t *tournament) test(ctx context.Context, list []standing, images int) error {
	of := t.lineUp(list, images)
	if images == 0 || len(of) < 2 {
		return nil
	}
	t.u.say("confirmation: %d candidates on %s", len(of), numberOf(images, "other image"))
	g := game{of: of, first: of[0].id, images: images, skip: t.Folder.Images / 2}
	s, why, err := t.play(ctx, g, t.end)
	if err != nil {
		return err
	}
	defer s.result.Close()
	for _, c := range of {
		switch reason := why[c.id]; {
		case reason == errTime.Error():
			t.u.say("the confirmation on %s takes too long, and doesn't count", numberOf(images, "image"))
			return nil
		case reason != "":
			t.refused = append(t.refused, absence{c.id, reason})
		}
	}
	of = slices.DeleteFunc(of, func(c candidate) bool { return why[c.id] != "" })
	if len(of) < 2 || of[0].id != g.first {
		return nil
	}
	return t.evaluate(ctx, s, of, images)
}

// evaluate reads the outcome of a confirmation.
func (t *tournament) evaluate(ctx context.Context, s scored, of []candidate, images int) error {
	cells, err := s.plan.Fitting("test")
	if err != nil {
		return err
	}
	cell := cells[0]
	payload := map[string][]byte{}
	for i := range cell.Stage.Outputs {
		d, err := s.result.Data(ctx, cell, i)
		if err != nil {
			return err
		}
		if payload[cell.Stage.Outputs[i].Name], err = d.Load(0); err != nil {
			return err
		}
	}
	table, err := stages.DecodeTable(payload["table"])
	if err != nil {
		return err
	}
	f := &final{images: images, first: of[0].id}
	f.answer = cell.Stage.HooksOf(cell.Params).Present(string(payload["answer"]),
		map[string]stages.Table{"table": table})
	if err := f.read(table, of, s); err != nil {
		return err
	}
	t.final = f
	return nil
}

// read sets the finalists, with p from the table of stats/wilcoxon.
func (f *final) read(tests stages.Table, of []candidate, s scored) error {
	at := map[string]int{}
	for k, c := range tests.Numbers {
		at[c.Name] = k
	}
	scores := map[string]finalist{}
	var order []candidate
	for _, r := range ranked(of, s.scores, s.lower) {
		order = append(order, r.candidate)
		mean, low, high := interval.Mean(defined(s.scores[r.id]))
		scores[r.id] = finalist{ID: r.id, Uses: "attribute/" + r.method, With: r.with, First: r.id == f.first,
			Mean: stages.Number(mean), Low: stages.Number(low), High: stages.Number(high)}
	}
	for _, r := range tests.Rows {
		one, ok := scores[r.Keys[0]]
		if !ok {
			return fmt.Errorf("the tests name %q, which isn't a finalist", r.Keys[0])
		}
		p := r.Numbers[at["p corrected"]]
		one.P, one.Confirmed = &p, r.Numbers[at["not confirmed"]] == 0
		mean, low, high := interval.Mean(leads(s.scores[f.first], s.scores[one.ID], s.lower))
		lead := [3]stages.Number{stages.Number(mean), stages.Number(low), stages.Number(high)}
		one.Lead, one.LeadLow, one.LeadHigh = &lead[0], &lead[1], &lead[2]
		if needed := float64(r.Numbers[at["needed"]]); !one.Confirmed && needed > f.needed {
			f.needed = needed
		}
		scores[one.ID] = one
	}
	for _, c := range order {
		f.of = append(f.of, scores[c.id])
	}
	if len(f.of) == 0 {
		return errors.New("the confirmation has no finalist")
	}
	return nil
}

// verdict says in a sentence which leads of the first over other methods are confirmed.
func (f *final) verdict() string {
	var ahead, behind, open []string
	for _, c := range f.of {
		switch {
		case c.First || c.ID == control:
		case !c.Confirmed:
			open = append(open, c.ID)
		case *c.Lead > 0:
			ahead = append(ahead, c.ID)
		default:
			behind = append(behind, c.ID)
		}
	}
	switch {
	case len(behind) > 0:
		return fmt.Sprintf("Answer: %s, the first of the rounds, is confirmed to be worse than %s.", f.first,
			strings.Join(behind, ", "))
	case len(ahead)+len(open) == 0:
		return fmt.Sprintf("Answer: %s is the only finalist.", f.first)
	case len(ahead) == 0:
		return fmt.Sprintf("No answer among the finalists: no lead of %s, the first of the rounds, is "+
			"confirmed over another method.", f.first)
	case len(open) > 0:
		return fmt.Sprintf("Answer: %s leads %s; there is no answer between it and %s.", f.first,
			strings.Join(ahead, ", "), strings.Join(open, ", "))
	}
	return fmt.Sprintf("Answer: %s leads every other finalist.", f.first)
}

// leads returns by how much a is better than b, for the images that have a score of both.
func leads(a, b []float64, lower bool) (out []float64) {
	for i := range a {
		d := a[i] - b[i]
		if lower {
			d = -d
		}
		out = append(out, d)
	}
	return defined(out)
}

// defined returns the numbers that aren't NaN.
func defined(x []float64) (out []float64) {
	for _, v := range x {
		if v == v {
			out = append(out, v)
		}
	}
	return out
}
