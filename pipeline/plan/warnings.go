package plan

import (
	"slices"
	"strings"
	"sync"

	"github.com/runexp/runexp/stages"
)

// warn reports settings that are valid and probably not intended.
func (x *expander) warn() {
	for _, s := range x.exp.stages {
		b := x.steps[s]
		if !s.consumed && !shown(b) {
			x.warnings.report(s.key, "publish it, or leave it out", "nothing uses the stage %q", s.name)
		}
		if b == nil || b.broken {
			continue
		}
		if s.drop && len(b.collapsed) == 0 {
			x.warnings.report(s.dropNode, "", "missing: drop means nothing without over")
		}
		if len(x.o.Only) > 0 {
			continue // the line may match a cell of the whole experiment
		}
		x.warnIdle(b)
		for _, line := range s.allLines() {
			if !line.matched && !line.bad {
				x.warnings.report(line.node, "", "this line matches no cell of %q", s.name)
			}
		}
		if len(b.step.Cells) == 0 && len(x.plan.Cells) > 0 {
			x.warnings.report(s.key, "look at only and exclude, here and upstream",
				"no combination of the stage %q is left", s.name)
		}
	}
	for _, a := range x.exp.axes {
		if !a.used {
			x.warnings.report(a.node, "", "nothing uses the axis %q", a.name)
		}
	}
	x.plan.Warnings = x.warnings.sorted()
}

// shown reports whether a step's results are shown even if it isn't published: scores, whose means are, or
// thumbnails, which are on the page.
func shown(b *stepBuild) bool {
	return b != nil && slices.ContainsFunc(b.bindings, func(r *binding) bool {
		return r != nil && (portOfType(r.stage.Outputs, stages.Scores) >= 0 ||
			portOfType(r.stage.Outputs, stages.Thumbnails) >= 0)
	})
}

// remarks are the remarks of the stages of a plan, collected once.
type remarks struct {
	once sync.Once
	all  Diags
}

// Remarks returns what stages remark on the files that they read: unused files, and files that are
// interpreted otherwise than written. It lists the sources of data sets, once.
func (p *Plan) Remarks() Diags {
	p.remarks.once.Do(func() {
		var ds diagnostics
		told := map[string]bool{}
		for _, c := range p.Cells {
			decl := p.decl.stage(c.Step.Name)
			if decl == nil {
				continue
			}
			for _, text := range c.remarks() {
				if key := c.Step.Name + "\n" + text; !told[key] {
					told[key] = true
					ds.report(decl.key, "", "%s: %s", c.Step.Name, text)
				}
			}
		}
		p.remarks.all = ds.sorted()
	})
	return slices.Clone(p.remarks.all)
}

// remarks calls the stage's Remarks, if it has the hook. A panic in it is ignored: a panic of Sources is
// reported.
func (c *Cell) remarks() (list []string) {
	var err error
	defer Catch(&err)
	if remarks := c.Stage.HooksOf(c.Params).Remarks; remarks != nil {
		return remarks()
	}
	return nil
}

// warnMixed reports steps that put results of several precisions into one result, unless an axis asks for
// that whose ids are the precisions' names.
func (x *expander) warnMixed() {
	computed := map[*Cell]precisions{}
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
func mixedPrecisions(c *Cell, computed map[*Cell]precisions) []string {
	for _, in := range c.Inputs {
		for _, made := range [...]stages.Type{stages.Curves, stages.Maps} {
			var first, all []string
			asked, differ := true, false
			for _, e := range in.Edges {
				of := precisionsOf(e.From, computed)[made]
				if len(of) == 0 { // made of none of these, or of those that no model made, such as random maps
					continue
				}
				if first == nil {
					first = of
				}
				differ = differ || !slices.Equal(of, first)
				asked = asked && slices.ContainsFunc(e.Coord, func(x stages.Coord) bool {
					return slices.Contains(stages.Precisions, x.ID)
				})
				all = append(all, of...)
			}
			if slices.Sort(all); differ && !asked {
				return slices.Compact(all)
			}
		}
	}
	return nil
}

// precisions are those of the stages that made a cell's results, sorted: of its maps, and of its curves,
// which stand for all other results. What maps were made of is theirs, such as responses to subsets.
type precisions map[stages.Type][]string

// precisionsOf returns a cell's. Cells are visited once.
func precisionsOf(c *Cell, computed map[*Cell]precisions) precisions {
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
	if !own || !makesMaps {
		for e := range c.Edges() {
			if e.Port >= 0 && e.From.Stage.Outputs[e.Port].Type == stages.Images {
				continue // no pass made them, such as images that a map masks
			}
			for made, list := range precisionsOf(e.From, computed) {
				add(made, slices.Clone(list)...)
			}
		}
	}
	computed[c] = of
	return of
}
