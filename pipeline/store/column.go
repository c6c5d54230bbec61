package store

import (
	"sync"
	"sync/atomic"
)

// A column holds encoded values one after another, in groups. It finds a value by decoding the values before
// it in its group. A column with a spill has its full pieces there and the rest in memory, with a byte a
// value in addition to the values.
type column struct {
	spill   *spill
	spilled int // groups
	groups  []groupPlace
	b       []byte // the other groups
	n       int    // values
}

// A groupPlace is the place of a group in the spill or in b; in b its length isn't needed.
type groupPlace struct {
	off int64
	len int
}

const (
	groupSize  = 16      // values of a group
	spillPiece = 4 << 10 // bytes
)

// next counts one more value, which the caller then appends to b.
func (c *column) next() {
	if c.n%groupSize == 0 {
		if len(c.b) >= spillPiece {
			c.spillGroups()
		}
		c.groups = append(c.groups, groupPlace{off: int64(len(c.b))})
	}
	c.n++
}

func (c *column) spillGroups() {
	off, ok := c.spill.put(c.b)
	if !ok {
		return
	}
	for end := len(c.b); c.spilled < len(c.groups); c.spilled++ {
		g := &c.groups[c.spilled]
		next := end
		if c.spilled+1 < len(c.groups) {
			next = int(c.groups[c.spilled+1].off)
		}
		*g = groupPlace{off + g.off, next - int(g.off)}
	}
	c.b = c.b[:0]
}

// group returns a decoder that stands before a group.
func (c *column) group(k int) *decoder {
	g := c.groups[k]
	if k < c.spilled {
		return &decoder{b: c.spill.get(g.off, g.len)}
	}
	return &decoder{b: c.b[g.off:]}
}

// at returns a decoder that stands before value i; skip decodes one value.
func (c *column) at(i int, skip func(d *decoder)) *decoder {
	d := c.group(i / groupSize)
	for range i % groupSize {
		skip(d)
	}
	return d
}

func (c *column) each(fn func(d *decoder)) {
	for k := range c.groups {
		d := c.group(k)
		for range min(groupSize, c.n-k*groupSize) {
			fn(d)
		}
	}
}

func (c *column) bytes() []byte {
	if c.spilled == 0 {
		return c.b
	}
	size := len(c.b)
	for _, g := range c.groups[:c.spilled] {
		size += g.len
	}
	b := make([]byte, 0, size)
	for k := range c.spilled {
		b = append(b, c.group(k).b...)
	}
	return append(b, c.b...)
}

func (c *column) clone() column {
	d := column{spill: c.spill, spilled: c.spilled, n: c.n}
	d.groups, d.b = append(d.groups, c.groups...), append(d.b, c.b...)
	return d
}

// readColumn decodes n values; the column shares d's memory.
func readColumn(d *decoder, n int, value func(d *decoder)) column {
	c := column{b: d.b}
	for c.n < n && !d.bad {
		if c.n%groupSize == 0 {
			c.groups = append(c.groups, groupPlace{off: int64(len(c.b) - len(d.b))})
		}
		value(d)
		c.n++
	}
	c.b = c.b[: len(c.b)-len(d.b) : len(c.b)-len(d.b)]
	return c
}

// Texts are rows of a fixed number of texts. They take hardly any memory, however many there are, and may be
// used concurrently.
type Texts struct {
	width int
	mu    sync.RWMutex // held to write while rows are added; guards what follows
	c     column
	last  atomic.Pointer[textGroup] // of the spill that was read: rows are read in order
}

// A textGroup is group n of a column.
type textGroup struct {
	n int
	b []byte
}

// NewTexts returns an empty list.
func (s *Store) NewTexts(width int) *Texts { return &Texts{width: width, c: column{spill: &s.spill}} }

// Add appends n rows, and returns the place of the first. text returns text k of row i.
func (t *Texts) Add(n int, text func(i, k int) string) (first int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first = t.c.n
	for i := range n {
		t.c.next()
		for k := range t.width {
			t.c.b = appendText(t.c.b, text(i, k))
		}
	}
	return first
}

// At returns text k of a row.
func (t *Texts) At(i, k int) string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	d := decoder{b: t.group(i / groupSize)}
	for range i%groupSize*t.width + k {
		d.skipText()
	}
	return d.string()
}

// group returns the bytes from a group on.
func (t *Texts) group(n int) []byte {
	if n >= t.c.spilled {
		return t.c.b[t.c.groups[n].off:]
	}
	g := t.last.Load()
	if g == nil || g.n != n {
		g = &textGroup{n, t.c.group(n).b}
		t.last.Store(g)
	}
	return g.b
}
