package store

// A column holds encoded values one after another in one buffer. It finds a value by decoding those before it
// from the nearest mark on, so that it takes half a byte a value in addition to the values.
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
