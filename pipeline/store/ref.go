package store

import "github.com/runexp/runexp/stages"

// A packTable numbers packs, so that a record of many refs names each pack once.
type packTable struct {
	packs   []PackRef // in order of first use
	numbers map[PackRef]int
}

func (t *packTable) number(p PackRef) int {
	n, ok := t.numbers[p]
	if !ok {
		if t.numbers == nil {
			t.numbers = map[PackRef]int{}
		}
		n = len(t.packs)
		t.numbers[p] = n
		t.packs = append(t.packs, p)
	}
	return n
}

// appendPacks encodes the packs; decodePacks is its inverse.
func (t *packTable) appendPacks(b []byte) []byte {
	b = appendUint(b, uint64(len(t.packs)))
	for _, p := range t.packs {
		b = append(b, p.Digest[:]...)
		b = appendUint(b, uint64(p.Size))
	}
	return b
}

func decodePacks(d *decoder) (t packTable) {
	if n := d.count(keyLen + 1); n > 0 {
		t.packs = make([]PackRef, n)
	}
	for i := range t.packs {
		t.packs[i] = PackRef{d.digest(), d.size()}
	}
	return t
}

// Tags of encoded refs.
const (
	tagInline  = 0 // text
	tagDropped = 1 // length, digest
	tagPacked  = 2 // and more: the pack's number; then offset, length, digest
)

// appendRef encodes a ref and adds its pack to the table.
func (t *packTable) appendRef(b []byte, r Ref) []byte {
	switch {
	case r.Inline != nil:
		return appendText(appendUint(b, tagInline), r.Inline)
	case !r.Kept():
		b = appendUint(b, tagDropped)
	default:
		b = appendUint(b, tagPacked+uint64(t.number(r.Pack)))
		b = appendUint(b, uint64(r.Off))
	}
	return append(appendUint(b, uint64(r.Len)), r.Digest[:]...)
}

// ref decodes what appendRef wrote, but for the digest of an inline payload. Inline bytes share the input's
// memory.
func (t *packTable) ref(d *decoder) (r Ref) {
	switch tag := d.uint(); tag {
	case tagInline:
		r.Inline = d.text()
		r.Len = int64(len(r.Inline))
		return r
	case tagDropped:
		r.Len = d.size()
	default:
		if tag-tagPacked >= uint64(len(t.packs)) {
			d.fail()
			return r
		}
		r.Pack = t.packs[tag-tagPacked]
		r.Off, r.Len = d.size(), d.size()
		if r.Len > r.Pack.Size || r.Off > r.Pack.Size-r.Len {
			d.fail()
		}
	}
	r.Digest = d.digest()
	return r
}

// summed is ref with every digest.
func (t *packTable) summed(d *decoder) Ref {
	r := t.ref(d)
	if r.Inline != nil {
		r.Digest = stages.Sum(r.Inline)
	}
	return r
}
