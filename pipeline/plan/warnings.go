package plan

import (
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages"
)

// warn says what isn't wrong and is probably not meant.
func (x *expander) warn() {
	for _, s := range x.exp.stages {
		if !s.consumed && !scores(x.steps[s]) {
			x.warnings.at(s.key, "publish it, or leave it out", "nothing uses the stage "+strconv.Quote(s.name))
		}
		b := x.steps[s]
		if b == nil || b.broken {
			continue
		}
		if s.drop && len(b.collapsed) == 0 {
			x.warnings.at(s.dropNode, "", "missing: drop means nothing without over")
		}
		if len(x.o.Only) > 0 {
			continue // what doesn't match may match in the whole
		}
		lines := slices.Concat(s.only, s.exclude)
		for _, w := range s.when {
			lines = append(lines, w.line)
		}
		for _, line := range lines {
			if !line.matched && !line.bad {
				x.warnings.at(line.node, "", "this line matches no cell of "+strconv.Quote(s.name))
			}
		}
		if len(b.step.Cells) == 0 && len(x.plan.Cells) > 0 {
			x.warnings.at(s.key, "look at only and exclude, here and upstream", "no combination of the stage "+strconv.Quote(s.name)+" is left")
		}
	}
	for _, a := range x.exp.axes {
		if !a.used {
			x.warnings.at(a.node, "", "nothing uses the axis "+strconv.Quote(a.name))
		}
	}
	x.plan.Warnings = x.warnings.sorted()
}

// scores reports whether a step has scores, whose means are published unasked.
func scores(b *stepBuild) bool {
	return b != nil && slices.ContainsFunc(b.recipes, func(r *recipe) bool {
		return r != nil && slices.ContainsFunc(r.stage.Outputs, func(p stages.Port) bool { return p.Type.Name == stages.Scores.Name })
	})
}
