package store

import (
	"slices"

	"github.com/runexp/runexp/stages"
)

// A refTable is a compact list of [Ref]s: packs are named once, and inline
// payloads lie in one slice.
type refTable struct {
	packs   []PackRef
	entries []refEntry
	inline  []byte
	known   map[PackRef]int32 // positions in packs; nil after decoding
}

type refEntry struct {
	digest   stages.Digest
	off, len int64
	pack     int32 // position in packs, or one of the two below
}

const (
	inlinePack  = -1 // off is a position in inline
	droppedPack = -2
)

func (t *refTable) append(r Ref) {
	e := refEntry{digest: r.Digest, off: r.Off, len: r.Len}
	switch {
	case r.Inline != nil:
		e.pack, e.off, e.len = inlinePack, int64(len(t.inline)), int64(len(r.Inline))
		t.inline = append(t.inline, r.Inline...)
	case !r.Kept():
		e.pack, e.off = droppedPack, 0
	default:
		e.pack = t.packIndex(r.Pack)
	}
	t.entries = append(t.entries, e)
}

func (t *refTable) packIndex(p PackRef) int32 {
	if t.known == nil {
		t.known = make(map[PackRef]int32, len(t.packs)+1)
		for i, p := range t.packs {
			t.known[p] = int32(i)
		}
	}
	i, ok := t.known[p]
	if !ok {
		i = int32(len(t.packs))
		t.known[p] = i
		t.packs = append(t.packs, p)
	}
	return i
}

func (t *refTable) at(i int) Ref {
	e := &t.entries[i]
	r := Ref{Digest: e.digest, Len: e.len}
	switch e.pack {
	case inlinePack:
		if r.Inline = t.inline[e.off : e.off+e.len : e.off+e.len]; r.Inline == nil {
			r.Inline = []byte{} // an empty payload, and no other one
		}
	case droppedPack:
	default:
		r.Pack, r.Off = t.packs[e.pack], e.off
	}
	return r
}

// Tags of encoded refs.
const (
	tagInline  = 0 // text
	tagDropped = 1 // length, digest
	tagPacked  = 2 // and more: the pack's position; then offset, length, digest
)

// encode appends the table: the packs, the number of refs, and each.
func (t *refTable) encode(b []byte) []byte {
	// At once, for there may be many: a ref takes a digest and a few bytes.
	b = slices.Grow(b, len(t.packs)*(keyLen+8)+len(t.entries)*(keyLen+12)+len(t.inline))
	b = appendUint(b, uint64(len(t.packs)))
	for _, p := range t.packs {
		b = append(b, p.Digest[:]...)
		b = appendUint(b, uint64(p.Size))
	}
	b = appendUint(b, uint64(len(t.entries)))
	for i := range t.entries {
		b = t.encodeAt(b, i)
	}
	return b
}

func (t *refTable) encodeAt(b []byte, i int) []byte {
	e := &t.entries[i]
	switch e.pack {
	case inlinePack:
		b = appendUint(b, tagInline)
		b = appendUint(b, uint64(e.len))
		return append(b, t.inline[e.off:e.off+e.len]...)
	case droppedPack:
		b = appendUint(b, tagDropped)
		b = appendUint(b, uint64(e.len))
	default:
		b = appendUint(b, tagPacked+uint64(e.pack))
		b = appendUint(b, uint64(e.off))
		b = appendUint(b, uint64(e.len))
	}
	return append(b, e.digest[:]...)
}

// decode reads what encode wrote into the empty table t.
func (t *refTable) decode(d *decoder) {
	t.packs = decodePacks(d)
	n := d.count(2)
	t.entries = make([]refEntry, 0, n)
	for range n {
		r := decodeRef(d, t.packs)
		if d.bad {
			return
		}
		e := refEntry{digest: r.digest, off: r.off, len: r.len, pack: r.pack}
		if r.pack == inlinePack {
			e.off = int64(len(t.inline))
			t.inline = append(t.inline, r.inline...)
		}
		t.entries = append(t.entries, e)
	}
}

func decodePacks(d *decoder) []PackRef {
	n := d.count(keyLen + 1)
	if n == 0 {
		return nil
	}
	packs := make([]PackRef, n)
	for i := range packs {
		packs[i] = PackRef{d.digest(), d.size()}
	}
	return packs
}

type decodedRef struct {
	refEntry
	inline []byte // shares the input's memory
}

func decodeRef(d *decoder, packs []PackRef) (r decodedRef) {
	switch tag := d.uint(); tag {
	case tagInline:
		r.pack = inlinePack
		r.inline = d.bytes(d.count(1))
		r.len = int64(len(r.inline))
		r.digest = stages.Sum(r.inline)
	case tagDropped:
		r.pack = droppedPack
		r.len = d.size()
		r.digest = d.digest()
	default:
		if tag-tagPacked >= uint64(len(packs)) {
			d.fail()
			return r
		}
		r.pack = int32(tag - tagPacked)
		r.off, r.len = d.size(), d.size()
		r.digest = d.digest()
		if size := packs[r.pack].Size; r.len > size || r.off > size-r.len {
			d.fail()
		}
	}
	return r
}

func (r decodedRef) ref(packs []PackRef) Ref {
	v := Ref{Digest: r.digest, Len: r.len}
	switch r.pack {
	case inlinePack:
		v.Inline = append([]byte{}, r.inline...)
	case droppedPack:
	default:
		v.Pack, v.Off = packs[r.pack], r.off
	}
	return v
}

// appendRef appends a ref by itself; readRef is its inverse.
func appendRef(b []byte, r Ref) []byte {
	switch {
	case r.Inline != nil:
		b = appendUint(b, tagInline)
		b = appendUint(b, uint64(len(r.Inline)))
		b = append(b, r.Inline...)
	case !r.Kept():
		b = appendUint(b, tagDropped)
		b = appendUint(b, uint64(r.Len))
	default:
		b = appendUint(b, tagPacked)
		b = append(b, r.Pack.Digest[:]...)
		b = appendUint(b, uint64(r.Pack.Size))
		b = appendUint(b, uint64(r.Off))
		b = appendUint(b, uint64(r.Len))
	}
	return append(b, r.Digest[:]...)
}

func readRef(d *decoder) (r Ref) {
	r = skipRef(d)
	r.Digest = d.digest()
	if r.Inline != nil {
		r.Inline = append([]byte{}, r.Inline...)
	}
	return r
}

// skipRef reads a ref but for its digest, which comes last. Inline bytes share the
// input's memory.
func skipRef(d *decoder) (r Ref) {
	switch d.uint() {
	case tagInline:
		if r.Inline = d.bytes(d.count(1)); r.Inline == nil {
			r.Inline = []byte{}
		}
		r.Len = int64(len(r.Inline))
	case tagDropped:
		r.Len = d.size()
	default:
		r.Pack = PackRef{d.digest(), d.size()}
		r.Off, r.Len = d.size(), d.size()
	}
	return r
}
