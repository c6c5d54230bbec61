package store

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/runexp/runexp/stages"
)

// errMalformed is the error of bytes that passed their checksum and don't decode: another program wrote them.
var errMalformed = errors.New("malformed record")

func appendUint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

func appendText[T string | []byte](b []byte, s T) []byte {
	return append(appendUint(b, uint64(len(s))), s...)
}

// A decoder decodes the results of the append functions. After the first error every read returns zero.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) fail() {
	d.bad = true
	d.b = nil
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	// A longer form of the same number is refused, so that a record has one encoding.
	if n <= 0 || n > 1 && d.b[n-1] == 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// size reads a length or an offset.
func (d *decoder) size() int64 {
	v := d.uint()
	if v > math.MaxInt64 {
		d.fail()
		return 0
	}
	return int64(v)
}

// count reads the number of values that follow, each of at least unit bytes, so that a wrong number can't
// make the caller allocate more than the length of the input.
func (d *decoder) count(unit int) int {
	v := d.uint()
	if v > uint64(len(d.b)/unit) {
		d.fail()
		return 0
	}
	return int(v)
}

// bytes returns the next n bytes, which share the input's memory.
func (d *decoder) bytes(n int) []byte {
	if n > len(d.b) {
		d.fail()
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

// text decodes the result of appendText. It shares the input's memory, and is never nil.
func (d *decoder) text() []byte {
	if b := d.bytes(d.count(1)); b != nil {
		return b
	}
	return []byte{}
}

func (d *decoder) skipText() { d.bytes(d.count(1)) }
func (d *decoder) skipUint() { d.uint() }

func (d *decoder) string() string { return string(d.text()) }

func (d *decoder) digest() (v stages.Digest) {
	copy(v[:], d.bytes(keyLen))
	return v
}

// done returns an error unless everything was read and nothing was wrong.
func (d *decoder) done() error {
	if d.bad || len(d.b) > 0 {
		return errMalformed
	}
	return nil
}
