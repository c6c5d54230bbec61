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
	switch n.Stage.Relation {
	case stages.Each:
		return n.sourceIDs(), nil
	case stages.Group:
		return r.originIDs(n)
	}
	listing, err := r.listingLocked(n, port)
	if err != nil {
		return nil, err
	}
	var parents *idList
	if n.Stage.Relation == stages.Expand {
		if n.Stage.Primary() < 0 {
			parents = n.sourceIDs()
		} else if parents, err = r.primaryIDs(n); err != nil {
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

// sourceIDs returns the names of a stage's sources.
func (n *node) sourceIDs() *idList {
	l := &idList{ids: make([]string, n.sources.len())}
	for i := range l.ids {
		l.ids[i] = n.sources.list[i].ID
	}
	return l
}

// originIDs names the items of a Group stage: the origins of what it takes, in order.
func (r *resolver) originIDs(n *node) (*idList, error) {
	in, err := r.primaryIDs(n)
	if err != nil {
		return nil, err
	}
	l := &idList{}
	seen := map[string]bool{}
	for i := range in.len() {
		if origin := in.origin(i); !seen[origin] {
			seen[origin] = true
			l.add(origin, origin)
		}
	}
	return l, nil
}

func (r *resolver) primaryIDs(n *node) (*idList, error) {
	e := n.Inputs[n.Stage.Primary()].Edges[0]
	return r.idsOf(r.nodes[e.From.Index], e.Port)
}
