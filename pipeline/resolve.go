package pipeline

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"

	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
	"github.com/sourcegraph/conc"
)

// A resolver turns cells into keys and keys into what is stored under them.
type resolver struct {
	plan   *Plan
	store  *store.Store
	nodes  []*node
	params *paramCoder
	class  string // of the devices in use, for same
	same   bool   // take only results made by the same class of device
	force  func(*Cell) bool

	// value gets the value behind an edge; nil while planning, which reads no data.
	value func(ctx context.Context, from *node, e Edge) (stages.Data, error)
}

func newResolver(p *Plan, s *store.Store) *resolver {
	r := &resolver{plan: p, store: s, params: &paramCoder{}, nodes: make([]*node, len(p.Cells))}
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
// run that changes little, that's nearly all of them. It compiles nothing.
func (r *resolver) lookAhead(ctx context.Context) {
	var levels [][]*node
	for _, n := range r.nodes {
		for len(levels) <= n.depth {
			levels = append(levels, nil)
		}
		levels[n.depth] = append(levels[n.depth], n)
	}
	for _, level := range levels {
		var wg conc.WaitGroup
		workers := min(runtime.GOMAXPROCS(0), len(level))
		for w := range workers {
			wg.Go(func() {
				for i := w; i < len(level) && ctx.Err() == nil; i += workers {
					r.look(ctx, level[i])
				}
			})
		}
		wg.Wait()
	}
}

// look resolves n if its inputs are stored. Its error is kept in n, but for those
// that only say that this is too early to know.
func (r *resolver) look(ctx context.Context, n *node) {
	for _, from := range r.edges(n) {
		if from.state != cached {
			return
		}
	}
	n.err = r.resolve(ctx, n)
	if errors.Is(n.err, errNotCompiled) || lost(n.err) != nil {
		n.err = nil
	}
}

// sourcesOf asks a stage for what it reads from outside.
func (r *resolver) sourcesOf(n *node) (err error) {
	if n.Stage.Primary() >= 0 {
		return r.joinedSources(n)
	}
	n.sources, err = guardSources(n.Cell, nil)
	if err != nil {
		return err
	}
	if r.plan.Limit > 0 && n.Stage.Relation != stages.Whole && len(n.sources) > r.plan.Limit {
		n.sources = n.sources[:r.plan.Limit]
	}
	if n.Stage.Relation != stages.Whole {
		if len(n.sources) == 0 {
			return errors.New("there is nothing to read: no item at all")
		}
		if err := unique(n.sources); err != nil {
			return err
		}
	}
	n.digests, err = r.fileDigests(n.sources)
	return err
}

func unique(sources []stages.Source) error {
	if len(sources) == 1 {
		return nil
	}
	seen := make(map[string]bool, len(sources))
	for i := range sources {
		if id := sources[i].ID; seen[id] {
			return fmt.Errorf("two items are called %q", id)
		}
		seen[sources[i].ID] = true
	}
	return nil
}

func (r *resolver) fileDigests(sources []stages.Source) ([]stages.Digest, error) {
	var digests []stages.Digest
	for i := range sources {
		if sources[i].File == "" {
			continue
		}
		d, _, err := r.store.FileDigest(sources[i].File)
		if err != nil {
			return nil, err
		}
		if digests == nil {
			digests = make([]stages.Digest, len(sources))
		}
		digests[i] = d
	}
	return digests, nil
}

// sourceDigest names the content of one source: its file's bytes and its note.
func sourceDigest(s *stages.Source, file stages.Digest) stages.Digest {
	h := newHasher("source")
	h.text(s.Note)
	h.digest(file)
	return h.sum()
}

func (n *node) sourceDigest(i int) stages.Digest {
	var file stages.Digest
	if n.digests != nil {
		file = n.digests[i]
	}
	return sourceDigest(&n.sources[i], file)
}

// live returns the edges of an input that hand something over: all of them, or
// those that didn't fail where the step drops what's missing.
func (r *resolver) live(n *node, port int) []Edge {
	edges := n.Inputs[port].Edges
	if !n.Step.Drop {
		return edges
	}
	for i, e := range edges {
		if !r.nodes[e.From.Index].state.ok() {
			kept := append([]Edge(nil), edges[:i]...)
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
	n.reason = NothingStored
	hit, ok := r.store.Lookup(n.key, r.class)
	if !ok {
		return false
	}
	n.before = &hit
	if r.same && n.Stage.Device && hit.MadeBy() != r.class {
		n.reason = "it was made by " + hit.MadeBy()
		return false
	}
	if r.force != nil && r.force(n.Cell) {
		n.reason = forcedReason
		return false
	}
	if m := r.present(hit); m != nil {
		n.reason = m.Error()
		return false
	}
	n.mu.Lock()
	n.hit = hit
	n.mu.Unlock()
	return true
}

const forcedReason = "forced"

// makeKey makes n's key of what its inputs came out as.
func (r *resolver) makeKey(ctx context.Context, n *node) error {
	if err := r.makeRecipe(ctx, n); err != nil {
		return err
	}
	h := newHasher("cell")
	h.digest(n.recipe)
	h.num(len(n.sources))
	for i := range n.sources {
		h.digest(n.sourceDigest(i))
	}
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
	n.key = h.sum()
	return nil
}

// makeRecipe finds out what n would execute, but not on what.
func (r *resolver) makeRecipe(ctx context.Context, n *node) error {
	if n.recipe != (stages.Digest{}) {
		return nil
	}
	if n.sources == nil && n.Stage.Sources != nil {
		if err := r.sourcesOf(n); err != nil {
			return err
		}
	}
	if n.Stage.Program != nil {
		if err := r.makeProgram(ctx, n); err != nil {
			return err
		}
	}
	n.recipe = r.recipe(n.Cell, n.program)
	return nil
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

// joinedSources asks a stage with both items and sources for the sources of
// its items.
func (r *resolver) joinedSources(n *node) error {
	ids, err := r.primaryIDs(n)
	if err != nil {
		return err
	}
	n.sources, err = guardSources(n.Cell, ids.ids)
	if err != nil {
		return err
	}
	if len(n.sources) != ids.len() {
		return &BugError{fmt.Errorf("stage %s lists %d sources for %d items", n.Stage.Name, len(n.sources), ids.len())}
	}
	n.digests, err = r.fileDigests(n.sources)
	return err
}

// writeJoin writes how the items of different ports belong together, where that
// isn't one by one in order, and the items' ids for stages that show them.
func (r *resolver) writeJoin(h *hasher, n *node) error {
	if n.Stage.Named {
		if err := r.writeNames(h, n); err != nil {
			return err
		}
	}
	if n.Stage.Relation == stages.Whole {
		return r.writeLikeness(h, n)
	}
	joins, err := r.joins(n)
	if err != nil {
		return err
	}
	for p := range joins {
		if joins[p] == nil {
			continue
		}
		h.num(p)
		for _, members := range joins[p] {
			h.num(len(members))
			for _, m := range members {
				h.num(int(m))
			}
		}
	}
	return nil
}

// writeNames writes the ids of n's sources and items, and the origins that differ
// from them.
func (r *resolver) writeNames(h *hasher, n *node) error {
	for i := range n.sources {
		h.text(n.sources[i].ID)
	}
	for from, err := range r.itemPorts(n) {
		if err != nil {
			return err
		}
		h.num(from.len())
		for i, id := range from.ids {
			h.text(id)
			if o := from.origin(i); o != id {
				h.num(-1)
				h.text(o)
			}
		}
	}
	return nil
}

// writeLikeness writes, for a Whole stage, which items of its ports have the same
// id or origin, without saying which: such a stage may pair them. It writes
// nothing where all ports list the same items, each its own origin.
func (r *resolver) writeLikeness(h *hasher, n *node) error {
	var lists []*idList
	plain := true
	for l, err := range r.itemPorts(n) {
		if err != nil {
			return err
		}
		lists = append(lists, l)
		plain = plain && l.origins == nil && (l == lists[0] || slices.Equal(l.ids, lists[0].ids))
	}
	if plain {
		return nil
	}
	names := map[string]int{}
	number := func(name string) {
		k, ok := names[name]
		if !ok {
			k = len(names)
			names[name] = k
		}
		h.num(k)
	}
	written := map[*idList]int{}
	for _, l := range lists {
		if k, ok := written[l]; ok {
			h.num(-1 - k)
			continue
		}
		written[l] = len(written)
		h.num(l.len())
		for i, id := range l.ids {
			number(id)
			number(l.origin(i))
		}
	}
	return nil
}

// itemPorts yields the names of the items behind every live edge to a port of
// items.
func (r *resolver) itemPorts(n *node) iter.Seq2[*idList, error] {
	return func(yield func(*idList, error) bool) {
		for p := range n.Stage.Inputs {
			if !n.Stage.Inputs[p].Type.Items {
				continue
			}
			for _, e := range r.live(n, p) {
				l, err := r.idsOf(r.nodes[e.From.Index], e.Port)
				if !yield(l, err) || err != nil {
					return
				}
			}
		}
	}
}

// A join lists, for every item of a call, the positions of its members on
// another port. nil stands for one by one, in order.
type join [][]int32

// joins returns, by input port, how a port's items belong to n's items.
func (r *resolver) joins(n *node) ([]join, error) {
	primary := n.Stage.Primary()
	if primary < 0 {
		return nil, nil
	}
	out := make([]join, len(n.Inputs))
	first := n.Inputs[primary].Edges[0]
	root := r.nodes[first.From.Index].rootOf(first.Port)
	var calls *idList // the items of the call
	for p := range n.Inputs {
		if !n.Stage.Inputs[p].Type.Items || len(n.Inputs[p].Edges) == 0 {
			continue
		}
		e := n.Inputs[p].Edges[0]
		from := r.nodes[e.From.Index]
		if n.Stage.Relation != stages.Group && from.rootOf(e.Port) == root {
			continue
		}
		if calls == nil {
			var err error
			if n.Stage.Relation == stages.Group {
				calls, err = r.idsOf(n, 0)
			} else {
				calls, err = r.primaryIDs(n)
			}
			if err != nil {
				return nil, err
			}
		}
		items, err := r.idsOf(from, e.Port)
		if err != nil {
			return nil, err
		}
		if out[p], err = makeJoin(n, p, calls, items); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func makeJoin(n *node, port int, calls, items *idList) (join, error) {
	j := make(join, calls.len())
	if n.Stage.Relation == stages.Group {
		for i := range items.ids {
			if k := calls.find(items.origin(i)); k >= 0 {
				j[k] = append(j[k], int32(i))
			}
		}
	} else {
		members := make([]int32, calls.len())
		for i, id := range calls.ids {
			k := items.find(id)
			if k < 0 {
				k = items.find(calls.origin(i))
			}
			members[i] = int32(k)
			if k >= 0 {
				j[i] = members[i : i+1]
			}
		}
	}
	for i := range j {
		if len(j[i]) == 0 {
			return nil, fmt.Errorf("input %q has nothing for the item %q", n.Stage.Inputs[port].Name, calls.ids[i])
		}
	}
	return j, nil
}

// guardSources calls a stage's Sources and turns a panic into an error.
func guardSources(c *Cell, ids []string) (s []stages.Source, err error) {
	defer catch(&err)
	return c.Stage.Sources(c.Params, ids)
}

// definition returns the digest that names what was asked of n: implementation,
// version, parameters and the definitions of its inputs, down to the content of
// the data. Nothing computed is in it, so it is the same on every machine.
func (r *resolver) definition(n *node) (stages.Digest, error) {
	n.mu.Lock()
	known := n.def
	n.mu.Unlock()
	if known != (stages.Digest{}) {
		return known, nil
	}
	h := newHasher("definition")
	h.text(n.Stage.Name)
	h.num(n.Stage.Version)
	h.params(r.params, n.Params)
	if n.Stage.Seeded {
		h.num(int(r.plan.Seed))
	}
	h.num(len(n.sources))
	for i := range n.sources {
		h.digest(n.sourceDigest(i))
	}
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
	d := h.sum()
	n.mu.Lock()
	n.def = d
	n.mu.Unlock()
	return d, nil
}
