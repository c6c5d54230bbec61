package pipeline

import (
	"slices"
	"sync"

	"github.com/runexp/runexp/stages"
)

// An idList names the items of a port. Lists are shared by all the cells that give their items one by one
// from the same place. They stay in memory, so an id takes at most 100 bytes.
type idList struct {
	ids     []string
	origins []string // nil while every item is its own origin

	once      sync.Once
	positions map[string]int32 // by id
}

func (l *idList) add(id, origin string) {
	if l.origins == nil && origin != id {
		l.origins = append([]string{}, l.ids...)
	}
	if l.ids = append(l.ids, id); l.origins != nil {
		l.origins = append(l.origins, origin)
	}
}

func (l *idList) len() int { return len(l.ids) }

// origin returns the id of the item that item i was made from, or its own.
func (l *idList) origin(i int) string {
	if l.origins != nil {
		return l.origins[i]
	}
	return l.ids[i]
}

// equal reports whether both lists have the same ids, all their own origins.
func (l *idList) equal(m *idList) bool {
	return l.origins == nil && m.origins == nil && slices.Equal(l.ids, m.ids)
}

// find returns the position of the item called id, or -1.
func (l *idList) find(id string) int {
	l.once.Do(func() {
		l.positions = make(map[string]int32, len(l.ids))
		for i, id := range l.ids {
			l.positions[id] = int32(i)
		}
	})
	if i, ok := l.positions[id]; ok {
		return int(i)
	}
	return -1
}

// idsOf returns the names of the items of n's port; n must have finished well.
func (r *resolver) idsOf(n *node, port int) (*idList, error) {
	at := n.rootOf(port)
	n, port = at.n, at.port
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ids == nil {
		n.ids = make([]*idList, len(n.Stage.Outputs))
	}
	if n.ids[port] == nil {
		l, err := r.makeIDs(n, port)
		if err != nil {
			return nil, err
		}
		n.ids[port] = l
	}
	return n.ids[port], nil
}

func (r *resolver) makeIDs(n *node, port int) (*idList, error) {
	if n.entire && n.Stage.Relation != stages.Whole {
		all, err := r.all.idsOf(r.all.nodes[n.Index], port)
		if err != nil {
			return nil, err
		}
		return all.ownedBy(r.Share), nil
	}
	if n.Stage.Relation == stages.Each {
		return r.ownIDs(n)
	}
	listing, err := r.listingLocked(n, port)
	if err != nil {
		return nil, err
	}
	var parents *idList
	if n.Stage.Relation == stages.Expand {
		if parents, err = r.callIDs(n); err != nil {
			return nil, err
		}
	}
	l := &idList{}
	for i := range listing.Len() {
		e := listing.At(i)
		id, origin := e.ID, e.Origin
		if parents != nil {
			id, origin = parents.ids[e.Parent], parents.origin(int(e.Parent))
			if e.ID != "" {
				id += "/" + e.ID
			}
		}
		l.add(id, origin)
	}
	return l, nil
}

// callIDs names the items that n is called for.
func (r *resolver) callIDs(n *node) (*idList, error) {
	if n.Stage.Relation == stages.Expand && n.Stage.Primary() < 0 {
		return n.sourceIDs(), nil
	}
	return r.idsOf(n.calls.n, n.calls.port)
}

// sourceIDs returns the names of a stage's sources.
func (n *node) sourceIDs() *idList {
	if n.sources == nil {
		return &idList{}
	}
	return &idList{ids: n.sources.ids} // in the same memory
}

// ownIDs names the items of a stage that makes the list of them: its sources, or what the inputs have in
// common that decide about them. Nothing may be missing from one of the inputs unless the step drops it.
func (r *resolver) ownIDs(n *node) (*idList, error) {
	if n.Stage.Primary() < 0 {
		return n.sourceIDs(), nil
	}
	var lists []*idList
	var names []string
	for _, p := range n.leading() {
		for _, e := range r.live(n, p) {
			l, err := r.idsOf(r.nodes[e.From.Index], e.Port)
			if err != nil {
				return nil, err
			}
			lists, names = append(lists, l), append(names, inputName(n, p, e))
		}
	}
	common := &idList{}
	for i, l := range lists {
		for k, id := range l.ids {
			lacking := slices.IndexFunc(lists, func(m *idList) bool { return m.find(id) < 0 })
			switch {
			case lacking < 0 && i == 0:
				common.add(id, l.origin(k))
			case lacking >= 0 && !n.Step.Drop:
				return nil, lacksItem(names[lacking], id)
			}
		}
	}
	return common, nil
}
