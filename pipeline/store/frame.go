package store

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"

	"github.com/runexp/runexp/stages"
)

// Every log — index, actions, items, memos, stat index — is a sequence of frames:
//
//	magic     4 bytes, 0xff 'r' 'x' and the log's kind
//	length    uint32, bytes of the payload
//	checksum  uint32, CRC-32C of length, key and payload
//	key       32 bytes
//	payload
//
// All numbers are little-endian. A frame is appended by one write(2) to a file opened with O_APPEND, so that
// frames of two processes don't mix. A kill or a full disk may still leave the beginning of a frame anywhere
// in a log; readers skip it up to the next magic. The magic's first byte never occurs in UTF-8, so no
// action, which is JSON, can be mistaken for the start of a frame.

// A frameKind distinguishes logs, and their formats: a change of a payload's layout takes a new letter, and
// readers skip old frames.
type frameKind byte

const (
	indexFrame  frameKind = 'I'
	actionFrame frameKind = 'A'
	itemFrame   frameKind = 'T'
	memoFrame   frameKind = 'M'
	statFrame   frameKind = 'S'
)

const (
	keyLen   = len(stages.Digest{})
	frameLen = 12 + keyLen // bytes of a frame without its payload

	// maxPayload bounds one frame, so that its length fits and a log stays readable at once.
	maxPayload = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (k frameKind) magic() []byte { return []byte{0xff, 'r', 'x', byte(k)} }

func appendFrame(b []byte, kind frameKind, key stages.Digest, payload []byte) []byte {
	b = slices.Grow(b, frameLen+len(payload))
	f := append(b[len(b):], kind.magic()...)
	f = binary.LittleEndian.AppendUint32(f, uint32(len(payload)))
	f = append(append(append(f, 0, 0, 0, 0), key[:]...), payload...)
	binary.LittleEndian.PutUint32(f[8:], checksum(f[4:8], f[12:]))
	return b[:len(b)+len(f)]
}

// checksum returns the checksum of a frame of its encoded length, and its key and payload.
func checksum(length, rest []byte) uint32 {
	return crc32.Update(crc32.Checksum(length, castagnoli), castagnoli, rest)
}

// frameAt reads the frame that begins b. The payload shares b's memory. n is the length that the header
// claims, also when the frame isn't whole; 0 when b doesn't begin with a header.
func frameAt(b []byte, kind frameKind) (key stages.Digest, payload []byte, n int, ok bool) {
	if len(b) < frameLen || !bytes.Equal(b[:4], kind.magic()) {
		return key, nil, 0, false
	}
	size := binary.LittleEndian.Uint32(b[4:])
	if size > maxPayload {
		return key, nil, 0, false
	}
	n = frameLen + int(size)
	if len(b) < n || checksum(b[4:8], b[12:n]) != binary.LittleEndian.Uint32(b[8:]) {
		return key, nil, n, false
	}
	return stages.Digest(b[12:frameLen]), b[frameLen:n:n], n, true
}

// readFrame returns the payload of the frame of a key at a place in a file, nil if it isn't there.
func readFrame(f io.ReaderAt, at span, kind frameKind, key stages.Digest) ([]byte, error) {
	b := make([]byte, at.len)
	if _, err := f.ReadAt(b, at.off); err != nil {
		return nil, err
	}
	found, payload, _, ok := frameAt(b, kind)
	if !ok || found != key {
		return nil, nil
	}
	return payload, nil
}

// A logScan is the result of a walk over a log, apart from its frames.
type logScan struct {
	end     int64 // where the last frame ends
	torn    int64 // bytes of frames whose writing was cut short
	altered int64 // bytes that no interrupted write explains
}

// A frameFunc is called for a frame of a log.
type frameFunc = func(off int64, key stages.Digest, payload []byte)

// scanLog calls fn for each frame of the log b, in order. The payloads share b's memory.
func scanLog(b []byte, kind frameKind, fn frameFunc) (s logScan) {
	s.scan(b, 0, 0, kind, fn)
	return s
}

// scanFile is scanLog over the bytes of a log from off to size, which needn't fit into memory. A payload is
// valid only during the call.
func scanFile(f io.ReaderAt, off, size int64, kind frameKind, fn frameFunc) (s logScan, err error) {
	const window = 64 << 10
	var b []byte
	for need := window; off < size; {
		k := int(min(int64(need), size-off))
		b = slices.Grow(b[:0], k)[:k]
		n, err := f.ReadAt(b, off)
		if err != nil && err != io.EOF {
			return s, err
		}
		if n < len(b) {
			size = off + int64(n) // it became shorter
		}
		var pos int
		pos, need = s.scan(b[:n], off, size-off-int64(n), kind, fn)
		off, need = off+int64(pos), max(need, window)
	}
	return s, nil
}

// scan is scanLog for the bytes b of a log, which begin at off, with rest bytes after them. It never stops at
// damage: it looks for the next frame after it. It returns how far it came, and how many bytes it needs
// from there on.
func (s *logScan) scan(b []byte, off, rest int64, kind frameKind, fn frameFunc) (pos, need int) {
	for pos < len(b) {
		key, payload, n, ok := frameAt(b[pos:], kind)
		if ok {
			fn(off+int64(pos), key, payload)
			pos += n
			s.end = off + int64(pos)
			continue
		}
		// What doesn't end in b may be whole once more is read.
		if more := int64(max(n, frameLen) - (len(b) - pos)); more > 0 && more <= rest {
			return pos, max(n, frameLen)
		}
		next := len(b)
		if i := bytes.Index(b[pos+1:], kind.magic()); i >= 0 {
			next = pos + 1 + i
		} else if rest > 0 {
			return pos, 2 * (len(b) - pos)
		}
		if torn(b[pos:next], n, kind) {
			s.torn += int64(next - pos)
		} else {
			s.altered += int64(next - pos)
		}
		pos = next
	}
	return pos, 0
}

// torn reports whether g, which isn't a frame, looks like the beginning of one; n is the length its header
// claims.
func torn(g []byte, n int, kind frameKind) bool {
	if len(g) < frameLen {
		return bytes.HasPrefix(g, kind.magic()) || bytes.HasPrefix(kind.magic(), g)
	}
	// It is a whole frame if its checksum is right with the length of g.
	length := binary.LittleEndian.AppendUint32(nil, uint32(len(g)-frameLen))
	return n > len(g) && checksum(length, g[12:]) != binary.LittleEndian.Uint32(g[8:])
}
