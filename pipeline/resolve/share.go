package resolve

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A Share is a part of an experiment's items, for one of many machines: all items derived from the origins
// that it owns. Of shares divide the origins, each owned by one of them.
//
// A run of a share executes its missing items in every cell, and cells that need no items, such as models. A
// Whole stage that reads items needs the items of all shares: it and the cells that read it are postponed to
// a run that has all items. Records of items have the same keys as in a run of all items. Keys of cells are
// the share's own, so that no other run mistakes a share's listings for complete ones.
type Share struct{ K, Of int } // K from 0

// Owns reports whether the items derived from an origin are the share's.
func (s Share) Owns(origin string) bool {
	h := fnv.New64a()
	h.Write([]byte(origin))
	x := h.Sum64()
	x ^= x >> 32 // ids often differ only in their last letters, which FNV's low bits reflect less
	return int(x%uint64(s.Of)) == s.K
}

func (s Share) String() string { return fmt.Sprintf("%d/%d", s.K, s.Of) }

// Narrow restricts r to a share. Stored results of the whole experiment stay; cells that read them see the
// share's items.
func (r *Resolver) Narrow(ctx context.Context, s *Share, stop <-chan struct{}) {
	whole := New(r.Plan, r.Options)
	whole.noted = true
	whole.LookAhead(ctx, stop)
	for i, n := range r.Cells {
		n.outcome.entire = n.Stage.Relation == stages.Whole
		if all := whole.Cells[i]; all.HasResults() {
			id := *n.ID()
			id.Key, id.Program = all.ID().Key, all.ID().Program
			n.identity.Store(&id)
			n.outcome = outcome{has: true, hit: all.outcome.hit, entire: true}
		}
	}
	r.share, r.whole, r.Keys.Share = s, whole, s.String()
}

// ownSources returns the share's sources in a list for all shares.
func (r *Resolver) ownSources(all *key.Sources) *key.Sources {
	if r.share.Of == 1 {
		return all
	}
	return all.Where(r.share.Owns)
}

// errNotNoted means that the store has no digest of a file of a data set, so that no result from the data
// set can be complete. A share doesn't digest the whole data set to find that out.
var errNotNoted = errors.New("its files aren't known yet")

// fileDigest returns the digest of an outside file. In the look at the whole experiment with which a run of
// a share begins, it returns errNotNoted for a file that the store hasn't seen.
func (r *Resolver) fileDigest(path string) (stages.Digest, error) {
	if r.noted && !r.Store.KnowsFile(path) {
		return stages.Digest{}, errNotNoted
	}
	return r.Store.FileDigest(path)
}

// ownItems returns the share's entries in a listing of all n's items. n.mu is held.
func (r *Resolver) ownItems(n *Cell, port int, l *store.Listing) (*store.Listing, error) {
	if !n.Stage.Outputs[port].Type.Items {
		return l, nil
	}
	origin := func(i int) string { return l.At(i).Origin }
	if n.Stage.Relation != stages.Whole {
		ids, err := r.whole.IDs(r.whole.Cells[n.Index].Cell, port)
		if err != nil {
			return nil, err
		}
		origin = ids.Origin
	}
	var parents map[int32]int32 // by position among all calls: the position among the share's
	if n.Stage.Relation == stages.Expand {
		calls, err := r.whole.Keys.CallIDs(r.whole.Cells[n.Index].ID())
		if err != nil {
			return nil, err
		}
		parents = map[int32]int32{}
		for i := range calls.Len() {
			if r.share.Owns(calls.Origin(i)) {
				parents[int32(i)] = int32(len(parents))
			}
		}
	}
	own := r.Store.NewListing(l.Facts, ListingParts(n.Cell))
	for i := range l.Len() {
		if r.share.Owns(origin(i)) {
			e := l.At(i)
			e.Parent = parents[e.Parent]
			own.Append(e)
		}
	}
	return own, nil
}

// ownIDs returns the names of the share's items on n's port.
func (r *Resolver) ownIDs(n *Cell, port int) (*key.IDs, error) {
	all, err := r.whole.IDs(r.whole.Cells[n.Index].Cell, port)
	if err != nil {
		return nil, err
	}
	own := &key.IDs{}
	for i, id := range all.All() {
		if origin := all.Origin(i); r.share.Owns(origin) {
			own.Add(id, origin)
		}
	}
	return own, nil
}

// ListingParts returns which parts the listings of a cell's ports have.
func ListingParts(c *plan.Cell) store.Parts {
	switch c.Stage.Relation {
	case stages.Whole:
		return store.IDs | store.Origins
	case stages.Expand:
		return store.Parents | store.IDs
	}
	return 0
}
