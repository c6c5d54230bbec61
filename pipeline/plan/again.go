package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// again feeds the inputs of a cell whose cells are computed again for a part of their items: see
// [stages.Again].
func (x *expander) again(m *cellBuild) {
	for k := range m.stage.Inputs {
		p := &m.stage.Inputs[k]
		if p.Again == nil || len(m.cell.Inputs[k].Edges) > 0 {
			continue
		}
		value, ok := x.valueOf(m.cell, p.Again.As)
		if !ok || value.IsZero() {
			continue
		}
		edges := m.cell.Inputs[portNamed(m.stage.Inputs, p.Again.Of)].Edges
		if slices.ContainsFunc(edges, func(e Edge) bool { return e.Port < 0 }) {
			return // reported already
		}
		a := &againBuild{expander: x, m: m, Again: p.Again, value: value, phase: p.Name}
		a.drawn = a.takes()
		if p.Again.Size != "" {
			a.size = a.sizeOf(edges)
		}
		a.of = map[*Cell]*Cell{}
		m.cell.Inputs[k].Edges = a.edges(edges)
		if a.err != nil {
			x.refused(m, &stages.FieldError{Field: p.Again.As, Err: a.err, Hint: a.hint})
			return
		}
		a.setFrom()
		again := Again{Consumer: m.cell, Of: a.of, Value: fmt.Sprint(value)}
		if count, ok := x.valueOf(m.cell, p.Again.Count); ok {
			again.Count = int(count.Int())
		}
		x.plan.Again = append(x.plan.Again, again)
	}
}

// valueOf returns the value of a cell's parameter.
func (x *expander) valueOf(c *Cell, param string) (reflect.Value, bool) {
	f := x.types.of(c.Stage).byName[param]
	if f == nil {
		return reflect.Value{}, false
	}
	return reflect.ValueOf(c.Params).Elem().FieldByIndex(f.Index), true
}

// An againBuild computes cells again for one input of a cell.
type againBuild struct {
	*expander
	*stages.Again
	m      *cellBuild
	value  reflect.Value   // of the parameter that is replaced
	phase  string          // the input's name, which the names of steps end with
	drawn  string          // the parameters of draws
	size   []Edge          // on the input size of draws; nil for none
	of     map[*Cell]*Cell // by copy: the cell that it computes again
	unsure bool            // a parameter of a cell is an error: its value isn't known
	err    error           // the first
	hint   string
}

// takes returns the parameters that draws take from the consumer.
func (a *againBuild) takes() (text string) {
	if stage, ok := a.catalog.Lookup(a.Draw); ok {
		for _, f := range a.types.of(stage).fields {
			if v, ok := a.valueOf(a.m.cell, f.Name); ok {
				text += f.Name + "=" + string(AppendValue(nil, v)) + " "
			}
		}
	}
	return text
}

// edges returns edges from the cells that compute again those of the given edges.
func (a *againBuild) edges(edges []Edge) []Edge {
	out, changed := slices.Clone(edges), false
	for i, e := range edges {
		out[i].From = a.cell(e.From)
		changed = changed || out[i].From != e.From
	}
	if !changed && a.err == nil && !a.unsure {
		a.err = fmt.Errorf("no %s of %s are computed with another %s than %v: there is nothing to estimate",
			a.Of, a.m.cell.Step.Name, a.Param, a.value)
		a.hint = fmt.Sprintf("write another %s for the stages that make the curves, or leave out %s", a.Param,
			a.As)
	}
	return out
}

// cell returns the copy of a cell, or the cell itself if nothing changes.
func (a *againBuild) cell(c *Cell) *Cell {
	m := &a.implied
	key := fmt.Sprintf("%s\x00%d", a.key(), m.id(c))
	if known := m.cells[key]; known != nil {
		a.note(known, c)
		return known
	}
	m.cells[key], a.unsure = c, a.unsure || a.illegible[c] // until the inputs are known
	d := *c
	d.Inputs = make([]Input, len(c.Inputs))
	changed := a.replaced(&d)
	for k, in := range c.Inputs {
		d.Inputs[k].Edges = slices.Clone(in.Edges)
		for i, e := range in.Edges {
			d.Inputs[k].Edges[i].From = a.cell(e.From)
			changed = changed || d.Inputs[k].Edges[i].From != e.From
		}
	}
	if !changed {
		return c
	}
	if c.Stage.Relation != stages.Each && a.err == nil {
		a.err = fmt.Errorf("%s, %s, depends on all items at once, and can't be computed again for some",
			c.Step.Name, c.Stage.Name)
		a.hint = "leave out " + a.As
	}
	if a.err != nil {
		return c
	}
	a.restrict(c, &d)
	d.Step = a.step(c)
	d.Step.Cells = append(d.Step.Cells, &d)
	m.cells[key] = &d
	a.note(&d, c)
	return &d
}

// note notes a copy of c, and those of the cells that c reads.
func (a *againBuild) note(d, c *Cell) {
	if d == c || a.of[d] != nil {
		return
	}
	a.of[d] = c
	for k, in := range d.Inputs {
		for i, e := range in.Edges {
			if of := c.Inputs[k].Edges[i].From; e.From.Stage == of.Stage {
				a.note(e.From, of)
			}
		}
	}
}

// key is of what copies have in common.
func (a *againBuild) key() string {
	size := uint64(0)
	if len(a.size) > 0 {
		size = 1 + a.implied.id(a.size[0].From)
	}
	return fmt.Sprintf("again\x00%s\x00%s=%v\x00%s\x00%d", a.phase, a.Param, a.value, a.drawn, size)
}

// replaced gives a copy its own parameters, and reports whether they differ.
func (a *againBuild) replaced(d *Cell) bool {
	old, ok := a.valueOf(d, a.Param)
	if !ok || old.Type() != a.value.Type() || old.Equal(a.value) {
		return false
	}
	params := reflect.New(reflect.TypeOf(d.Params).Elem())
	params.Elem().Set(reflect.ValueOf(d.Params).Elem())
	d.Params = params.Interface()
	value, _ := a.valueOf(d, a.Param)
	value.Set(a.value)
	return true
}

// setFrom has the consumer know which values were replaced, unless it was told.
func (a *againBuild) setFrom() {
	to, ok := a.valueOf(a.m.cell, a.From)
	if !ok || to.String() != "" {
		return
	}
	var from []string
	for _, c := range a.of {
		v, ok := a.valueOf(c, a.Param)
		if ok && !v.Equal(a.value) && !slices.Contains(from, v.String()) {
			from = append(from, v.String())
		}
	}
	slices.Sort(from)
	to.SetString(strings.Join(from, " and "))
}

// restrict has a copy be called for drawn items: where an input that decides about them is still that of c.
func (a *againBuild) restrict(c, d *Cell) {
	for _, k := range c.Leading() {
		for i, e := range d.Inputs[k].Edges {
			if e.From == c.Inputs[k].Edges[i].From {
				drawn := a.draw(e)
				d.Inputs[k].Edges[i].From, d.Inputs[k].Edges[i].Port = drawn.From, drawn.Port
			}
		}
	}
}

// draw returns the edge from the cell that draws from the items of an edge.
func (a *againBuild) draw(e Edge) Edge {
	stage, ok := a.catalog.Lookup(a.Draw)
	if !ok {
		a.err = fmt.Errorf("it needs the stage %q, which doesn't exist", a.Draw)
		return e
	}
	of := e.From.Stage.Outputs[e.Port].Type
	in := slices.IndexFunc(stage.Inputs, func(p stages.Port) bool { return p.Takes(of) })
	if in < 0 {
		a.err = fmt.Errorf("the stages that are computed again begin at %s of %s, of which %s can't draw",
			of.Name, e.From.Step.Name, a.Draw)
		return e
	}
	out := portOfType(stage.Outputs, stage.Inputs[in].Type)
	inputs := make([][]Edge, len(stage.Inputs))
	inputs[in] = []Edge{{From: e.From, Port: e.Port}}
	if k := portNamed(stage.Inputs, "size"); k >= 0 {
		inputs[k] = a.size
	}
	c := a.impliedCell(consumer{a.m.stepBuild, a.m.cell, 1, a.Takes}, stage, inputs, out, false)
	return Edge{From: c, Port: out}
}

// sizeOf returns the edge from the cell that fixes the size of the draw.
func (a *againBuild) sizeOf(of []Edge) []Edge {
	stage, ok := a.catalog.Lookup(a.Size)
	if !ok {
		a.err = fmt.Errorf("it needs the stage %q, which doesn't exist", a.Size)
		return nil
	}
	c := a.m.cell
	inputs := make([][]Edge, len(stage.Inputs))
	for k, p := range stage.Inputs {
		inputs[k] = of
		if p.Name == a.After {
			inputs[k] = c.Inputs[portNamed(c.Stage.Inputs, a.After)].Edges
		}
	}
	size := a.impliedCell(consumer{a.m.stepBuild, c, 1, a.Takes}, stage, inputs, 0, true)
	size.Replicates = c.Replicates
	return []Edge{{From: size}}
}

// step returns the step of copies of c.
func (a *againBuild) step(c *Cell) *Step {
	m := &a.implied
	key := fmt.Sprintf("%s\x00%p", a.key(), c.Step)
	if s := m.steps[key]; s != nil {
		return s
	}
	s := *c.Step
	s.Name, s.Implied, s.Cells = fmt.Sprintf("%s~%v~%s", c.Step.Name, a.value, a.phase), true, nil
	if m.names[s.Name]++; m.names[s.Name] > 1 {
		s.Name += fmt.Sprintf("~%d", m.names[s.Name])
	}
	m.steps[key], a.copied = &s, true
	a.plan.Steps = append(a.plan.Steps, &s)
	return &s
}

// sortSteps puts steps behind those that they read: a step of copies may get cells after it was added that
// read steps which were added later.
func (x *expander) sortSteps() {
	var sorted []*Step
	seen := map[*Step]bool{}
	var add func(s *Step)
	add = func(s *Step) {
		if seen[s] {
			return
		}
		seen[s] = true
		for _, c := range s.Cells {
			for e := range c.Edges() {
				add(e.From.Step)
			}
		}
		sorted = append(sorted, s)
	}
	for _, s := range x.plan.Steps {
		add(s)
	}
	x.plan.Steps = sorted
}
