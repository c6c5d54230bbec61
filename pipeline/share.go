package pipeline

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/schedule"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A Share is a part of an experiment's items, for one of many machines: all that was made from the origins it
// owns. The items of no two of Of shares have an origin in common.
//
// A run of a share executes what is missing of its items in every cell, and what needs no items: models. A
// Whole stage that reads items needs those of all shares, so it and what reads it are postponed to a run that
// has all parts, see [Engine.Closing]. What the share's run finds of items lies under the same keys as what a
// run of all of them finds. Keys of cells are the share's own: no other run takes its listings for whole.
type Share struct{ K, Of int } // K from 0

// Owns reports whether what was made from an origin is the share's.
func (s Share) Owns(origin string) bool {
	h := fnv.New64a()
	h.Write([]byte(origin))
	x := h.Sum64()
	x ^= x >> 32 // ids often differ in their last letters only, which FNV's low bits show less
	return int(x%uint64(s.Of)) == s.K
}

func (s Share) String() string { return fmt.Sprintf("%d/%d", s.K, s.Of) }

// takeShare turns r to its engine's share. What the store has of the whole experiment stays as it is; cells
// that read it see the share of it.
func (r *resolver) takeShare(ctx context.Context, stop <-chan struct{}) {
	all := r.newResolver(r.plan)
	all.class, all.compiling = r.class, r.compiling
	all.lookAhead(ctx, stop)
	for i, n := range r.nodes {
		n.entire = n.Stage.Relation == stages.Whole
		if a := all.nodes[i]; a.hasResults() {
			n.key, n.program, n.entire, n.looked = a.key, a.program, true, true
			n.take(a.hit)
		}
	}
	r.all = all
}

// owned returns the sources that the share owns of a list for all shares.
func (r *resolver) owned(all *sourceList) *sourceList {
	if r.Share.Of == 1 {
		return all
	}
	var own []stages.Source // as little as a share of a long list needs
	var files [sourceFiles][]stages.Digest
	for i, id := range all.ids {
		if !r.Share.Owns(id) {
			continue
		}
		own = append(own, all.at(i))
		for k := range files {
			if all.files[k] != nil {
				files[k] = append(files[k], all.files[k][i])
			}
		}
	}
	l := r.newSources(own)
	l.files = files
	return l
}

// errNotNoted says that the store knows nothing of a data set, so that nothing can be complete that was made
// from it. A share doesn't read all of it to find the same.
var errNotNoted = errors.New("its files aren't known yet")

// fileDigest returns the digest of an outside file. In the look at the whole experiment that a run of a share
// begins with, it returns errNotNoted for a file that the store hasn't seen.
func (r *resolver) fileDigest(path string) (stages.Digest, error) {
	if r.Share != nil && r.all == nil && !r.store.KnowsFile(path) {
		return stages.Digest{}, errNotNoted
	}
	return r.store.FileDigest(path)
}

// ofItems returns the entries that the share owns of a listing of all n's items. n.mu is held.
func (r *resolver) ofItems(n *node, port int, l *store.Listing) (*store.Listing, error) {
	if !n.Stage.Outputs[port].Type.Items {
		return l, nil
	}
	origin := func(i int) string { return l.At(i).Origin }
	if n.Stage.Relation != stages.Whole {
		ids, err := r.all.idsOf(r.all.nodes[n.Index], port)
		if err != nil {
			return nil, err
		}
		origin = ids.origin
	}
	var parents map[int32]int32 // by position among all calls: that among the share's
	if n.Stage.Relation == stages.Expand {
		calls, err := r.all.callIDs(r.all.nodes[n.Index])
		if err != nil {
			return nil, err
		}
		parents = map[int32]int32{}
		for i := range calls.len() {
			if r.Share.Owns(calls.origin(i)) {
				parents[int32(i)] = int32(len(parents))
			}
		}
	}
	own := r.store.NewListing(l.Facts, partsOf(n))
	for i := range l.Len() {
		if r.Share.Owns(origin(i)) {
			e := l.At(i)
			e.Parent = parents[e.Parent]
			own.Append(e)
		}
	}
	return own, nil
}

// ownedBy returns the items of l that a share owns.
func (l *idList) ownedBy(s *Share) *idList {
	own := &idList{}
	for i, id := range l.ids {
		if origin := l.origin(i); s.Owns(origin) {
			own.add(id, origin)
		}
	}
	return own
}

// gathers reports whether n needs the items of all shares.
func (n *node) gathers() bool {
	for p := range n.Inputs {
		if n.Stage.Inputs[p].Type.Items && len(n.Inputs[p].Edges) > 0 {
			return n.Stage.Relation == stages.Whole
		}
	}
	return false
}

// A postponedError says that a cell isn't this run's to execute.
type postponedError struct {
	cell  *plan.Cell // where the wait begins
	items int        // that it lacks; 0 for one that gathers those of all shares
}

func (e *postponedError) Error() string {
	if e.items > 0 {
		return fmt.Sprintf("%s lacks %d items", e.cell, e.items)
	}
	return fmt.Sprintf("%s waits for the items of all shares", e.cell)
}

// postponement returns why n, whose inputs have finished, isn't this run's to execute, nil if it is.
func (r *run) postponement(n *node) error {
	if r.Share == nil && !r.Closing || n.hasResults() {
		return nil
	}
	for _, from := range r.edges(n) {
		if r.state(from) == schedule.Postponed {
			return from.err
		}
	}
	if r.Share != nil && n.gathers() {
		return &postponedError{cell: n.Cell}
	}
	return nil
}

// leaveOut has j execute nothing: members of which not all outcomes are known are postponed.
func (w *worker) leaveOut(j *job) {
	for _, m := range j.members {
		w.guard(m, func() error {
			lacks := 0
			for call := range m.calls.len() {
				if key, ok := m.itemKey(call); !ok || !w.find(m, call, key) {
					lacks++
				}
			}
			if lacks > 0 {
				return &postponedError{m.Cell, lacks}
			}
			return nil
		})
	}
}

// A Lack is what a closing run found missing of a cell whose inputs are there.
type Lack struct {
	Cell  string
	Items int
	// New tells that the run itself made what the cell reads, so that nobody could execute it before.
	New bool
}

// Lacks returns what is missing, in the order of the plan.
func (r *Result) Lacks() (list []Lack) {
	fresh := make([]bool, len(r.run.nodes)) // made by this run of the items of all shares, or of such
	for _, n := range r.run.nodes {
		lack := Lack{Cell: n.String()}
		for _, from := range r.run.edges(n) {
			lack.New = lack.New || fresh[from.Index]
		}
		fresh[n.Index] = lack.New || n.gathers() && r.run.state(n) == schedule.Done
		if e, ok := errors.AsType[*postponedError](n.err); ok && e.cell == n.Cell && e.items > 0 {
			lack.Items = e.items
			list = append(list, lack)
		}
	}
	return list
}
