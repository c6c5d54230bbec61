package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/chart"
)

// figurePorts returns the outputs of every stage that draws a plot.
func figurePorts(more ...stages.Port) []stages.Port {
	return append([]stages.Port{
		{Name: "figure", Type: stages.Figure, Doc: "SVG"},
		{Name: "png", Type: stages.Figure, Doc: "the same as PNG"},
		{Name: "pdf", Type: stages.Figure, Doc: "the same as PDF, with text as text in embedded fonts"},
	}, more...)
}

// setFigure writes a figure to all ports.
func setFigure(e *stages.Env, f chart.Figure, caption string) {
	setFile(e, "figure", "svg", f.SVG(), caption)
	setFile(e, "png", "png", f.PNG(), caption)
	setFile(e, "pdf", "pdf", f.PDF(), caption)
}

func setFile(e *stages.Env, port, ext string, b []byte, caption string) {
	e.Set(port, b)
	e.SetFacts(port, stages.Facts{"ext": ext, "caption": strings.Join(strings.Fields(caption), " ")})
}

// tablePort is the input of stages that draw a table.
func tablePort(doc string) []stages.Port {
	return []stages.Port{{Name: "table", Type: stages.TableType, Doc: doc}}
}

// readTable returns the rows of all tables at the port table. The collapsed axes are their first key columns.
func readTable(data []stages.Data) (stages.Table, error) {
	var out stages.Table
	axes := axesOf(data)
	for i, d := range data {
		b, err := d.Load(0)
		if err != nil {
			return out, err
		}
		t, err := stages.DecodeTable(b)
		if err != nil {
			return out, err
		}
		keys := slices.Concat(axes, t.Keys)
		if i == 0 {
			out = t
			out.Keys, out.Rows = keys, nil
		}
		names := func(c stages.Column) string { return c.Name }
		if !slices.Equal(keys, out.Keys) || !slices.Equal(mapped(t.Numbers, names),
			mapped(out.Numbers, names)) {
			return out, fmt.Errorf("the tables %q and %q have different columns", out.Title, t.Title)
		}
		for _, r := range t.Rows {
			r.Keys = slices.Concat(pick(d.Coord, axes), r.Keys)
			out.Rows = append(out.Rows, r)
		}
	}
	return out, nil
}

func mapped[A, B any](in []A, f func(A) B) []B {
	out := make([]B, len(in))
	for i, v := range in {
		out[i] = f(v)
	}
	return out
}

// keyColumns returns the indices of the key columns with these names.
func keyColumns(t stages.Table, param string, names []string) ([]int, error) {
	at := make([]int, len(names))
	for i, name := range names {
		if at[i] = slices.Index(t.Keys, name); at[i] < 0 {
			return nil, stages.BadField(param, "the table has no key column %q, only %s", name,
				strings.Join(t.Keys, ", "))
		}
	}
	return at, nil
}

// numberColumn returns the index of the number column with this name.
func numberColumn(t stages.Table, param, name string) (int, error) {
	at := slices.IndexFunc(t.Numbers, func(c stages.Column) bool { return c.Name == name })
	if at < 0 {
		names := mapped(t.Numbers, func(c stages.Column) string { return c.Name })
		return 0, stages.BadField(param, "the table has no number column %q, only %s", name,
			strings.Join(names, ", "))
	}
	return at, nil
}

// axisLabel names a number with its unit.
func axisLabel(name, unit string) string {
	if unit == "" || unit == name {
		return name
	}
	return name + ", " + unit
}
