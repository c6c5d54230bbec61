package pipeline

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// misnamedAxes returns an error for every parameter of c that names an axis which over
// doesn't take from the input it is about, or that leaves open which axis is meant.
func (x *expander) misnamedAxes(b *stepBuild, c *Cell) (bad []error) {
	for _, f := range x.types.of(c.Stage).axes {
		k := slices.IndexFunc(c.Stage.Inputs, func(p stages.Port) bool { return p.Name == f.Axis })
		if k < 0 || len(c.Inputs[k].Edges) == 0 {
			continue
		}
		var taken []string
		for _, at := range c.Inputs[k].Edges[0].Coord {
			taken = append(taken, at.Axis)
		}
		v := reflect.ValueOf(c.Params).Elem().FieldByIndex(f.Index)
		if f.list {
			for _, name := range v.Interface().([]string) {
				if !slices.Contains(taken, name) {
					bad = append(bad, x.notTaken(b, f, name, taken))
				}
			}
			continue
		}
		switch name := v.String(); {
		case slices.Contains(taken, name), name == "" && len(taken) == 1:
		case len(taken) == 0 && f.NoAxis && v.Equal(f.standard):
		case name == "" && len(taken) > 1:
			bad = append(bad, &stages.FieldError{
				Field: f.Name, Err: fmt.Errorf("%s is required: over takes %d axes from the input %q", f.Name, len(taken), f.Axis),
				Hint: f.Name + " is one of " + strings.Join(taken, ", "),
			})
		default:
			bad = append(bad, x.notTaken(b, f, name, taken))
		}
	}
	return bad
}

// notTaken says that over takes no axis called name from the input that f is about.
func (x *expander) notTaken(b *stepBuild, f *paramField, name string, taken []string) error {
	if name == "" {
		return stages.BadField(f.Name, "%s is required, and over takes no axis from the input %q", f.Name, f.Axis)
	}
	e := &stages.FieldError{Field: f.Name, Name: name, Err: fmt.Errorf("%s names the axis %q, which over doesn't take from the input %q", f.Name, name, f.Axis)}
	if a := x.exp.axisOf[name]; a != nil && hasAxis(b.axes, a) {
		e.Hint = "write over: [" + strings.Join(append(axisNames(b.collapsed), name), ", ") + "]"
	} else {
		e.Hint = didYouMean(name, "over takes", taken)
	}
	return e
}
