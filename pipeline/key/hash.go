package key

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"

	"github.com/runexp/runexp/stages"
)

// keyFormat is the version of keys and definitions. Raising it invalidates every cached result.
const keyFormat = "runexp key 1"

// A Hasher digests length-prefixed fields, so that different lists of fields have different bytes. It
// buffers them, since most digests are of few bytes.
type Hasher struct {
	b     []byte
	state hash.Hash // of the fields before b
	begun bool      // there are fields before b
}

// gathered is how many bytes a Hasher buffers.
const gathered = 16 << 10

var hashers = sync.Pool{New: func() any { return &Hasher{b: make([]byte, 0, 1024)} }}

// NewHasher returns a hasher for a purpose that no other digest has.
func NewHasher(purpose string) *Hasher {
	h := hashers.Get().(*Hasher)
	h.b, h.begun = h.b[:0], false
	h.Text(keyFormat)
	h.Text(purpose)
	return h
}

// room digests the buffer if it is large.
func (h *Hasher) room() {
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

// Num adds a number.
func (h *Hasher) Num(n int) {
	h.room()
	h.b = binary.LittleEndian.AppendUint64(h.b, uint64(n))
}

// Text adds a text.
func (h *Hasher) Text(s string) {
	h.Num(len(s))
	h.b = append(h.b, s...)
}

// Digest adds a digest.
func (h *Hasher) Digest(d stages.Digest) {
	h.room()
	h.b = append(h.b, d[:]...)
}

// params writes parameters in their canonical form.
func (h *Hasher) params(pc *Params, s *stages.Stage, params any) {
	h.Num(0)
	at := len(h.b) - 8
	h.b = pc.Encode(h.b, s, params)
	binary.LittleEndian.PutUint64(h.b[at:], uint64(len(h.b)-at-8))
}

func (h *Hasher) coord(coord []stages.Coord) {
	h.Num(len(coord))
	for _, c := range coord {
		h.Text(c.Axis)
		h.Text(c.ID)
	}
}

func (h *Hasher) facts(f stages.Facts) {
	h.Num(len(f))
	for _, k := range f.Names() {
		h.Text(k)
		h.Text(f[k])
	}
}

// Sum returns the digest; the hasher must not be used after that.
func (h *Hasher) Sum() stages.Digest {
	defer hashers.Put(h)
	if !h.begun {
		return stages.Sum(h.b)
	}
	h.state.Write(h.b)
	h.b = h.state.Sum(h.b[:0])
	return stages.Digest(h.b)
}

// Of digests digests and texts, for a purpose that no other digest has.
func Of(purpose string, digests []stages.Digest, texts []string) stages.Digest {
	h := NewHasher(purpose)
	for _, d := range digests {
		h.Digest(d)
	}
	for _, t := range texts {
		h.Text(t)
	}
	return h.Sum()
}
