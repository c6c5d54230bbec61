package key

import (
	"maps"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// writeOrder writes the order of the ids that an Ordered stage shows, and their names if there are any.
func (m *Maker) writeOrder(h *Hasher, id *Identity, list *Ingredients) {
	order := m.OrderOf(id)
	for _, axis := range slices.Sorted(maps.Keys(order)) {
		h.Text(axis)
		h.Num(len(order[axis]))
		for _, id := range order[axis] {
			h.Text(id)
		}
		if list != nil {
			list.add(orderOfAxis+axis, strings.Join(order[axis], ", "))
		}
		for i, kind := range []struct {
			of   string
			list stages.Names
		}{{labelsOfAxis, m.Plan.Labels}, {familiesOfAxis, m.Plan.Families}} {
			named := NamesIn(kind.list, order)[axis]
			if len(named) == 0 {
				continue
			}
			h.Num(-1 - i)
			var pairs []string
			for _, id := range order[axis] {
				h.Text(named[id])
				if named[id] != "" {
					pairs = append(pairs, id+": "+named[id])
				}
			}
			if list != nil {
				list.add(kind.of+axis, strings.Join(pairs, ", "))
			}
		}
	}
}

// NamesIn returns the names of the ids of an order, nil for none.
func NamesIn(all stages.Names, order stages.Order) stages.Names {
	var out stages.Names
	for axis, ids := range order {
		for _, id := range ids {
			name, ok := all[axis][id]
			if !ok {
				continue
			}
			if out == nil {
				out = stages.Names{}
			}
			if out[axis] == nil {
				out[axis] = map[string]string{}
			}
			out[axis][id] = name
		}
	}
	return out
}

// OrderOf returns, for a stage that shows ids, the ids that a cell reads, in the order in which the
// experiment writes them; nil for other stages. They include ids in tables: of axes that the makers of the
// tables collapsed.
func (m *Maker) OrderOf(id *Identity) stages.Order {
	if !id.Cell.Stage.Ordered {
		return nil
	}
	present := map[stages.Coord]bool{}
	order := stages.Order{}
	add := func(coord []stages.Coord, known stages.Order) {
		for _, c := range coord {
			if _, ok := known[c.Axis]; !ok {
				present[c] = true
				order[c.Axis] = nil
			}
		}
	}
	for p := range id.Cell.Inputs {
		for _, e := range id.Live(p) {
			add(e.Coord, nil)
		}
	}
	collapsed := maps.Clone(order)
	var inTables func(id *Identity)
	inTables = func(id *Identity) {
		for p := range id.Cell.Inputs {
			for _, e := range id.Live(p) {
				add(e.Coord, collapsed)
				if isTable(id.Cell, p) {
					inTables(m.Results.Identity(e.From))
				}
			}
		}
	}
	for p := range id.Cell.Inputs {
		for _, e := range id.Live(p) {
			if isTable(id.Cell, p) {
				inTables(m.Results.Identity(e.From))
			}
		}
	}
	for axis := range order {
		for _, id := range m.Plan.Order[axis] {
			if present[stages.Coord{Axis: axis, ID: id}] {
				order[axis] = append(order[axis], id)
			}
		}
	}
	return order
}

// isTable reports whether a port of c takes tables.
func isTable(c *plan.Cell, port int) bool { return c.Stage.Inputs[port].Type.Form == stages.FormTable }
