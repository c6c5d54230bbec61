package plan

import (
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// Precisions has the precisions in which the results of cells were computed. Each cell is visited once.
type Precisions map[*Cell]precisions

// precisions are those of the stages that made a cell's results, sorted: of its maps, and of its curves,
// which stand for all other results. What maps were made of is theirs, such as responses to subsets.
// Estimates of float32's results count as such: see [stages.Again].
type precisions map[stages.Type][]string

// of returns a cell's precisions.
func (computed Precisions) of(c *Cell) precisions {
	if of, ok := computed[c]; ok {
		return of
	}
	of, makesMaps := precisions{}, portOfType(c.Stage.Outputs, stages.Maps) == 0
	add := func(made stages.Type, list ...string) {
		if makesMaps {
			made = stages.Maps
		}
		of[made] = slices.Compact(slices.Sorted(slices.Values(append(list, of[made]...))))
	}
	own := stages.HasPrecision(c.Params) && c.Stage.Device
	if own {
		add(stages.Curves, stages.PrecisionOf(c.Params))
	}
	switch {
	case c.estimates():
		add(stages.Curves, stages.Float32)
	case !own || !makesMaps:
		for e := range c.Edges() {
			if e.Port >= 0 && e.From.Stage.Outputs[e.Port].Type == stages.Images {
				continue // no pass made them, such as images that a map masks
			}
			for made, list := range computed.of(e.From) {
				add(made, slices.Clone(list)...)
			}
		}
	}
	computed[c] = of
	return of
}

// estimates reports whether c has exact results besides others.
func (c *Cell) estimates() bool {
	for k, in := range c.Inputs {
		if c.Stage.Inputs[k].Again != nil && len(in.Edges) > 0 {
			return true
		}
	}
	return false
}

// Words says in which precisions c's results were computed, as titles of tables do: "passes in bfloat16". It
// is "" for float32 alone, and where an axis names the precisions.
func (computed Precisions) Words(c *Cell) string {
	named := slices.ContainsFunc(c.Coord, namesPrecision)
	for e := range c.Edges() {
		named = named || slices.ContainsFunc(e.Coord, namesPrecision)
	}
	var words []string
	for _, made := range [...]stages.Type{stages.Curves, stages.Maps} {
		list := computed.of(c)[made]
		if named || len(list) == 0 || slices.Equal(list, []string{stages.Float32}) {
			continue
		}
		what := "passes"
		if made == stages.Maps {
			what = "maps"
		}
		words = append(words, what+" in "+strings.Join(list, " and "))
	}
	return strings.Join(words, ", ")
}

// namesPrecision reports whether an id is a precision's name.
func namesPrecision(at stages.Coord) bool { return slices.Contains(stages.Precisions, at.ID) }

// warnMixed reports steps that put results of several precisions into one result, unless an axis asks for
// that whose ids are the precisions' names.
func (x *expander) warnMixed() {
	computed := Precisions{}
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

// mixedPrecisions returns the precisions of the curves or of the maps that c combines, if they differ from
// one edge of an input to the next by no axis of precisions.
func mixedPrecisions(c *Cell, computed Precisions) []string {
	for _, in := range c.Inputs {
		for _, made := range [...]stages.Type{stages.Curves, stages.Maps} {
			var first, all []string
			asked, differ := true, false
			for _, e := range in.Edges {
				of := computed.of(e.From)[made]
				if len(of) == 0 { // of none of these, or of those that no model made, such as random maps
					continue
				}
				if first == nil {
					first = of
				}
				differ = differ || !slices.Equal(of, first)
				asked = asked && slices.ContainsFunc(e.Coord, namesPrecision)
				all = append(all, of...)
			}
			if slices.Sort(all); differ && !asked {
				return slices.Compact(all)
			}
		}
	}
	return nil
}
