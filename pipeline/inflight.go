package pipeline

import (
	"errors"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// inFlight holds payloads of a chunk that no store keeps, by the cell that made them, until the last member
// of the job that reads them is done.
type inFlight struct {
	of         map[*node]map[stages.Digest][]byte
	size, peak int64
}

func newInFlight() *inFlight { return &inFlight{of: map[*node]map[stages.Digest][]byte{}} }

func (f *inFlight) put(n *node, d stages.Digest, payload []byte) {
	if f.of[n] == nil {
		f.of[n] = map[stages.Digest][]byte{}
	}
	if _, ok := f.of[n][d]; !ok {
		f.of[n][d] = payload
		f.size += int64(len(payload))
		f.peak = max(f.peak, f.size)
	}
}

func (f *inFlight) drop(nodes []*node) {
	for _, n := range nodes {
		for _, payload := range f.of[n] {
			f.size -= int64(len(payload))
		}
		delete(f.of, n)
	}
}

// liveBytes bounds the payloads in flight of a job whose stages fold what several of its cells make of an
// item, such as 200 draws, where the chunks have more than one item.
var liveBytes int64 = 1 << 30

// lifetimes finds, for every member, the cells whose bytes no later member reads, and whether the job folds.
func (w *worker) lifetimes(j *job) {
	last := map[*node]*member{}
	for _, m := range j.members {
		last[m.node] = m
		for e, from := range w.edges(m.node) {
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

// measure notes how many bytes an item of a chunk takes.
func (j *job) measure(bytes *inFlight, items int) {
	j.perItem.Store(max(j.perItem.Load(), bytes.peak/int64(items)+1))
}

// take returns the calls of the next chunk, and how many of j.chunks that is: one, unless the job folds. That
// begins with single items, and goes on with as many as their bytes allow.
func (j *job) take(workers int) (calls []int32, chunks int) {
	calls, chunks = j.chunks[j.next], 1
	room := 0
	if most := j.perItem.Load(); most > 0 {
		room = min(j.most, int(liveBytes/int64(workers)/most))
	}
	for _, more := range j.chunks[j.next+1:] {
		if len(calls)+len(more) > room {
			break
		}
		calls, chunks = append(calls[:len(calls):len(calls)], more...), chunks+1
	}
	j.next += chunks
	return calls, chunks
}

// payloads returns what lies at some positions of an input: what the store holds; of a member of the same
// job, also what this chunk computed. What was known and nobody kept is computed again, all at once.
func (w *worker) payloads(in *input, at []int32, bytes *inFlight) ([][]byte, error) {
	m := in.before
	if m == nil {
		return w.load(in.from, in.port, at)
	}
	out := make([][]byte, len(at))
	var again []int
	for i, k := range at {
		o, ok := m.outcome(int(k))
		if !ok {
			return nil, plan.Bug("%s has no result for the item %q", m.Cell, in.ids.ids[k])
		}
		ref := o.Ports[in.port][0].Ref
		if out[i], ok = bytes.of[m.node][ref.Digest]; ok {
			continue
		}
		var err error
		if out[i], err = w.store.Load(ref); errors.As(err, new(*store.Miss)) {
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
	return out, m.complete(in.port, out, bytes.of[m.node], func(i int) stages.Digest {
		d, _ := in.digest(int(at[i]))
		return d
	})
}
