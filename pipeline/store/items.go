package store

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/runexp/runexp/stages"
)

// An ItemRecord is the outcome of one item, by its key within a group.
type ItemRecord struct {
	Key stages.Digest
	ItemOutcome
}

// An ItemOutcome is what a stage made of one item: for each output port, in the
// stage's order, the items that came out. One each, but for stages that expand.
type ItemOutcome struct {
	MadeBy string // class of device
	Ports  [][]SubItem
}

// A SubItem is an item that came out of another.
type SubItem struct {
	Ref
	ID string // what Expand calls it; "" otherwise
}

// Kept reports whether all payloads of the outcome are somewhere.
func (o ItemOutcome) Kept() bool {
	for _, p := range o.Ports {
		for _, v := range p {
			if !v.Kept() {
				return false
			}
		}
	}
	return true
}

// Outcomes are a growing list of outcomes of items. They're decoded when asked for.
type Outcomes struct{ rows *Rows }

// NewOutcomes returns an empty list.
func (s *Store) NewOutcomes() *Outcomes { return &Outcomes{s.NewRows()} }

// Add appends the outcome of an item and returns its row.
func (v *Outcomes) Add(key stages.Digest, o ItemOutcome) (row int, err error) {
	return v.rows.append(appendOutcome(make([]byte, 0, 2<<10), key, o))
}

// At returns the outcome in a row. Its packs may have gone: see [Store.Check].
func (v *Outcomes) At(row int) (ItemOutcome, error) {
	b, err := v.rows.At(row)
	if err != nil {
		return ItemOutcome{}, err
	}
	return decodeOutcome(b), nil
}

// Items are the known outcomes of a group, found by the items' keys.
type Items struct {
	Outcomes
	mu     sync.Mutex // guards what follows
	newest RowIndex   // of a key's rows
}

func (s *Store) newItems() *Items { return &Items{Outcomes: Outcomes{s.NewRows()}} }

// Len returns the number of items whose outcome is known.
func (v *Items) Len() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.newest.Len()
}

func keyHash(key stages.Digest) uint32 { return binary.LittleEndian.Uint32(key[:]) }

// is returns a function that reports whether a row is about key.
func (v *Items) is(key stages.Digest) func(int) (bool, error) {
	return func(row int) (bool, error) {
		b, err := v.rows.At(row)
		return err == nil && string(b[:keyLen]) == string(key[:]), err
	}
}

// Find returns the row of an item's newest outcome, -1 if none is known.
func (v *Items) Find(key stages.Digest) (row int, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.newest.Find(keyHash(key), v.is(key))
}

// put makes o the outcome of an item.
func (v *Items) put(key stages.Digest, o ItemOutcome) error {
	row, err := v.Add(key, o)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.newest.Set(keyHash(key), row, v.is(key))
}

// A row: the item's key, made_by, the number of ports; for each the number of
// sub-items; for each id and ref, with its pack spelled out.
func appendOutcome(b []byte, key stages.Digest, o ItemOutcome) []byte {
	b = append(b, key[:]...)
	b = appendText(b, o.MadeBy)
	b = appendUint(b, uint64(len(o.Ports)))
	for _, port := range o.Ports {
		b = appendUint(b, uint64(len(port)))
		for _, sub := range port {
			b = appendText(b, sub.ID)
			b = appendRef(b, sub.Ref)
		}
	}
	return b
}

func decodeOutcome(row []byte) ItemOutcome {
	d := &decoder{b: row[keyLen:]}
	o := ItemOutcome{MadeBy: d.text()}
	o.Ports = make([][]SubItem, d.count(1))
	for p := range o.Ports {
		o.Ports[p] = make([]SubItem, d.count(1))
		for i := range o.Ports[p] {
			id := d.text()
			o.Ports[p][i] = SubItem{readRef(d), id}
		}
	}
	return o
}

func (s *Store) itemPath(bucket byte) string {
	return filepath.Join(s.dir, "items", fmt.Sprintf("%02x.log", bucket))
}

// add takes in a frame's payload, all of it or, when it's malformed, nothing. An
// outcome that isn't made by prefer doesn't replace one that is.
func (v *Items) add(payload []byte, prefer string) error {
	madeBy, packs, err := walkItems(payload, func(stages.Digest, int) {})
	if err != nil {
		return nil
	}
	walkItems(payload, func(key stages.Digest, off int) {
		if err != nil {
			return
		}
		if madeBy != prefer {
			var row int
			if row, err = v.Find(key); err != nil {
				return
			}
			if row >= 0 {
				var old ItemOutcome
				if old, err = v.At(row); err != nil || old.MadeBy == prefer {
					return
				}
			}
		}
		o := ItemOutcome{MadeBy: madeBy}
		walkItem(&decoder{b: payload[off:]}, packs, func(port int, id []byte, r Ref) {
			for len(o.Ports) <= port {
				o.Ports = append(o.Ports, nil)
			}
			if id != nil {
				o.Ports[port] = append(o.Ports[port], SubItem{r, string(id)})
			}
		})
		err = v.put(key, o)
	})
	return err
}

// RecordItems stores outcomes of a group's items, whose payloads are already put.
// All are made by the same class of device.
func (s *Store) RecordItems(group stages.Digest, madeBy string, rs []ItemRecord) error {
	if s.readOnly {
		return errReadOnly
	}
	if len(rs) == 0 {
		return nil
	}
	payload := encodeItems(madeBy, rs)
	if len(payload) > maxPayload {
		return fmt.Errorf("the records of %d items have %d bytes, more than %d", len(rs), len(payload), maxPayload)
	}
	_, err := s.appendLog(s.itemPath(group[0]), appendFrame(nil, itemLog, group, payload))
	return err
}

// A frame's payload: made_by, packs, the number of items; for each its key and
// the number of ports; for each the number of sub-items; for each id and ref.
func encodeItems(madeBy string, rs []ItemRecord) []byte {
	var t packTable
	for _, r := range rs {
		for _, port := range r.Ports {
			for _, sub := range port {
				t.add(sub.Pack)
			}
		}
	}
	b := appendText(nil, madeBy)
	b = t.encode(b)
	b = appendUint(b, uint64(len(rs)))
	for _, r := range rs {
		b = append(b, r.Key[:]...)
		b = appendUint(b, uint64(len(r.Ports)))
		for _, port := range r.Ports {
			b = appendUint(b, uint64(len(port)))
			for _, sub := range port {
				b = appendText(b, sub.ID)
				b = t.encodeRef(b, sub.Ref)
			}
		}
	}
	return b
}

// walkItems reads a frame's payload: fn is called with each item's key and where
// what follows the key begins.
func walkItems(payload []byte, fn func(key stages.Digest, off int)) (madeBy string, packs []PackRef, err error) {
	d := &decoder{b: payload}
	madeBy = d.text()
	packs = decodePacks(d)
	for range d.count(keyLen + 1) {
		key := d.digest()
		if d.bad {
			break
		}
		fn(key, len(payload)-len(d.b))
		walkItem(d, packs, func(int, []byte, Ref) {})
	}
	return madeBy, packs, d.done()
}

// walkItem reads an item's ports. fn is called once a port with a nil id, then
// with each of its sub-items.
func walkItem(d *decoder, packs []PackRef, fn func(port int, id []byte, r Ref)) {
	for port := range d.count(1) {
		fn(port, nil, Ref{})
		for range d.count(3) {
			id := d.bytes(d.count(1))
			r := decodeRef(d, packs)
			if d.bad {
				return
			}
			fn(port, id[:len(id):len(id)], r)
		}
	}
}
