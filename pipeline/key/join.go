package key

import "github.com/runexp/runexp/stages"

// A Join gives, for every call of a cell, the position of its member on another port, -1 for none. A nil
// Join stands for members one by one, in order.
type Join []int32

// Of returns the positions of the members of a call: one, or none.
func (j Join) Of(call int) []int32 {
	switch {
	case j == nil:
		return []int32{int32(call)}
	case j[call] < 0:
		return nil
	}
	return j[call : call+1]
}

// Missing counts the calls without a member.
func (j Join) Missing() (count int) {
	for _, at := range j {
		if at < 0 {
			count++
		}
	}
	return count
}

// newJoin gives every call the item that has its id or, failing that, its origin. lacking is the first call
// without one, or -1.
func newJoin(calls, items *IDs) (j Join, lacking int) {
	j, lacking = make(Join, calls.Len()), -1
	for i := range j {
		k := items.Find(calls.ids[i])
		if k < 0 {
			k = items.Find(calls.Origin(i))
		}
		if j[i] = int32(k); k < 0 && lacking < 0 {
			lacking = i
		}
	}
	return j, lacking
}

// Joins returns, by input port and live edge, how the items there correspond to the items for which a cell
// is called. It returns an error if an input lacks one of these, unless the cell collapses the input and
// its step drops missing items.
func (m *Maker) Joins(id *Identity) ([][]Join, error) {
	c := id.Cell
	out := make([][]Join, len(c.Inputs))
	var calls *IDs
	for p := range c.Inputs {
		if !c.Stage.Inputs[p].Type.Items {
			continue
		}
		for _, e := range id.Live(p) {
			if e.Root(m.Calls) == m.Calls[c.Index] {
				out[p] = append(out[p], nil)
				continue
			}
			var err error
			if calls == nil {
				if calls, err = m.CallIDs(id); err != nil {
					return nil, err
				}
			}
			items, err := m.Results.IDs(e.From, e.Port)
			if err != nil {
				return nil, err
			}
			j, lacking := newJoin(calls, items)
			if lacking >= 0 && (len(e.Coord) == 0 || !c.Step.Drop) {
				return nil, lacksItem(inputName(c, p, e), calls.ids[lacking])
			}
			out[p] = append(out[p], j)
		}
	}
	return out, nil
}

// CallIDs names the items for which a cell is called.
func (m *Maker) CallIDs(id *Identity) (*IDs, error) {
	if c := id.Cell; c.Stage.Relation == stages.Expand && c.Stage.Primary() < 0 {
		return id.Sources.IDs(), nil
	}
	root := m.Calls[id.Cell.Index]
	return m.Results.IDs(root.From, root.Port)
}

// OwnIDs names the items of a stage that makes the list of them: its sources, or the common items of the
// inputs that decide about them. No item may be missing from one of the inputs unless the step drops it.
func (m *Maker) OwnIDs(id *Identity) (*IDs, error) {
	c := id.Cell
	if c.Stage.Primary() < 0 {
		return id.Sources.IDs(), nil
	}
	var lists []*IDs
	var names []string
	for _, p := range c.Leading() {
		for _, e := range id.Live(p) {
			l, err := m.Results.IDs(e.From, e.Port)
			if err != nil {
				return nil, err
			}
			lists, names = append(lists, l), append(names, inputName(c, p, e))
		}
	}
	return common(lists, names, c.Step.Drop)
}

// itemPorts returns the names of the items on every live edge to a port of items.
func (m *Maker) itemPorts(id *Identity) (lists []*IDs, err error) {
	for p := range id.Cell.Inputs {
		if !id.Cell.Stage.Inputs[p].Type.Items {
			continue
		}
		for _, e := range id.Live(p) {
			l, err := m.Results.IDs(e.From, e.Port)
			if err != nil {
				return nil, err
			}
			lists = append(lists, l)
		}
	}
	return lists, nil
}
