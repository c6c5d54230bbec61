package pipeline

import (
	"fmt"
	"sync"

	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A state says how far the engine is with a cell.
type state int

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

// A node is a cell in a run. The scheduling goroutine owns state, wait and err;
// what is below mu is loaded on demand, by any goroutine.
type node struct {
	*Cell
	state      state
	wait       int  // inputs that aren't finished
	depth      int  // the longest way from a cell without inputs
	settled    bool // it was decided what becomes of it
	dependents []*node
	err        error
	reason     string     // why it wasn't cached
	before     *store.Hit // what was stored under its key when it wasn't good enough

	sources []stages.Source // of a stage with Sources and no item inputs
	digests []stages.Digest // of the sources' files
	program stages.Digest
	recipe  stages.Digest
	key     stages.Digest
	hit     store.Hit // once the state is ok

	mu       sync.Mutex
	def      stages.Digest
	listings []*store.Listing
	ids      []*idList // by output port

	restoring sync.Mutex // held while the cell is executed again
	restored  int        // how often it was
}

// An idList names the items of a port. Lists are shared by all the cells that
// give their items one by one from the same place.
type idList struct {
	ids     []string
	origins []string // nil when every item is its own origin

	once  sync.Once
	index map[string]int32
}

func (l *idList) len() int { return len(l.ids) }

func (l *idList) origin(i int) string {
	if l.origins == nil {
		return l.ids[i]
	}
	return l.origins[i]
}

// find returns the position of the item called id, or -1.
func (l *idList) find(id string) int {
	l.once.Do(func() {
		l.index = make(map[string]int32, len(l.ids))
		for i, id := range l.ids {
			l.index[id] = int32(i)
		}
	})
	if i, ok := l.index[id]; ok {
		return int(i)
	}
	return -1
}

// A port of a node, as the place that items come from.
type portOf struct {
	n    *node
	port int
}

// root returns the port whose items those of n's port correspond to one by one,
// in order. Ports with equal roots are aligned without a look at any id.
func (r *resolver) root(n *node, port int) portOf {
	for n.Stage.Relation == stages.Each {
		p := n.Stage.Primary()
		if p < 0 {
			return portOf{n, 0} // one item of each source, on every port
		}
		e := n.Inputs[p].Edges[0]
		n, port = r.nodes[e.From.Index], e.Port
	}
	if n.Stage.Relation == stages.Group {
		return portOf{n, 0}
	}
	return portOf{n, port}
}

// idsOf returns the names of the items of n's port; n must have finished well.
func (r *resolver) idsOf(n *node, port int) (*idList, error) {
	at := r.root(n, port)
	n, port = at.n, at.port
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ids == nil {
		n.ids = make([]*idList, len(n.Stage.Outputs))
	}
	if n.ids[port] != nil {
		return n.ids[port], nil
	}
	l, err := r.makeIDs(n, port)
	if err != nil {
		return nil, err
	}
	n.ids[port] = l
	return l, nil
}

func (r *resolver) makeIDs(n *node, port int) (*idList, error) {
	if n.Stage.Relation == stages.Each {
		l := &idList{ids: make([]string, len(n.sources))}
		for i := range n.sources {
			l.ids[i] = n.sources[i].ID
		}
		return l, nil
	}
	if n.Stage.Relation == stages.Group {
		in, err := r.primaryIDs(n)
		if err != nil {
			return nil, err
		}
		l := &idList{}
		seen := map[string]bool{}
		for i := range in.ids {
			if o := in.origin(i); !seen[o] {
				seen[o] = true
				l.ids = append(l.ids, o)
			}
		}
		return l, nil
	}
	listing, err := r.listingLocked(n, port)
	if err != nil {
		return nil, err
	}
	if n.Stage.Relation == stages.Whole {
		return &idList{ids: listing.IDs, origins: listing.Origins}, nil
	}
	l := &idList{ids: make([]string, listing.Len()), origins: make([]string, listing.Len())}
	var parents *idList
	if n.Stage.Primary() < 0 {
		parents = &idList{ids: make([]string, len(n.sources))}
		for i := range n.sources {
			parents.ids[i] = n.sources[i].ID
		}
	} else if parents, err = r.primaryIDs(n); err != nil {
		return nil, err
	}
	for i := range l.ids {
		p := listing.Parents[i]
		l.ids[i], l.origins[i] = parents.ids[p], parents.origin(int(p))
		if sub := listing.IDs[i]; sub != "" {
			l.ids[i] += "/" + sub
		}
	}
	return l, nil
}

func (r *resolver) primaryIDs(n *node) (*idList, error) {
	e := n.Inputs[n.Stage.Primary()].Edges[0]
	return r.idsOf(r.nodes[e.From.Index], e.Port)
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
			return nil, fmt.Errorf("%s: %w", n.Cell, err)
		}
		n.listings[port] = l
	}
	return n.listings[port], nil
}

// result returns the digest that names what n's port came out as; n must have
// finished well.
func (n *node) result(port int) stages.Digest {
	d, _, _ := n.hit.Output(port)
	return d
}

// forget drops what was loaded of n's results, once nobody waits for them.
func (n *node) forget() {
	n.mu.Lock()
	n.listings = nil
	n.mu.Unlock()
}
