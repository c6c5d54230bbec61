package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// misnamedAxes returns an error for every parameter of c that names an axis which over
// doesn't collapse on the input it is about, or that leaves open which axis is meant.
func (x *expander) misnamedAxes(b *stepBuild, c *Cell) (bad []error) {
	for _, f := range x.types.of(c.Stage).axes {
		k := slices.IndexFunc(c.Stage.Inputs, func(p stages.Port) bool { return p.Name == f.Axis })
		if k < 0 || len(c.Inputs[k].Edges) == 0 {
			continue
		}
		var collapsed []string
		for _, at := range c.Inputs[k].Edges[0].Coord {
			collapsed = append(collapsed, at.Axis)
		}
		v := reflect.ValueOf(c.Params).Elem().FieldByIndex(f.Index)
		if f.list {
			for _, name := range v.Interface().([]string) {
				if !slices.Contains(collapsed, name) {
					bad = append(bad, x.notCollapsed(b, f, name, collapsed))
				}
			}
			continue
		}
		switch name := v.String(); {
		case slices.Contains(collapsed, name), name == "" && len(collapsed) == 1:
		case len(collapsed) == 0 && f.NoAxis && v.Equal(f.standard):
		case name == "" && len(collapsed) > 1:
			bad = append(bad, &stages.FieldError{
				Field: f.Name, Err: fmt.Errorf("%s is required: over collapses %d axes on the input %q", f.Name, len(collapsed), f.Axis),
				Hint: f.Name + " is one of " + strings.Join(collapsed, ", "),
			})
		default:
			bad = append(bad, x.notCollapsed(b, f, name, collapsed))
		}
	}
	return bad
}

// notCollapsed returns the error of a name that is of no collapsed axis of the input that
// f is about.
func (x *expander) notCollapsed(b *stepBuild, f *paramField, name string, collapsed []string) error {
	if name == "" {
		return stages.BadField(f.Name, "%s is required, and over collapses no axis on the input %q", f.Name, f.Axis)
	}
	e := &stages.FieldError{Field: f.Name, Name: name, Err: fmt.Errorf("%s names the axis %q, which over doesn't collapse on the input %q", f.Name, name, f.Axis)}
	if a := x.exp.axisOf[name]; a != nil && hasAxis(b.axes, a) {
		e.Hint = "write over: [" + strings.Join(append(axisNames(b.collapsed), name), ", ") + "]"
	} else {
		e.Hint = didYouMean(name, "over collapses", collapsed)
	}
	return e
}
