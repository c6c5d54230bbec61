package report

import (
	"fmt"
	"regexp"
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
				names = append(names, e.Label(c.Axis, c.ID))
			}
		}
		list = append(list, scored{strings.Join(names, " "), x, stages.MeasureOf(d.Facts).Direction})
	}
	return list, nil
}

// notesOf returns the text below an image: the explained class and its probability, the label if it differs,
// the score by which the image was selected, and its id, or less, depending on the parameter caption.
func notesOf(e *stages.Env, caption string, c choice, place []stages.Coord) (notes []string, err error) {
	if caption != "file" && caption != "none" {
		if notes, err = classNotes(e, c, place); err != nil {
			return nil, err
		}
	}
	if c.end != "" && caption != "none" {
		notes = append(notes, "score "+decimals(c.score))
	}
	if c.group != "" {
		notes = append(notes, c.group)
	}
	if caption == "file" || caption == "both" {
		notes = append(notes, c.id)
	}
	return notes, nil
}

// classNotes returns the notes about the class of an image.
func classNotes(e *stages.Env, c choice, place []stages.Coord) (notes []string, err error) {
	names := ""
	for _, d := range e.Ports["labels"] {
		names = d.Facts["labels"]
	}
	label := ""
	b, err := payloadAt(e.Ports["labels"], c.id, place)
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
	if b, err = payloadAt(e.Ports["targets"], c.id, place); err != nil {
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
		if b, err = payloadAt(e.Ports["probability"], c.id, place); err != nil {
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
	return notes, nil
}

// wordNet matches the number of a WordNet synset before a class's name.
var wordNet = regexp.MustCompile(`^n\d{8}[\s_,:-]+`)

// className returns a class's name, or its number if it has none.
func className(names string, i int64) string {
	if list := strings.Split(names, "\n"); i >= 0 && i < int64(len(list)) && list[i] != "" {
		if name := wordNet.ReplaceAllString(list[i], ""); name != "" {
			return name
		}
		return list[i]
	}
	return "class " + strconv.FormatInt(i, 10)
}

// caption describes the selection of images and the numbers.
func (p SheetParams) caption(e *stages.Env, s *sheet) string {
	text := "Maps of " + s.words + "."
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
