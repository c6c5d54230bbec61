package pipeline

import (
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// outcomes are what a job knows of a cell's items, by item key. There is one for
// every image that streams through, so they are packed.
type outcomes struct {
	madeBy string
	rows   map[stages.Digest]int32 // useless for what is stored but of no use
	count  int32
	ports  []portOutcomes
}

const useless = -1

// A portOutcomes holds what came out on one port, row after row.
type portOutcomes struct {
	refs store.Listing
	ends []int32  // where each row ends; nil while every row is one item without an id
	ids  []string // as long as refs, if ends isn't nil
}

func newOutcomes(madeBy string, ports, items int) *outcomes {
	o := &outcomes{madeBy: madeBy, rows: map[stages.Digest]int32{}, ports: make([]portOutcomes, ports)}
	for p := range o.ports {
		o.ports[p].refs.Grow(items)
	}
	return o
}

// get returns what is known of an item; known is also true for what is of no use.
func (o *outcomes) get(key stages.Digest) (out store.ItemOutcome, known, ok bool) {
	row, known := o.rows[key]
	if !known || row == useless {
		return out, known, false
	}
	out = store.ItemOutcome{MadeBy: o.madeBy, Ports: make([][]store.SubItem, len(o.ports))}
	for p := range o.ports {
		out.Ports[p] = o.ports[p].row(int(row))
	}
	return out, true, true
}

func (p *portOutcomes) row(i int) []store.SubItem {
	if p.ends == nil {
		return []store.SubItem{{Ref: p.refs.Ref(i)}}
	}
	first := 0
	if i > 0 {
		first = int(p.ends[i-1])
	}
	items := make([]store.SubItem, 0, int(p.ends[i])-first)
	for k := first; k < int(p.ends[i]); k++ {
		items = append(items, store.SubItem{Ref: p.refs.Ref(k), ID: p.ids[k]})
	}
	return items
}

// reject notes that what is stored of an item is of no use.
func (o *outcomes) reject(key stages.Digest) { o.rows[key] = useless }

func (o *outcomes) add(key stages.Digest, out store.ItemOutcome) {
	for p := range o.ports {
		o.ports[p].add(out.Ports[p], int(o.count))
	}
	o.rows[key] = o.count
	o.count++
}

// add appends row number n.
func (p *portOutcomes) add(items []store.SubItem, n int) {
	if p.ends == nil && (len(items) != 1 || items[0].ID != "") {
		p.ends, p.ids = make([]int32, n, n+1), make([]string, n, n+len(items))
		for i := range n {
			p.ends[i] = int32(i + 1)
		}
	}
	for _, it := range items {
		p.refs.Append(it.Ref)
	}
	if p.ends == nil {
		return
	}
	for _, it := range items {
		p.ids = append(p.ids, it.ID)
	}
	p.ends = append(p.ends, int32(p.refs.Len()))
}
