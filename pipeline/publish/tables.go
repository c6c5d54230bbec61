package publish

import (
	"cmp"
	"slices"

	"github.com/runexp/runexp/stages"
)

// outputs lists the outputs of a folder, in the order of the cells and, within
// one, of its ports.
func (m *merge) outputs(folder string) []output {
	var out []output
	add := func(c *Cell, port string) {
		if o := (output{folder, c.Stage, port}); c.State == Done && !slices.Contains(out, o) {
			out = append(out, o)
		}
	}
	for _, c := range m.cells {
		if folder == "items" {
			for _, s := range c.Scores {
				add(c, s.Port)
			}
		} else {
			for _, t := range c.Tables {
				add(c, t.Port)
			}
		}
	}
	return out
}

// mergeTables makes tables/*.csv: one file an output port, the tables of all
// cells of the stage below each other.
func (m *merge) mergeTables() {
	for _, o := range m.outputs("tables") {
		s := m.newSheet(o)
		s.count = func(c *Counts) { c.Rows++ }
		label := scoreName(o.stage, o.port)
		if o.port == "table" {
			label = o.stage
		}
		s.column = func(number string) string { return label + "." + number }
		for _, c := range m.cells {
			for i := range c.Tables {
				if t := &c.Tables[i]; c.State == Done && c.Stage == o.stage && t.Port == o.port {
					s.add(c, t.Table, m.r.Order)
				}
			}
		}
		s.name()
		m.mergeSheet(s)
		m.files[s.file] = s.encode()
		m.sheets = append(m.sheets, s)
	}
}

// add adds a table. Its rows are sorted by the ids in them, unless their order is a
// result, so that they stay where they are when the experiment reorders an axis.
func (s *sheet) add(c *Cell, t stages.Table, order stages.Order) {
	b := &block{cell: c, title: t.Title, ranked: t.Ranked, keys: t.Keys, numbers: t.Numbers}
	for _, r := range t.Rows {
		b.rows = append(b.rows, blockRow{r.Keys, r.Numbers})
	}
	if !b.ranked {
		slices.SortStableFunc(b.rows, func(x, y blockRow) int {
			for i, k := range b.keys {
				if c := cmp.Compare(x.keys[i], y.keys[i]); order[k] != nil && c != 0 {
					return c
				}
			}
			return 0
		})
	}
	for _, k := range t.Keys {
		if !slices.Contains(s.keys, k) {
			s.keys = append(s.keys, k)
		}
	}
	for _, n := range t.Numbers {
		if !slices.Contains(s.keys, n.Name) && !slices.Contains(s.numbers, n.Name) {
			s.numbers = append(s.numbers, n.Name)
		}
	}
	s.blocks = append(s.blocks, b)
}
