package pipeline

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
	"github.com/sourcegraph/conc"
)

// A resolver turns cells into keys and keys into what is stored under them.
type resolver struct {
	plan   *plan.Plan
	store  *store.Store
	nodes  []*node
	params *paramCoder
	class  string // of the devices in use, for same
	same   bool   // take only results made by the same class of device
	force  func(*plan.Cell) bool

	programs  programs
	compiler  func() string // names what compiles programs, so that another doesn't trust their digests
	compiling *device.Cache // where programs are compiled
	onCompile func(*node)   // if set, is told
	// value gets the value behind an edge.
	value func(ctx context.Context, slot *device.Slot, from *node, e plan.Edge) (stages.Data, error)
}

func (e *Engine) newResolver(p *plan.Plan) *resolver {
	r := &resolver{
		plan: p, store: e.Store, params: &paramCoder{}, nodes: make([]*node, len(p.Cells)), same: e.SameDevice, force: e.Force,
		programs: programs{known: map[stages.Digest]stages.Digest{}, making: map[stages.Digest]chan struct{}{}},
		compiler: e.Compiler,
	}
	if r.compiler == nil {
		r.compiler = func() string { return "" }
	}
	r.value = r.stored
	all := make([]node, len(p.Cells))
	for i, c := range p.Cells {
		n := &all[i]
		n.Cell = c
		r.nodes[i] = n
		for _, from := range r.edges(n) {
			n.wait++
			from.unread++
			from.dependents = append(from.dependents, n)
			n.depth = max(n.depth, from.depth+1)
		}
		r.findRoot(n)
	}
	return r
}

// lookAhead resolves, on all cores, every cell whose inputs are all stored: in a
// run that changes little, that's nearly all of them. After a new build, what that
// compiles differently is found here. It ends early when stop is closed.
func (r *resolver) lookAhead(ctx context.Context, stop <-chan struct{}) {
	for _, level := range r.levels() {
		var wg conc.WaitGroup
		var taken atomic.Int64 // of the level: a core may have other things to do
		for range min(runtime.GOMAXPROCS(0), len(level)) {
			wg.Go(func() {
				slot := sync.OnceValue(r.compileSlot)
				for i := taken.Add(1); i <= int64(len(level)) && ctx.Err() == nil && !closed(stop); i = taken.Add(1) {
					r.look(ctx, slot, level[i-1])
				}
			})
		}
		wg.Wait()
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

// levels sorts the nodes by depth.
func (r *resolver) levels() [][]*node {
	var sizes []int
	for _, n := range r.nodes {
		for len(sizes) <= int(n.depth) {
			sizes = append(sizes, 0)
		}
		sizes[n.depth]++
	}
	levels := make([][]*node, len(sizes))
	for d, size := range sizes {
		levels[d] = make([]*node, 0, size)
	}
	for _, n := range r.nodes {
		levels[n.depth] = append(levels[n.depth], n)
	}
	return levels
}

// look resolves n if its inputs are stored. Its error is kept in n, but for those
// that only say that this is too early to know.
func (r *resolver) look(ctx context.Context, slot func() *device.Slot, n *node) {
	for _, from := range r.edges(n) {
		if from.state != cached {
			return
		}
	}
	n.err = r.resolve(ctx, n)
	if errors.Is(n.err, errNotCompiled) {
		if n.err = r.compile(ctx, slot(), n); n.err == nil {
			n.err = r.resolve(ctx, n)
		}
	}
	if ctx.Err() != nil || lost(n.err) != nil {
		n.err = nil
	}
}

// live returns the edges of an input that hand something over: all of them, or
// those that didn't fail where the step drops what's missing.
func (r *resolver) live(n *node, port int) []plan.Edge {
	edges := n.Inputs[port].Edges
	if !n.Step.Drop {
		return edges
	}
	for i, e := range edges {
		if !r.nodes[e.From.Index].state.ok() {
			kept := append([]plan.Edge(nil), edges[:i]...)
			for _, e := range edges[i+1:] {
				if r.nodes[e.From.Index].state.ok() {
					kept = append(kept, e)
				}
			}
			return kept
		}
	}
	return edges
}

// blocker returns a cell without which n can't be executed and that has no
// results, or nil. A step that drops what is missing needs one cell an input.
func (r *resolver) blocker(n *node) *node {
	for p := range n.Inputs {
		edges := n.Inputs[p].Edges
		for _, e := range edges {
			from := r.nodes[e.From.Index]
			if !from.state.ok() && (!n.Step.Drop || len(r.live(n, p)) == 0) {
				return from
			}
		}
	}
	return nil
}

// resolve makes n's key, all of whose inputs are finished, and looks it up.
func (r *resolver) resolve(ctx context.Context, n *node) error {
	if err := r.makeKey(ctx, n); err != nil {
		return err
	}
	n.state = missing
	if r.lookUp(n) {
		n.state = cached
	}
	return nil
}

// lookUp reports whether what is stored under n's key is good enough, and takes
// it; else it notes why not.
func (r *resolver) lookUp(n *node) bool {
	hit, ok := r.store.Lookup(n.key, r.class)
	if !ok {
		n.reason = NothingStored
		return false
	}
	if n.reason = r.refusal(n, hit); n.reason != "" {
		before := hit
		n.before = &before
		return false
	}
	n.mu.Lock()
	n.hit = hit
	n.mu.Unlock()
	return true
}

// refusal says why what is stored of n isn't good enough, "" if it is.
func (r *resolver) refusal(n *node, hit store.Hit) string {
	if r.same && n.Stage.Device && hit.MadeBy() != r.class {
		return "it was made by " + hit.MadeBy()
	}
	if r.force != nil && r.force(n.Cell) {
		return forcedReason
	}
	if err := r.present(hit); err != nil {
		return err.Error()
	}
	return ""
}

const forcedReason = "forced"

// makeKey makes n's key of what its inputs came out as.
func (r *resolver) makeKey(ctx context.Context, n *node) error {
	recipe, err := r.recipe(ctx, n)
	if err != nil {
		return err
	}
	h := newHasher("cell")
	h.digest(recipe)
	h.num(n.sources.len())
	n.sourceDigests(h)
	for p := range n.Stage.Inputs {
		edges := r.live(n, p)
		h.num(len(edges))
		for _, e := range edges {
			h.coord(e.Coord)
			h.digest(r.nodes[e.From.Index].result(e.Port))
		}
	}
	if err := r.writeJoin(h, n); err != nil {
		return err
	}
	r.writeOrder(h, n)
	n.key = h.sum()
	return nil
}

// recipe finds out what n would execute, but not on what. It returns the digest of
// everything that decides n's result but its inputs: implementation, parameters with
// defaults, the seed where it's used.
func (r *resolver) recipe(ctx context.Context, n *node) (d stages.Digest, err error) {
	if n.lacksSources() {
		if err := r.sourcesOf(n); err != nil {
			return d, err
		}
	}
	if n.lacksProgram() {
		if err := r.recall(n); err != nil {
			return d, err
		}
	}
	h := newHasher("recipe")
	h.implementation(n.Stage, n.program)
	h.params(r.params, n.Params)
	if n.Stage.Seeded {
		h.num(int(r.plan.Seed))
	}
	return h.sum(), nil
}

// present checks, by size alone, that the bytes of a hit lie in the store.
func (r *resolver) present(hit store.Hit) error {
	for p := range hit.Packs() {
		if m := r.store.Check(p); m != nil {
			return m
		}
	}
	return nil
}

// definition returns the digest that names what was asked of n: implementation,
// version, parameters and the definitions of its inputs, down to the content of
// the data. Nothing computed is in it, so it is the same on every machine.
func (r *resolver) definition(n *node) (stages.Digest, error) {
	n.mu.Lock()
	known := n.def
	n.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	h := newHasher("definition")
	h.text(n.Stage.Name)
	h.num(n.Stage.Version)
	h.params(r.params, n.Params)
	if n.Stage.Seeded {
		h.num(int(r.plan.Seed))
	}
	h.num(n.sources.len())
	n.sourceDigests(h)
	for p := range n.Inputs {
		edges := r.live(n, p)
		h.num(len(edges))
		for _, e := range edges {
			d, err := r.definition(r.nodes[e.From.Index])
			if err != nil {
				return d, err
			}
			h.coord(e.Coord)
			h.digest(d)
			h.text(e.From.Stage.Outputs[e.Port].Name)
		}
	}
	if n.Stage.Named {
		if err := r.writeJoin(h, n); err != nil {
			return stages.Digest{}, err
		}
	}
	r.writeOrder(h, n)
	d := h.sum()
	n.mu.Lock()
	n.def = &d
	n.mu.Unlock()
	return d, nil
}
