package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// ingredients list in clear what a key is made of. A nil list takes none.
type ingredients []store.Ingredient

func (l *ingredients) add(name, value string) {
	*l = append(*l, store.Ingredient{Name: name, Value: value})
}

// cellKey returns the key of n, all of whose inputs are finished: the digest of everything that decides its
// results.
func (r *resolver) cellKey(n *node) (stages.Digest, error) {
	h := newHasher("cell")
	if r.all != nil {
		h.text(r.Share.String())
	}
	err := r.writeCell(h, n, nil)
	return h.sum(), err
}

// ingredients returns what n's key is made of.
func (r *resolver) ingredients(n *node) (list ingredients, err error) {
	h := newHasher("ingredients")
	err = r.writeCell(h, n, &list)
	return list, err
}

// writeCell writes what n's key is made of, or lists it.
func (r *resolver) writeCell(h *hasher, n *node, list *ingredients) error {
	h.digest(r.recipe(n, list))
	h.sources(n)
	for p := range n.Inputs {
		edges := r.live(n, p)
		if len(edges) == 0 && n.Stage.Inputs[p].Added {
			continue
		}
		h.num(len(edges))
		for _, e := range edges {
			result := r.nodes[e.From.Index].result(e.Port)
			h.coord(e.Coord)
			h.digest(result)
			if list != nil {
				list.add("in."+inputName(n, p, e), result.Short())
			}
		}
	}
	if list == nil {
		err := r.writePairing(h, n)
		r.writeOrder(h, n, nil)
		return err
	}
	r.writeOrder(h, n, list)
	paired := newHasher(pairing)
	err := r.writePairing(paired, n)
	if d := paired.sum(); d != noPairing {
		list.add(pairing, d.Short())
	}
	return err
}

var noPairing = newHasher(pairing).sum()

// Names of ingredients that stand for several: pairing tells which items of several ports belong together
// and, for stages that show them, how they are called.
const (
	pairing        = "pairing"
	orderOfAxis    = "order of "
	labelsOfAxis   = "labels of "
	familiesOfAxis = "families of "
)

// inputName names what n reads from an edge, maps[draw=3].
func inputName(n *node, port int, e plan.Edge) string {
	name := n.Stage.Inputs[port].Name
	if len(e.Coord) > 0 {
		name += "[" + plan.CoordString(e.Coord) + "]"
	}
	return name
}

// recipe returns the digest of everything that decides n's result but its inputs: implementation, parameters
// with defaults, the seed where it's used. It lists these and the sources.
func (r *resolver) recipe(n *node, list *ingredients) stages.Digest {
	h := newHasher("recipe")
	h.text(n.Stage.Name)
	h.num(n.Stage.Version)
	if n.Stage.Program != nil {
		h.digest(n.program)
	}
	r.writeParams(h, n)
	if list != nil {
		list.add("implementation", n.Stage.Name)
		list.add("version", strconv.Itoa(n.Stage.Version))
		if n.program != (stages.Digest{}) {
			list.add("program", n.program.Short())
		}
		r.params.each(n.Stage, n.Params,
			func(name string, value []byte) { list.add("with."+name, string(value)) })
		if n.Stage.Seeded {
			list.add("seed", strconv.FormatUint(r.plan.Seed, 10))
		}
		n.listSources(list)
	}
	return h.sum()
}

// writeParams writes n's parameters, and the seed where it's used.
func (r *resolver) writeParams(h *hasher, n *node) {
	h.params(r.params, n.Stage, n.Params)
	if n.Stage.Seeded {
		h.num(int(r.plan.Seed))
	}
}

// definition returns the digest that names what was asked of n: implementation, version, parameters and the
// definitions of its inputs, down to the content of the data. Nothing computed is in it, so it is the same on
// every machine.
func (r *resolver) definition(n *node) (d stages.Digest, err error) {
	n.mu.Lock()
	known := n.def
	n.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	h := newHasher("definition")
	h.text(n.Stage.Name)
	h.num(n.Stage.Version)
	r.writeParams(h, n)
	h.sources(n)
	for p := range n.Inputs {
		edges := r.live(n, p)
		if len(edges) == 0 && n.Stage.Inputs[p].Added {
			continue
		}
		h.num(len(edges))
		for _, e := range edges {
			if d, err = r.definition(r.nodes[e.From.Index]); err != nil {
				return d, err
			}
			h.coord(e.Coord)
			h.digest(d)
			h.text(e.From.Stage.Outputs[e.Port].Name)
		}
	}
	if n.Stage.Named {
		if err := r.writePairing(h, n); err != nil {
			return d, err
		}
	}
	r.writeOrder(h, n, nil)
	d = h.sum()
	n.mu.Lock()
	n.def = &d
	n.mu.Unlock()
	return d, nil
}

// groupKey returns the key that the records of m's items lie under: the recipe and all that its items share.
// m has its ports.
func (r *resolver) groupKey(m *member) stages.Digest {
	h := newHasher("group")
	h.digest(r.recipe(m.node, nil))
	for p := range m.Inputs {
		port := &m.Stage.Inputs[p]
		if len(m.ports[port.Name]) == 0 && port.Added {
			continue
		}
		h.num(len(m.ports[port.Name]))
		for _, d := range m.ports[port.Name] {
			if d.Items != nil { // a value
				item, _ := d.Items.At(0)
				h.digest(item.Digest)
			}
			h.coord(d.Coord)
			h.facts(d.Facts)
		}
	}
	if at := r.refusalHere(m.node).At; at != 0 {
		h.text("refused")
		h.num(int(at))
	}
	return h.sum()
}

// itemKey returns the key of a call of m: the digests of its items. ok is false while one of them comes from
// the same job and isn't known yet.
func (m *member) itemKey(call int) (d stages.Digest, ok bool) {
	h := newHasher("item")
	if m.sources != nil {
		h.digest(m.sources.digest(call))
		if m.Stage.Named {
			h.text(m.sources.ids[call])
		}
	}
	for p := range m.inputs {
		for i := range m.inputs[p] { // whose coordinates are in the group's key
			in := &m.inputs[p][i]
			at := in.of(call)
			h.num(len(at))
			for _, k := range at {
				d, ok := in.digest(int(k))
				if !ok {
					return d, false
				}
				h.digest(d)
				if m.Stage.Named {
					h.text(in.ids.ids[k])
					h.text(in.ids.origin(int(k)))
				}
			}
		}
	}
	return h.sum(), true
}

// programKey names the program of n, whose value inputs are finished: it depends on the compiler, the stage
// and its parameters, which ports are wired, and the model.
func (r *resolver) programKey(n *node) stages.Digest {
	h := newHasher("program")
	h.text(r.compiler())
	h.text(n.Stage.Name)
	h.num(n.Stage.Version)
	h.params(r.params, n.Stage, n.Params)
	for p := range n.Inputs {
		edges := r.live(n, p)
		if n.Stage.Inputs[p].Type.Items {
			h.num(min(len(edges), 1))
			continue
		}
		h.num(len(edges))
		for _, e := range edges {
			h.digest(r.nodes[e.From.Index].result(e.Port))
		}
	}
	return h.sum()
}

// digest names the content of source i: the files' bytes and the note.
func (l *sourceList) digest(i int) stages.Digest {
	h := newHasher("source")
	h.text(l.note(i))
	h.digest(l.fileDigest(0, i))
	for k := 1; k < len(l.files); k++ {
		if d := l.fileDigest(k, i); d != (stages.Digest{}) {
			h.num(k - 1)
			h.digest(d)
		}
	}
	return h.sum()
}

// sources writes the digests of n's sources.
func (h *hasher) sources(n *node) {
	h.num(n.sources.len())
	for i := range n.sources.len() {
		h.digest(n.sources.digest(i))
	}
}

// sourceNames writes the ids of n's sources.
func (h *hasher) sourceNames(n *node) {
	for i := range n.sources.len() {
		h.text(n.sources.ids[i])
	}
}

// listedSources is how many sources are named one by one among a cell's ingredients, so that a change can be
// pinned to a file.
const listedSources = 1000

func (n *node) listSources(list *ingredients) {
	if n.sources == nil {
		return
	}
	h := newHasher("sources")
	for i, id := range n.sources.ids {
		d := n.sources.digest(i)
		h.digest(d)
		if n.sources.len() <= listedSources {
			list.add("source "+id, d.Short())
		}
	}
	list.add("sources", fmt.Sprintf("%d items, %s", n.sources.len(), h.sum().Short()))
}

// writePairing writes how the items of different ports belong together, where that isn't one by one in order,
// and the items' ids for stages that show them.
func (r *resolver) writePairing(h *hasher, n *node) error {
	if n.Stage.Named {
		if err := r.writeNames(h, n); err != nil {
			return err
		}
	}
	if n.Stage.Relation == stages.Whole {
		return r.writeLikeness(h, n)
	}
	joins, err := r.joins(n)
	for p, edges := range joins {
		for i, j := range edges {
			if j == nil {
				continue
			}
			h.num(p)
			if i > 0 { // on a collapsed port
				h.num(-i)
			}
			for call := range j.ends {
				members := j.of(call)
				h.num(len(members))
				for _, m := range members {
					h.num(int(m))
				}
			}
		}
	}
	return err
}

// writeNames writes the ids of n's sources and items, and the origins that differ from them.
func (r *resolver) writeNames(h *hasher, n *node) error {
	h.sourceNames(n)
	lists, err := r.itemPorts(n)
	for _, l := range lists {
		h.num(l.len())
		for i, id := range l.ids {
			h.text(id)
			if origin := l.origin(i); origin != id {
				h.num(-1)
				h.text(origin)
			}
		}
	}
	return err
}

// writeLikeness writes, for a Whole stage, which items of its ports have the same id or origin, without
// telling which: such a stage may pair them. It writes nothing where all ports list the same items, each its
// own origin.
func (r *resolver) writeLikeness(h *hasher, n *node) error {
	lists, err := r.itemPorts(n)
	if err != nil || !slices.ContainsFunc(lists, func(l *idList) bool { return !l.equal(lists[0]) }) {
		return err
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

// writeOrder writes the order of what an Ordered stage shows, and the names of it if there are any.
func (r *resolver) writeOrder(h *hasher, n *node, list *ingredients) {
	order := r.orderOf(n)
	for _, axis := range slices.Sorted(maps.Keys(order)) {
		h.text(axis)
		h.num(len(order[axis]))
		for _, id := range order[axis] {
			h.text(id)
		}
		if list != nil {
			list.add(orderOfAxis+axis, strings.Join(order[axis], ", "))
		}
		for i, kind := range []struct {
			of   string
			list stages.Names
		}{{labelsOfAxis, r.plan.Labels}, {familiesOfAxis, r.plan.Families}} {
			named := namesIn(kind.list, order)[axis]
			if len(named) == 0 {
				continue
			}
			h.num(-1 - i)
			var pairs []string
			for _, id := range order[axis] {
				h.text(named[id])
				if named[id] != "" {
					pairs = append(pairs, id+": "+named[id])
				}
			}
			if list != nil {
				list.add(kind.of+axis, strings.Join(pairs, ", "))
			}
		}
	}
}

// namesIn returns the names that the ids of an order have, nil for none.
func namesIn(all stages.Names, order stages.Order) stages.Names {
	var out stages.Names
	for axis, ids := range order {
		for _, id := range ids {
			name, ok := all[axis][id]
			if !ok {
				continue
			}
			if out == nil {
				out = stages.Names{}
			}
			if out[axis] == nil {
				out[axis] = map[string]string{}
			}
			out[axis][id] = name
		}
	}
	return out
}

// orderOf returns, for a stage that shows ids, those that are handed over to n, in the order in which the
// experiment writes them; nil for other stages. Among them are those in tables: of axes that the stages which
// made these collapse.
func (r *resolver) orderOf(n *node) stages.Order {
	if !n.Stage.Ordered {
		return nil
	}
	present := map[stages.Coord]bool{}
	order := stages.Order{}
	add := func(coord []stages.Coord, known stages.Order) {
		for _, c := range coord {
			if _, ok := known[c.Axis]; !ok {
				present[c] = true
				order[c.Axis] = nil
			}
		}
	}
	for p := range n.Inputs {
		for _, e := range r.live(n, p) {
			add(e.Coord, nil)
		}
	}
	collapsed := maps.Clone(order)
	var inTables func(n *node)
	inTables = func(n *node) {
		for p := range n.Inputs {
			for _, e := range r.live(n, p) {
				add(e.Coord, collapsed)
				if from := r.nodes[e.From.Index]; isTable(n, p) {
					inTables(from)
				}
			}
		}
	}
	for p := range n.Inputs {
		for _, e := range r.live(n, p) {
			if isTable(n, p) {
				inTables(r.nodes[e.From.Index])
			}
		}
	}
	for axis := range order {
		for _, id := range r.plan.Order[axis] {
			if present[stages.Coord{Axis: axis, ID: id}] {
				order[axis] = append(order[axis], id)
			}
		}
	}
	return order
}

// isTable reports whether a port of n takes tables.
func isTable(n *node, port int) bool { return n.Stage.Inputs[port].Type.Form == stages.FormTable }
