package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// scoresAt returns the scores of an image at a place.
func scoresAt(e *stages.Env, id string, place []stages.Coord) ([]scored, error) {
	var list []scored
	for _, d := range e.Ports["scores"] {
		if !agree(place, d.Coord) {
			continue
		}
		b, err := payload(d, id)
		if err != nil {
			return nil, err
		}
		if b == nil {
			continue
		}
		x, err := stages.ScalarOf(b)
		if err != nil {
			return nil, fmt.Errorf("score of %q: %w", id, err)
		}
		var names []string
		for _, c := range d.Coord {
			if idOn(place, c.Axis) == "" {
				names = append(names, c.ID)
			}
		}
		list = append(list, scored{strings.Join(names, " "), x, stages.MeasureOf(d.Facts).Direction})
	}
	return list, nil
}

// notesOf returns what stands below an image: the explained class and its probability, the label if it's
// another, the score that selected it, and its id.
func notesOf(e *stages.Env, c choice, place []stages.Coord) (notes []string, err error) {
	names := ""
	for _, d := range e.Ports["labels"] {
		names = d.Facts["labels"]
	}
	label := ""
	b, _, err := at(e.Ports["labels"], c.id, place)
	if err != nil {
		return nil, err
	}
	if b != nil {
		classes, err := classesOf(b)
		if err != nil {
			return nil, fmt.Errorf("label of %q: %w", c.id, err)
		}
		label = className(names, classes[0])
	}
	if b, _, err = at(e.Ports["targets"], c.id, place); err != nil {
		return nil, err
	}
	switch {
	case b != nil:
		classes, err := classesOf(b)
		if err != nil {
			return nil, fmt.Errorf("target of %q: %w", c.id, err)
		}
		text := className(names, classes[0])
		if len(classes) > 1 && classes[1] >= 0 {
			text += " − " + className(names, classes[1])
		}
		differs := label != "" && label != text
		if b, _, err = at(e.Ports["probability"], c.id, place); err != nil {
			return nil, err
		}
		if b != nil {
			x, err := stages.ScalarOf(b)
			if err != nil {
				return nil, fmt.Errorf("probability of %q: %w", c.id, err)
			}
			notes = append(notes, text)
			text = "p = " + decimals(x)
		}
		notes = append(notes, text)
		if differs {
			notes = append(notes, "label: "+label)
		}
	case label != "":
		notes = append(notes, label)
	}
	if c.end != "" {
		notes = append(notes, "score "+decimals(c.score))
	}
	return append(notes, c.id), nil
}

// className returns a class's name, or its number if it has none.
func className(names string, i int64) string {
	if list := strings.Split(names, "\n"); i >= 0 && i < int64(len(list)) && list[i] != "" {
		return list[i]
	}
	return "class " + strconv.FormatInt(i, 10)
}

// caption tells which images are shown, what the numbers are, and what was left out.
func (p SheetParams) caption(e *stages.Env, s *sheet, shown int) string {
	text := "Maps of " + s.words
	if shown < s.asked {
		text += fmt.Sprintf(", of which %d are shown: the file would exceed %d kB with more", shown,
			p.Budget)
		if shown == 1 {
			text = strings.Replace(text, "1 are shown", "1 is shown", 1)
		}
	}
	text += "."
	var below []string
	if e.Wired("scores") {
		below = append(below, "its score")
	}
	below = append(below, "the ends of its colours, the extreme half percent left out")
	text += " Below a map: " + strings.Join(below, "; ") + "."
	switch p.Scale {
	case "column":
		text += " The maps of a column share a scale."
	case "sheet":
		text += " All maps share a scale."
	}
	if p.Order == "score" {
		text += " Maps stand from the best score to the worst."
	}
	if p.Title != "" {
		text = p.Title + ": " + strings.ToLower(text[:1]) + text[1:]
	}
	return text
}
