package pipeline

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A node is a cell in a run. The scheduling goroutine owns the first fields, the caller that resolves the
// cell the next; what is below mu is made on demand, by any goroutine.
type node struct {
	*plan.Cell
	calls  portOf        // the port whose items it is called for, its own where it makes the list of them
	depth  int32         // the longest way from a cell without inputs
	ports  int           // up to the last output port that is wired
	live   [][]plan.Edge // that hand something over, by input; nil if all do
	looked bool          // it was looked up ahead of the schedule
	err    error

	reason  string      // why it wasn't cached
	before  *store.Hit  // what was stored under its key when it wasn't good enough
	sources *sourceList // of a stage with Sources
	program stages.Digest
	key     stages.Digest

	meter meter
	total atomic.Int32 // calls of the job that executes it, 0 while unknown

	batch atomic.Int32 // that fits in memory, once it is known to be less than the engine's

	restoring sync.Mutex // held while the cell is executed again

	mu       sync.Mutex // guards what follows
	has      bool       // results, which hit tells where
	hit      store.Hit
	entire   bool  // hit is of all items, though the run is a share's
	restored int32 // how often it was executed again
	def      *stages.Digest
	listings []*store.Listing
	ids      []*idList       // by output port
	warnings []*cellWarnings // that aren't reported yet
}

func (n *node) lacksSources() bool { return n.sources == nil && n.Stage.Sources != nil }
func (n *node) lacksProgram() bool { return n.program == (stages.Digest{}) && n.Stage.Program != nil }

// kept reports whether the bytes of n's results are kept.
func (n *node) kept() bool { return n.Step.Keep || n.Stage.Relation == stages.Whole }

// hasResults reports whether n has finished well.
func (n *node) hasResults() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.has
}

// take has n's results be what the store has in hit.
func (n *node) take(hit store.Hit) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.has, n.hit = true, hit
}

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
	if n.Stage.Relation == stages.Each {
		return n.calls
	}
	return portOf{n, port}
}

// findCalls sets n.calls, given those of the cells before it: the root of its primary input, or the one that
// all collapsed inputs of items have in common.
func (r *resolver) findCalls(n *node) {
	n.calls = portOf{n, 0}
	if n.Stage.Relation == stages.Whole {
		return
	}
	var roots []portOf
	for _, p := range n.leading() {
		for _, e := range n.Inputs[p].Edges {
			if root := r.nodes[e.From.Index].rootOf(e.Port); !slices.Contains(roots, root) {
				roots = append(roots, root)
			}
		}
	}
	if len(roots) == 1 {
		n.calls = roots[0]
	}
}

// leading returns the inputs that decide which items n is called for: its primary one or, where over
// collapses all inputs of items, all of these.
func (n *node) leading() (ports []int) {
	if p := n.Primary(); p >= 0 {
		return []int{p}
	}
	for p := range n.Inputs {
		if n.Stage.Inputs[p].Type.Items && len(n.Inputs[p].Edges) > 0 {
			ports = append(ports, p)
		}
	}
	return ports
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
		if n.entire {
			if l, err = r.ofItems(n, port, l); err != nil {
				return nil, &lostError{n, n.restored, err}
			}
		}
		n.listings[port] = l
	}
	return n.listings[port], nil
}

// A lostError says that what was recorded of a finished cell can't be read any more. Executing the cell again
// mends that.
type lostError struct {
	n        *node
	restored int32 // how often it had been executed again when that was noticed
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
