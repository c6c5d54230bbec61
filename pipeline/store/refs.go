package store

import "github.com/runexp/runexp/stages"

// A packTable numbers packs, so that a record of many refs names each pack once.
type packTable struct {
	packs []PackRef // in order of first use
	known map[PackRef]int
}

// add takes in a pack, unless it's that of a ref without one.
func (t *packTable) add(p PackRef) {
	if _, ok := t.known[p]; ok || p == (PackRef{}) {
		return
	}
	if t.known == nil {
		t.known = map[PackRef]int{}
	}
	t.known[p] = len(t.packs)
	t.packs = append(t.packs, p)
}

// Tags of encoded refs.
const (
	tagInline  = 0 // text
	tagDropped = 1 // length, digest
	tagPacked  = 2 // and more: the pack's position; then offset, length, digest
)

// encode appends the packs.
func (t *packTable) encode(b []byte) []byte {
	b = appendUint(b, uint64(len(t.packs)))
	for _, p := range t.packs {
		b = append(b, p.Digest[:]...)
		b = appendUint(b, uint64(p.Size))
	}
	return b
}

// encodeRef appends a ref whose pack is in the table.
func (t *packTable) encodeRef(b []byte, r Ref) []byte {
	switch {
	case r.Inline != nil:
		b = appendUint(b, tagInline)
		b = appendUint(b, uint64(len(r.Inline)))
		return append(b, r.Inline...)
	case !r.Kept():
		b = appendUint(b, tagDropped)
		b = appendUint(b, uint64(r.Len))
	default:
		b = appendUint(b, tagPacked+uint64(t.known[r.Pack]))
		b = appendUint(b, uint64(r.Off))
		b = appendUint(b, uint64(r.Len))
	}
	return append(b, r.Digest[:]...)
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

// decodeRef reads what encodeRef wrote. Inline bytes share the input's memory.
func decodeRef(d *decoder, packs []PackRef) (r Ref) {
	switch tag := d.uint(); tag {
	case tagInline:
		r.Inline = d.inline()
		r.Len = int64(len(r.Inline))
		r.Digest = stages.Sum(r.Inline)
	case tagDropped:
		r.Len = d.size()
		r.Digest = d.digest()
	default:
		if tag-tagPacked >= uint64(len(packs)) {
			d.fail()
			return r
		}
		r.Pack = packs[tag-tagPacked]
		r.Off, r.Len = d.size(), d.size()
		r.Digest = d.digest()
		if r.Len > r.Pack.Size || r.Off > r.Pack.Size-r.Len {
			d.fail()
		}
	}
	return r
}

// inline reads an inline payload, which is never nil.
func (d *decoder) inline() []byte {
	if b := d.bytes(d.count(1)); b != nil {
		return b
	}
	return []byte{}
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
		r.Inline = d.inline()
		r.Len = int64(len(r.Inline))
	case tagDropped:
		r.Len = d.size()
	default:
		r.Pack = PackRef{d.digest(), d.size()}
		r.Off, r.Len = d.size(), d.size()
	}
	return r
}
