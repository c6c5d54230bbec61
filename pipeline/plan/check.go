package plan

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// checkCell reports errors of a cell whose parameters are decoded and whose inputs are wired, and returns
// whether there are none.
func (x *expander) checkCell(m *cellBuild) bool {
	c := m.cell
	if c.Stage.Relation != stages.Whole {
		if p := c.Stage.Primary(); p >= 0 && len(c.Inputs[p].Edges) == 0 {
			return false // reported already
		}
		for k, in := range c.Inputs {
			// One edge is refused as several are: the errors don't depend on the number of ids that an axis
			// happens to have.
			p := &c.Stage.Inputs[k]
			expands := c.Stage.Relation == stages.Expand
			if len(in.Edges) == 0 || len(in.Edges[0].Coord) == 0 || p.Over && !expands || !p.Type.Items {
				continue
			}
			node, hint := m.decl.overNode, "let a stage that reads "+c.Step.Name+" collapse the axis"
			if node == nil {
				node = m.decl.key
			}
			why := "takes the items of one cell"
			if expands {
				why = "can't be collapsed: an expand stage makes several items of one"
			} else if over := overPorts(c.Stage); over != nil {
				hint = "over collapses axes on its input " + strings.Join(over, ", ")
			}
			x.report(node, hint, "the input %q of %s %s", p.Name, c.Stage.Name, why)
			return false
		}
	}
	errs := x.refusals(c)
	if len(errs) == 0 && !m.broken {
		errs = append(x.misnamedAxes(m), x.unknownIDs(m)...)
	}
	for _, err := range errs {
		x.refused(m, err)
	}
	return len(errs) == 0
}

// overPorts names the inputs of items on which over may collapse axes.
func overPorts(s *stages.Stage) (names []string) {
	for _, p := range s.Inputs {
		if p.Over {
			names = append(names, p.Name)
		}
	}
	return names
}

// refusals returns the errors of the first that has any: Validate, Check, Lacks of a stage that it reads,
// Fits. The outputs of a stage that doesn't exist are unknown, so cells that depend on one are only
// validated.
func (x *expander) refusals(c *Cell) []error {
	if errs := x.refusalsAsWired(c); len(errs) > 0 {
		return errs
	}
	return x.misfits(c)
}

// refusalsAsWired returns those that don't depend on the inputs that the cell's ports imply.
func (x *expander) refusalsAsWired(c *Cell) []error {
	if v, ok := c.Params.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return split(err)
		}
	}
	if x.readsStandIn(c) {
		return nil
	}
	if err := c.Stage.CheckPrecision(c.Params); err != nil {
		return []error{err}
	}
	if c.Stage.Check != nil {
		if err := c.Stage.Check(c.Params, c.wired); err != nil {
			return split(err)
		}
	}
	for k, in := range c.Inputs {
		for _, e := range in.Edges {
			from := e.From.Stage
			if lacks := from.HooksOf(e.From.Params).Lacks; lacks != nil && e.Port >= 0 {
				if err := lacks(from.Outputs[e.Port].Name, e.From.wired); err != nil {
					return []error{fmt.Errorf("the input %q has no items: %w", c.Stage.Inputs[k].Name, err)}
				}
			}
		}
	}
	return nil
}

// misfits returns why the model that a cell reads doesn't fit its stage.
func (x *expander) misfits(c *Cell) []error {
	if x.o.Fits == nil || x.readsStandIn(c) {
		return nil
	}
	return split(x.o.Fits(c))
}

// readsStandIn reports whether a cell reads a stage that doesn't exist.
func (x *expander) readsStandIn(c *Cell) bool {
	return slices.ContainsFunc(c.Inputs, func(in Input) bool {
		return slices.ContainsFunc(in.Edges, func(e Edge) bool { return x.standIns[e.From.Stage] })
	})
}

// wired reports whether an input port has an edge; of [stages.TextsName], whether images are texts.
func (c *Cell) wired(port string) bool {
	k := portNamed(c.Stage.Inputs, port)
	if k < 0 && port == stages.TextsName {
		k = slices.IndexFunc(c.Stage.Inputs, func(p stages.Port) bool { return p.Called(port) })
		return k >= 0 && ofTexts(c.Inputs[k].Edges)
	}
	return k >= 0 && len(c.Inputs[k].Edges) > 0
}

// ofTexts reports whether edges come from an output of texts.
func ofTexts(edges []Edge) bool {
	return len(edges) > 0 && edges[0].Port >= 0 &&
		edges[0].From.Stage.Outputs[edges[0].Port].Type.Name == stages.Tokens.Name
}

// split returns the errors that errors.Join joined.
func split(err error) []error {
	if err == nil {
		return nil
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()
	}
	return []error{err}
}

// refused reports an error at the value of its parameter.
func (x *expander) refused(m *cellBuild, err error) {
	var field *stages.FieldError
	if !errors.As(err, &field) {
		x.report(m.uses, "", "%s: %v", m.stage.Name, err)
		return
	}
	hint := field.Hint
	if field.Names != nil {
		hint = didYouMean(field.Name, "there are", field.Names)
	}
	a := x.assigned(m, field.Field)
	if a == nil {
		if hint == "" {
			hint = "it's a parameter of " + m.stage.Name
		}
		x.report(m.uses, hint, "%s: %v", field.Field, err)
		return
	}
	if n := x.value(a.value, m.at); n != nil {
		d := decoder{x.loader, a.field, a.value, m.at}
		// The value is written at an axis and not at the stage, or is shared by all stages that the axis
		// names.
		if !a.value.plain() || m.decl.choice != nil && !a.atAxis {
			d.refuse(n.element(field.Name).within(field.Column), hint, "%s: %v", m.stage.Name, err)
			x.mergeLast(m.stage.Name)
			return
		}
		d.refuse(n.element(field.Name).within(field.Column), hint, "%v", err)
	}
}

// assigned returns the assignment that gives a parameter its value in a cell, nil for the default.
func (x *expander) assigned(m *cellBuild, param string) (last *paramAssign) {
	x.eachAssign(m, func(a *paramAssign) {
		if a.field.Name == param {
			last = a
		}
	})
	return last
}

// unknownIDs returns an error for a parameter that names ids which the collapsed axes don't have. Ids that
// --only excludes count as known.
func (x *expander) unknownIDs(m *cellBuild) []error {
	v, ok := m.cell.Params.(stages.Knower)
	if !ok {
		return nil
	}
	ids := map[string][]string{}
	for _, in := range m.cell.Inputs {
		for _, e := range in.Edges {
			for _, at := range e.Coord {
				if slices.Contains(m.cell.Replicates, at.Axis) {
					continue
				}
				if a := x.exp.axisOf[at.Axis]; a != nil {
					ids[at.Axis] = a.ids
				} else if !slices.Contains(ids[at.Axis], at.ID) { // the axis of a stack
					ids[at.Axis] = append(ids[at.Axis], at.ID)
				}
			}
		}
	}
	return split(v.Known(ids))
}

// misnamedAxes returns an error for every parameter of a cell that names an axis which over doesn't
// collapse on the parameter's input, or that doesn't say which of several axes is meant.
func (x *expander) misnamedAxes(m *cellBuild) (errs []error) {
	for i := range m.params.fields {
		f := &m.params.fields[i]
		k := portNamed(m.stage.Inputs, f.Axis)
		if k < 0 || len(m.cell.Inputs[k].Edges) == 0 {
			continue
		}
		var collapsed []string
		for _, at := range m.cell.Inputs[k].Edges[0].Coord {
			if !slices.Contains(m.cell.Replicates, at.Axis) {
				collapsed = append(collapsed, at.Axis)
			}
		}
		v := reflect.ValueOf(m.cell.Params).Elem().FieldByIndex(f.Index)
		for _, name := range textsOf(v) {
			var err error
			hint := ""
			switch {
			case slices.Contains(collapsed, name), !f.list && name == "" && len(collapsed) == 1:
				continue
			case !f.list && len(collapsed) == 0 && f.NoAxis && v.Equal(f.standard):
				continue
			case name != "":
				const format = "%s names the axis %q, which over doesn't collapse on the input %q"
				err = fmt.Errorf(format, f.Name, name, f.Axis)
				hint = didYouMean(name, "over collapses", collapsed)
				if a := x.exp.axisOf[name]; slices.Contains(m.axes, a) {
					hint = "write over: [" + axisList(append(slices.Clip(m.collapsed), a)) + "]"
				}
			case len(collapsed) > 1:
				const format = "%s is required: over collapses %d axes on the input %q"
				err = fmt.Errorf(format, f.Name, len(collapsed), f.Axis)
				hint = f.Name + " is one of " + strings.Join(collapsed, ", ")
			default:
				err = fmt.Errorf("%s is required, and over collapses no axis on the input %q", f.Name, f.Axis)
			}
			errs = append(errs, &stages.FieldError{Field: f.Name, Name: name, Err: err, Hint: hint})
		}
	}
	return errs
}
