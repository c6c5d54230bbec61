package store

import "math/bits"

// A column holds encoded values one after another in one buffer. It finds a value by decoding those before it
// from the nearest mark on, so that it takes half a byte a value beside the values themselves.
type column struct {
	b     []byte
	marks []int // where every markStep-th value begins
	n     int
}

const markStep = 16

// next counts one more value, which the caller then appends to b.
func (c *column) next() {
	if c.n%markStep == 0 {
		c.marks = append(c.marks, len(c.b))
	}
	c.n++
}

// at returns a decoder that stands before value i; skip decodes one value.
func (c *column) at(i int, skip func(d *decoder)) *decoder {
	d := &decoder{b: c.b[c.marks[i/markStep]:]}
	for range i % markStep {
		skip(d)
	}
	return d
}

// readColumn decodes n values; the column shares d's memory.
func readColumn(d *decoder, n int, value func(d *decoder)) column {
	c := column{b: d.b}
	for c.n < n && !d.bad {
		if c.n%markStep == 0 {
			c.marks = append(c.marks, len(c.b)-len(d.b))
		}
		value(d)
		c.n++
	}
	c.b = c.b[: len(c.b)-len(d.b) : len(c.b)-len(d.b)]
	return c
}

// A rowIndex finds rows by a hash of what is in them. It takes about a dozen bytes a row, and leaves comparing
// to its user.
type rowIndex struct {
	slots []uint64 // the hash above the row's number plus one; 0 for none
	n     int
}

// find returns the row with the hash that is the same, or -1.
func (x *rowIndex) find(hash uint32, same func(row int) bool) int {
	if len(x.slots) == 0 {
		return -1
	}
	return rowOf(x.slots[x.slot(hash, same)])
}

// set makes row the one that find returns for what is the same.
func (x *rowIndex) set(hash uint32, row int, same func(row int) bool) {
	x.grow(x.n + 1)
	at := x.slot(hash, same)
	if x.slots[at] == 0 {
		x.n++
	}
	x.slots[at] = uint64(hash)<<32 | uint64(uint32(row)+1)
}

func rowOf(slot uint64) int { return int(uint32(slot)) - 1 }

// slot returns where the row is, or the empty slot where it would be.
func (x *rowIndex) slot(hash uint32, same func(row int) bool) int {
	at := int(hash) & (len(x.slots) - 1)
	for v := x.slots[at]; v != 0 && !(uint32(v>>32) == hash && same(rowOf(v))); v = x.slots[at] {
		at = (at + 1) & (len(x.slots) - 1)
	}
	return at
}

// grow makes room for n different rows in all.
func (x *rowIndex) grow(n int) {
	if 4*n <= 3*len(x.slots) {
		return
	}
	old := x.slots
	x.slots = make([]uint64, max(8, 1<<bits.Len(uint(4*n/3))))
	for _, v := range old {
		if v != 0 {
			x.slots[x.slot(uint32(v>>32), func(int) bool { return false })] = v
		}
	}
}
