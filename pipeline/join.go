package pipeline

import (
	"fmt"
	"iter"
	"slices"

	"github.com/runexp/runexp/stages"
)

// writeJoin writes how the items of different ports belong together, where that
// isn't one by one in order, and the items' ids for stages that show them.
func (r *resolver) writeJoin(h *hasher, n *node) error {
	if n.Stage.Named {
		if err := r.writeNames(h, n); err != nil {
			return err
		}
	}
	if n.Stage.Relation == stages.Whole {
		return r.writeLikeness(h, n)
	}
	joins, err := r.joins(n)
	if err != nil {
		return err
	}
	for p := range joins {
		if joins[p] == nil {
			continue
		}
		h.num(p)
		for _, members := range joins[p] {
			h.num(len(members))
			for _, m := range members {
				h.num(int(m))
			}
		}
	}
	return nil
}

// writeNames writes the ids of n's sources and items, and the origins that differ
// from them.
func (r *resolver) writeNames(h *hasher, n *node) error {
	for i := range n.sources {
		h.text(n.sources[i].ID)
	}
	for from, err := range r.itemPorts(n) {
		if err != nil {
			return err
		}
		h.num(from.len())
		for i, id := range from.ids {
			h.text(id)
			if o := from.origin(i); o != id {
				h.num(-1)
				h.text(o)
			}
		}
	}
	return nil
}

// writeLikeness writes, for a Whole stage, which items of its ports have the same
// id or origin, without saying which: such a stage may pair them. It writes
// nothing where all ports list the same items, each its own origin.
func (r *resolver) writeLikeness(h *hasher, n *node) error {
	var lists []*idList
	plain := true
	for l, err := range r.itemPorts(n) {
		if err != nil {
			return err
		}
		lists = append(lists, l)
		plain = plain && l.origins == nil && (l == lists[0] || slices.Equal(l.ids, lists[0].ids))
	}
	if plain {
		return nil
	}
	names := map[string]int{}
	number := func(name string) {
		k, ok := names[name]
		if !ok {
			k = len(names)
			names[name] = k
		}
		h.num(k)
	}
	written := map[*idList]int{}
	for _, l := range lists {
		if k, ok := written[l]; ok {
			h.num(-1 - k)
			continue
		}
		written[l] = len(written)
		h.num(l.len())
		for i, id := range l.ids {
			number(id)
			number(l.origin(i))
		}
	}
	return nil
}

// itemPorts yields the names of the items behind every live edge to a port of
// items.
func (r *resolver) itemPorts(n *node) iter.Seq2[*idList, error] {
	return func(yield func(*idList, error) bool) {
		for p := range n.Stage.Inputs {
			if !n.Stage.Inputs[p].Type.Items {
				continue
			}
			for _, e := range r.live(n, p) {
				l, err := r.idsOf(r.nodes[e.From.Index], e.Port)
				if !yield(l, err) || err != nil {
					return
				}
			}
		}
	}
}

// A join lists, for every item of a call, the positions of its members on
// another port. nil stands for one by one, in order.
type join [][]int32

// joins returns, by input port, how a port's items belong to n's items.
func (r *resolver) joins(n *node) ([]join, error) {
	primary := n.Stage.Primary()
	if primary < 0 {
		return nil, nil
	}
	out := make([]join, len(n.Inputs))
	first := n.Inputs[primary].Edges[0]
	root := r.nodes[first.From.Index].rootOf(first.Port)
	var calls *idList // the items of the call
	for p := range n.Inputs {
		if !n.Stage.Inputs[p].Type.Items || len(n.Inputs[p].Edges) == 0 {
			continue
		}
		e := n.Inputs[p].Edges[0]
		from := r.nodes[e.From.Index]
		if n.Stage.Relation != stages.Group && from.rootOf(e.Port) == root {
			continue
		}
		if calls == nil {
			var err error
			if n.Stage.Relation == stages.Group {
				calls, err = r.idsOf(n, 0)
			} else {
				calls, err = r.primaryIDs(n)
			}
			if err != nil {
				return nil, err
			}
		}
		items, err := r.idsOf(from, e.Port)
		if err != nil {
			return nil, err
		}
		if out[p], err = makeJoin(n, p, calls, items); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func makeJoin(n *node, port int, calls, items *idList) (join, error) {
	j := make(join, calls.len())
	if n.Stage.Relation == stages.Group {
		for i := range items.ids {
			if k := calls.find(items.origin(i)); k >= 0 {
				j[k] = append(j[k], int32(i))
			}
		}
	} else {
		members := make([]int32, calls.len())
		for i, id := range calls.ids {
			k := items.find(id)
			if k < 0 {
				k = items.find(calls.origin(i))
			}
			members[i] = int32(k)
			if k >= 0 {
				j[i] = members[i : i+1]
			}
		}
	}
	for i := range j {
		if len(j[i]) == 0 {
			return nil, fmt.Errorf("input %q has nothing for the item %q", n.Stage.Inputs[port].Name, calls.ids[i])
		}
	}
	return j, nil
}
