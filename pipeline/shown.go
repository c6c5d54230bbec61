package pipeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// orderOf returns, for a stage that shows ids, those that are handed over to n, in
// the order in which the experiment writes them; nil for other stages.
func (r *resolver) orderOf(n *node) stages.Order {
	if !n.Stage.Ordered {
		return nil
	}
	present := map[stages.Coord]bool{}
	order := stages.Order{}
	for p := range n.Inputs {
		for _, e := range r.live(n, p) {
			for _, c := range e.Coord {
				if !present[c] {
					present[c] = true
					order[c.Axis] = nil
				}
			}
		}
	}
	for axis := range order {
		for _, id := range r.plan.Order[axis] {
			if present[stages.Coord{Axis: axis, ID: id}] {
				order[axis] = append(order[axis], id)
			}
		}
	}
	return order
}

// writeOrder writes the order of what an Ordered stage shows.
func (r *resolver) writeOrder(h *hasher, n *node) {
	order := r.orderOf(n)
	for _, axis := range slices.Sorted(maps.Keys(order)) {
		h.text(axis)
		h.num(len(order[axis]))
		for _, id := range order[axis] {
			h.text(id)
		}
	}
}

// orderOfAxis begins the names of the ingredients that say in which order ids are shown.
const orderOfAxis = "order of "

// orderIngredients lists them in clear.
func (r *resolver) orderIngredients(n *node) (list []store.Ingredient) {
	order := r.orderOf(n)
	for _, axis := range slices.Sorted(maps.Keys(order)) {
		list = append(list, store.Ingredient{Name: orderOfAxis + axis, Value: strings.Join(order[axis], ", ")})
	}
	return list
}
