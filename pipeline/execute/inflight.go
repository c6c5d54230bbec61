package execute

import (
	"errors"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// An inFlight holds the payloads of a chunk that aren't stored, by the cell that made them, until the last
// member of the job that reads them is done.
type inFlight struct {
	of         map[*resolve.Cell]map[stages.Digest][]byte
	size, peak int64
}

func newInFlight() *inFlight { return &inFlight{of: map[*resolve.Cell]map[stages.Digest][]byte{}} }

func (f *inFlight) put(n *resolve.Cell, d stages.Digest, payload []byte) {
	if f.of[n] == nil {
		f.of[n] = map[stages.Digest][]byte{}
	}
	if _, ok := f.of[n][d]; !ok {
		f.of[n][d] = payload
		f.size += int64(len(payload))
		f.peak = max(f.peak, f.size)
	}
}

func (f *inFlight) drop(nodes []*resolve.Cell) {
	for _, n := range nodes {
		for _, payload := range f.of[n] {
			f.size -= int64(len(payload))
		}
		delete(f.of, n)
	}
}

// LiveBytes bounds the payloads in flight of a job whose stages collapse the results of several of its
// cells, such as 200 draws, if the chunks have more than one item.
var LiveBytes int64 = 1 << 30

// lifetimes finds, for every member, the cells whose bytes no later member reads, and whether the job
// collapses its own results.
func (x *Executor) lifetimes(j *Job) {
	last := map[*resolve.Cell]*member{}
	for _, m := range j.members {
		last[m.cell] = m
		for e := range m.cell.Edges() {
			from := x.Resolver.Of(e)
			if m.in[from] != nil {
				last[from] = m
				j.folds = j.folds || len(e.Coord) > 0 && !from.Step.Keep
			}
		}
	}
	for n, m := range last {
		m.frees = append(m.frees, n)
	}
}

// measure records how many bytes an item of a chunk takes.
func (j *Job) measure(bytes *inFlight, items int) {
	j.perItem.Store(max(j.perItem.Load(), bytes.peak/int64(items)+1))
}

// payloads returns the payloads at some positions of an input: from the store or, for a member of the same
// job, from this chunk. Known payloads that weren't kept are computed again, all at once.
func (w *Worker) payloads(in *input, at []int32, bytes *inFlight) ([][]byte, error) {
	m := in.before
	if m == nil {
		return w.load(in.from, in.port, at)
	}
	out := make([][]byte, len(at))
	var again []int
	for i, k := range at {
		o, ok := m.outcome(int(k))
		if !ok {
			return nil, plan.Bug("%s has no result for the item %q", m.cell.Cell, in.ids.ID(int(k)))
		}
		ref := o.Ports[in.port][0].Ref
		if out[i], ok = bytes.of[m.cell][ref.Digest]; ok {
			continue
		}
		var err error
		if out[i], err = w.executor.Store.Load(ref); errors.As(err, new(*store.Miss)) {
			out[i], again = nil, append(again, int(k))
		} else if err != nil {
			return nil, err
		}
	}
	if again == nil {
		return out, nil
	}
	err := w.reclaim()
	if err == nil {
		err = w.again(m, again, bytes)
	}
	if err != nil {
		return nil, err
	}
	return out, complete(m.cell, in.port, out, bytes.of[m.cell], func(i int) stages.Digest {
		d, _ := in.Payload(int(at[i]))
		return d
	})
}
