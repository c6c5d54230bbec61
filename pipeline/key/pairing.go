package key

import (
	"slices"

	"github.com/runexp/runexp/stages"
)

// writePairing writes how the items of different ports belong together, unless they do one by one in order,
// and the items' ids for stages that show them.
func (m *Maker) writePairing(h *Hasher, id *Identity) error {
	if id.Cell.Stage.Named {
		if err := m.writeNames(h, id); err != nil {
			return err
		}
	}
	if id.Cell.Stage.Relation == stages.Whole {
		return m.writeLikeness(h, id)
	}
	joins, err := m.Joins(id)
	for p, edges := range joins {
		for i, j := range edges {
			if j == nil {
				continue
			}
			h.Num(p)
			if i > 0 { // on a collapsed port
				h.Num(-i)
			}
			for call := range j {
				members := j.Of(call)
				h.Num(len(members))
				for _, at := range members {
					h.Num(int(at))
				}
			}
		}
	}
	return err
}

// writeNames writes the ids of a cell's sources and items, and the origins that differ from them.
func (m *Maker) writeNames(h *Hasher, id *Identity) error {
	h.SourceNames(id.Sources)
	lists, err := m.itemPorts(id)
	for _, l := range lists {
		h.Num(l.Len())
		for i, id := range l.ids {
			h.Text(id)
			if origin := l.Origin(i); origin != id {
				h.Num(-1)
				h.Text(origin)
			}
		}
	}
	return err
}

// writeLikeness writes, for a Whole stage, which items of its ports have the same id or origin, without the
// ids themselves: such a stage may pair them. It writes nothing if all ports list the same items, each its
// own origin.
func (m *Maker) writeLikeness(h *Hasher, id *Identity) error {
	lists, err := m.itemPorts(id)
	if err != nil || !slices.ContainsFunc(lists, func(l *IDs) bool { return !l.Equal(lists[0]) }) {
		return err
	}
	names := map[string]int{}
	number := func(name string) {
		k, ok := names[name]
		if !ok {
			k = len(names)
			names[name] = k
		}
		h.Num(k)
	}
	written := map[*IDs]int{}
	for _, l := range lists {
		if k, ok := written[l]; ok {
			h.Num(-1 - k)
			continue
		}
		written[l] = len(written)
		h.Num(l.Len())
		for i, id := range l.ids {
			number(id)
			number(l.Origin(i))
		}
	}
	return nil
}
