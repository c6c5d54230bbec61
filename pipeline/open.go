package pipeline

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// open prepares every member of j and cuts the calls that aren't known into chunks. A member that can't be
// prepared fails alone.
func (w *worker) open(j *job) {
	in := map[*node]*member{}
	var lead *member // the first that can execute
	for _, m := range j.members {
		m.in = in
		w.guard(m, func() error {
			if m.Stage.Relation == stages.Whole {
				return nil
			}
			if err := w.prepare(m, in); err != nil {
				return err
			}
			if k := m.dropped(); k > 0 && !j.restores {
				w.warn(m.Cell, "missing: drop leaves out %d items that not all collapsed cells have", k)
			}
			if lead != nil && m.calls.len() != lead.calls.len() {
				return plan.Bug("%s has %d items, %s %d", m.Cell, m.calls.len(), lead.Cell, lead.calls.len())
			}
			if w.Force != nil && w.Force(m.Cell) && !j.restores {
				m.stored = nil
			}
			return nil
		})
		if lead == nil && !m.failed() {
			lead = m
		}
		in[m.node] = m
	}
	if lead == nil {
		return
	}
	w.lifetimes(j)
	switch {
	case lead.Stage.Relation == stages.Whole:
		j.chunks = [][]int32{nil}
	case w.Closing && !j.restores:
		w.leaveOut(j)
	default:
		j.chunks = w.chunks(j, lead)
	}
	for _, c := range j.chunks {
		j.total += len(c)
	}
	for _, m := range j.members {
		m.total.Store(int32(j.total))
	}
	j.left.Store(int32(len(j.chunks)))
}

// prepare loads what every chunk of m needs. in has the members of the same job that come before it.
func (w *worker) prepare(m *member, in map[*node]*member) error {
	return w.mend(func() (err error) {
		n := m.node
		m.in = in
		if n.lacksProgram() {
			if err := w.compile(w.ctx, n); err != nil {
				return err
			}
		}
		if err := w.readySources(n); err != nil {
			return err
		}
		if err := w.readPorts(m); err != nil {
			return err
		}
		if !n.hasResults() { // else it is computed again
			if err := w.refusedHere(n); err != nil {
				return err
			}
		}
		m.group = w.groupKey(m)
		if m.facts, err = factsOf(n, m.ports); err != nil {
			return err
		}
		if m.calls, err = w.callIDs(n); err != nil {
			return err
		}
		m.known = make([]int32, m.calls.len())
		m.items = w.store.NewItems()
		m.stored = w.store.Items(m.group, w.madeBy(n))
		return nil
	})
}

// readPorts fills in what m reads on its ports.
func (w *worker) readPorts(m *member) error {
	joins, err := w.joins(m.node)
	if err != nil {
		return err
	}
	m.ports = map[string][]stages.Data{}
	m.inputs = make([][]input, len(m.Inputs))
	for p := range m.Inputs {
		port := &m.Stage.Inputs[p]
		for i, e := range w.live(m.node, p) {
			in := input{from: w.nodes[e.From.Index], port: e.Port, coord: e.Coord}
			d := stages.Data{Coord: e.Coord}
			if in.before = m.in[in.from]; in.before != nil {
				d.Facts = in.before.facts[in.from.Stage.Outputs[e.Port].Name]
			} else if in.listing, err = w.listing(in.from, e.Port); err != nil {
				return err
			} else {
				d.Facts = in.listing.Facts
			}
			if port.Type.Items {
				if in.ids, err = w.idsOf(in.from, e.Port); err != nil {
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

// dropped counts the items that collapsed cells lack: those that m is called for and, where all inputs are
// collapsed, those of other cells.
func (m *member) dropped() (count int) {
	for _, inputs := range m.inputs {
		for _, in := range inputs {
			if in.join == nil || len(in.coord) == 0 {
				continue
			}
			for call := range in.join.ends {
				if len(in.of(call)) == 0 {
					count++
				}
			}
			if m.Primary() < 0 {
				count += in.ids.len() - len(in.join.members)
			}
		}
	}
	return count
}

// factsOf asks a stage for the facts of its output ports, given what is on its input ports. What these tell
// against each other becomes a warning.
func factsOf(n *node, ports map[string][]stages.Data) (out map[string]stages.Facts, err error) {
	defer plan.Catch(&err)
	if text := stages.UnlikeClasses(n.Stage, ports); text != "" {
		n.addOnce(text)
	}
	return n.Stage.FactsOf(n.Params, ports)
}

// chunks cuts the calls that aren't known into chunks. Equal items share a chunk, so that they are computed
// once.
func (w *worker) chunks(j *job, lead *member) (chunks [][]int32) {
	type twin struct{ first, call int32 } // the first call whose key begins alike, and this one
	var todo []twin
	firsts := map[uint64]int32{} // by the beginning of their keys: half the memory of whole keys
	for call := range int32(lead.calls.len()) {
		key, known := w.allKnown(j, int(call))
		if known {
			continue
		}
		hash := binary.LittleEndian.Uint64(key[:])
		first, ok := firsts[hash]
		if !ok {
			first, firsts[hash] = call, call
		}
		todo = append(todo, twin{first, call})
	}
	slices.SortStableFunc(todo, func(a, b twin) int { return cmp.Compare(a.first, b.first) })
	size := w.Chunk
	if size == 0 && len(todo) > 0 {
		// As few rounds as chunks of 16 make, and in each a chunk for every slot. A GPU's are as large as a
		// batch, and small enough to lose.
		workers, most := 1, 16
		if j.device() {
			workers = cap(w.devices)
			if w.Devices[0].Class != "cpu" {
				most = max(most, min(w.batch, 64))
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
func (w *worker) allKnown(j *job, call int) (first stages.Digest, known bool) {
	for _, m := range j.members {
		if m.failed() {
			continue
		}
		key, ok := m.itemKey(call)
		if first == (stages.Digest{}) {
			first = key
		}
		if !ok || !w.find(m, call, key) {
			return first, false
		}
	}
	return first, true
}
