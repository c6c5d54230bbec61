package store

import "github.com/runexp/runexp/stages"

// An objectTable numbers objects, so that a record of many refs names each object once.
type objectTable struct {
	objects []ObjectRef // in order of first use
	numbers map[ObjectRef]int
}

func (t *objectTable) number(p ObjectRef) int {
	n, ok := t.numbers[p]
	if !ok {
		if t.numbers == nil {
			t.numbers = map[ObjectRef]int{}
		}
		n = len(t.objects)
		t.numbers[p] = n
		t.objects = append(t.objects, p)
	}
	return n
}

// appendObjects encodes the objects; decodeObjects is its inverse.
func (t *objectTable) appendObjects(b []byte) []byte {
	b = appendUint(b, uint64(len(t.objects)))
	for _, p := range t.objects {
		b = append(b, p.Digest[:]...)
		b = appendUint(b, uint64(p.Size))
	}
	return b
}

func decodeObjects(d *decoder) (t objectTable) {
	if n := d.count(keyLen + 1); n > 0 {
		t.objects = make([]ObjectRef, n)
	}
	for i := range t.objects {
		t.objects[i] = ObjectRef{d.digest(), d.size()}
	}
	return t
}

// Tags of encoded refs.
const (
	tagInline  = 0 // text
	tagDropped = 1 // length, digest
	tagObject  = 2 // and more: the object's number; then offset, length, digest
)

// appendRef encodes a ref and adds its object to the table.
func (t *objectTable) appendRef(b []byte, r Ref) []byte {
	switch {
	case r.Inline != nil:
		return appendText(appendUint(b, tagInline), r.Inline)
	case !r.Kept():
		b = appendUint(b, tagDropped)
	default:
		b = appendUint(b, tagObject+uint64(t.number(r.Object)))
		b = appendUint(b, uint64(r.Off))
	}
	return append(appendUint(b, uint64(r.Len)), r.Digest[:]...)
}

// ref decodes the result of appendRef, without the digest of an inline payload. Inline bytes share the
// input's memory.
func (t *objectTable) ref(d *decoder) (r Ref) {
	switch tag := d.uint(); tag {
	case tagInline:
		r.Inline = d.text()
		r.Len = int64(len(r.Inline))
		return r
	case tagDropped:
		r.Len = d.size()
	default:
		if tag-tagObject >= uint64(len(t.objects)) {
			d.fail()
			return r
		}
		r.Object = t.objects[tag-tagObject]
		r.Off, r.Len = d.size(), d.size()
		if r.Len > r.Object.Size || r.Off > r.Object.Size-r.Len {
			d.fail()
		}
	}
	r.Digest = d.digest()
	return r
}

// summed is ref with the digest of an inline payload, too.
func (t *objectTable) summed(d *decoder) Ref {
	r := t.ref(d)
	if r.Inline != nil {
		r.Digest = stages.Sum(r.Inline)
	}
	return r
}
