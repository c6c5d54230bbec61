package resolve

import (
	"cmp"
	"errors"

	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A Loader returns a function that loads payloads of a port by position.
type Loader func(from *Cell, port int) func(int) ([]byte, error)

// Data describes the data that an edge passes on.
func (r *Resolver) Data(e plan.Edge, load Loader) (stages.Data, error) {
	from := r.Of(e)
	l, err := r.Listing(from, e.Port)
	if err != nil {
		return stages.Data{}, err
	}
	d := stages.Data{Coord: e.Coord, Facts: l.Facts, Load: load(from, e.Port)}
	if from.Stage.Outputs[e.Port].Type.Items {
		ids, err := r.IDs(e.From, e.Port)
		d.Items = &portItems{l, ids}
		return d, err
	}
	d.Items = stages.ItemSlice{{Digest: l.PayloadDigest(0)}}
	if base, ok := e.Base(); ok { // to which the value refers
		b, err := r.Data(base, load)
		d.Base = &b
		return d, err
	}
	return d, nil
}

// portItems are the items of a port.
type portItems struct {
	*store.Listing
	ids *key.IDs
}

func (p *portItems) At(i int) (stages.Item, error) {
	return stages.Item{ID: p.ids.ID(i), Origin: p.ids.Origin(i), Digest: p.PayloadDigest(i)}, nil
}

// Stored is the [Loader] of stored payloads.
func (r *Resolver) Stored(from *Cell, port int) func(int) ([]byte, error) {
	return func(int) ([]byte, error) {
		b := make([][]byte, 1)
		_, err := r.Fetch(from, port, []int32{0}, b)
		return b[0], err
	}
}

// Fetch puts payloads of n's port, by position, into out where that has none yet. It returns the positions
// of missing payloads of cells whose bytes aren't kept; for other cells these are a [Lost] error.
func (r *Resolver) Fetch(n *Cell, port int, at []int32, out [][]byte) (gone []int32, err error) {
	n.mu.Lock()
	restored := n.outcome.restored
	l, err := r.listingLocked(n, port)
	n.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var why error
	for i, k := range at {
		if out[i] != nil {
			continue
		}
		e := l.At(int(k))
		b, err := r.Store.Load(e.Ref)
		switch {
		case err == nil:
			out[i] = b
		case errors.As(err, new(*store.Miss)):
			gone = append(gone, k)
			if e.Kept() {
				why = err
			}
		default:
			return nil, err
		}
	}
	if gone != nil && n.Kept() {
		return nil, &Lost{n, restored, cmp.Or(why, errDropped)}
	}
	if why != nil {
		r.Events.Warn(n.Cell, why.Error()+"; it is computed again")
	}
	return gone, nil
}

// errDropped is the reason why bytes are computed again that earlier runs didn't keep.
var errDropped = errors.New("its bytes weren't kept by an earlier run")
