package execute

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/stages"
)

// Open prepares every member of j and divides the calls with unknown outcomes into chunks. A member that
// can't be prepared fails alone.
func (w *Worker) Open(j *Job) {
	in := map[*resolve.Cell]*member{}
	var lead *member // the first that can execute
	for _, m := range j.members {
		m.in = in
		w.guard(m, func() error {
			if m.cell.Stage.Relation == stages.Whole {
				m.id = m.cell.ID()
				return nil
			}
			if err := w.prepare(m, in); err != nil {
				return err
			}
			if k := m.dropped(); k > 0 && !j.restores {
				w.executor.warn(m.cell.Cell,
					"missing: drop leaves out %d items that not all collapsed cells have", k)
			}
			if lead != nil && m.calls.Len() != lead.calls.Len() {
				return plan.Bug("%s has %d items, %s %d", m.cell.Cell, m.calls.Len(), lead.cell.Cell,
					lead.calls.Len())
			}
			if w.executor.Resolver.Forced(m.cell.Cell) && !j.restores {
				m.stored = nil
			}
			return nil
		})
		if lead == nil && !m.failed() {
			lead = m
		}
		in[m.cell] = m
	}
	if lead == nil {
		return
	}
	w.executor.lifetimes(j)
	switch {
	case lead.cell.Stage.Relation == stages.Whole:
		j.chunks = [][]int32{nil}
	case w.executor.KnownOnly && !j.restores:
		w.leaveOut(j)
	default:
		j.chunks = w.chunks(j, lead)
	}
	for _, c := range j.chunks {
		j.total += len(c)
	}
	for _, m := range j.members {
		w.executor.of(m.cell).total.Store(int32(j.total))
	}
	j.left.Store(int32(len(j.chunks)))
}

// prepare loads the data that every chunk of m needs. in has the earlier members of the same job.
func (w *Worker) prepare(m *member, in map[*resolve.Cell]*member) error {
	return w.mend(func() (err error) {
		n, r := m.cell, w.executor.Resolver
		m.in = in
		if n.ID().LacksProgram() {
			if err := r.Compile(w.ctx, n); err != nil {
				return err
			}
		}
		if err := r.Prepare(n); err != nil {
			return err
		}
		m.id = n.ID()
		if err := w.readPorts(m); err != nil {
			return err
		}
		if !n.HasResults() { // otherwise it is computed again
			if err := r.Refused(n); err != nil {
				return err
			}
		}
		m.group = r.Keys.Group(m.id, m.ports, r.RefusedAt(n))
		if m.facts, err = Facts(n, m.ports); err != nil {
			return err
		}
		if m.calls, err = r.Keys.CallIDs(m.id); err != nil {
			return err
		}
		m.known = make([]int32, m.calls.Len())
		m.items = w.executor.Store.NewItems()
		m.stored = w.executor.Store.Items(m.group, w.madeBy(n))
		return nil
	})
}

// readPorts sets the inputs of m.
func (w *Worker) readPorts(m *member) error {
	r := w.executor.Resolver
	joins, err := r.Keys.Joins(m.id)
	if err != nil {
		return err
	}
	m.ports = map[string][]stages.Data{}
	m.inputs = make([][]*input, len(m.cell.Inputs))
	for p := range m.cell.Inputs {
		port := &m.cell.Stage.Inputs[p]
		for i, e := range m.id.Live(p) {
			in := &input{from: r.Of(e), port: e.Port, coord: e.Coord}
			d := stages.Data{Coord: e.Coord}
			if in.before = m.in[in.from]; in.before != nil {
				d.Facts = in.before.facts[e.From.Stage.Outputs[e.Port].Name]
			} else if in.listing, err = r.Listing(in.from, e.Port); err != nil {
				return err
			} else {
				d.Facts = in.listing.Facts
			}
			if port.Type.Items {
				if in.ids, err = r.IDs(e.From, e.Port); err != nil {
					return err
				}
				in.join = joins[p][i]
				m.inputs[p] = append(m.inputs[p], in)
			} else if in.before == nil {
				d.Items = stages.ItemSlice{{Digest: in.listing.PayloadDigest(0)}}
			}
			m.ports[port.Name] = append(m.ports[port.Name], d)
		}
	}
	return nil
}

// dropped counts the items that collapsed cells lack: items for which m is called and, if all inputs are
// collapsed, items of other cells.
func (m *member) dropped() (count int) {
	for _, inputs := range m.inputs {
		for _, in := range inputs {
			if in.join == nil || len(in.coord) == 0 {
				continue
			}
			missing := in.join.Missing()
			count += missing
			if m.cell.Primary() < 0 {
				count += in.ids.Len() - (len(in.join) - missing)
			}
		}
	}
	return count
}

// Facts returns a stage's facts of its output ports, given the data on its input ports. A mismatch of the
// data becomes a warning.
func Facts(n *resolve.Cell, ports map[string][]stages.Data) (out map[string]stages.Facts, err error) {
	defer plan.Catch(&err)
	if text := stages.UnlikeClasses(n.Stage, ports); text != "" {
		n.AddOnce(text)
	}
	return n.Stage.FactsOf(n.Params, ports)
}

// chunks divides the calls with unknown outcomes into chunks. Equal items share a chunk, so that they are
// computed once.
func (w *Worker) chunks(j *Job, lead *member) (chunks [][]int32) {
	type unknown struct{ first, call int32 } // the first call with the same key prefix, and this one
	var todo []unknown
	firsts := map[uint64]int32{} // by the prefixes of their keys: half the memory of whole keys
	for call := range int32(lead.calls.Len()) {
		key, known := w.allKnown(j, int(call))
		if known {
			continue
		}
		hash := binary.LittleEndian.Uint64(key[:])
		first, ok := firsts[hash]
		if !ok {
			first, firsts[hash] = call, call
		}
		todo = append(todo, unknown{first, call})
	}
	slices.SortStableFunc(todo, func(a, b unknown) int { return cmp.Compare(a.first, b.first) })
	size := w.executor.Chunk
	if size == 0 && len(todo) > 0 {
		// As few rounds as chunks of 16 need, and in each a chunk for every slot. A GPU's chunks are as
		// large as a batch, and small enough to be lost.
		workers, most := 1, 16
		if j.device() {
			workers = cap(w.executor.devices)
			if w.executor.Devices[0].Class != "cpu" {
				most = max(most, min(w.executor.batch, 64))
			}
		}
		rounds := (len(todo)-1)/(most*workers) + 1
		size = (len(todo)-1)/(rounds*workers) + 1
	}
	if j.most = size; j.folds {
		size = 1
	}
	var chunk []int32
	for i, t := range todo {
		chunk = append(chunk, t.call)
		if i == len(todo)-1 || len(chunk) >= size && t.first != todo[i+1].first {
			chunks, chunk = append(chunks, chunk), nil
		}
	}
	return chunks
}

// allKnown reports whether the outcomes of a call are known for all members of j. It returns the call's key
// for the first of them.
func (w *Worker) allKnown(j *Job, call int) (first stages.Digest, known bool) {
	for _, m := range j.members {
		if m.failed() {
			continue
		}
		key, ok := m.key(call)
		if first == (stages.Digest{}) {
			first = key
		}
		if !ok || !w.executor.find(m, call, key) {
			return first, false
		}
	}
	return first, true
}

// key returns the key of a call of m. ok is false while one of its items comes from the same job and is
// unknown.
func (m *member) key(call int) (d stages.Digest, ok bool) { return key.Item(m.id, call, m.inputs) }

// leaveOut executes nothing: members with unknown outcomes are postponed.
func (w *Worker) leaveOut(j *Job) {
	for _, m := range j.members {
		w.guard(m, func() error {
			lacks := 0
			for call := range m.calls.Len() {
				if key, ok := m.key(call); !ok || !w.executor.find(m, call, key) {
					lacks++
				}
			}
			if lacks > 0 {
				return &Postponed{m.cell.Cell, lacks}
			}
			return nil
		})
	}
}
