package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/runexp/runexp/stages"
)

// An Action is an executed cell: what went in and what came out.
type Action struct {
	Key              stages.Digest
	Experiment, Cell string        // what it was executed for; other cells may share it
	Definition       stages.Digest // what was asked
	Ingredients      []Ingredient  // what the key was made from, in clear and in order
	MadeBy           string        // class of device, at most 255 bytes: "cpu linux/amd64 avx512 ort1.24.1"
	Outputs          []Output      // in the order of the stage's output ports
	Packs            []PackRef     // everything the outputs need; filled in by Record
	At               int64         // when it was recorded, in Unix nanoseconds; filled in by Record
}

// An Ingredient is one thing that a key was made from.
type Ingredient struct{ Name, Value string }

// An Output is an action's output port. Record fills in all but Port and Dropped.
type Output struct {
	Port    string
	Dropped bool          // payloads beyond InlineMax weren't kept
	Listing stages.Digest // of facts and payloads
	Items   int

	inline []byte  // the encoded listing, or
	object PackRef // where it lies
}

// inlineListing is the size in bytes up to which a listing is part of its action.
const inlineListing = smallPack

// Record stores an executed cell: objects first, the action after what it refers
// to, the index last. listings are those of a.Outputs; their payloads are already put.
func (s *Store) Record(a Action, listings []*Listing) error {
	if s.readOnly {
		return errReadOnly
	}
	if len(listings) != len(a.Outputs) {
		return fmt.Errorf("%d listings for %d outputs", len(listings), len(a.Outputs))
	}
	a.MadeBy = strings.ToValidUTF8(a.MadeBy, "?") // as JSON will have it
	if len(a.MadeBy) > math.MaxUint8 {
		return fmt.Errorf("made by %q: longer than %d bytes", a.MadeBy, math.MaxUint8)
	}
	a.Outputs = append([]Output(nil), a.Outputs...)
	a.At = time.Now().UnixNano()
	var needed packTable
	for i := range a.Outputs {
		if err := s.putListing(&a.Outputs[i], listings[i], &needed); err != nil {
			return err
		}
	}
	a.Packs = needed.packs
	payload, err := encodeAction(&a)
	if err != nil {
		return err
	}
	frame := appendFrame(nil, actionLog, a.Key, payload)
	off, err := s.appendLog(s.actionPath(a.Key[0]), frame)
	if err != nil {
		return err
	}
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	rec := appendEntry(nil, &a, off, len(frame))
	s.index.add(a.Key, rec)
	return s.appendIndex(appendFrame(nil, indexLog, a.Key, rec))
}

// putListing makes l the listing of o, as a part of the action or as an object, and
// adds the objects that o needs.
func (s *Store) putListing(o *Output, l *Listing, needed *packTable) error {
	if o.Dropped {
		l = l.dropped()
	}
	o.Listing, o.Items = l.digest(), l.Len()
	for _, p := range l.packs.packs {
		needed.number(p)
	}
	parts := l.encode()
	h := sha256.New()
	o.object = PackRef{}
	for _, b := range parts {
		h.Write(b)
		o.object.Size += int64(len(b))
	}
	if o.object.Size <= inlineListing {
		o.inline, o.object = slices.Concat(parts...), PackRef{}
		return nil
	}
	o.inline, o.object.Digest = nil, stages.Digest(h.Sum(nil))
	needed.number(o.object)
	return s.putPack(o.object, parts)
}

// Action reads the record behind a hit. The error is a [*Miss].
func (s *Store) Action(h Hit) (Action, error) {
	off, n := h.span()
	if a, ok := s.actionAt(h, off, n); ok {
		return a, nil
	}
	// The log may have been rewritten since: the record is elsewhere in it.
	b, err := s.readFile(s.actionPath(h.key[0]))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Action{}, miss("the record of action %s can't be read: %v", h.key.Short(), err)
	}
	var found *Action
	scanLog(b, actionLog, func(_ int, key stages.Digest, payload []byte) {
		if key != h.key {
			return
		}
		if a, err := decodeAction(key, payload); err == nil && h.describes(&a) {
			found = &a
		}
	})
	if found == nil {
		return Action{}, miss("the record of action %s is missing or damaged", h.key.Short())
	}
	return *found, nil
}

func (s *Store) actionAt(h Hit, off int64, n int) (Action, bool) {
	f, err := s.read(s.actionPath(h.key[0]))
	if err != nil {
		return Action{}, false
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || off > st.Size()-int64(n) {
		return Action{}, false
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, off); err != nil {
		return Action{}, false
	}
	key, payload, size, ok := frameAt(b, actionLog)
	if !ok || size != n || key != h.key {
		return Action{}, false
	}
	a, err := decodeAction(key, payload)
	return a, err == nil && h.describes(&a)
}

// describes reports whether a came out as h says.
func (h Hit) describes(a *Action) bool {
	if len(a.Outputs) != h.Outputs() || a.MadeBy != string(h.madeBy()) {
		return false
	}
	for i, o := range a.Outputs {
		if listing, items, dropped := h.Output(i); listing != o.Listing || items != o.Items || dropped != o.Dropped {
			return false
		}
	}
	return true
}

// Listing reads the items of a hit's output port, by its position. The error is a [*Miss].
func (s *Store) Listing(h Hit, port int) (*Listing, error) {
	if port < 0 || port >= h.Outputs() {
		return nil, miss("action %s has no output %d", h.key.Short(), port)
	}
	a, err := s.Action(h)
	if err != nil {
		return nil, err
	}
	return s.listing(&a.Outputs[port])
}

// PayloadBytes returns how long the payloads of a hit's output port are, kept or not. The error is a [*Miss].
func (s *Store) PayloadBytes(h Hit, port int) (int64, error) {
	l, err := s.Listing(h, port)
	if err != nil {
		return 0, err
	}
	return l.payloadBytes(), nil
}

// listing reads the listing of o. The error is a [*Miss].
func (s *Store) listing(o *Output) (*Listing, error) {
	b := o.inline
	if b == nil {
		var err error
		if b, err = s.Load(Ref{Digest: o.object.Digest, Pack: o.object, Len: o.object.Size}); err != nil {
			return nil, err
		}
	}
	l, err := decodeListing(b)
	if err != nil || l.digest() != o.Listing || l.Len() != o.Items {
		return nil, miss("listing %s of port %q is damaged", o.Listing.Short(), o.Port)
	}
	return l, nil
}

// The records are JSON, one line each, so that a person with grep can read them.

type actionRecord struct {
	Key         string         `json:"key"`
	At          int64          `json:"at"`
	Experiment  string         `json:"experiment"`
	Cell        string         `json:"cell"`
	Definition  string         `json:"definition"`
	MadeBy      string         `json:"made_by"`
	Ingredients [][2]string    `json:"ingredients"`
	Outputs     []outputRecord `json:"outputs"`
	Packs       []packRecord   `json:"packs"`
}

type outputRecord struct {
	Port    string      `json:"port"`
	Listing string      `json:"listing"`
	Items   int         `json:"items"`
	Dropped bool        `json:"dropped,omitempty"`
	Inline  []byte      `json:"inline,omitempty"`
	Object  *packRecord `json:"object,omitempty"`
}

type packRecord struct {
	Object string `json:"object"`
	Size   int64  `json:"size"`
}

func (p PackRef) record() packRecord { return packRecord{p.Digest.String(), p.Size} }

func encodeAction(a *Action) ([]byte, error) {
	r := actionRecord{
		Key: a.Key.String(), At: a.At, Experiment: a.Experiment, Cell: a.Cell,
		Definition: a.Definition.String(), MadeBy: a.MadeBy,
		Ingredients: make([][2]string, len(a.Ingredients)),
		Outputs:     make([]outputRecord, len(a.Outputs)),
		Packs:       make([]packRecord, len(a.Packs)),
	}
	for i, in := range a.Ingredients {
		r.Ingredients[i] = [2]string{in.Name, in.Value}
	}
	for i, o := range a.Outputs {
		r.Outputs[i] = outputRecord{Port: o.Port, Listing: o.Listing.String(), Items: o.Items, Dropped: o.Dropped, Inline: o.inline}
		if o.inline == nil {
			p := o.object.record()
			r.Outputs[i].Object = &p
		}
	}
	for i, p := range a.Packs {
		r.Packs[i] = p.record()
	}
	b, err := json.Marshal(&r)
	if err != nil {
		return nil, err
	}
	if b = append(b, '\n'); len(b) > maxPayload {
		return nil, fmt.Errorf("the record of cell %q has %d bytes, more than %d", a.Cell, len(b), maxPayload)
	}
	return b, nil
}

func decodeAction(key stages.Digest, payload []byte) (Action, error) {
	var r actionRecord
	if err := json.Unmarshal(payload, &r); err != nil {
		return Action{}, errMalformed
	}
	bad := false
	digest := func(s string) (d stages.Digest) {
		if n, err := hex.Decode(d[:], []byte(s[:min(len(s), 2*keyLen)])); err != nil || n != keyLen || len(s) != 2*keyLen {
			bad = true
		}
		return d
	}
	pack := func(p packRecord) PackRef {
		bad = bad || p.Size < 0
		return PackRef{digest(p.Object), p.Size}
	}
	a := Action{
		Key: digest(r.Key), At: r.At, Experiment: r.Experiment, Cell: r.Cell,
		Definition: digest(r.Definition), MadeBy: r.MadeBy,
	}
	for _, in := range r.Ingredients {
		a.Ingredients = append(a.Ingredients, Ingredient{in[0], in[1]})
	}
	for _, o := range r.Outputs {
		v := Output{Port: o.Port, Dropped: o.Dropped, Listing: digest(o.Listing), Items: o.Items, inline: o.Inline}
		if o.Object != nil {
			v.object = pack(*o.Object)
		}
		bad = bad || (o.Object == nil) == (o.Inline == nil) || o.Items < 0 || int64(o.Items) > math.MaxUint32
		a.Outputs = append(a.Outputs, v)
	}
	for _, p := range r.Packs {
		a.Packs = append(a.Packs, pack(p))
	}
	if bad || a.Key != key || len(a.MadeBy) > math.MaxUint8 || len(a.Outputs) > math.MaxUint16 {
		return Action{}, errMalformed
	}
	return a, nil
}
