package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/runexp/runexp/stages"
)

// An Action is an executed cell: its inputs and its outputs. Its record is JSON on one line, so that a person
// can read it with grep.
type Action struct {
	Key         stages.Digest `json:"key"`
	At          int64         `json:"at"` // when it was recorded, in Unix nanoseconds; filled in by Record
	Experiment  string        `json:"experiment"`
	Cell        string        `json:"cell"`        // the cell that was executed; others may share the action
	Definition  stages.Digest `json:"definition"`  // what was asked
	MadeBy      string        `json:"made_by"`     // class of device, at most 255 bytes
	Ingredients []Ingredient  `json:"ingredients"` // from which the key was made, in clear and in order
	Outputs     []Output      `json:"outputs"`     // in the order of the stage's output ports
	Objects     []ObjectRef   `json:"packs"`       // everything the outputs need; filled in by Record
}

// An Ingredient is one of the parts from which a key was made. In a record it is a list of two texts.
type Ingredient struct{ Name, Value string }

func (i Ingredient) MarshalJSON() ([]byte, error) { return json.Marshal([2]string{i.Name, i.Value}) }

func (i *Ingredient) UnmarshalJSON(b []byte) error {
	var v [2]string
	err := json.Unmarshal(b, &v)
	i.Name, i.Value = v[0], v[1]
	return err
}

// An Output is an action's output port. Record fills in all but Port and Dropped.
type Output struct {
	Port    string        `json:"port"`
	Listing stages.Digest `json:"listing"` // of facts and payloads
	Items   int           `json:"items"`
	Dropped bool          `json:"dropped,omitempty"` // payloads beyond InlineMax weren't kept
	Inline  []byte        `json:"inline,omitempty"`  // the encoded listing, or
	Object  *ObjectRef    `json:"object,omitempty"`  // which has it
}

func (a *Action) name() string {
	if a.Experiment == "" {
		return a.Cell
	}
	return a.Experiment + ": " + a.Cell
}

// Record stores an executed cell: first objects, then the action, which refers to them, last the index.
// listings are the listings of a.Outputs; their payloads have been put before.
func (s *Store) Record(a Action, listings []*Listing) error {
	a.MadeBy = strings.ToValidUTF8(a.MadeBy, "?") // as JSON will have it
	if len(a.MadeBy) > math.MaxUint8 {
		return fmt.Errorf("made by %q: longer than %d bytes", a.MadeBy, math.MaxUint8)
	}
	a.Outputs = slices.Clone(a.Outputs)
	a.At = time.Now().UnixNano()
	var needed objectTable
	for i := range a.Outputs {
		if err := s.putListing(&a.Outputs[i], listings[i], &needed); err != nil {
			return err
		}
	}
	a.Objects = needed.objects
	payload, err := encodeAction(&a)
	if err != nil {
		return err
	}
	return s.recordAction(&a, payload)
}

// recordAction appends the record of an action, and adds it to the index.
func (s *Store) recordAction(a *Action, payload []byte) error {
	off, n, err := s.record(actionFrame, a.Key, payload)
	if err != nil {
		return err
	}
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	return s.appendIndex(s.index.record(a, off, n))
}

// putListing makes l the listing of o, inside the action or as an object, and adds the objects that o needs.
func (s *Store) putListing(o *Output, l *Listing, needed *objectTable) error {
	if o.Dropped {
		l = l.dropped()
	}
	o.Listing, o.Items = l.digest(), l.Len()
	for _, p := range l.objects.objects {
		needed.number(p)
	}
	pieces := l.encode()
	size := 0
	for _, b := range pieces {
		size += len(b)
	}
	if size <= smallObject {
		o.Inline, o.Object = slices.Concat(pieces...), nil
		return nil
	}
	object, err := s.putObject(pieces)
	o.Inline, o.Object = nil, &object
	needed.number(object)
	return err
}

// Action reads the record of a hit. The error is a [*Miss].
func (s *Store) Action(h Hit) (Action, error) { return s.layer.action(h) }

// decode decodes the record of an action if it is the hit's.
func (h Hit) decode(key stages.Digest, payload []byte) (a Action, ok bool) {
	if key != h.key {
		return a, false
	}
	a, err := decodeAction(key, payload)
	return a, err == nil && h.describes(&a)
}

// describes reports whether a has the class of device and the outputs of h.
func (h Hit) describes(a *Action) bool {
	other := Hit{h.key, appendEntry(nil, a, 0, 0)}
	return bytes.Equal(h.madeBy(), other.madeBy()) && bytes.Equal(h.outputs(), other.outputs())
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
func (s *Store) PayloadBytes(h Hit, port int) (n int64, err error) {
	l, err := s.Listing(h, port)
	if err == nil {
		l.eachRef(func(r Ref) { n += r.Len })
	}
	return n, err
}

// listing reads the listing of o. The error is a [*Miss].
func (s *Store) listing(o *Output) (*Listing, error) {
	b := o.Inline
	if o.Object != nil {
		var err error
		if b, err = s.Load(Ref{Digest: o.Object.Digest, Object: *o.Object, Len: o.Object.Size}); err != nil {
			return nil, err
		}
	}
	l, err := decodeListing(b)
	if err != nil || l.digest() != o.Listing || l.Len() != o.Items {
		return nil, miss("listing %s of port %q is damaged", o.Listing.Short(), o.Port)
	}
	return l, nil
}

func encodeAction(a *Action) ([]byte, error) {
	b, err := json.Marshal(a)
	return append(b, '\n'), err
}

func decodeAction(key stages.Digest, payload []byte) (a Action, err error) {
	if err := json.Unmarshal(payload, &a); err != nil {
		return a, errMalformed
	}
	bad := a.Key != key || len(a.MadeBy) > math.MaxUint8 || len(a.Outputs) > math.MaxUint16
	for _, o := range a.Outputs {
		bad = bad || o.Items < 0 || int64(o.Items) > math.MaxUint32
		bad = bad || (o.Object == nil) == (len(o.Inline) == 0) || o.Object != nil && o.Object.Size < 0
	}
	for _, p := range a.Objects {
		bad = bad || p.Size < 0
	}
	if bad {
		return Action{}, errMalformed
	}
	return a, nil
}
