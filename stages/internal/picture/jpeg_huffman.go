package picture

import "errors"

var errEntropy = errors.New("its coded data is damaged")

// lookBits is the length of codes resolved by one table look-up.
const lookBits = 9

// A huffman is a code table, annex C and F.2.2.3.
type huffman struct {
	look    [1 << lookBits]uint16 // length<<8 | value, 0 for longer codes
	values  []byte
	maxCode [18]int // largest code of a length, -1 if there is none
	offset  [18]int // index of a length's first value minus its first code
}

func (d *jpegDecoder) readHuffman(seg []byte) error {
	for len(seg) > 0 {
		if len(seg) < 17 {
			return errTruncated
		}
		class, id := seg[0]>>4, seg[0]&15
		counts, n := seg[1:17], 0
		for _, c := range counts {
			n += int(c)
		}
		if class > 1 || id > 3 || n > 256 || len(seg) < 17+n {
			return errors.New("it has a damaged Huffman table")
		}
		t := &huffman{values: seg[17 : 17+n]}
		code, k := 0, 0
		for length := 1; length <= 16; length++ {
			t.offset[length], t.maxCode[length] = k-code, -1
			for range int(counts[length-1]) {
				if code >= 1<<length {
					return errors.New("it has an impossible Huffman table")
				}
				if length <= lookBits {
					first := code << (lookBits - length)
					for i := range 1 << (lookBits - length) {
						t.look[first+i] = uint16(length)<<8 | uint16(t.values[k])
					}
				}
				t.maxCode[length] = code
				code, k = code+1, k+1
			}
			code <<= 1
		}
		d.huff[class][id] = t
		seg = seg[17+n:]
	}
	return nil
}

// A bitReader reads the entropy-coded bytes of a scan up to the next marker. Zeros follow, so that look-ups
// may read ahead; consuming one of them is an error.
type bitReader struct {
	b       []byte
	pos     int
	acc     uint64
	n       int // bits in acc
	phantom int // of these, zeros past the end
}

func (r *bitReader) fill() {
	for r.n <= 48 {
		var x byte
		switch {
		case r.pos >= len(r.b):
			r.phantom += 8
		case r.b[r.pos] != 0xff:
			x = r.b[r.pos]
			r.pos++
		case r.pos+1 < len(r.b) && r.b[r.pos+1] == 0:
			x = 0xff
			r.pos += 2
		default: // a marker
			r.phantom += 8
		}
		r.acc = r.acc<<8 | uint64(x)
		r.n += 8
	}
}

// take returns the next n ≤ 16 bits.
func (r *bitReader) take(n int) (int, error) {
	if r.n < n {
		r.fill()
	}
	r.n -= n
	if r.n < r.phantom {
		return 0, errTruncated
	}
	return int(r.acc>>r.n) & (1<<n - 1), nil
}

// receive returns a signed number of n bits, F.2.2.1: a leading zero means negative.
func (r *bitReader) receive(n int) (int, error) {
	v, err := r.take(n)
	if n > 0 && v < 1<<(n-1) {
		v += -1<<n + 1
	}
	return v, err
}

// symbol returns the next coded value.
func (r *bitReader) symbol(t *huffman) (int, error) {
	if r.n < 16 {
		r.fill()
	}
	if e := t.look[int(r.acc>>(r.n-lookBits))&(1<<lookBits-1)]; e != 0 {
		_, err := r.take(int(e >> 8))
		return int(e & 0xff), err
	}
	for length := lookBits + 1; length <= 16; length++ {
		code := int(r.acc>>(r.n-length)) & (1<<length - 1)
		if code <= t.maxCode[length] {
			_, err := r.take(length)
			return int(t.values[t.offset[length]+code]), err
		}
	}
	if r.n-16 < r.phantom {
		return 0, errTruncated
	}
	return 0, errEntropy
}

// restart drops the remaining bits and reads restart marker number i.
func (r *bitReader) restart(i int) error {
	r.acc, r.n, r.phantom = 0, 0, 0
	if r.pos+1 >= len(r.b) {
		return errTruncated
	}
	if r.b[r.pos] != 0xff || r.b[r.pos+1] != byte(markRST0+i%8) {
		return errEntropy
	}
	r.pos += 2
	return nil
}
