package store

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/sourcegraph/conc"
)

// TestColumn: values of any length are found again, as they were appended and as they are read, in memory and
// in a spill.
func TestColumn(t *testing.T) {
	value := func(i int) []byte {
		n := i % 71
		if i%500 == 499 {
			n = 12_000 + i
		}
		return append(fmt.Appendf(nil, "%d ", i), bytes.Repeat([]byte{byte(i)}, n)...)
	}
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const n = 6000
	fill := func(c *column) {
		for i := range n {
			c.next()
			c.b = appendText(c.b, value(i))
			for _, at := range []int{i, i / 2, i * 7 % (i + 1)} {
				if got := c.at(at, (*decoder).skipText).text(); !bytes.Equal(got, value(at)) {
					t.Fatalf("value %d of %d is %.20q", at, i+1, got)
				}
			}
		}
		at := 0
		c.each(func(d *decoder) {
			if got := d.text(); !bytes.Equal(got, value(at)) {
				t.Errorf("value %d of each is %.20q", at, got)
			}
			at++
		})
		if at != n {
			t.Errorf("each has %d of %d values", at, n)
		}
	}
	c, spilled := column{}, column{spill: &s.spill}
	fill(&c)
	fill(&spilled)
	const group = 20_000 // bytes at most
	if spilled.spilled == 0 || len(spilled.b) > spillPiece+group {
		t.Errorf("%d groups are spilled, %d bytes are in memory", spilled.spilled, len(spilled.b))
	}
	for _, v := range []column{spilled, spilled.clone()} {
		if !bytes.Equal(v.bytes(), c.b) {
			t.Error("a column with a spill has other bytes")
		}
	}
	unwritable := &spill{s: s}
	unwritable.close()
	full := column{spill: unwritable}
	if fill(&full); full.spilled > 0 || !bytes.Equal(full.b, c.b) {
		t.Error("a column whose spill can't be written lacks values")
	}
	d := &decoder{b: append(bytes.Clone(c.b), "rest"...)}
	if read := readColumn(d, n, (*decoder).skipText); !reflect.DeepEqual(read, c) || string(d.b) != "rest" {
		t.Errorf("%d of %d values are read, and %q is left", read.n, n, d.b)
	}
	if readColumn(&decoder{b: c.b}, n+1, (*decoder).skipText).n != n+1 {
		t.Error("a value that isn't there is read")
	}
}

// TestTexts: each row is found again, in whatever order, while others are added and by many at once.
func TestTexts(t *testing.T) {
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	row := func(of, i int) []string {
		return []string{strings.Repeat(fmt.Sprint(i, " "), i%40), "", fmt.Sprint(of)}
	}
	texts := s.NewTexts(3)
	var wg conc.WaitGroup
	for of := range 8 {
		wg.Go(func() {
			const n = 40
			var firsts []int
			for range 50 {
				first := texts.Add(n, func(i, k int) string { return row(of, i)[k] })
				firsts = append(firsts, first)
				for k := range 2 * n {
					i := k * 7 % n
					at, want := firsts[k*k%len(firsts)]+i, row(of, i)
					if got := texts.At(at, k%len(want)); got != want[k%len(want)] {
						t.Errorf("text %d of row %d of %d is %.40q", k%len(want), i, of, got)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	if texts.c.spilled == 0 {
		t.Error("nothing is spilled")
	}
}
