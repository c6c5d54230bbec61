package store

import (
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

// Items are the known outcomes of a group. They're decoded when asked for.
type Items struct {
	mu     sync.RWMutex // guards what follows
	frames [][]byte     // payloads of the group's frames
	where  map[stages.Digest]itemPlace
	packs  [][]PackRef // of each frame
	madeBy []string    // of each frame
}

type itemPlace struct{ frame, off int32 }

// Len returns the number of items whose outcome is known.
func (v *Items) Len() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return len(v.where)
}

// Get returns the outcome of an item. Its packs may have gone: see [Store.Check].
func (v *Items) Get(key stages.Digest) (ItemOutcome, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	at, ok := v.where[key]
	if !ok {
		return ItemOutcome{}, false
	}
	d := &decoder{b: v.frames[at.frame][at.off:]}
	packs := v.packs[at.frame]
	o := ItemOutcome{MadeBy: v.madeBy[at.frame]}
	walkItem(d, packs, func(port int, id []byte, r decodedRef) {
		for len(o.Ports) <= port {
			o.Ports = append(o.Ports, nil)
		}
		if id != nil {
			o.Ports[port] = append(o.Ports[port], SubItem{r.ref(packs), string(id)})
		}
	})
	return o, true
}

func (s *Store) itemPath(bucket byte) string {
	return filepath.Join(s.dir, "items", fmt.Sprintf("%02x.log", bucket))
}

// add takes in a frame's payload, all of it or, when it's malformed, nothing.
func (v *Items) add(payload []byte, prefer string) {
	f := int32(len(v.frames))
	type found struct {
		key stages.Digest
		off int32
	}
	var items []found
	madeBy, packs, err := walkItems(payload, func(key stages.Digest, off int) {
		items = append(items, found{key, int32(off)})
	}, nil)
	if err != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.frames = append(v.frames, payload)
	v.packs = append(v.packs, packs)
	v.madeBy = append(v.madeBy, madeBy)
	for _, i := range items {
		if old, ok := v.where[i.key]; ok && madeBy != prefer && v.madeBy[old.frame] == prefer {
			continue
		}
		v.where[i.key] = itemPlace{f, i.off}
	}
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
	var t refTable
	for _, r := range rs {
		for _, port := range r.Ports {
			for _, sub := range port {
				t.append(sub.Ref)
			}
		}
	}
	b := appendText(nil, madeBy)
	b = appendUint(b, uint64(len(t.packs)))
	for _, p := range t.packs {
		b = append(b, p.Digest[:]...)
		b = appendUint(b, uint64(p.Size))
	}
	b = appendUint(b, uint64(len(rs)))
	n := 0
	for _, r := range rs {
		b = append(b, r.Key[:]...)
		b = appendUint(b, uint64(len(r.Ports)))
		for _, port := range r.Ports {
			b = appendUint(b, uint64(len(port)))
			for _, sub := range port {
				b = appendText(b, sub.ID)
				b = t.encodeAt(b, n)
				n++
			}
		}
	}
	return b
}

// walkItems reads a frame's payload: fn is called with each item's key and where
// what follows the key begins, each with each ref.
func walkItems(payload []byte, fn func(key stages.Digest, off int), each func(decodedRef)) (madeBy string, packs []PackRef, err error) {
	d := &decoder{b: payload}
	madeBy = d.text()
	packs = decodePacks(d)
	for range d.count(keyLen + 1) {
		key := d.digest()
		if d.bad {
			break
		}
		fn(key, len(payload)-len(d.b))
		walkItem(d, packs, func(_ int, id []byte, r decodedRef) {
			if id != nil && each != nil {
				each(r)
			}
		})
	}
	return madeBy, packs, d.done()
}

// walkItem reads an item's ports. fn is called once a port with a nil id, then
// with each of its sub-items.
func walkItem(d *decoder, packs []PackRef, fn func(port int, id []byte, r decodedRef)) {
	for port := range d.count(1) {
		fn(port, nil, decodedRef{})
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
