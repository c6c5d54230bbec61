package plan

import (
	"slices"
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
