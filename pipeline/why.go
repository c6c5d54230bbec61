package pipeline

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/runexp/runexp/pipeline/store"
)

// listedSources is how many sources are named one by one among a cell's
// ingredients, so that a change can be pinned to a file.
const listedSources = 1000

// ingredients lists, in clear, everything that n's key is made of.
func (r *resolver) ingredients(n *node) []store.Ingredient {
	list := r.recipeIngredients(n)
	for p := range n.Inputs {
		for _, e := range r.live(n, p) {
			list = append(list, store.Ingredient{Name: inputName(n, p, e), Value: r.nodes[e.From.Index].result(e.Port).Short()})
		}
	}
	return list
}

// recipeIngredients are those that don't come from other cells.
func (r *resolver) recipeIngredients(n *node) []store.Ingredient {
	list := []store.Ingredient{{Name: "implementation", Value: n.Stage.Name}}
	add := func(name, value string) { list = append(list, store.Ingredient{Name: name, Value: value}) }
	if n.Stage.Program != nil {
		add("program", n.program.Short())
	} else {
		add("version", strconv.Itoa(n.Stage.Version))
	}
	v := reflect.ValueOf(n.Params).Elem()
	for _, f := range r.params.of(n.Params) {
		add("with."+f.Name, string(appendValue(nil, v.FieldByIndex(f.Index))))
	}
	if n.Stage.Seeded {
		add("seed", strconv.FormatUint(r.plan.Seed, 10))
	}
	if n.sources != nil {
		h := newHasher("sources")
		for i := range n.sources {
			h.digest(n.sourceDigest(i))
		}
		if len(n.sources) <= listedSources {
			for i := range n.sources {
				add("source "+n.sources[i].ID, n.sourceDigest(i).Short())
			}
		}
		add("sources", fmt.Sprintf("%d items, %s", len(n.sources), h.sum().Short()))
	}
	return list
}

// inputName says which edge an ingredient is about.
func inputName(n *node, port int, e Edge) string {
	name := "in." + n.Stage.Inputs[port].Name
	if len(e.Coord) > 0 {
		name += "[" + CoordString(e.Coord) + "]"
	}
	return name
}

// A Why explains one cell: what differs from the last time, and, where that is
// an input, why the cell it comes from is different, down to the root cause.
type Why struct {
	Cell    string
	State   string   // "cached", "runs: …", or what it waits for
	Changes []Change // first the ones without a cause of their own
	Causes  []*Why   // cells behind the changes of inputs
}

// A Change is an ingredient that isn't what was recorded.
type Change struct{ Name, Was, Is string }

// Why explains what would happen to a cell and what has changed since it was
// last executed. It writes nothing.
func (o *Outlook) Why(c *Cell) (*Why, error) {
	return o.why(o.nodes[c.Index], map[*node]*Why{})
}

func (o *Outlook) why(n *node, seen map[*node]*Why) (*Why, error) {
	if w := seen[n]; w != nil {
		return nil, nil
	}
	w := &Why{Cell: n.String(), State: o.State(n.Cell).String()}
	seen[n] = w
	last, ok := o.store.Latest(o.plan.Name, n.String())
	if !ok {
		w.Changes = append(w.Changes, Change{Name: "the cell", Is: "new: it was never executed here"})
		return w, nil
	}
	was := map[string]string{}
	for _, in := range last.Ingredients {
		was[in.Name] = in.Value
	}
	now := map[string]bool{}
	note := func(name, is string) {
		now[name] = true
		if old, ok := was[name]; !ok {
			w.Changes = append(w.Changes, Change{Name: name, Is: is})
		} else if old != is {
			w.Changes = append(w.Changes, Change{name, old, is})
		}
	}
	if n.err == nil {
		for _, in := range o.recipeIngredients(n) {
			note(in.Name, in.Value)
		}
	} else {
		w.Changes = append(w.Changes, Change{Name: "an error", Is: n.err.Error()})
	}
	for p := range n.Inputs {
		for _, e := range n.Inputs[p].Edges {
			from := o.nodes[e.From.Index]
			name := inputName(n, p, e)
			if from.state == cached {
				note(name, from.result(e.Port).Short())
				continue
			}
			now[name] = true
			cause, err := o.why(from, seen)
			if err != nil {
				return nil, err
			}
			w.Changes = append(w.Changes, Change{Name: name, Was: was[name], Is: "comes from " + from.String() + ", which runs"})
			if cause != nil {
				w.Causes = append(w.Causes, cause)
			}
		}
	}
	for _, in := range last.Ingredients {
		if !now[in.Name] {
			w.Changes = append(w.Changes, Change{Name: in.Name, Was: in.Value, Is: "gone"})
		}
	}
	return w, nil
}
