package pipeline

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"reflect"
	"slices"
	"sync"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// keyFormat names the layout of keys and definitions. Raising it forgets every cached result.
const keyFormat = "runexp key 1"

// A hasher digests length-prefixed fields, so that no two lists of fields run together. It gathers them,
// since most digests are of few bytes.
type hasher struct {
	b     []byte
	state hash.Hash // of what came before b
	begun bool      // something came before b
}

// gathered is how many bytes a hasher gathers.
const gathered = 16 << 10

var hashers = sync.Pool{New: func() any { return &hasher{b: make([]byte, 0, 1024)} }}

func newHasher(purpose string) *hasher {
	h := hashers.Get().(*hasher)
	h.b, h.begun = h.b[:0], false
	h.text(keyFormat)
	h.text(purpose)
	return h
}

// room digests what was gathered if that is much.
func (h *hasher) room() {
	if len(h.b) < gathered {
		return
	}
	if h.state == nil {
		h.state = sha256.New()
	}
	if !h.begun {
		h.state.Reset()
	}
	h.state.Write(h.b)
	h.begun = true
	h.b = h.b[:0]
}

func (h *hasher) num(n int) {
	h.room()
	h.b = binary.LittleEndian.AppendUint64(h.b, uint64(n))
}

func (h *hasher) text(s string) {
	h.num(len(s))
	h.b = append(h.b, s...)
}

func (h *hasher) digest(d stages.Digest) {
	h.room()
	h.b = append(h.b, d[:]...)
}

// params writes parameters in their canonical form.
func (h *hasher) params(pc *paramCoder, s *stages.Stage, params any) {
	h.num(0)
	at := len(h.b) - 8
	h.b = pc.encode(h.b, s, params)
	binary.LittleEndian.PutUint64(h.b[at:], uint64(len(h.b)-at-8))
}

func (h *hasher) coord(coord []stages.Coord) {
	h.num(len(coord))
	for _, c := range coord {
		h.text(c.Axis)
		h.text(c.ID)
	}
}

func (h *hasher) facts(f stages.Facts) {
	h.num(len(f))
	for _, k := range f.Names() {
		h.text(k)
		h.text(f[k])
	}
}

// sum returns the digest; the hasher must not be used any more.
func (h *hasher) sum() stages.Digest {
	defer hashers.Put(h)
	if !h.begun {
		return stages.Sum(h.b)
	}
	h.state.Write(h.b)
	h.b = h.state.Sum(h.b[:0])
	return stages.Digest(h.b)
}

// DigestOf digests digests and texts, for a purpose that no other digest has.
func DigestOf(purpose string, digests []stages.Digest, texts []string) stages.Digest {
	h := newHasher(purpose)
	for _, d := range digests {
		h.digest(d)
	}
	for _, t := range texts {
		h.text(t)
	}
	return h.sum()
}

// A paramCoder writes parameters in their canonical form: a JSON object of the keyed parameters with defaults
// filled in, sorted by name.
type paramCoder struct {
	fields sync.Map // *stages.Stage → []keyedField, sorted by name
}

// A keyedField is a keyed parameter and, if it was added, its default, which enters no key.
type keyedField struct {
	stages.Field
	standard string
}

func (pc *paramCoder) of(s *stages.Stage) []keyedField {
	if f, ok := pc.fields.Load(s); ok {
		return f.([]keyedField)
	}
	var fields []keyedField
	params := s.NewParams()
	for _, f := range stages.Fields(params) {
		if !f.Keyed {
			continue
		}
		k := keyedField{Field: f}
		if f.Added {
			k.standard = string(plan.AppendValue(nil, reflect.ValueOf(params).Elem().FieldByIndex(f.Index)))
		}
		fields = append(fields, k)
	}
	slices.SortFunc(fields, func(a, b keyedField) int { return cmp.Compare(a.Name, b.Name) })
	pc.fields.Store(s, fields)
	return fields
}

// each calls f for the parameters of s that are part of keys, with their values in canonical form.
func (pc *paramCoder) each(s *stages.Stage, params any, f func(name string, value []byte)) {
	v := reflect.ValueOf(params).Elem()
	var value []byte
	for _, k := range pc.of(s) {
		value = plan.AppendValue(value[:0], v.FieldByIndex(k.Index))
		if !k.Added || string(value) != k.standard {
			f(k.Name, value)
		}
	}
}

// encode appends the canonical form of params, a pointer to the parameter struct of s.
func (pc *paramCoder) encode(b []byte, s *stages.Stage, params any) []byte {
	b = append(b, '{')
	start := len(b)
	pc.each(s, params, func(name string, value []byte) {
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(plan.AppendText(b, name), ':')
		b = append(b, value...)
	})
	return append(b, '}')
}
