package target

import (
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/modelfile"
)

// Suggest returns up to three expressions that fit a model's outputs: each binds.
func Suggest(outputs []modelfile.Output) []string {
	var all []string
	for _, o := range outputs {
		all = append(all, suggestions(written(o.Name), o.Shape)...)
	}
	if boxes, scores := ofDetector(outputs); boxes != "" {
		all = slices.Insert(all, 0, fmt.Sprintf("detection(%s, %s)", boxes, scores))
	}
	m := Model{Outputs: outputs}
	if len(outputs) == 1 {
		m.Answer = outputs[0].Name
	}
	all = slices.DeleteFunc(all, func(text string) bool {
		x, err := Parse(text)
		if err == nil {
			_, err = x.Bind(m)
		}
		return err != nil
	})
	return all[:min(3, len(all))]
}

// suggestions returns expressions of one output, which is written so.
func suggestions(o string, shape []int) []string {
	switch {
	case size(shape) == 1:
		return []string{fmt.Sprintf("only(%s)", o)}
	case len(shape) == 1:
		k := min(3, shape[0]-1)
		return []string{fmt.Sprintf("%s[%d]", o, k), fmt.Sprintf("contrast(%s, %d)", o, k),
			fmt.Sprintf("cosine(%s, other(%s))", o, o)}
	case len(shape) == 2:
		return []string{fmt.Sprintf("%s[%d, %d]", o, min(3, shape[0]-1), min(4, shape[1]-1)),
			fmt.Sprintf("max(%s[:, %d])", o, shape[1]-1)}
	}
	k := min(3, shape[0]-1)
	return []string{fmt.Sprintf("segmentation(%d, %s)", k, o), fmt.Sprintf("mean(%s[%d])", o, k)}
}

// ofDetector returns the boxes and the scores of rows of detections, "" if there are none.
func ofDetector(outputs []modelfile.Output) (boxes, scores string) {
	for _, o := range outputs {
		if len(o.Shape) != 2 {
			continue
		}
		switch n := o.Shape[1]; {
		case n == 4 && boxes == "":
			boxes = written(o.Name)
		case n > 5 && len(outputs) == 1:
			return written(o.Name) + "[:, :4]", written(o.Name) + "[:, 4:]"
		case scores == "":
			scores = written(o.Name)
		}
	}
	if scores == "" {
		return "", ""
	}
	return boxes, scores
}
