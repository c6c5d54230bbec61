package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/sourcegraph/conc/iter"
)

// A resolver turns cells into keys and keys into what is stored under them.
type resolver struct {
	*Engine
	plan   *plan.Plan
	store  *store.Store
	nodes  []*node
	params *paramCoder
	texts  *store.Texts // of sources, see sourceText
	all    *resolver    // in a run of a share: what the store has of all items
	class  string       // of the devices in use, recorded with results; "" while nobody asked

	programs  programs
	compiling *device.Cache // where programs are compiled

	telling sync.Mutex   // one event at a time
	end     atomic.Int64 // when the run is expected to end, in Unix nanoseconds; 0 while nobody knows
}

func (e *Engine) newResolver(p *plan.Plan) *resolver {
	r := &resolver{
		Engine: e, plan: p, store: e.Store, params: &paramCoder{}, nodes: make([]*node, len(p.Cells)),
		texts: e.Store.NewTexts(1 + sourceFiles),
	}
	all := make([]node, len(p.Cells))
	for i, c := range p.Cells {
		n := &all[i]
		n.Cell = c
		r.nodes[i] = n
		for e, from := range r.edges(n) {
			from.ports = max(from.ports, e.Port+1)
			n.depth = max(n.depth, from.depth+1)
		}
		r.findCalls(n)
	}
	return r
}

func (r *resolver) emit(e Event) {
	if r.OnEvent == nil {
		return
	}
	r.telling.Lock()
	defer r.telling.Unlock()
	if end := r.end.Load(); end > 0 && e.Kind != Finished {
		e.Left = max(time.Until(time.Unix(0, end)), time.Second)
	}
	r.OnEvent(e)
}

// warn tells the user something about a cell that isn't an error.
func (r *resolver) warn(c *plan.Cell, format string, args ...any) {
	e := eventOf(Warning, c)
	e.Reason = fmt.Sprintf(format, args...)
	r.emit(e)
}

// lookAhead resolves, on all cores, every cell whose inputs are all stored: in a run that changes little,
// that's nearly all of them. After a new build, what that compiles differently is found here. It ends early
// when stop is closed.
func (r *resolver) lookAhead(ctx context.Context, stop <-chan struct{}) {
	nodes := slices.Clone(r.nodes)
	slices.SortStableFunc(nodes, func(a, b *node) int { return cmp.Compare(a.depth, b.depth) })
	for len(nodes) > 0 {
		size := slices.IndexFunc(nodes, func(n *node) bool { return n.depth > nodes[0].depth })
		if size < 0 {
			size = len(nodes)
		}
		iter.ForEach(nodes[:size], func(n **node) {
			if ctx.Err() == nil && !closed(stop) {
				r.look(ctx, *n)
			}
		})
		nodes = nodes[size:]
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// look resolves n if its inputs are stored. Its error is kept in n, except one that only tells that it is too
// early to know.
func (r *resolver) look(ctx context.Context, n *node) {
	for _, from := range r.edges(n) {
		if !from.hasResults() {
			return
		}
	}
	n.looked = true
	n.err = r.resolve(n)
	if errors.Is(n.err, errNotCompiled) {
		if n.err = r.compile(ctx, n); n.err == nil {
			n.err = r.resolve(n)
		}
	}
	if ctx.Err() != nil || lost(n.err) != nil {
		n.err, n.looked = nil, false
	}
}

// live returns the edges of an input that hand something over.
func (r *resolver) live(n *node, port int) []plan.Edge {
	if n.live != nil {
		return n.live[port]
	}
	return n.Inputs[port].Edges
}

// resolve makes n's key, all of whose inputs are finished, and looks it up.
func (r *resolver) resolve(n *node) error {
	if err := r.makeKey(n); err != nil {
		return err
	}
	r.lookUp(n)
	return nil
}

// makeKey gives n its key. All of n's inputs are finished.
func (r *resolver) makeKey(n *node) error {
	if err := r.readySources(n); err != nil {
		return err
	}
	key, err := r.cellKey(n)
	if err == nil {
		n.key = key
	}
	return err
}

// readySources finds what n's key needs in addition to the results of other cells.
func (r *resolver) readySources(n *node) error {
	if n.lacksSources() {
		if err := r.sourcesOf(n); err != nil {
			return err
		}
	}
	if n.lacksProgram() {
		return r.recall(n)
	}
	return nil
}

// lookUp reports whether what is stored under n's key is good enough, and takes it; else it notes why not.
func (r *resolver) lookUp(n *node) bool {
	hit, ok := r.store.Lookup(n.key, r.class)
	if ok && r.refusedSince(n, hit) {
		hit, ok = r.store.Lookup(n.key, r.MadeBy("cpu"))
	}
	if !ok {
		n.reason = NothingStored
		return false
	}
	if n.reason = r.refusal(n, hit); n.reason != "" {
		n.before = &hit
		return false
	}
	n.take(hit)
	return true
}

// refusal returns why what is stored of n isn't good enough, "" if it is.
func (r *resolver) refusal(n *node, hit store.Hit) string {
	if r.SameDevice && n.Stage.Device && hit.MadeBy() != r.class {
		return "it was made by " + hit.MadeBy()
	}
	if r.Force != nil && r.Force(n.Cell) {
		return forcedReason
	}
	if r.refusedSince(n, hit) {
		return "it was made by " + hit.MadeBy() + ", which was refused for it since"
	}
	if hit.Outputs() < n.ports {
		return fmt.Sprintf("it was made without the output %q", n.Stage.Outputs[n.ports-1].Name)
	}
	for p := range hit.Packs() {
		if m := r.store.Check(p); m != nil { // by size alone
			return m.Error()
		}
	}
	return ""
}

const forcedReason = "forced"
