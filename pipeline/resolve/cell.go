package resolve

import (
	"sync"
	"sync/atomic"

	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A Cell is a cell of a plan with its identity and its outcome. Its progress is the schedule's.
type Cell struct {
	*plan.Cell
	depth int32 // the longest path from a cell without inputs
	ports int   // up to the last wired output port

	identity atomic.Pointer[key.Identity] // an immutable value, replaced by update

	mu      sync.Mutex // guards the outcome, and is held by update
	outcome outcome
}

// An outcome is the result of a cell. Listings and ids are read on demand.
type outcome struct {
	has        bool // the cell has results
	hit        store.Hit
	entire     bool  // hit is for all items, though the run is of a share
	restored   int32 // how often the cell was executed again
	definition *stages.Digest
	listings   []*store.Listing // by output port, like the next field
	ids        []*key.IDs
	warnings   []*cellWarnings // not reported yet
}

// ID returns the known part of n's identity.
func (n *Cell) ID() *key.Identity { return n.identity.Load() }

// SetLive sets the edges that pass data to n, nil for all.
func (n *Cell) SetLive(edges [][]plan.Edge) {
	if edges != nil || n.ID().Edges != nil {
		n.update(func(id *key.Identity) { id.Edges = edges })
	}
}

// learn takes over sources, program and key of an identity.
func (n *Cell) learn(from *key.Identity) {
	n.update(func(id *key.Identity) { id.Sources, id.Program, id.Key = from.Sources, from.Program, from.Key })
}

// update gives n an identity that differs from the one it has.
func (n *Cell) update(change func(id *key.Identity)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id := *n.ID()
	change(&id)
	n.identity.Store(&id)
}

// HasResults reports whether n has results, of this run or an earlier one.
func (n *Cell) HasResults() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.outcome.has
}

// Take sets n's results to those of hit. listings are the listings of its ports if they are in memory.
func (n *Cell) Take(hit store.Hit, listings []*store.Listing) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := &n.outcome
	o.has, o.hit, o.listings = true, hit, listings
	if o.entire = o.entire && n.Stage.Relation == stages.Whole; o.entire {
		o.listings = nil // a share reads only its own items of them
	}
}

// Entire reports whether n's results are for all items, though the run is of a share.
func (n *Cell) Entire() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.outcome.entire
}

// Stored returns n's results in the store; n must have finished successfully.
func (n *Cell) Stored() store.Hit {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.outcome.hit
}

// Result returns the digest of the results on n's port; n must have finished successfully.
func (n *Cell) Result(port int) stages.Digest {
	d, _, _ := n.Stored().Output(port)
	return d
}

// Forget drops the loaded listings of n, once nothing waits for them.
func (n *Cell) Forget() {
	n.mu.Lock()
	n.outcome.listings = nil
	n.mu.Unlock()
}

// A Restoring is the state of a cell's results before it is executed again.
type Restoring struct {
	Hit    store.Hit
	Times  int32 // how often it was executed again before
	entire bool
}

// Restoring returns the state of n's results.
func (n *Cell) Restoring() Restoring {
	n.mu.Lock()
	defer n.mu.Unlock()
	return Restoring{n.outcome.hit, n.outcome.restored, n.outcome.entire}
}

// Restored records that n was executed again, or that this failed. It drops listings that were loaded
// meanwhile, since they are lists of the lost results. The execution counts unless it is to be tried
// elsewhere.
func (n *Cell) Restored(counts bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if counts {
		n.outcome.restored++
	}
	n.outcome.listings = nil
}

// Same reports whether the items of n are the same as before: in a share's run, a cell that had the results
// of all items has the share's results after it was executed again.
func (r Restoring) Same(n *Cell) bool { return n.Entire() == r.entire }
