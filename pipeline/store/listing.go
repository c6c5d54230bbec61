package store

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
)

// A Listing is the ordered items of one output port of a cell, or its one value.
// Its facts hold for all of them.
type Listing struct {
	Facts stages.Facts

	// Parents are the positions of the items that these were made from, among the
	// cell's first item port (Expand). IDs and Origins name items that get no
	// names from there. Each is nil or as long as the listing.
	Parents []int32
	IDs     []string
	Origins []string

	refs refTable
}

// Len returns the number of items.
func (l *Listing) Len() int { return len(l.refs.entries) }

// Grow makes room for n more items.
func (l *Listing) Grow(n int) { l.refs.entries = slices.Grow(l.refs.entries, n) }

// Append adds an item whose payload is r.
func (l *Listing) Append(r Ref) { l.refs.append(r) }

// Ref tells where the payload of item i lies.
func (l *Listing) Ref(i int) Ref { return l.refs.at(i) }

// PayloadDigest returns the digest of item i's payload.
func (l *Listing) PayloadDigest(i int) stages.Digest { return l.refs.entries[i].digest }

// Packs returns the objects that the payloads lie in, in order of first use.
// The slice must not be changed.
func (l *Listing) Packs() []PackRef { return l.refs.packs }

// Dropped returns a copy of l that doesn't say where payloads lie, except for
// those in the record itself: "store: none".
func (l *Listing) Dropped() *Listing {
	d := *l
	d.refs = refTable{}
	for i := range l.Len() {
		d.Append(l.Ref(i).Dropped())
	}
	return &d
}

// Digest names what a consumer of the listing gets: the facts and the ordered
// payload digests. Ids and places don't matter.
func (l *Listing) Digest() stages.Digest {
	h := sha256.New()
	h.Write([]byte("runexp listing\n"))
	number := func(n int) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		h.Write(b[:])
	}
	text := func(s string) { number(len(s)); writeString(h, s) }
	number(len(l.Facts))
	for _, name := range l.Facts.Names() {
		text(name)
		text(l.Facts[name])
	}
	number(l.Len())
	for i := range l.refs.entries {
		h.Write(l.refs.entries[i].digest[:])
	}
	return stages.Digest(h.Sum(nil))
}

func writeString(h hash.Hash, s string) { h.Write([]byte(s)) }

const listingVersion = 1

// Parts that a listing may have.
const (
	hasParents = 1 << iota
	hasIDs
	hasOrigins
	sameOrigins // the origins are the ids
)

// encode returns the listing as bytes: version, parts, facts, refs, parents, ids, origins.
func (l *Listing) encode() []byte {
	var parts byte
	if l.Parents != nil {
		parts |= hasParents
	}
	if l.IDs != nil {
		parts |= hasIDs
	}
	if l.Origins != nil {
		parts |= hasOrigins
		if l.IDs != nil && equalStrings(l.IDs, l.Origins) {
			parts = parts&^hasOrigins | sameOrigins
		}
	}
	b := []byte{listingVersion, parts}
	b = appendUint(b, uint64(len(l.Facts)))
	for _, name := range l.Facts.Names() {
		b = appendText(b, name)
		b = appendText(b, l.Facts[name])
	}
	b = l.refs.encode(b)
	for _, p := range l.Parents {
		b = appendUint(b, uint64(uint32(p)))
	}
	for _, id := range l.IDs {
		b = appendText(b, id)
	}
	if parts&hasOrigins != 0 {
		for _, o := range l.Origins {
			b = appendText(b, o)
		}
	}
	return b
}

// decodeListing is the inverse of encode.
func decodeListing(b []byte) (*Listing, error) {
	d := &decoder{b: b}
	head := d.bytes(2)
	if head == nil || head[0] != listingVersion {
		return nil, errMalformed
	}
	parts := head[1]
	if parts >= sameOrigins<<1 || parts&hasOrigins != 0 && parts&sameOrigins != 0 || parts&sameOrigins != 0 && parts&hasIDs == 0 {
		return nil, errMalformed
	}
	l := &Listing{}
	if n := d.count(2); n > 0 {
		l.Facts = make(stages.Facts, n)
		last := ""
		for i := range n {
			name := d.text()
			if i > 0 && name <= last {
				d.fail()
			}
			l.Facts[name] = d.text()
			last = name
		}
	}
	l.refs.decode(d)
	n := l.Len()
	if parts&hasParents != 0 && !d.bad {
		l.Parents = make([]int32, n)
		for i := range l.Parents {
			v := d.uint()
			if v > math.MaxUint32 {
				d.fail()
			}
			l.Parents[i] = int32(uint32(v))
		}
	}
	if parts&hasIDs != 0 {
		l.IDs = d.texts(n)
	}
	if parts&hasOrigins != 0 {
		l.Origins = d.texts(n)
	}
	if parts&sameOrigins != 0 {
		l.Origins = l.IDs
	}
	if err := d.done(); err != nil {
		return nil, err
	}
	return l, nil
}

func (d *decoder) texts(n int) []string {
	if d.bad {
		return nil
	}
	t := make([]string, n)
	for i := range t {
		t[i] = d.text()
	}
	return t
}

func equalStrings(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
