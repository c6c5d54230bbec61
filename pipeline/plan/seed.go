package plan

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// replicate reports whether only seeds read an axis.
func (a *axisDecl) replicate() bool { return a.seeds && !a.read }

// read notes that something other than a seed reads the axes of a line.
func (d *lineDecl) read() *lineDecl {
	for _, c := range d.conds {
		c.axis.read = true
	}
	return d
}

// readByChoices notes the axes that parameters of choices refer to.
func (e *experimentDecl) readByChoices() {
	for _, choice := range e.axes {
		for _, v := range choice.values {
			for _, a := range e.axes {
				a.read = a.read || v.get("with").refersTo(a.name)
			}
		}
	}
}

// refersTo reports whether a text in a tree refers to an axis, or to a field of one.
func (n *yamlNode) refersTo(axis string) bool {
	if n == nil {
		return false
	}
	return strings.Contains(n.text, "${"+axis+"}") || strings.Contains(n.text, "${"+axis+".") ||
		slices.ContainsFunc(n.vals, func(v *yamlNode) bool { return v.refersTo(axis) })
}

// A trace is a step with one of its axes, of which another step reads some cells, itself or through others.
type trace struct {
	of   *stepBuild
	axis *axisDecl
}

// setTraces finds the axes along which a step, or one that it reads, compares all cells of a stage with that
// of one id: the comparison of this one with itself is another thing than the others. It doesn't matter
// whether the step reads these cells itself, or what was made of them.
func (x *expander) setTraces(b *stepBuild) {
	b.each, b.one = map[trace]bool{}, map[trace]bool{}
	for _, d := range b.decl.inputs {
		for _, w := range d.wires {
			from := x.steps[w.from]
			if from == nil {
				continue
			}
			own := w.axes(from)
			for t := range from.one {
				b.one[t] = true
			}
			each := maps.Clone(from.each)
			for _, a := range from.axes {
				each[trace{from, a}] = true
			}
			for t := range each {
				switch {
				case slices.Contains(own, t.axis):
					b.each[t] = true
				case w.fixed.id(t.axis) >= 0:
					b.one[t] = true
				}
			}
			b.contrasted = unionAxes(b.contrasted, slices.DeleteFunc(slices.Clone(own),
				func(a *axisDecl) bool { return !slices.Contains(from.contrasted, a) }))
		}
	}
	for t := range b.each {
		if b.one[t] {
			b.contrasted = unionAxes(b.contrasted, []*axisDecl{t.axis})
		}
	}
}

// replicates returns the collapsed axes of a cell whose scores are averaged: those that only seeds read,
// along which no step compares with one id, and that no parameter of the stage names.
func (m *cellBuild) replicates() (axes []string) {
	for _, a := range m.collapsed {
		on := func(e Edge) bool {
			return slices.ContainsFunc(e.Coord, func(c stages.Coord) bool { return c.Axis == a.name })
		}
		for k, in := range m.cell.Inputs {
			if a.replicate() && !slices.Contains(m.contrasted, a) && !m.names(a.name) &&
				m.stage.Inputs[k].Averages && slices.ContainsFunc(in.Edges, on) {
				axes = append(axes, a.name)
				break
			}
		}
	}
	return axes
}

// names reports whether a parameter of a cell that takes axes has one.
func (m *cellBuild) names(axis string) bool {
	v := reflect.ValueOf(m.cell.Params).Elem()
	return slices.ContainsFunc(m.params.fields, func(f paramField) bool {
		return f.Axis != "" && slices.Contains(textsOf(v.FieldByIndex(f.Index)), axis)
	})
}

const notSeed = "%v is not a whole number from 0 to 2⁶⁴ − 1"

// seed returns the seed that a value is.
func (n *yamlNode) seed() (seed uint64, ok bool) {
	seed, err := strconv.ParseUint(n.text, 10, 64)
	return seed, err == nil && n.kind == yamlInt
}

// stageSeed reads the seed of a stage: a whole number, or a reference to one. It returns nil, with a
// diagnostic, for anything else.
func (l *loader) stageSeed(n *yamlNode) *paramValue {
	v := &paramValue{node: n}
	switch {
	case n.kind == yamlText && strings.Contains(n.text, "${"):
		if !l.splitText(v) {
			return nil
		}
		if len(v.parts) > 1 {
			l.report(n, "write ${axis} or ${axis.field}", "a seed is a whole reference, not a part of one")
			return nil
		}
		v.parts[0].axis.seeds = true
	default:
		if _, ok := n.seed(); !ok {
			l.report(n, "or write a reference to an axis, such as \"${run}\"", notSeed, n)
			return nil
		}
	}
	return v
}

// checkSeed reports the seed of a stage that draws no random numbers, whatever its choice.
func (x *expander) checkSeed(b *stepBuild) {
	v := b.decl.seed
	if v == nil || !x.checkReferences(b, v) {
		return
	}
	var names []string
	for _, r := range b.bindings {
		if r != nil && (r.unknown || r.stage.Seeded) {
			return
		}
		if r != nil && !slices.Contains(names, r.stage.Name) {
			names = append(names, r.stage.Name)
		}
	}
	hint := "leave seed out; it belongs to a stage that draws"
	if drawing := x.drawing(b); len(drawing) > 0 {
		hint = "leave seed out; of the stages that it reads, " + strings.Join(drawing, ", ") + " draws"
	}
	x.report(v.node, hint, "the stage %q draws no random numbers: %s", b.decl.name, strings.Join(names, ", "))
}

// drawing returns the names of the stages upstream of a step that draw random numbers.
func (x *expander) drawing(b *stepBuild) (names []string) {
	for _, d := range b.decl.inputs {
		for _, w := range d.wires {
			from := x.steps[w.from]
			if from == nil {
				continue
			}
			seeded := func(r *binding) bool { return r != nil && r.stage.Seeded }
			if slices.ContainsFunc(from.bindings, seeded) {
				names = append(names, from.decl.name)
			}
			names = append(names, x.drawing(from)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// seed sets the seed of a cell that draws random numbers. It returns false, with a diagnostic, if what the
// stage's seed refers to isn't one.
func (x *expander) seed(m *cellBuild) (good bool) {
	v := m.decl.seed
	if !m.stage.Seeded {
		return true
	}
	m.cell.Seed = x.exp.seed
	if v == nil {
		return true
	}
	n := x.value(v, m.at)
	if n == nil {
		return false // reported already
	}
	seed, ok := n.seed()
	if !ok {
		hint := ""
		if a := v.axes(); len(a) > 0 && !a[0].isList {
			hint = "give each id a field: {seed: 1}, and write ${" + a[0].name + ".seed}"
		} else if len(a) > 0 {
			hint = "write " + a[0].name + ": [1, 2, 3]"
		}
		x.report(n, hint, notSeed+" (used by %s)", n, v.node.path())
		return false
	}
	m.cell.Seed = seed
	return true
}
