package pipeline

import (
	"math"

	"github.com/runexp/runexp/pipeline/execute"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A Wave is the itemwise work that machines can divide by the items' origins, since none of it waits for a
// Whole stage that reads items of this wave. When it is complete, these stages are executed: that closes
// the wave, and the next one reads their results.
type Wave struct {
	Number  int          // from 0; it depends only on the plan
	Cells   []*plan.Cell // itemwise, with missing results
	Closing []*plan.Cell // Whole, with missing results
	Calls   int          // of the itemwise cells of the wave whose number of calls is known
	Known   int          // calls whose outcomes are stored
	Unsized int          // cells of Cells whose number of calls is unknown
	Missing Estimate     // of the others, in seconds of one slot
}

// Complete reports whether the wave has no missing results.
func (w *Wave) Complete() bool { return len(w.Cells)+len(w.Closing) == 0 }

// Waves divides the plan into waves, the complete ones included. Whole cells that depend on no item, such
// as models, are in none: see [Outlook.Values].
func (o *Outlook) Waves() (waves []Wave) {
	done, others := o.itemsDone()
	numbers := o.waveNumbers()
	for _, n := range o.resolver.Cells {
		number := numbers[n.Index]
		if number < 0 {
			continue
		}
		for len(waves) <= number {
			waves = append(waves, Wave{Number: len(waves)})
		}
		w, isCached := &waves[number], o.ahead[n.Index].Kind == IsCached
		if n.Stage.Relation == stages.Whole {
			if !isCached {
				w.Closing = append(w.Closing, n.Cell)
			}
			continue
		}
		calls := o.calls(n)
		w.Calls += max(calls, 0)
		if isCached {
			w.Known += max(calls, 0)
			continue
		}
		w.Cells = append(w.Cells, n.Cell)
		if calls < 0 {
			w.Unsized++
		}
		w.Known += done[n.Index]
		w.Missing.Add(o.cost(n, done[n.Index]))
	}
	for i := range waves { // machines work on the first incomplete one
		if w := &waves[i]; len(w.Cells) > 0 {
			if w.Known += others; w.Unsized == 0 {
				w.Known = min(w.Known, w.Calls)
			}
			w.Calls = max(w.Calls, w.Known)
			break
		}
	}
	return waves
}

// waveNumbers returns the wave of each cell, -1 for one that depends on no item. An itemwise cell is in the
// wave of the itemwise cells that it reads, or in the one after that of the Whole cells that it reads; a
// Whole cell is in that of its last input.
func (o *Outlook) waveNumbers() []int {
	numbers := make([]int, len(o.resolver.Cells))
	for _, n := range o.resolver.Cells {
		whole := n.Stage.Relation == stages.Whole
		number := -1
		if !whole {
			number = 0
		}
		for e := range n.Edges() {
			from := o.resolver.Of(e)
			at := numbers[from.Index]
			if at >= 0 && !whole && from.Stage.Relation == stages.Whole {
				at++
			}
			number = max(number, at)
		}
		numbers[n.Index] = number
	}
	return numbers
}

// Values returns the Whole cells with missing results that depend on no item.
func (o *Outlook) Values() (cells []*plan.Cell) {
	for i, number := range o.waveNumbers() {
		if number < 0 && o.ahead[i].Kind != IsCached {
			cells = append(cells, o.resolver.Cells[i].Cell)
		}
	}
	return cells
}

// Extract stores copies of the results that the shares of the next wave read: cached cells that lead to
// missing items, and the records of such items. Otherwise each share requests the same hundreds of files
// from a file server.
func (o *Outlook) Extract() error {
	read := make([]bool, len(o.resolver.Cells))
	for _, n := range o.resolver.Cells {
		if o.ahead[n.Index].Kind == IsCached || n.Stage.Relation == stages.Whole {
			continue
		}
		read[o.calledFor(n).From.Index] = true
		for e := range n.Edges() {
			from := o.resolver.Of(e)
			read[from.Index], read[o.calledFor(from).From.Index] = true, true
		}
	}
	var hits []store.Hit
	for i, n := range o.resolver.Cells {
		if read[i] && n.HasResults() {
			hits = append(hits, n.Stored())
		}
	}
	var groups []stages.Digest
	for _, g := range o.groups() {
		if g != (stages.Digest{}) {
			groups = append(groups, g)
		}
	}
	return o.store.WriteExtract(o.resolver.Plan.Name, hits, groups)
}

// Origins returns the number of items from which all others are derived: the items that itemwise cells read
// from outside, and the items of Whole cells whose number is known.
func (o *Outlook) Origins() (count int) {
	ids := map[string]bool{}
	for _, n := range o.resolver.Cells {
		switch {
		case n.Stage.Relation == stages.Whole:
			if len(n.Stage.Outputs) > 0 && n.Stage.Outputs[0].Type.Items {
				count += max(o.Likely(n.Cell), 0)
			}
		case n.Stage.Primary() < 0 && n.ID().Sources != nil:
			for _, id := range n.ID().Sources.IDs().All() {
				ids[id] = true
			}
		}
	}
	return count + len(ids)
}

// itemsDone returns, for each incomplete itemwise cell, the number of its calls with stored outcomes, by
// the number of records of its group: when the cell is executed, it looks for them one by one. If cells of
// other items share a group, each gets its part of the records. others counts the records that shares have
// made under unknown groups, since their programs haven't been compiled here.
func (o *Outlook) itemsDone() (known []int, others int) {
	groups, calls := o.groups(), map[stages.Digest]int{}
	type list struct {
		group stages.Digest
		of    plan.Output
	}
	counted := map[list]bool{}
	for i, g := range groups {
		n := o.resolver.Cells[i]
		if id := (list{g, o.calledFor(n)}); g != (stages.Digest{}) && !counted[id] {
			counted[id] = true
			calls[g] += max(o.calls(n), 0)
		}
	}
	counts, others := o.store.CountItems(o.resolver.Plan.Name,
		func(group stages.Digest) bool { return calls[group] > 0 })
	known = make([]int, len(groups))
	for i, g := range groups {
		if all := calls[g]; all > 0 {
			part := float64(min(counts[g], all)) / float64(all)
			known[i] = int(math.Floor(part * float64(max(o.calls(o.resolver.Cells[i]), 0))))
		}
	}
	return known, others
}

// groups returns, for each incomplete itemwise cell, the key of its items' records, or zero while unknown:
// see [key.Maker.Group].
func (o *Outlook) groups() []stages.Digest {
	groups := make([]stages.Digest, len(o.resolver.Cells))
	facts := make([]map[string]stages.Facts, len(o.resolver.Cells))
	for _, n := range o.resolver.Cells {
		if n.Stage.Relation == stages.Whole || o.ahead[n.Index].Kind == IsCached ||
			n.ID().LacksProgram() && !o.compiled(n) {
			continue
		}
		ports, ok := o.portsOf(n, facts)
		if !ok {
			continue
		}
		if f, err := execute.Facts(n, ports); err == nil {
			facts[n.Index] = f
			groups[n.Index] = o.resolver.Keys.Group(n.ID(), ports, o.resolver.RefusedAt(n))
		}
	}
	return groups
}

// compiled reports whether the program of n is known without compiling it.
func (o *Outlook) compiled(n *resolve.Cell) bool {
	for e := range n.Edges() {
		from := o.resolver.Of(e)
		if !from.HasResults() && !from.Stage.Outputs[e.Port].Type.Items {
			return false
		}
	}
	return o.resolver.Recall(n) == nil
}

// portsOf returns the data that n reads on its ports, without items, given the facts of the incomplete
// cells.
func (o *Outlook) portsOf(n *resolve.Cell, facts []map[string]stages.Facts) (
	ports map[string][]stages.Data, ok bool,
) {
	ports = map[string][]stages.Data{}
	for p := range n.Inputs {
		port := &n.Stage.Inputs[p]
		for _, e := range n.Inputs[p].Edges {
			d, from := stages.Data{Coord: e.Coord}, o.resolver.Of(e)
			switch {
			case from.HasResults():
				l, err := o.resolver.Listing(from, e.Port)
				if err != nil {
					return nil, false
				}
				if d.Facts = l.Facts; !port.Type.Items {
					d.Items = stages.ItemSlice{{Digest: l.PayloadDigest(0)}}
				}
			case !port.Type.Items || facts[from.Index] == nil:
				return nil, false
			default:
				d.Facts = facts[from.Index][from.Stage.Outputs[e.Port].Name]
			}
			ports[port.Name] = append(ports[port.Name], d)
		}
	}
	return ports, true
}

// calledFor returns the output for whose items n is called.
func (o *Outlook) calledFor(n *resolve.Cell) plan.Output { return o.resolver.Keys.Calls[n.Index] }
