package store

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"testing"

	"github.com/runexp/runexp/stages"
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

// TestRowIndex: an index is a map, also where hashes are equal.
func TestRowIndex(t *testing.T) {
	for _, hash := range []func(int) uint32{
		func(i int) uint32 { return 7 },
		func(i int) uint32 { return uint32(i) << 28 },
		func(i int) uint32 { return uint32(i) * 2654435761 },
	} {
		var x rowIndex
		var keys []int // by row
		newest := map[int]int{}
		same := func(key int) func(int) bool { return func(row int) bool { return keys[row] == key } }
		for i := range 1000 {
			key := i * 31 % 400
			keys = append(keys, key)
			x.set(hash(key), i, same(key))
			newest[key] = i
		}
		for key := range 500 {
			want, ok := newest[key]
			if !ok {
				want = -1
			}
			if row := x.find(hash(key), same(key)); row != want {
				t.Fatalf("key %d is in row %d, want %d", key, row, want)
			}
		}
		if x.n != len(newest) {
			t.Errorf("%d rows, want %d", x.n, len(newest))
		}
	}
}

// TestStreamLog: reading a log piece by piece finds what reading it at once does,
// however frames, damage and pieces lie.
func TestStreamLog(t *testing.T) {
	var log []byte
	var bounds []int
	for i, n := range []int{0, 10, 70_000, 300, 65_400, 1, 200_000, 131_000, 5} {
		log = appendFrame(log, itemLog, number(i), bytes.Repeat([]byte{byte(i)}, n))
		bounds = append(bounds, len(log))
	}
	check := func(name string, b []byte) {
		t.Helper()
		var want, got []string
		end := scanLog(b, itemLog, func(off int, key stages.Digest, payload []byte) {
			want = append(want, fmt.Sprint(off, key.Short(), len(payload), stages.Sum(payload).Short()))
		}).end
		streamed, err := streamLog(io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))), itemLog, func(off int64, key stages.Digest, payload []byte) error {
			got = append(got, fmt.Sprint(off, key.Short(), len(payload), stages.Sum(payload).Short()))
			return nil
		})
		if err != nil || streamed != int64(end) || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %d frames up to %d, want %d up to %d; %v", name, len(got), streamed, len(want), end, err)
		}
	}
	check("whole", log)
	check("empty", nil)
	for i, end := range bounds {
		for _, cut := range []int{1, 4, 20, frameLen} {
			check(fmt.Sprintf("frame %d cut by %d", i, cut), log[:end-cut])
			check(fmt.Sprintf("frame %d without %d", i, cut), append(append([]byte{}, log[:end-cut]...), log[end:]...))
		}
		flipped := bytes.Clone(log)
		flipped[end-1] ^= 1
		check(fmt.Sprintf("frame %d altered", i), flipped)
	}
	for pad := 65_400; pad < 65_540; pad++ { // a magic that lies across the end of a piece
		check(fmt.Sprintf("behind %d others", pad), append(bytes.Repeat([]byte{'.'}, pad), log[:bounds[3]]...))
	}
}
