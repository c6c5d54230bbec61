package registry

import (
	"strings"

	"github.com/runexp/runexp/stages"
)

// guides are the pages of docs that explain stages one by one, docs/metrics.md and docs/methods.md, with
// their families of stages.
var guides = map[string][]string{
	"metrics": {"score", "perturb", "segments", "mosaic", "stats", "fuse"},
	"methods": {"attribute"},
}

// A Line is a stage in a few words: its name, its title, and the passes that an item costs, such as
// "1 forward, 1 backward", "those of perturb/subset", or "none".
type Line struct{ Name, Title, Cost string }

// Guide returns a line for each stage that the page "metrics" or "methods" explains, in the order of the
// page; none for other names.
func (s *Set) Guide(page string) (lines []Line) {
	for _, st := range s.guide(page) {
		title, _, _ := strings.Cut(st.Doc, "\n")
		lines = append(lines, Line{st.Name, title, cost(st)})
	}
	return lines
}

func (s *Set) guide(page string) (list []*stages.Stage) {
	for _, family := range guides[page] {
		list = append(list, s.Family(family)...)
	}
	return list
}

// answering returns the stage that asks the model for s, "" if none does: one that s can't be without, and
// that is made for the items of s alone.
func answering(s *stages.Stage) string {
	for _, p := range s.Inputs {
		if p.Own && !p.Optional {
			return p.Else
		}
	}
	return ""
}

// cost describes the passes that an item costs.
func cost(s *stages.Stage) string {
	if by := answering(s); by != "" && s.Passes == (stages.Passes{}) {
		return "those of " + by
	}
	return s.Passes.String()
}
