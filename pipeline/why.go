package pipeline

import (
	"slices"

	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/store"
)

// A Why explains one cell: the differences from the last time and, if an input differs, why the cell of
// that input is different, down to the root cause.
type Why struct {
	Cell    string
	State   string // "cached", "runs: …", or the cell for which it waits
	Changes []Change
	Cause   *Why // the first cell that it reads and that isn't cached
	Others  int  // the number of further such cells
	// MadeBy is the maker of the results when the cell had another program, Now the present one.
	MadeBy, Now string
}

// A Change is an ingredient that differs from the recorded one.
type Change struct{ Name, Was, Is string }

// Why explains the state of a cell and the changes since it was last executed or found. It writes nothing.
func (o *Outlook) Why(c *plan.Cell) *Why {
	n := o.resolver.Cells[c.Index]
	w := &Why{Cell: n.String(), State: o.State(n.Cell).String()}
	if n.HasResults() {
		return w // nothing differs from the stored results
	}
	last, ok := o.store.Latest(o.resolver.Plan.Name, n.String())
	if !ok {
		w.Changes = []Change{{Name: "the cell", Is: "new: nothing of that name was executed here"}}
		return w
	}
	w.Changes = o.changes(n, last.Ingredients)
	if slices.ContainsFunc(w.Changes, func(c Change) bool { return c.Name == "program" && c.Was != "" }) {
		w.MadeBy, w.Now = last.MadeBy, o.resolver.MadeBy(o.resolver.Class)
	}
	seen := map[*resolve.Cell]bool{}
	for e := range n.Edges() {
		from := o.resolver.Of(e)
		if from.HasResults() || seen[from] || n.Step.Drop && o.ahead[from.Index].Kind == Broken {
			continue
		}
		if seen[from] = true; w.Cause == nil {
			w.Cause = o.Why(from.Cell)
		} else {
			w.Others++
		}
	}
	return w
}

// known lists the known ingredients of n; pending reports whether another one is unknown.
func (o *Outlook) known(n *resolve.Cell) (list key.Ingredients, pending func(name string) bool) {
	inputs := map[string]bool{}
	var results key.Ingredients
	for p := range n.Inputs {
		for _, e := range n.Inputs[p].Edges {
			from := o.resolver.Of(e)
			if from.HasResults() {
				results.AddResult(n.Cell, p, e, from.Result(e.Port))
			} else if !n.Step.Drop || o.ahead[from.Index].Kind != Broken {
				inputs[key.ResultName(n.Cell, p, e)] = true
			}
		}
	}
	if len(inputs) == 0 && !n.ID().LacksSources() && !n.ID().LacksProgram() {
		if all, err := o.resolver.Keys.Ingredients(n.ID()); err == nil {
			return all, func(string) bool { return false }
		}
	}
	list = o.resolver.Keys.KnownIngredients(n.ID())
	return append(list, results...), func(name string) bool { return inputs[name] || key.Pending(name) }
}

// changes compares n's ingredients with earlier ones. Unknown ones are left out.
func (o *Outlook) changes(n *resolve.Cell, was []store.Ingredient) (list []Change) {
	known, pending := o.known(n)
	is := map[string]bool{}
	old := map[string]string{}
	for _, in := range was {
		old[in.Name] = in.Value
	}
	for _, in := range known {
		is[in.Name] = true
		if v, ok := old[in.Name]; v != in.Value || !ok {
			list = append(list, Change{in.Name, v, in.Value})
		}
	}
	for _, in := range was {
		if !is[in.Name] && !pending(in.Name) {
			list = append(list, Change{in.Name, in.Value, "gone"})
		}
	}
	return list
}
