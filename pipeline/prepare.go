package pipeline

import (
	"context"
	"slices"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// prepare loads what every chunk of m needs. in gives the members of the same
// job that come before it.
func (r *run) prepare(ctx context.Context, slot *device.Slot, m *member, in map[*node]*member) error {
	return r.mending(ctx, slot, func() error { return r.tryPrepare(ctx, m, in) })
}

func (r *run) tryPrepare(ctx context.Context, m *member, in map[*node]*member) (err error) {
	n := m.node
	m.in = in
	if n.lacksProgram() {
		if err := r.compile(ctx, r.compileSlot(), n); err != nil {
			return err
		}
	}
	recipe, err := r.recipe(ctx, n)
	if err != nil {
		return err
	}
	facts, err := r.gather(m, recipe)
	if err != nil {
		return err
	}
	if m.facts, err = factsOf(n, facts); err != nil {
		return err
	}
	if m.joins, err = r.joins(n); err != nil {
		return err
	}
	if m.count, err = r.countCalls(m); err != nil {
		return err
	}
	m.known = make([]int32, m.count)
	m.items = &store.Outcomes{}
	m.stored = r.store.Items(m.group, r.madeBy(n))
	return nil
}

// gather fills in m's ports and the key of its group, and returns the facts of
// its input ports.
func (r *run) gather(m *member, recipe stages.Digest) (map[string]stages.Facts, error) {
	n := m.node
	h := newHasher("group")
	h.digest(recipe)
	facts := map[string]stages.Facts{}
	m.ports = map[string][]stages.Data{}
	for p := range n.Inputs {
		port := &n.Stage.Inputs[p]
		edges := r.live(n, p)
		h.num(len(edges))
		for i, e := range edges {
			from := r.nodes[e.From.Index]
			d := stages.Data{Coord: e.Coord}
			if before := m.in[from]; before != nil {
				d.Facts = before.facts[from.Stage.Outputs[e.Port].Name]
			} else {
				l, err := r.listing(from, e.Port)
				if err != nil {
					return nil, err
				}
				d.Facts = l.Facts
				if !port.Type.Items {
					digest := l.PayloadDigest(0)
					d.Items = stages.ItemSlice{{Digest: digest}}
					h.digest(digest)
				}
			}
			h.coord(e.Coord)
			h.facts(d.Facts)
			if i == 0 {
				facts[port.Name] = d.Facts
			}
			m.ports[port.Name] = append(m.ports[port.Name], d)
		}
	}
	m.group = h.sum()
	return facts, nil
}

// factsOf asks a stage for the facts of its output ports.
func factsOf(n *node, in map[string]stages.Facts) (out map[string]stages.Facts, err error) {
	if n.Stage.Facts == nil {
		return nil, nil
	}
	defer plan.Catch(&err)
	return n.Stage.Facts(n.Params, in)
}

// countCalls counts the items that m is called with.
func (r *run) countCalls(m *member) (int, error) {
	primary := m.Stage.Primary()
	if primary < 0 {
		return m.sources.len(), nil
	}
	if m.Stage.Relation == stages.Group {
		ids, err := r.idsOf(m.node, 0)
		if err != nil {
			return 0, err
		}
		return ids.len(), nil
	}
	e := m.Inputs[primary].Edges[0]
	from := r.nodes[e.From.Index]
	if before := m.in[from]; before != nil {
		return before.count, nil
	}
	_, items, _ := from.stored().Output(e.Port)
	return items, nil
}

// portsOn returns what m's stage finds on its ports when it runs on slot.
func (r *run) portsOn(ctx context.Context, slot *device.Slot, m *member) map[string][]stages.Data {
	ports := make(map[string][]stages.Data, len(m.ports))
	for p := range m.Inputs {
		port := &m.Stage.Inputs[p]
		data := slices.Clone(m.ports[port.Name])
		if !port.Type.Items {
			for i, e := range r.live(m.node, p) {
				data[i].Load = r.loader(ctx, slot, r.nodes[e.From.Index], e.Port)
			}
		}
		if data != nil {
			ports[port.Name] = data
		}
	}
	return ports
}

// data describes what a Whole stage, or whoever reads results, gets of a port.
func (r *run) data(ctx context.Context, slot *device.Slot, from *node, e plan.Edge) (stages.Data, error) {
	l, err := r.mustListing(ctx, slot, from, e.Port)
	if err != nil {
		return stages.Data{}, err
	}
	d := stages.Data{Coord: e.Coord, Facts: l.Facts, Load: r.loader(ctx, slot, from, e.Port)}
	if !from.Stage.Outputs[e.Port].Type.Items {
		d.Items = stages.ItemSlice{{Digest: l.PayloadDigest(0)}}
		return d, nil
	}
	ids, err := r.mustIDs(ctx, slot, from, e.Port)
	d.Items = &portItems{l, ids}
	return d, err
}

// portItems are the items of a port.
type portItems struct {
	*store.Listing
	ids *idList
}

func (p *portItems) At(i int) (stages.Item, error) {
	return stages.Item{ID: p.ids.ids[i], Origin: p.ids.origin(i), Digest: p.PayloadDigest(i)}, nil
}

// loader returns a function that loads payloads of a port, and computes what's
// lost of them on slot.
func (r *run) loader(ctx context.Context, slot *device.Slot, from *node, port int) func(int) ([]byte, error) {
	return func(i int) ([]byte, error) {
		b, err := r.load(ctx, slot, from, port, []int32{int32(i)})
		if err != nil {
			return nil, err
		}
		return b[0], nil
	}
}
