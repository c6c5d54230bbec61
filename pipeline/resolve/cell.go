package resolve

import (
	"sync"
	"sync/atomic"

	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A Cell is a cell of a plan with its identity and its outcome. The schedule of a run knows how far the run
// is with it.
type Cell struct {
	*plan.Cell
	depth int32 // the longest way from a cell without inputs
	ports int   // up to the last output port that is wired

	identity atomic.Pointer[key.Identity] // each of which is immutable

	mu      sync.Mutex // guards the outcome
	outcome outcome
}

// An outcome is what came of a cell. Listings and ids are read on demand.
type outcome struct {
	has        bool // results
	hit        store.Hit
	entire     bool  // hit is of all items, though the run is of a share
	restored   int32 // how often the cell was executed again
	definition *stages.Digest
	listings   []*store.Listing // by output port, as the next
	ids        []*key.IDs
	warnings   []*cellWarnings // that aren't reported yet
}

// ID returns what is known of n's identity.
func (n *Cell) ID() *key.Identity { return n.identity.Load() }

// SetLive says which edges hand something over to n, nil for all.
func (n *Cell) SetLive(edges [][]plan.Edge) {
	id := *n.ID()
	if edges == nil && id.Edges == nil {
		return
	}
	id.Edges = edges
	n.identity.Store(&id)
}

// Kept reports whether the bytes of n's results are kept.
func (n *Cell) Kept() bool { return n.Step.Keep || n.Stage.Relation == stages.Whole }

// HasResults reports whether n has finished well.
func (n *Cell) HasResults() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.outcome.has
}

// Take has n's results be what the store has in hit. listings are those of its ports if they are in memory.
func (n *Cell) Take(hit store.Hit, listings []*store.Listing) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := &n.outcome
	o.has, o.hit, o.listings = true, hit, listings
	if o.entire = o.entire && n.Stage.Relation == stages.Whole; o.entire {
		o.listings = nil // a share reads its own items of them
	}
}

// Entire reports whether n's results are of all items, though the run is of a share.
func (n *Cell) Entire() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.outcome.entire
}

// Stored returns where n's results are stored; n must have finished well.
func (n *Cell) Stored() store.Hit {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.outcome.hit
}

// Result returns the digest that names what n's port came out as; n must have finished well.
func (n *Cell) Result(port int) stages.Digest {
	d, _, _ := n.Stored().Output(port)
	return d
}

// Forget drops what was loaded of n's results, once nobody waits for them.
func (n *Cell) Forget() {
	n.mu.Lock()
	n.outcome.listings = nil
	n.mu.Unlock()
}

// A Restoring is what a cell's results were before it is executed again.
type Restoring struct {
	Hit    store.Hit
	Times  int32 // it was executed again before
	entire bool
}

// Restoring returns what n's results are.
func (n *Cell) Restoring() Restoring {
	n.mu.Lock()
	defer n.mu.Unlock()
	return Restoring{n.outcome.hit, n.outcome.restored, n.outcome.entire}
}

// Restored says that n was executed again, or that this failed. It drops the listings that others have loaded
// meanwhile: they are of what was lost. Times counts unless it is to be tried elsewhere.
func (n *Cell) Restored(counts bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if counts {
		n.outcome.restored++
	}
	n.outcome.listings = nil
}

// Same reports whether the items of n are those that they were before: of a share's run, a cell that had the
// results of all items has those of the share's after it was executed again.
func (r Restoring) Same(n *Cell) bool { return n.Entire() == r.entire }
