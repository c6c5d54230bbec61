package store

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
)

// TestColumn: values of any length are found again, as they were appended and as they are read.
func TestColumn(t *testing.T) {
	value := func(i int) []byte {
		n := i % 71
		if i%500 == 499 {
			n = 12_000 + i
		}
		return append(fmt.Appendf(nil, "%d ", i), bytes.Repeat([]byte{byte(i)}, n)...)
	}
	var c column
	const n = 6000
	for i := range n {
		c.next()
		c.b = appendText(c.b, value(i))
		for _, at := range []int{i, i / 2, i * 7 % (i + 1)} {
			if got := c.at(at, (*decoder).skipText).text(); !bytes.Equal(got, value(at)) {
				t.Fatalf("value %d of %d is %.20q", at, i+1, got)
			}
		}
	}
	d := &decoder{b: append(bytes.Clone(c.b), "rest"...)}
	if read := readColumn(d, n, (*decoder).skipText); !reflect.DeepEqual(read, c) || string(d.b) != "rest" {
		t.Errorf("%d of %d values are read, and %q is left", read.n, n, d.b)
	}
	if readColumn(&decoder{b: c.b}, n+1, (*decoder).skipText).n != n+1 {
		t.Error("a value that isn't there is read")
	}
}
