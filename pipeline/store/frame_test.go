package store

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestScanFile: reading a log piece by piece finds what reading it at once does, however frames, damage and
// pieces lie.
func TestScanFile(t *testing.T) {
	var log []byte
	var bounds []int
	for i, n := range []int{0, 10, 70_000, 300, 65_400, 1, 200_000, 131_000, 5} {
		log = appendFrame(log, itemFrame, number(i), bytes.Repeat([]byte{byte(i)}, n))
		bounds = append(bounds, len(log))
	}
	check := func(name string, b []byte) {
		t.Helper()
		var want, got []string
		list := func(into *[]string) frameFunc {
			return func(off int64, key stages.Digest, payload []byte) {
				*into = append(*into, fmt.Sprint(off, key.Short(), len(payload), stages.Sum(payload).Short()))
			}
		}
		whole := scanLog(b, itemFrame, list(&want))
		scan, err := scanFile(bytes.NewReader(b), 0, int64(len(b)), itemFrame, list(&got))
		if err != nil || !reflect.DeepEqual(scan, whole) || !slices.Equal(got, want) {
			t.Errorf("%s: %d frames and %+v, want %d and %+v; %v", name, len(got), scan, len(want), whole,
				err)
		}
	}
	check("whole", log)
	check("empty", nil)
	for i, end := range bounds {
		for _, cut := range []int{1, 4, 20, frameLen} {
			check(fmt.Sprintf("frame %d cut by %d", i, cut), log[:end-cut])
			check(fmt.Sprintf("frame %d without %d", i, cut),
				append(append([]byte{}, log[:end-cut]...), log[end:]...))
		}
		flipped := bytes.Clone(log)
		flipped[end-1] ^= 1
		check(fmt.Sprintf("frame %d altered", i), flipped)
	}
	for pad := 65_400; pad < 65_540; pad++ { // a magic that lies across the end of a piece
		check(fmt.Sprintf("behind %d others", pad),
			append(bytes.Repeat([]byte{'.'}, pad), log[:bounds[3]]...))
	}
}
