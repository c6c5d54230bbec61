package store

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestRows: many rows are found again, whether they lie in memory or in the
// spool, and leave nothing behind.
func TestRows(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		dir := scratch(t)
		s := open(t, dir, Options{ReadOnly: readOnly})
		lists := []*Rows{s.NewRows(), s.NewRows()}
		row := func(list, i int) []byte {
			n := i % 71
			if i%500 == 499 {
				n = 3*pageSize + i // longer than a page
			}
			return append(fmt.Appendf(nil, "%d/%d ", list, i), bytes.Repeat([]byte{byte(i)}, n)...)
		}
		const n = 6000
		for i := range n {
			for k, l := range lists {
				if err := l.Append(row(k, i)); err != nil {
					t.Fatal(err)
				}
				for _, at := range []int{i, i / 2, i * 7 % (i + 1)} {
					if got, err := l.At(at); err != nil || !bytes.Equal(got, row(k, at)) {
						t.Fatalf("row %d of %d is %.20q, %v", at, i+1, got, err)
					}
				}
			}
		}
		if lists[0].Len() != n {
			t.Errorf("%d rows", lists[0].Len())
		}
		if inFile := s.spool.base > 0; inFile == readOnly {
			t.Errorf("read only %v, and %d bytes in the spool's file", readOnly, s.spool.base)
		}
		err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if strings.Contains(path, tempPrefix) && runtime.GOOS != "windows" {
				t.Errorf("there is %s", path)
			}
			return err
		})
		if err != nil && !readOnly {
			t.Error(err)
		}
		s.Close()
	}
}

// TestRowIndex: an index is a map, also where hashes are equal.
func TestRowIndex(t *testing.T) {
	for _, hash := range []func(int) uint32{
		func(i int) uint32 { return 7 },
		func(i int) uint32 { return uint32(i) << 28 },
		func(i int) uint32 { return uint32(i) * 2654435761 },
	} {
		var x RowIndex
		var keys []int // by row
		newest := map[int]int{}
		same := func(key int) func(int) (bool, error) {
			return func(row int) (bool, error) { return keys[row] == key, nil }
		}
		for i := range 1000 {
			key := i * 31 % 400
			keys = append(keys, key)
			if err := x.Set(hash(key), i, same(key)); err != nil {
				t.Fatal(err)
			}
			newest[key] = i
		}
		for key := range 500 {
			want, ok := newest[key]
			if !ok {
				want = -1
			}
			if row, err := x.Find(hash(key), same(key)); err != nil || row != want {
				t.Fatalf("key %d is in row %d, want %d; %v", key, row, want, err)
			}
		}
		if x.Len() != len(newest) {
			t.Errorf("%d rows, want %d", x.Len(), len(newest))
		}
		broken := func(int) (bool, error) { return false, io.ErrUnexpectedEOF }
		if _, err := x.Find(hash(0), broken); err != io.ErrUnexpectedEOF {
			t.Errorf("an error while comparing gives %v", err)
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

// TestRowsOnAFullDisk: rows that couldn't be written the first time are found where
// they're said to be.
func TestRowsOnAFullDisk(t *testing.T) {
	s := open(t, scratch(t), Options{})
	defer s.Close()
	if err := s.setUp(); err != nil {
		t.Fatal(err)
	}
	writes := 0
	s.hook = func(point string) error {
		if point == "write" {
			if writes++; writes%2 == 1 {
				return tear(100)
			}
		}
		return nil
	}
	rows := s.NewRows()
	row := func(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%d ", i), 100) }
	for try := 0; rows.Len() < 1000; try++ {
		if err := rows.Append(row(rows.Len())); err != nil && try > 2000 {
			t.Fatal(err)
		}
	}
	if s.spool.base == 0 {
		t.Fatal("nothing was written")
	}
	for i := range rows.Len() {
		if got, err := rows.At(i); err != nil || !bytes.Equal(got, row(i)) {
			t.Fatalf("row %d is %.20q, %v", i, got, err)
		}
	}
}
