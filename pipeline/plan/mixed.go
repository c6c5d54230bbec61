package plan

import (
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// warnMixed reports steps that put results of several precisions into one result, unless an axis asks for
// that whose ids are the precisions' names.
func (x *expander) warnMixed() {
	computed := map[*Cell][]string{}
	for _, s := range x.exp.stages {
		b := x.steps[s]
		if b == nil || b.broken {
			continue
		}
		for _, c := range b.step.Cells {
			if mixed := mixedPrecisions(c, computed); mixed != nil {
				x.warnings.report(s.key, "give them one precision, or an axis precision: ["+
					strings.Join(mixed, ", ")+"]", "%q has results of %s in one table", s.name,
					strings.Join(mixed, " and "))
				break
			}
		}
	}
}

// mixedPrecisions returns the precisions of the curves and maps that c combines, if they differ from one edge
// of an input to the next by no axis of precisions.
func mixedPrecisions(c *Cell, computed map[*Cell][]string) []string {
	for _, in := range c.Inputs {
		var all []string
		asked, differ := true, false
		for _, e := range in.Edges {
			of := precisionsOf(e.From, computed)
			differ = differ || !slices.Equal(of, precisionsOf(in.Edges[0].From, computed))
			asked = asked && slices.ContainsFunc(e.Coord, func(x stages.Coord) bool {
				return slices.Contains(stages.Precisions, x.ID)
			})
			all = append(all, of...)
		}
		if slices.Sort(all); differ && !asked {
			return slices.Compact(all)
		}
	}
	return nil
}

// precisionsOf returns the precisions of the stages that made a cell's results, sorted: of its curves, and
// otherwise of its maps. Cells are visited once.
func precisionsOf(c *Cell, computed map[*Cell][]string) []string {
	if of, ok := computed[c]; ok {
		return of
	}
	var of []string
	if stages.HasPrecision(c.Params) && c.Stage.Device {
		of = []string{stages.PrecisionOf(c.Params)}
	}
	if len(of) == 0 {
		for e := range c.Edges() {
			of = append(of, precisionsOf(e.From, computed)...)
		}
		slices.Sort(of)
		of = slices.Compact(of)
	}
	computed[c] = of
	return of
}
