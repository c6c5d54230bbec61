package pipeline

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// listedSources is how many sources are named one by one among a cell's
// ingredients, so that a change can be pinned to a file.
const listedSources = 1000

// ingredients lists, in clear, everything that n's key is made of.
func (r *resolver) ingredients(n *node) ([]store.Ingredient, error) {
	list, err := r.recipeIngredients(n)
	if err != nil {
		return nil, err
	}
	for p := range n.Inputs {
		for _, e := range r.live(n, p) {
			list = append(list, store.Ingredient{Name: inputName(n, p, e), Value: r.nodes[e.From.Index].result(e.Port).Short()})
		}
	}
	list = append(list, r.orderIngredients(n)...)
	h := newHasher(pairing)
	plain := h.len()
	err = r.writeJoin(h, n)
	joined := h.len() > plain
	if d := h.sum(); joined {
		list = append(list, store.Ingredient{Name: pairing, Value: d.Short()})
	}
	return list, err
}

// pairing is the ingredient that says which items of several ports belong together
// and, for stages that show them, how they are called.
const pairing = "pairing"

// recipeIngredients are those that don't come from other cells.
func (r *resolver) recipeIngredients(n *node) ([]store.Ingredient, error) {
	list := []store.Ingredient{{Name: "implementation", Value: n.Stage.Name}}
	add := func(name, value string) { list = append(list, store.Ingredient{Name: name, Value: value}) }
	add("version", strconv.Itoa(n.Stage.Version))
	if n.program != (stages.Digest{}) {
		add("program", n.program.Short())
	}
	v := reflect.ValueOf(n.Params).Elem()
	for _, f := range r.params.of(n.Params) {
		add("with."+f.Name, string(plan.AppendValue(nil, v.FieldByIndex(f.Index))))
	}
	if n.Stage.Seeded {
		add("seed", strconv.FormatUint(r.plan.Seed, 10))
	}
	if n.sources != nil {
		h := newHasher("sources")
		n.sourceDigests(h)
		count := n.sources.len()
		if count <= listedSources {
			for i := range count {
				add("source "+n.sources.list[i].ID, n.sources.digest(i).Short())
			}
		}
		add("sources", fmt.Sprintf("%d items, %s", count, h.sum().Short()))
	}
	return list, nil
}

// inputName says which edge an ingredient is about.
func inputName(n *node, port int, e plan.Edge) string {
	name := "in." + n.Stage.Inputs[port].Name
	if len(e.Coord) > 0 {
		name += "[" + plan.CoordString(e.Coord) + "]"
	}
	return name
}

// A Why explains one cell: what differs from the last time, and, where that is
// an input, why the cell it comes from is different, down to the root cause.
type Why struct {
	Cell    string
	State   string // "cached", "runs: …", or what it waits for
	Changes []Change
	Cause   *Why // the first cell it reads that isn't cached
	Others  int  // how many more of them aren't
	// MadeBy is what executed the cell when its program was another one, Now what would.
	MadeBy, Now string
}

// A Change is an ingredient that isn't what was recorded.
type Change struct{ Name, Was, Is string }

// Why explains what would happen to a cell and what has changed since it was
// last executed or found. It writes nothing.
func (o *Outlook) Why(c *plan.Cell) *Why {
	n := o.nodes[c.Index]
	w := &Why{Cell: n.String(), State: o.State(n.Cell).String()}
	if n.state == cached {
		return w // nothing differs from what's stored
	}
	last, ok := o.store.Latest(o.plan.Name, n.String())
	if !ok {
		w.Changes = append(w.Changes, Change{Name: "the cell", Is: "new: nothing of that name was executed here"})
		return w
	}
	list, pending := o.soFar(n)
	w.Changes = changes(last.Ingredients, list, pending)
	if slices.ContainsFunc(w.Changes, func(c Change) bool { return c.Name == "program" && c.Was != "" }) {
		w.MadeBy, w.Now = last.MadeBy, o.madeBy()
	}
	seen := map[*node]bool{}
	for _, from := range o.edges(n) {
		if from.state == cached || seen[from] || n.Step.Drop && o.ahead[from.Index].Kind == Broken {
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

// soFar lists those of n's ingredients that are known, and tells which ones aren't.
func (o *Outlook) soFar(n *node) (known []store.Ingredient, pending func(name string) bool) {
	names := map[string]bool{}
	for p := range n.Inputs {
		for _, e := range n.Inputs[p].Edges {
			from := o.nodes[e.From.Index]
			if name := inputName(n, p, e); from.state == cached {
				known = append(known, store.Ingredient{Name: name, Value: from.result(e.Port).Short()})
			} else if !n.Step.Drop || o.ahead[from.Index].Kind != Broken {
				names[name] = true
			}
		}
	}
	if len(names) == 0 && !n.lacksSources() && !n.lacksProgram() {
		if all, err := o.ingredients(n); err == nil {
			return all, func(string) bool { return false }
		}
	}
	recipe, err := o.recipeIngredients(n)
	if err != nil {
		recipe = nil // nothing can be said of them
	}
	return append(recipe, known...), func(name string) bool {
		return names[name] || name == pairing || name == "program" || strings.HasPrefix(name, "source") || strings.HasPrefix(name, orderOfAxis)
	}
}

// changes compares ingredients. Those that are pending are left out.
func changes(was, is []store.Ingredient, pending func(string) bool) (list []Change) {
	old := map[string]string{}
	for _, in := range was {
		old[in.Name] = in.Value
	}
	now := map[string]bool{}
	for _, in := range is {
		now[in.Name] = true
		if v, ok := old[in.Name]; v != in.Value || !ok {
			list = append(list, Change{in.Name, v, in.Value})
		}
	}
	for _, in := range was {
		if !now[in.Name] && !pending(in.Name) {
			list = append(list, Change{in.Name, in.Value, "gone"})
		}
	}
	return list
}
