package pipeline

import (
	"encoding/binary"
	"hash/maphash"
	"sync"

	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// An idList names the items of a port. Lists are shared by all the cells that
// give their items one by one from the same place.
type idList struct {
	rows  *store.Rows // the length of the id, the id, and the origin if that's another
	plain bool        // every item is its own origin

	once  sync.Once
	seed  maphash.Seed
	index store.RowIndex
	err   error // of making the index
}

func (r *resolver) newIDs() *idList { return &idList{rows: r.store.NewRows(), plain: true} }

func (l *idList) add(id, origin string) error {
	b := binary.AppendUvarint(make([]byte, 0, 64), uint64(len(id)))
	b = append(b, id...)
	if origin != id {
		l.plain = false
		b = append(append(b, 0), origin...)
	}
	return l.rows.Append(b)
}

func (l *idList) len() int { return l.rows.Len() }

// at returns the id of item i, and its origin.
func (l *idList) at(i int) (id, origin string, err error) {
	b, err := l.rows.At(i)
	if err != nil {
		return "", "", err
	}
	n, w := binary.Uvarint(b)
	id, b = string(b[w:w+int(n)]), b[w+int(n):]
	if len(b) > 0 {
		return id, string(b[1:]), nil
	}
	return id, id, nil
}

// texts returns all ids.
func (l *idList) texts() ([]string, error) {
	ids := make([]string, l.len())
	var err error
	for i := range ids {
		if ids[i], _, err = l.at(i); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// equal reports whether both lists have the same ids, all their own origins.
func (l *idList) equal(m *idList) (bool, error) {
	if !l.plain || !m.plain || l.len() != m.len() {
		return false, nil
	}
	for i := 0; l != m && i < l.len(); i++ {
		a, err := l.rows.At(i)
		if err != nil {
			return false, err
		}
		b, err := m.rows.At(i)
		if err != nil || string(a) != string(b) {
			return false, err
		}
	}
	return true, nil
}

// find returns the position of the item called id, or -1.
func (l *idList) find(id string) (int, error) {
	is := func(id string) func(int) (bool, error) {
		return func(row int) (bool, error) {
			other, _, err := l.at(row)
			return other == id, err
		}
	}
	l.once.Do(func() {
		l.seed = maphash.MakeSeed()
		for i := 0; i < l.len() && l.err == nil; i++ {
			var id string
			if id, _, l.err = l.at(i); l.err == nil {
				l.err = l.index.Set(uint32(maphash.String(l.seed, id)), i, is(id))
			}
		}
	})
	if l.err != nil {
		return -1, l.err
	}
	return l.index.Find(uint32(maphash.String(l.seed, id)), is(id))
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
	if n.ids[port] != nil {
		return n.ids[port], nil
	}
	l := r.newIDs()
	if err := r.makeIDs(l, n, port); err != nil {
		return nil, err
	}
	n.ids[port] = l
	return l, nil
}

func (r *resolver) makeIDs(l *idList, n *node, port int) error {
	switch n.Stage.Relation {
	case stages.Each:
		return r.sourceIDs(l, n)
	case stages.Group:
		return r.originIDs(l, n)
	}
	listing, err := r.listingLocked(n, port)
	if err != nil {
		return err
	}
	var parents *idList
	if n.Stage.Relation == stages.Expand {
		if n.Stage.Primary() < 0 {
			parents = r.newIDs()
			err = r.sourceIDs(parents, n)
		} else {
			parents, err = r.primaryIDs(n)
		}
		if err != nil {
			return err
		}
	}
	for i := range listing.Len() {
		e, err := listing.At(i)
		if err != nil {
			return err
		}
		id, origin := e.ID, e.Origin
		if parents != nil {
			if id, origin, err = parents.at(int(e.Parent)); err != nil {
				return err
			}
			if e.ID != "" {
				id += "/" + e.ID
			}
		}
		if err := l.add(id, origin); err != nil {
			return err
		}
	}
	return nil
}

func (r *resolver) sourceIDs(l *idList, n *node) error {
	for i := range n.sources.len() {
		row, err := n.sources.row(i)
		if err == nil {
			err = l.add(string(row.id), string(row.id))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// originIDs names the items of a Group stage: the origins of what it takes, in
// order.
func (r *resolver) originIDs(l *idList, n *node) error {
	in, err := r.primaryIDs(n)
	if err != nil {
		return err
	}
	seed := maphash.MakeSeed()
	var seen store.RowIndex // of in
	for i := range in.len() {
		_, origin, err := in.at(i)
		if err != nil {
			return err
		}
		same := func(row int) (bool, error) {
			_, other, err := in.at(row)
			return other == origin, err
		}
		hash := uint32(maphash.String(seed, origin))
		first, err := seen.Find(hash, same)
		if err == nil && first < 0 {
			if err = l.add(origin, origin); err == nil {
				err = seen.Set(hash, i, same)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *resolver) primaryIDs(n *node) (*idList, error) {
	e := n.Inputs[n.Stage.Primary()].Edges[0]
	return r.idsOf(r.nodes[e.From.Index], e.Port)
}
