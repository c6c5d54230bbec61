package plan

import (
	"bytes"
	"reflect"
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

// warnIdle reports the axes that a step adds and that change none of its cells. Ids to which the stage refers
// may have equal values on purpose, such as one model for two data sets.
func (x *expander) warnIdle(b *stepBuild) {
	for _, a := range b.decl.matrix {
		if b.decl.refersTo(a) || !x.idle(b, a) {
			continue
		}
		node := b.decl.body.get("matrix").element(a.name)
		hint := "refer to it, in with or uses, or leave it out"
		if seeded := func(c *Cell) bool { return c.Stage.Seeded }; slices.ContainsFunc(b.step.Cells, seeded) {
			hint = "did you mean seed: \"${" + a.name + "}\"?"
			if !a.isList {
				hint = "did you mean seed: \"${" + a.name + ".seed}\", with a field seed of each id?"
			}
		}
		x.warnings.report(node, hint, "the axis %q changes nothing of the stage %q: its cells are the same",
			a.name, b.decl.name)
	}
}

// refersTo reports whether uses, a parameter, a line of when or the seed of a stage refers to an axis.
func (s *stageDecl) refersTo(a *axisDecl) bool {
	values := []*paramValue{s.seed}
	for _, p := range slices.Concat(s.with, s.set) {
		values = append(values, p.value)
	}
	for _, w := range s.when {
		for _, p := range w.with {
			values = append(values, p.value)
		}
		if slices.ContainsFunc(w.line.conds, func(c condDecl) bool { return c.axis == a }) {
			return true
		}
	}
	return s.choice == a || slices.ContainsFunc(values, func(v *paramValue) bool {
		return v != nil && slices.Contains(v.axes(), a)
	})
}

// idle reports whether an axis that a step adds changes neither its cells nor those of the steps that read
// them.
func (x *expander) idle(b *stepBuild, a *axisDecl) bool {
	first, reads := copies{}, map[*stageDecl]bool{b.decl: true}
	from := func(w *wireDecl) bool { return reads[w.from] }
	for _, s := range x.order {
		for _, in := range s.inputs {
			reads[s] = reads[s] || slices.ContainsFunc(in.wires, from)
		}
		t := x.steps[s]
		if slices.Contains(t.axes, a) && !x.idleAt(t.step, a, first) && reads[s] {
			return false
		}
	}
	return true
}

// copies have, by cell, the first of the cells that differ on an axis alone and are the same.
type copies map[*Cell]*Cell

func (f copies) of(c *Cell) *Cell {
	if first := f[c]; first != nil {
		return first
	}
	return c
}

// idleAt reports whether a step has cells that differ only on an axis, and all of these are the same: in
// implementation, parameters, seed and inputs.
func (x *expander) idleAt(s *Step, a *axisDecl, first copies) bool {
	of, several := map[string]*Cell{}, false
	for _, c := range s.Cells {
		on := func(at stages.Coord) bool { return at.Axis == a.name }
		others := CoordString(slices.DeleteFunc(slices.Clone(c.Coord), on))
		switch other := of[others]; {
		case other == nil:
			of[others] = c
		case !x.same(c, other, first):
			return false
		default:
			first[c], several = other, true
		}
	}
	return several
}

// same reports whether two cells do the same with the same inputs. Parameters that aren't part of keys count,
// too: they choose sources.
func (x *expander) same(c, d *Cell, first copies) bool {
	if c.Stage != d.Stage || c.Seed != d.Seed {
		return false
	}
	v, w := reflect.ValueOf(c.Params).Elem(), reflect.ValueOf(d.Params).Elem()
	for _, f := range x.types.of(c.Stage).fields {
		a, b := v.FieldByIndex(f.Index), w.FieldByIndex(f.Index)
		if !bytes.Equal(AppendValue(nil, a), AppendValue(nil, b)) {
			return false
		}
	}
	sameEdge := func(e, f Edge) bool {
		return e.Port == f.Port && slices.Equal(e.Coord, f.Coord) && (first.of(e.From) == first.of(f.From) ||
			e.From.Step.Implied && f.From.Step.Implied && x.same(e.From, f.From, first))
	}
	sameInput := func(a, b Input) bool { return slices.EqualFunc(a.Edges, b.Edges, sameEdge) }
	return slices.EqualFunc(c.Inputs, d.Inputs, sameInput)
}
