package store

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"math"

	"github.com/runexp/runexp/stages"
)

// A Listing is the ordered items of one output port of a cell, or its one value. It has the same form in
// memory as on disk, a few bytes an item in addition to the digests and ids, since there may be one for every
// image of a data set. It may be read concurrently once it's complete.
type Listing struct {
	Facts stages.Facts // they hold for all items

	parts   Parts
	objects objectTable
	refs    column // of refs; the others only as set in parts
	parents column // of numbers
	ids     column // of texts
	origins column // of texts
}

// An Entry is one item of a listing.
type Entry struct {
	Ref

	// Parent is the position of the item from which this one was made, among those of the cell's first item
	// port (Expand). ID and Origin name an item that gets no name from that one. They're zero in a listing
	// without that part.
	Parent     int32
	ID, Origin string
}

// Parts are the parts of a listing in addition to the places of its payloads.
type Parts byte

const (
	Parents Parts = 1 << iota
	IDs
	Origins     // only with IDs
	sameOrigins // instead of Origins: they are the ids
)

// valid reports whether parts may stand on disk.
func (p Parts) valid() bool {
	origins := p & (Origins | sameOrigins)
	return p < sameOrigins<<1 && (origins == 0 || origins != Origins|sameOrigins && p&IDs != 0)
}

// NewListing returns an empty listing.
func (s *Store) NewListing(facts stages.Facts, parts Parts) *Listing {
	if parts&Origins != 0 {
		parts ^= Origins | sameOrigins // until there is another one
	}
	c := column{spill: &s.spill}
	return &Listing{Facts: facts, parts: parts, refs: c, parents: c, ids: c, origins: c}
}

// Append adds an item.
func (l *Listing) Append(e Entry) {
	if l.parts&sameOrigins != 0 && e.Origin != e.ID {
		l.parts ^= Origins | sameOrigins
		l.origins = l.ids.clone()
	}
	l.refs.next()
	l.refs.b = l.objects.appendRef(l.refs.b, e.Ref)
	if l.parts&Parents != 0 {
		l.parents.next()
		l.parents.b = appendUint(l.parents.b, uint64(uint32(e.Parent)))
	}
	if l.parts&IDs != 0 {
		l.ids.next()
		l.ids.b = appendText(l.ids.b, e.ID)
	}
	if l.parts&Origins != 0 {
		l.origins.next()
		l.origins.b = appendText(l.origins.b, e.Origin)
	}
}

// Len returns the number of items.
func (l *Listing) Len() int { return l.refs.n }

// HasParents reports whether items name the items from which they were made.
func (l *Listing) HasParents() bool { return l.parts&Parents != 0 }

// At returns item i.
func (l *Listing) At(i int) (e Entry) {
	e.Ref = l.objects.summed(l.refs.at(i, l.skipRef))
	if e.Inline != nil {
		e.Inline = append([]byte{}, e.Inline...)
	}
	if l.parts&Parents != 0 {
		e.Parent = int32(uint32(l.parents.at(i, (*decoder).skipUint).uint()))
	}
	if l.parts&IDs != 0 {
		e.ID = l.ids.at(i, (*decoder).skipText).string()
	}
	if l.parts&sameOrigins != 0 {
		e.Origin = e.ID
	} else if l.parts&Origins != 0 {
		e.Origin = l.origins.at(i, (*decoder).skipText).string()
	}
	return e
}

// PayloadDigest returns the digest of item i's payload.
func (l *Listing) PayloadDigest(i int) stages.Digest {
	return l.objects.summed(l.refs.at(i, l.skipRef)).Digest
}

func (l *Listing) skipRef(d *decoder) { l.objects.ref(d) }

// eachRef calls fn for the ref of every item, in order.
func (l *Listing) eachRef(fn func(r Ref)) {
	l.refs.each(func(d *decoder) { fn(l.objects.summed(d)) })
}

// digest returns the digest of a consumer's view of a listing: the facts and the ordered payload digests. It
// doesn't depend on ids and places.
func (l *Listing) digest() stages.Digest {
	h := listingHash(l.Facts, l.Len())
	l.eachRef(func(r Ref) { h.Write(r.Digest[:]) })
	return stages.Digest(h.Sum(nil))
}

// listingHash returns the hash of a listing, for the payload digests to be written to.
func listingHash(facts stages.Facts, items int) hash.Hash {
	h := sha256.New()
	number := func(n int) { h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n))) }
	text := func(s string) { number(len(s)); io.WriteString(h, s) }
	io.WriteString(h, "runexp listing\n")
	number(len(facts))
	for _, name := range facts.Names() {
		text(name)
		text(facts[name])
	}
	number(items)
	return h
}

// dropped returns l without the places of its payloads, except those of payloads in the record itself.
func (l *Listing) dropped() *Listing {
	d := *l
	d.objects, d.refs = objectTable{}, column{spill: l.refs.spill}
	l.eachRef(func(r Ref) {
		d.refs.next()
		d.refs.b = d.objects.appendRef(d.refs.b, r.Dropped())
	})
	return &d
}

const listingVersion = 1

// encode returns the listing in pieces: version, parts, facts, objects, the number of items; refs; parents;
// ids; origins.
func (l *Listing) encode() [][]byte {
	b := []byte{listingVersion, byte(l.parts)}
	b = appendUint(b, uint64(len(l.Facts)))
	for _, name := range l.Facts.Names() {
		b = appendText(appendText(b, name), l.Facts[name])
	}
	b = l.objects.appendObjects(b)
	b = appendUint(b, uint64(l.Len()))
	return [][]byte{b, l.refs.bytes(), l.parents.bytes(), l.ids.bytes(), l.origins.bytes()}
}

// decodeListing decodes the result of encode. The listing shares b's memory.
func decodeListing(b []byte) (*Listing, error) {
	d := &decoder{b: b}
	head := d.bytes(2)
	if head == nil || head[0] != listingVersion || !Parts(head[1]).valid() {
		return nil, errMalformed
	}
	l := &Listing{parts: Parts(head[1])}
	last := ""
	for i := range d.count(2) {
		name := d.string()
		if i == 0 {
			l.Facts = stages.Facts{}
		} else if name <= last {
			d.fail()
		}
		l.Facts[name], last = d.string(), name
	}
	l.objects = decodeObjects(d)
	n := d.count(2)
	l.refs = readColumn(d, n, l.skipRef)
	if l.parts&Parents != 0 {
		l.parents = readColumn(d, n, func(d *decoder) {
			if d.uint() > math.MaxUint32 {
				d.fail()
			}
		})
	}
	if l.parts&IDs != 0 {
		l.ids = readColumn(d, n, (*decoder).skipText)
	}
	if l.parts&Origins != 0 {
		l.origins = readColumn(d, n, (*decoder).skipText)
	}
	return l, d.done()
}
