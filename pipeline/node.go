package pipeline

import (
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A state says how far the engine is with a cell.
type state int8

const (
	waiting state = iota // for its inputs
	missing              // its key is known and nothing is stored under it
	running
	cached  // done, by an earlier run
	done    // done, by this run
	failed  // its own work failed
	blocked // something it needs failed
)

func (s state) finished() bool { return s >= cached }
func (s state) ok() bool       { return s == cached || s == done }

// A node is a cell in a run. The scheduling goroutine owns the first fields, the caller that resolves the
// cell the next; what is below mu is made on demand, by any goroutine.
type node struct {
	*plan.Cell
	root       portOf // where its items come from, when they are those of another port one by one
	state      state
	settled    bool  // it was decided what becomes of it
	wait       int32 // edges from cells that aren't finished
	unread     int32 // edges to cells that aren't finished
	depth      int32 // the longest way from a cell without inputs
	dependents []*node
	twins      []*node // cells with the same key that wait for this one
	err        error

	reason  string      // why it wasn't cached
	before  *store.Hit  // what was stored under its key when it wasn't good enough
	sources *sourceList // of a stage with Sources
	program stages.Digest
	key     stages.Digest

	batch atomic.Int32 // that fits in memory, once it is known to be less than the engine's

	restoring sync.Mutex // held while the cell is executed again

	mu       sync.Mutex // guards what follows
	hit      store.Hit  // once the state is ok
	restored int        // how often it was executed again
	def      *stages.Digest
	listings []*store.Listing
	ids      []*idList       // by output port
	warnings []*cellWarnings // that aren't reported yet
}

func (n *node) lacksSources() bool { return n.sources == nil && n.Stage.Sources != nil }
func (n *node) lacksProgram() bool { return n.program == (stages.Digest{}) && n.Stage.Program != nil }

// kept reports whether the bytes of n's results are kept.
func (n *node) kept() bool { return n.Step.Keep || n.Stage.Relation == stages.Whole }

// stored returns where n's results lie; n must have finished well.
func (n *node) stored() store.Hit {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hit
}

// edges yields n's edges, with the cells that they come from.
func (r *resolver) edges(n *node) iter.Seq2[plan.Edge, *node] {
	return func(yield func(plan.Edge, *node) bool) {
		for p := range n.Inputs {
			for _, e := range n.Inputs[p].Edges {
				if !yield(e, r.nodes[e.From.Index]) {
					return
				}
			}
		}
	}
}

// A port of a node, as the place that items come from.
type portOf struct {
	n    *node
	port int
}

// rootOf returns the port whose items those of n's port correspond to one by one, in order. Ports with equal
// roots are aligned without a look at any id.
func (n *node) rootOf(port int) portOf {
	if n.root.n != nil {
		return n.root
	}
	return portOf{n, port}
}

// findRoot sets n's root, given those of the cells before it.
func (r *resolver) findRoot(n *node) {
	switch n.Stage.Relation {
	case stages.Group:
		n.root = portOf{n, 0}
	case stages.Each:
		n.root = portOf{n, 0} // one item of each source, on every port
		if p := n.Stage.Primary(); p >= 0 {
			e := n.Inputs[p].Edges[0]
			n.root = r.nodes[e.From.Index].rootOf(e.Port)
		}
	}
}

// listing returns the items of n's port; n must have finished well.
func (r *resolver) listing(n *node, port int) (*store.Listing, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return r.listingLocked(n, port)
}

func (r *resolver) listingLocked(n *node, port int) (*store.Listing, error) {
	if n.listings == nil {
		n.listings = make([]*store.Listing, len(n.Stage.Outputs))
	}
	if n.listings[port] == nil {
		l, err := r.store.Listing(n.hit, port)
		if err != nil {
			return nil, &lostError{n, n.restored, err}
		}
		n.listings[port] = l
	}
	return n.listings[port], nil
}

// A lostError says that what was recorded of a finished cell can't be read any more. Executing the cell again
// mends that.
type lostError struct {
	n        *node
	restored int // how often it had been executed again when that was noticed
	err      error
}

func (e *lostError) Error() string { return fmt.Sprintf("%s: %v", e.n.Cell, e.err) }
func (e *lostError) Unwrap() error { return e.err }

// lost returns the lostError in err, or nil.
func lost(err error) *lostError {
	l, _ := errors.AsType[*lostError](err)
	return l
}

// result returns the digest that names what n's port came out as; n must have finished well.
func (n *node) result(port int) stages.Digest {
	d, _, _ := n.stored().Output(port)
	return d
}

// forget drops what was loaded of n's results, once nobody waits for them.
func (n *node) forget() {
	n.mu.Lock()
	n.listings = nil
	n.mu.Unlock()
}
