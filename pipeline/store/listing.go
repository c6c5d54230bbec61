package store

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"math"

	"github.com/runexp/runexp/stages"
)

// A Listing is the ordered items of one output port of a cell, or its one value.
// There may be one for every image of a data set, so they lie in the spool.
type Listing struct {
	Facts stages.Facts // they hold for all items

	parts Parts
	rows  *Rows // a ref; the parent, the id, and the origin if that's another
}

// An Entry is one item of a listing.
type Entry struct {
	Ref

	// Parent is the position of the item that this one was made from, among the
	// cell's first item port (Expand). ID and Origin name an item that gets no name
	// from there. They're zero in a listing without that part.
	Parent     int32
	ID, Origin string
}

// Parts are what a listing says of its items beside where their payloads lie.
type Parts byte

const (
	Parents Parts = 1 << iota
	IDs
	Origins     // only with IDs
	sameOrigins // instead of Origins, on disk: they are the ids
)

// valid reports whether parts may stand on disk.
func (p Parts) valid() bool {
	origins := p & (Origins | sameOrigins)
	return p < sameOrigins<<1 && (origins == 0 || origins != Origins|sameOrigins && p&IDs != 0)
}

// NewListing returns an empty listing.
func (s *Store) NewListing(facts stages.Facts, parts Parts) *Listing {
	return &Listing{Facts: facts, parts: parts, rows: s.NewRows()}
}

// Append adds an item.
func (l *Listing) Append(e Entry) error {
	b := appendRef(make([]byte, 0, 128), e.Ref)
	if l.parts&Parents != 0 {
		b = appendUint(b, uint64(uint32(e.Parent)))
	}
	if l.parts&IDs != 0 {
		b = appendText(b, e.ID)
	}
	if l.parts&Origins != 0 && e.Origin != e.ID {
		b = appendText(b, e.Origin)
	}
	return l.rows.Append(b)
}

// Len returns the number of items.
func (l *Listing) Len() int { return l.rows.Len() }

// HasParents reports whether items say what they were made from.
func (l *Listing) HasParents() bool { return l.parts&Parents != 0 }

// At returns item i.
func (l *Listing) At(i int) (e Entry, err error) {
	b, err := l.rows.At(i)
	if err != nil {
		return e, err
	}
	d := &decoder{b: b}
	e.Ref = readRef(d)
	if l.parts&Parents != 0 {
		e.Parent = int32(uint32(d.uint()))
	}
	if l.parts&IDs != 0 {
		e.ID = d.text()
	}
	if l.parts&Origins != 0 {
		if e.Origin = e.ID; len(d.b) > 0 {
			e.Origin = d.text()
		}
	}
	return e, nil
}

// PayloadDigest returns the digest of item i's payload.
func (l *Listing) PayloadDigest(i int) (stages.Digest, error) {
	b, err := l.rows.At(i)
	if err != nil {
		return stages.Digest{}, err
	}
	d := &decoder{b: b}
	skipRef(d)
	return d.digest(), nil
}

// listingHash returns the hash that names what a consumer of a listing gets: the
// facts and the ordered payload digests, which the caller writes. Ids and places
// don't matter.
func listingHash(facts stages.Facts, items int) hash.Hash {
	h := sha256.New()
	number := func(n int) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		h.Write(b[:])
	}
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

const listingVersion = 1

// A listingForm is how a listing is written.
type listingForm struct {
	*Listing
	digest  stages.Digest
	parts   Parts
	packs   packTable
	dropped bool // it doesn't say where payloads lie, except for those in the record itself
}

// form finds out what stands at the beginning of l on disk.
func (l *Listing) form(dropped bool) (*listingForm, error) {
	f := &listingForm{Listing: l, parts: l.parts, dropped: dropped}
	if f.parts&Origins != 0 {
		f.parts ^= Origins | sameOrigins
	}
	h := listingHash(l.Facts, l.Len())
	for i := range l.Len() {
		e, err := f.at(i)
		if err != nil {
			return nil, err
		}
		h.Write(e.Digest[:])
		f.packs.add(e.Pack)
		if e.Origin != e.ID {
			f.parts = l.parts
		}
	}
	f.digest = stages.Digest(h.Sum(nil))
	return f, nil
}

func (f *listingForm) at(i int) (Entry, error) {
	e, err := f.At(i)
	if f.dropped {
		e.Ref = e.Ref.Dropped()
	}
	return e, err
}

// listingPiece is about how many bytes of a listing are written at once.
const listingPiece = 32 << 10

// encode writes the listing: version, parts, facts, packs, the number of items,
// their refs, their parents, their ids, their origins.
func (f *listingForm) encode(write func([]byte) error) error {
	b := []byte{listingVersion, byte(f.parts)}
	b = appendUint(b, uint64(len(f.Facts)))
	for _, name := range f.Facts.Names() {
		b = appendText(b, name)
		b = appendText(b, f.Facts[name])
	}
	b = f.packs.encode(b)
	b = appendUint(b, uint64(f.Len()))
	var e Entry
	for _, section := range []struct {
		part Parts
		add  func(b []byte, e *Entry) []byte
	}{
		{f.parts, func(b []byte, e *Entry) []byte { return f.packs.encodeRef(b, e.Ref) }},
		{Parents, func(b []byte, e *Entry) []byte { return appendUint(b, uint64(uint32(e.Parent))) }},
		{IDs, func(b []byte, e *Entry) []byte { return appendText(b, e.ID) }},
		{Origins, func(b []byte, e *Entry) []byte { return appendText(b, e.Origin) }},
	} {
		if f.parts&section.part != section.part {
			continue
		}
		for i := range f.Len() {
			var err error
			if e, err = f.at(i); err != nil {
				return err
			}
			if b = section.add(b, &e); len(b) < listingPiece {
				continue
			}
			if err := write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	if len(b) == 0 {
		return nil
	}
	return write(b)
}

// An encodedListing is what encode wrote, found sound, and where its sections begin.
type encodedListing struct {
	digest                      stages.Digest
	parts                       Parts
	facts                       stages.Facts
	packs                       []PackRef
	items                       int
	bytes                       int64 // of the payloads
	refs, parents, ids, origins decoder
}

func parseListing(b []byte) (*encodedListing, error) {
	d := decoder{b: b}
	head := d.bytes(2)
	if head == nil || head[0] != listingVersion || !Parts(head[1]).valid() {
		return nil, errMalformed
	}
	l := &encodedListing{parts: Parts(head[1])}
	if n := d.count(2); n > 0 {
		l.facts = make(stages.Facts, n)
		last := ""
		for i := range n {
			name := d.text()
			if i > 0 && name <= last {
				d.fail()
			}
			l.facts[name] = d.text()
			last = name
		}
	}
	l.packs = decodePacks(&d)
	l.items = d.count(2)
	h := listingHash(l.facts, l.items)
	for _, section := range []struct {
		part  Parts
		begin *decoder
		skip  func()
	}{
		{l.parts, &l.refs, func() {
			r := decodeRef(&d, l.packs)
			h.Write(r.Digest[:])
			l.bytes += r.Len
		}},
		{Parents, &l.parents, func() {
			if d.uint() > math.MaxUint32 {
				d.fail()
			}
		}},
		{IDs, &l.ids, func() { d.bytes(d.count(1)) }},
		{Origins, &l.origins, func() { d.bytes(d.count(1)) }},
	} {
		if l.parts&section.part != section.part {
			continue
		}
		*section.begin = d
		for i := 0; i < l.items && !d.bad; i++ {
			section.skip()
		}
	}
	l.digest = stages.Digest(h.Sum(nil))
	return l, d.done()
}

// listing puts the items into the spool. An encodedListing is read once.
func (l *encodedListing) listing(s *Store) (*Listing, error) {
	parts := l.parts
	if parts&sameOrigins != 0 {
		parts ^= Origins | sameOrigins
	}
	into := s.NewListing(l.facts, parts)
	for range l.items {
		e := Entry{Ref: decodeRef(&l.refs, l.packs)}
		if l.parts&Parents != 0 {
			e.Parent = int32(uint32(l.parents.uint()))
		}
		if l.parts&IDs != 0 {
			e.ID = l.ids.text()
		}
		if e.Origin = e.ID; l.parts&Origins != 0 {
			e.Origin = l.origins.text()
		}
		if err := into.Append(e); err != nil {
			return nil, err
		}
	}
	return into, nil
}
