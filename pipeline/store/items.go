package store

import (
	"slices"
	"sync"

	"github.com/runexp/runexp/stages"
)

// An ItemRecord is the outcome of one item, by its key within a group.
type ItemRecord struct {
	Key stages.Digest
	ItemOutcome
}

// An ItemOutcome is the result of a stage for one item: for each output port, in the stage's order, its
// items, of which there is one except in stages that expand.
type ItemOutcome struct{ Ports [][]SubItem }

// A SubItem is an item that a stage made from another one.
type SubItem struct {
	Ref
	ID string // its id from Expand; "" in other stages
}

// Items are a growing list of outcomes of items, in the form of item records: some fifty bytes an outcome.
// The outcomes of a group are found by the items' keys. Items may be used concurrently.
type Items struct {
	mu      sync.Mutex // guards what follows
	objects objectTable
	rows    column                  // of texts, the ports
	newest  map[stages.Digest]int32 // row of a key, empty in a list without keys
}

// NewItems returns an empty list.
func (s *Store) NewItems() *Items {
	return &Items{rows: column{spill: &s.spill}, newest: map[stages.Digest]int32{}}
}

// Add appends the outcome of an item without its key, and returns its row.
func (v *Items) Add(o ItemOutcome) (row int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rows.next()
	v.rows.b = appendText(v.rows.b, v.objects.appendPorts(make([]byte, 0, 128), o.Ports))
	return v.rows.n - 1
}

// At returns the outcome in a row. Its objects may be missing: see [Store.Check].
func (v *Items) At(row int) ItemOutcome {
	v.mu.Lock()
	defer v.mu.Unlock()
	d := &decoder{b: slices.Clone(v.rows.at(row, (*decoder).skipText).text())}
	return ItemOutcome{v.objects.ports(d, v.objects.summed)}
}

// bytes returns about how much memory the outcomes take.
func (v *Items) bytes() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return int64(cap(v.rows.b) + 16*cap(v.rows.groups) + 2*keyLen*len(v.newest))
}

// Find returns the row of an item's newest outcome, -1 if none is known.
func (v *Items) Find(key stages.Digest) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if row, ok := v.newest[key]; ok {
		return int(row)
	}
	return -1
}

// take adds the outcomes of a frame's payload if a class of device made them: all of them or, if the payload
// is malformed, none.
func (v *Items) take(payload []byte, madeBy string) {
	by, _, items, err := decodeItems(payload)
	if err != nil || by != madeBy {
		return
	}
	for _, it := range items {
		row := v.Add(it.ItemOutcome)
		v.mu.Lock()
		v.newest[it.Key] = int32(row)
		v.mu.Unlock()
	}
}

// RecordItems stores outcomes of a group's items, whose payloads have been put before. The same class of
// device has made all of them.
func (s *Store) RecordItems(group stages.Digest, madeBy string, rs []ItemRecord) error {
	if len(rs) == 0 {
		return nil
	}
	_, _, err := s.record(itemFrame, group, encodeItems(madeBy, rs))
	return err
}

// encodeItems returns a frame's payload: made_by, objects, the number of items; for each its key and its
// ports.
func encodeItems(madeBy string, rs []ItemRecord) []byte {
	var t objectTable
	items := appendUint(nil, uint64(len(rs)))
	for _, r := range rs {
		items = t.appendPorts(append(items, r.Key[:]...), r.Ports)
	}
	return append(t.appendObjects(appendText(nil, madeBy)), items...)
}

// decodeItems decodes the result of encodeItems, without the digests of inline payloads.
func decodeItems(payload []byte) (madeBy string, objects []ObjectRef, items []ItemRecord, err error) {
	d := &decoder{b: payload}
	madeBy = d.string()
	t := decodeObjects(d)
	n := d.count(keyLen + 1)
	for len(items) < n && !d.bad {
		items = append(items, ItemRecord{d.digest(), ItemOutcome{t.ports(d, t.ref)}})
	}
	return madeBy, t.objects, items, d.done()
}

// eachRef calls fn for the refs of items.
func eachRef(items []ItemRecord, fn func(r *Ref)) {
	for _, it := range items {
		for _, port := range it.Ports {
			for i := range port {
				fn(&port[i].Ref)
			}
		}
	}
}

// appendPorts encodes the ports of an outcome: their number; for each the number of sub-items; for each id
// and ref.
func (t *objectTable) appendPorts(b []byte, ports [][]SubItem) []byte {
	b = appendUint(b, uint64(len(ports)))
	for _, port := range ports {
		b = appendUint(b, uint64(len(port)))
		for _, sub := range port {
			b = t.appendRef(appendText(b, sub.ID), sub.Ref)
		}
	}
	return b
}

// ports decodes the result of appendPorts, each ref by a function. Inline payloads share the input's memory.
func (t *objectTable) ports(d *decoder, ref func(*decoder) Ref) [][]SubItem {
	ports := make([][]SubItem, d.count(1))
	for p := range ports {
		ports[p] = make([]SubItem, d.count(3))
		for i := range ports[p] {
			id := d.string()
			ports[p][i] = SubItem{ref(d), id}
		}
	}
	return ports
}
