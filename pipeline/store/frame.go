package store

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"

	"github.com/runexp/runexp/stages"
)

// Every log — index, actions, items, memo, stat index — is a sequence of frames:
//
//	magic     4 bytes, 0xff 'r' 'x' and the log's kind
//	length    uint32, bytes of the payload
//	checksum  uint32, CRC-32C of length, key and payload
//	key       32 bytes
//	payload
//
// All numbers are little-endian. A frame is appended by one write(2) to a file
// opened with O_APPEND, so that frames of two processes don't mix. A kill or a
// full disk may still leave the beginning of a frame anywhere in a log; readers
// pass over it to the next magic. The magic's first byte never occurs in UTF-8,
// so no action, which is JSON, can be mistaken for the start of a frame.

// A logKind tells the logs apart, and their formats: a change of a payload's
// layout takes a new letter, and old frames become bytes to pass over.
type logKind byte

const (
	indexLog  logKind = 'I'
	actionLog logKind = 'A'
	itemLog   logKind = 'T'
	memoLog   logKind = 'M'
	statLog   logKind = 'S'
)

const (
	keyLen   = len(stages.Digest{})
	frameLen = 12 + keyLen // bytes of a frame besides its payload

	// maxPayload bounds one frame, so that its length fits and a log stays
	// readable at once.
	maxPayload = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (k logKind) magic() []byte { return []byte{0xff, 'r', 'x', byte(k)} }

// appendFrame appends a frame to b.
func appendFrame(b []byte, kind logKind, key stages.Digest, payload []byte) []byte {
	b = slices.Grow(b, frameLen+len(payload))
	b = append(b, kind.magic()...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	b = append(b, key[:]...)
	b = append(b, payload...)
	binary.LittleEndian.PutUint32(b[at:], checksum(b[at-8:]))
	return b
}

// checksum returns what the checksum of the frame f must be, if f is all of it.
func checksum(f []byte) uint32 {
	sum := ^uint32(0)
	for size, i := uint32(len(f)-frameLen), 0; i < 4; size, i = size>>8, i+1 {
		sum = castagnoli[byte(sum)^byte(size)] ^ sum>>8
	}
	return crc32.Update(^sum, castagnoli, f[12:])
}

// frameAt reads the frame that begins b. The payload shares b's memory. n is the
// length that the header claims, also when the frame isn't whole; 0 when b
// doesn't begin with a header.
func frameAt(b []byte, kind logKind) (key stages.Digest, payload []byte, n int, ok bool) {
	if len(b) < frameLen || !bytes.Equal(b[:4], kind.magic()) {
		return key, nil, 0, false
	}
	size := binary.LittleEndian.Uint32(b[4:])
	if size > maxPayload {
		return key, nil, 0, false
	}
	n = frameLen + int(size)
	if len(b) < n {
		return key, nil, n, false
	}
	if checksum(b[:n]) != binary.LittleEndian.Uint32(b[8:]) {
		return key, nil, n, false
	}
	copy(key[:], b[12:])
	return key, b[frameLen:n:n], n, true
}

// A gap is a stretch of a log that holds no frame.
type gap struct {
	off, len int
	torn     bool // the beginning of a frame whose writing was cut short
}

// A logScan is what a walk over a log found besides frames.
type logScan struct {
	end  int // where the last frame ends
	gaps []gap
}

// altered returns the number of bytes that no interrupted write explains.
func (s logScan) altered() int {
	n := 0
	for _, g := range s.gaps {
		if !g.torn {
			n += g.len
		}
	}
	return n
}

// scanLog calls fn for each frame of the log b, in order. It never stops at
// damage: it looks for the next frame behind it.
func scanLog(b []byte, kind logKind, fn func(off int, key stages.Digest, payload []byte)) logScan {
	var s logScan
	for pos := 0; pos < len(b); {
		key, payload, n, ok := frameAt(b[pos:], kind)
		if ok {
			fn(pos, key, payload)
			pos += n
			s.end = pos
			continue
		}
		next := nextMagic(b, pos+1, kind)
		s.gaps = append(s.gaps, gap{pos, next - pos, torn(b[pos:next], n, kind)})
		pos = next
	}
	return s
}

// streamLog is [scanLog] over a log that needn't fit into memory. It returns where
// the last frame ends.
func streamLog(r *io.SectionReader, kind logKind, fn func(off int64, key stages.Digest, payload []byte) error) (end int64, err error) {
	const ahead = 64 << 10
	var b []byte    // what was read and not yet understood
	off := int64(0) // where it begins
	read := func(n int64) error {
		n = min(n, r.Size()-off) - int64(len(b))
		if n <= 0 {
			return nil
		}
		at := len(b)
		b = slices.Grow(b, int(n))[:at+int(n)]
		k, err := r.ReadAt(b[at:], off+int64(at))
		b = b[:at+k]
		if err == io.EOF { // it's shorter than it was
			err = nil
		}
		return err
	}
	skip := func(n int) {
		off += int64(n)
		b = b[:copy(b, b[n:])]
	}
	for off < r.Size() {
		if err := read(ahead); err != nil || len(b) == 0 {
			return end, err
		}
		pos := 0
		for pos < len(b) {
			key, payload, n, ok := frameAt(b[pos:], kind)
			if ok {
				if err := fn(off+int64(pos), key, payload); err != nil {
					return end, err
				}
				pos += n
				end = off + int64(pos)
				continue
			}
			// What doesn't end here may be whole once more is read.
			left := r.Size() - off - int64(pos)
			if more := int64(max(n, frameLen)); int64(len(b)-pos) < min(more, left) {
				if pos > 0 {
					break
				}
				had := len(b)
				if err := read(max(more, ahead)); err != nil {
					return end, err
				}
				if len(b) > had {
					continue
				}
			}
			next := nextMagic(b, pos+1, kind)
			if next == len(b) && int64(next) < r.Size()-off {
				next = max(pos+1, next-len(kind.magic())+1) // it may begin here
			}
			pos = next
		}
		skip(pos)
	}
	return end, nil
}

// nextMagic returns where the next frame at or after pos may begin, len(b) if
// nowhere. Several torn frames in a row are several gaps.
func nextMagic(b []byte, pos int, kind logKind) int {
	if i := bytes.Index(b[pos:], kind.magic()); i >= 0 {
		return pos + i
	}
	return len(b)
}

// torn reports whether g, which isn't a frame, looks like the beginning of one;
// n is the length its header claims.
func torn(g []byte, n int, kind logKind) bool {
	if len(g) < frameLen {
		m := kind.magic()
		k := min(len(g), len(m))
		return bytes.Equal(g[:k], m[:k])
	}
	// It's a whole frame, if its checksum is right once its length is.
	return n > len(g) && checksum(g) != binary.LittleEndian.Uint32(g[8:])
}
