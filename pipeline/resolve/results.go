package resolve

import (
	"errors"
	"fmt"

	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A Lost error means that recorded results of a finished cell can't be read any more. Executing the cell
// again restores them.
type Lost struct {
	Cell  *Cell
	Times int32 // how often it had been executed again before
	Err   error
}

func (e *Lost) Error() string { return fmt.Sprintf("%s: %v", e.Cell.Cell, e.Err) }
func (e *Lost) Unwrap() error { return e.Err }

// IsLost returns the [Lost] error in err, or nil.
func IsLost(err error) *Lost {
	l, _ := errors.AsType[*Lost](err)
	return l
}

// Identity implements [key.Results].
func (r *Resolver) Identity(c *plan.Cell) *key.Identity { return r.Cells[c.Index].ID() }

// Result implements [key.Results].
func (r *Resolver) Result(c *plan.Cell, port int) stages.Digest { return r.Cells[c.Index].Result(port) }

// Definition implements [key.Results]. All inputs of the cell must have finished.
func (r *Resolver) Definition(c *plan.Cell) (stages.Digest, error) {
	n := r.Cells[c.Index]
	n.mu.Lock()
	known := n.outcome.definition
	n.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	d, err := r.Keys.Definition(n.ID())
	if err == nil {
		n.mu.Lock()
		n.outcome.definition = &d
		n.mu.Unlock()
	}
	return d, err
}

// Listing returns the items of n's port; n must have finished successfully.
func (r *Resolver) Listing(n *Cell, port int) (*store.Listing, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return r.listingLocked(n, port)
}

func (r *Resolver) listingLocked(n *Cell, port int) (*store.Listing, error) {
	o := &n.outcome
	if !o.has {
		return nil, fmt.Errorf("%s has no results", n.Cell)
	}
	if o.listings == nil {
		o.listings = make([]*store.Listing, len(n.Stage.Outputs))
	}
	if o.listings[port] == nil {
		l, err := r.Store.Listing(o.hit, port)
		if err == nil && o.entire {
			l, err = r.ownItems(n, port, l)
		}
		if err != nil {
			return nil, &Lost{n, o.restored, err}
		}
		o.listings[port] = l
	}
	return o.listings[port], nil
}

// IDs implements [key.Results]: it returns the names of the items of c's port; c must have finished
// successfully.
func (r *Resolver) IDs(c *plan.Cell, port int) (*key.IDs, error) {
	root := plan.Edge{From: c, Port: port}.Root(r.Keys.Calls)
	n, port := r.Cells[root.From.Index], root.Port
	n.mu.Lock()
	defer n.mu.Unlock()
	o := &n.outcome
	if o.ids == nil {
		o.ids = make([]*key.IDs, len(n.Stage.Outputs))
	}
	if o.ids[port] == nil {
		l, err := r.makeIDs(n, port)
		if err != nil {
			return nil, err
		}
		o.ids[port] = l
	}
	return o.ids[port], nil
}

// makeIDs makes the names of the items of n's port. n.mu is held.
func (r *Resolver) makeIDs(n *Cell, port int) (*key.IDs, error) {
	if n.outcome.entire && n.Stage.Relation != stages.Whole {
		return r.ownIDs(n, port)
	}
	if n.Stage.Relation == stages.Each {
		return r.Keys.OwnIDs(n.ID())
	}
	listing, err := r.listingLocked(n, port)
	if err != nil {
		return nil, err
	}
	var parents *key.IDs
	if n.Stage.Relation == stages.Expand {
		if parents, err = r.Keys.CallIDs(n.ID()); err != nil {
			return nil, err
		}
	}
	l := &key.IDs{}
	for i := range listing.Len() {
		e := listing.At(i)
		id, origin := e.ID, e.Origin
		if parents != nil {
			id, origin = parents.ID(int(e.Parent)), parents.Origin(int(e.Parent))
			if e.ID != "" {
				id += "/" + e.ID
			}
		}
		l.Add(id, origin)
	}
	return l, nil
}
