package store

import (
	"bytes"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// The targets of this file feed bytes to the readers, as a file and as the payload of a frame whose checksum
// is right. Seeds are in testdata/fuzz.

// checkScan: each byte of the log is in one frame or damaged, in order, and a frame behind whatever stands
// before it is found.
func checkScan(t *testing.T, b []byte, kind frameKind) {
	t.Helper()
	key, payload := number(1), []byte("behind")
	whole := appendFrame(bytes.Clone(b), kind, key, payload)
	var frames int64
	last := int64(-1)
	found := false
	scan := scanLog(whole, kind, func(off int64, k stages.Digest, p []byte) {
		if off <= last {
			t.Fatalf("frame at %d after one at %d", off, last)
		}
		last = off
		frames += int64(frameLen + len(p))
		found = int(off) == len(b) && k == key && bytes.Equal(p, payload)
	})
	if !found {
		t.Fatal("the last frame isn't found")
	}
	if frames+scan.torn+scan.altered != int64(len(whole)) || int(scan.end) != len(whole) {
		t.Fatalf("%d bytes of frames and %+v in a log of %d", frames, scan, len(whole))
	}
}

// FuzzIndex: whatever the index file holds, a key leads only to what was written for it.
func FuzzIndex(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		checkScan(t, b, indexFrame)
		s := Store{opts: Options{ReadOnly: true}}
		s.index.parse(b)
		for key := range s.index.newest {
			h, ok := s.Lookup(key, "a")
			if !ok || !bytes.Contains(b, appendFrame(nil, indexFrame, key, h.rec)) {
				t.Fatalf("key %s leads to what nobody wrote", key.Short())
			}
			if _, ok := s.index.latest[h.name()]; !ok {
				t.Fatalf("the cell of key %s was never seen", key.Short())
			}
		}

		var x index
		x.parse(appendFrame(nil, indexFrame, number(1), b))
		h, ok := (&Store{index: x}).Lookup(number(1), "a")
		if !ok {
			return
		}
		for i := range h.Outputs() {
			h.Output(i)
		}
		objects := 0
		for range h.Objects() {
			objects++
		}
		if want := entryLen + len(h.MadeBy()) + h.Outputs()*outputLen + objects*objectLen; want != len(b) {
			t.Fatalf("an entry of %d bytes uses %d", len(b), want)
		}
	})
}

// FuzzActionLog: what decodes is encoded to something that decodes the same.
func FuzzActionLog(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		checkScan(t, b, actionFrame)
		s := open(t, "/none", Options{ReadOnly: true})
		key := number(0)
		a, err := decodeAction(key, b)
		if err != nil {
			return
		}
		for i := range a.Outputs {
			l, err := s.listing(&a.Outputs[i])
			if err != nil {
				continue
			}
			if l.digest() != a.Outputs[i].Listing {
				t.Fatal("a listing with another digest")
			}
		}
		if rec := appendEntry(nil, &a, 7, 9); !validEntry(rec) {
			t.Fatalf("the index refuses the entry of %+v", a)
		}
		again, err := encodeAction(&a)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeAction(key, again); err != nil || !reflect.DeepEqual(a, got) {
			t.Fatalf("%+v became %+v, %v", a, got, err)
		}
	})
}

// FuzzItemLog: what decodes is encoded to something that decodes the same.
func FuzzItemLog(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		checkScan(t, b, itemFrame)
		madeBy, _, _, _ := decodeItems(b)
		read := func(b []byte) []ItemRecord {
			v := (&Store{}).NewItems()
			v.rows.spill = nil
			v.take(b, madeBy)
			var rs []ItemRecord
			for _, key := range keysOf(v) {
				o, ok := outcomeOf(v, key)
				if !ok {
					t.Fatal("an item is gone")
				}
				for _, p := range o.Ports {
					for _, sub := range p {
						if sub.Off < 0 || sub.Len < 0 ||
							sub.Object != (ObjectRef{}) && sub.Off > sub.Object.Size-sub.Len {
							t.Fatalf("a ref outside its object: %+v", sub.Ref)
						}
					}
				}
				rs = append(rs, ItemRecord{key, o})
			}
			return rs
		}
		rs := read(b)
		if rs == nil {
			return
		}
		if again := read(encodeItems(madeBy, rs)); !reflect.DeepEqual(rs, again) {
			t.Fatalf("%+v became %+v", rs, again)
		}
	})
}

func keysOf(v *Items) []stages.Digest {
	return slices.SortedFunc(maps.Keys(v.newest),
		func(a, b stages.Digest) int { return bytes.Compare(a[:], b[:]) })
}

// FuzzListing: what decodes is encoded to something that decodes the same.
func FuzzListing(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := decodeListing(b)
		if err != nil {
			return
		}
		again := newListing(l.Facts, l.parts)
		for i := range l.Len() {
			e := l.At(i)
			if d := l.PayloadDigest(i); e.Digest != d || e.Inline != nil && stages.Sum(e.Inline) != d {
				t.Fatalf("entry %d: %+v", i, e)
			}
			again.Append(e)
		}
		if text := slices.Concat(l.encode()...); !bytes.Equal(text, b) {
			t.Fatal("another listing")
		}
		read, err := decodeListing(slices.Concat(again.encode()...))
		if err != nil {
			t.Fatal(err)
		}
		if d := l.digest(); d != again.digest() || d != read.digest() || d != l.dropped().digest() {
			t.Fatal("another digest")
		}
		for i := range l.Len() {
			if !reflect.DeepEqual(l.At(i), read.At(i)) {
				t.Fatalf("entry %d: %+v became %+v", i, l.At(i), read.At(i))
			}
		}
	})
}

// FuzzStatIndex: a state that decodes is encoded to the same bytes.
func FuzzStatIndex(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		checkScan(t, b, statFrame)
		s, err := decodeState(b)
		ok := err == nil
		if ok && (!bytes.Equal(s.encode(), b) || s.Size < 0) {
			t.Fatalf("%+v", s)
		}
		if len(b) == stateLen && int64(binary.LittleEndian.Uint64(b)) >= 0 && !ok {
			t.Fatal("a state isn't read")
		}
	})
}

// FuzzShare: whatever a share holds, as it is and with the checksums of its frames put right, what is merged
// is sound, is merged once, and takes nothing from the store.
func FuzzShare(f *testing.F) {
	w := newWorld(4)
	name := shareNames(f, sharedBy(f, scratch(f), w))[0]
	whole, err := os.ReadFile(name)
	if err != nil {
		f.Fatal(err)
	}
	full := w.filled(f)
	f.Add(whole)
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := scratch(t)
		if err := os.CopyFS(dir, os.DirFS(full)); err != nil {
			t.Fatal(err)
		}
		mergeBytes(t, dir, name, b)
		if s := open(t, dir, Options{ReadOnly: true}); true {
			if v := w.check(t, s); v.misses > 0 {
				t.Fatalf("%d of %d answers are misses", v.misses, v.hits+v.misses)
			}
			s.Close()
		}
		mergeBytes(t, scratch(t), name, withChecksums(b))
	})
}

// mergeBytes merges a share of a name twice.
func mergeBytes(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	path := filepath.Join(dir, "shares", filepath.Base(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	mergeShares(t, dir)
	if r := mergeShares(t, dir); r.Items+r.Objects > 0 {
		t.Fatalf("merged again: %+v", r)
	}
	s := open(t, dir, Options{ReadOnly: true})
	defer s.Close()
	problems, err := s.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !strings.Contains(p, filepath.Base(name)) {
			t.Error(p)
		}
	}
}

// withChecksums returns a share in which every header that leads to another one has the right checksum.
func withChecksums(b []byte) []byte {
	b = bytes.Clone(b)
	for rest := b; len(rest) >= frameLen; {
		n := frameLen + int(binary.LittleEndian.Uint32(rest[4:]))
		if n > len(rest) {
			break
		}
		binary.LittleEndian.PutUint32(rest[8:], checksum(rest[4:8], rest[12:n]))
		kind := frameKind(rest[3])
		payload := rest[frameLen:n]
		rest = rest[n:]
		if kind == objectFrame && len(payload) == 8 {
			if object := binary.LittleEndian.Uint64(payload); object <= uint64(len(rest)) {
				rest = rest[object:]
			}
		}
	}
	return b
}
