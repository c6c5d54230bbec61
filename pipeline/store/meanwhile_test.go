package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
)

// recordNamed records a cell without payloads.
func recordNamed(t testing.TB, s *Store, cell string, key stages.Digest) {
	t.Helper()
	if err := s.Record(Action{Key: key, Experiment: "test", Cell: cell}, nil); err != nil {
		t.Fatal(err)
	}
}

// inBucket returns a key in the action log that w's first cell is in.
func inBucket(w *world, n int) stages.Digest {
	key := number(n)
	key[0] = w.cells[0].key[0]
	return key
}

// TestRecordedDuringCollection: at every point of a collection another process records something, in a log
// that's being rewritten. None of it is lost.
func TestRecordedDuringCollection(t *testing.T) {
	w := newWorld(4)
	dir := w.filled(t)
	other := open(t, dir, Options{})
	n := 0
	s := open(t, dir, Options{Hook: func(string) error {
		recordNamed(t, other, fmt.Sprint("late", n), inBucket(w, 5000+n))
		n++
		return nil
	}})
	if _, err := s.GC(Roots{Action: func(k stages.Digest) bool { return k != w.cells[0].key }},
		true); err != nil {
		t.Fatal(err)
	}
	if n < 10 {
		t.Fatalf("only %d points", n)
	}
	s = open(t, dir, Options{})
	for i := range n {
		if h, ok := s.Lookup(inBucket(w, 5000+i), ""); !ok {
			t.Errorf("what was recorded at point %d of %d is gone", i, n)
		} else if a, err := s.Action(h); err != nil || a.Cell != fmt.Sprint("late", i) {
			t.Errorf("point %d: %v %q", i, err, a.Cell)
		}
	}
}

// TestCollectedDuringRecord: at every point of recording something, another process rewrites the log that it
// goes to.
func TestCollectedDuringRecord(t *testing.T) {
	w := newWorld(4)
	for point := 0; ; point++ {
		dir := w.filled(t)
		n := 0
		s := open(t, dir, Options{Hook: func(string) error {
			if n++; n == point {
				other := open(t, dir, Options{})
				if _, err := other.GC(Roots{Action: func(k stages.Digest) bool {
					return k != w.cells[0].key
				}}, true); err != nil {
					t.Error(err)
				}
			}
			return nil
		}})
		key := inBucket(w, 5000)
		recordNamed(t, s, "late", key)
		s = open(t, dir, Options{})
		if h, ok := s.Lookup(key, ""); !ok {
			t.Errorf("lost by a collection at point %d of %d", point, n)
		} else if _, err := s.Action(h); err != nil {
			t.Errorf("collection at point %d of %d: %v", point, n, err)
		}
		if _, ok := s.Lookup(w.cells[0].key, ""); ok && point > 0 && point <= n {
			t.Errorf("point %d: nothing was collected", point)
		}
		os.RemoveAll(dir)
		if point > n {
			if n < 6 {
				t.Errorf("only %d points", n)
			}
			return
		}
	}
}

// TestReadAfterCollection: a store that was open while another process rewrote the logs finds its records
// where they are now.
func TestReadAfterCollection(t *testing.T) {
	w := newWorld(4)
	dir := w.filled(t)
	s := open(t, dir, Options{})
	recordNamed(t, s, "behind", inBucket(w, 5000))
	h, ok := s.Lookup(inBucket(w, 5000), "")
	if !ok {
		t.Fatal("not recorded")
	}
	other := open(t, dir, Options{})
	if _, err := other.GC(Roots{Action: func(k stages.Digest) bool { return k != w.cells[0].key }},
		true); err != nil {
		t.Fatal(err)
	}
	if a, err := s.Action(h); err != nil || a.Cell != "behind" {
		t.Errorf("%q, %v", a.Cell, err)
	}
	// The index doesn't outweigh the record.
	h, _ = s.Lookup(w.cells[1].key, "a")
	lie := Hit{h.key, append([]byte(nil), h.rec...)}
	lie.outputs()[5]++
	if _, err := s.Action(lie); err == nil {
		t.Error("an index entry of another listing leads to the action")
	}
}

// TestRecordedDuringVerify: what's put and recorded after Verify looked at the objects is no problem.
func TestRecordedDuringVerify(t *testing.T) {
	w := newWorld(3)
	dir := w.filled(t)
	late := &world{cells: newWorld(8).cells[5:]}
	v := newVerification(t.Context(), open(t, dir, Options{}))
	if err := v.s.eachObject(v.object); err != nil {
		t.Fatal(err)
	}
	if err := late.write(open(t, dir, Options{}), "a", nil); err != nil {
		t.Fatal(err)
	}
	if problems, err := v.records(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	w.wholeStore(t, dir)
	late.wholeStore(t, dir)
}

// TestVerifyIsCancelled: a cancelled Verify ends with the reason.
func TestVerifyIsCancelled(t *testing.T) {
	dir := newWorld(3).filled(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	v := newVerification(ctx, open(t, dir, Options{}))
	err := v.s.eachObject(v.object)
	cancel(why)
	if err == nil {
		_, err = v.records()
	}
	if !errors.Is(err, why) || !errors.Is(v.s.eachObject(v.object), why) {
		t.Errorf("got %v", err)
	}
}

// TestTornTailCostsNothing: the beginning of a frame at the end of a log makes the index note once how far it
// knows the log, and no more.
func TestTornTailCostsNothing(t *testing.T) {
	w := newWorld(4)
	dir := w.filled(t)
	s := open(t, dir, Options{})
	path := s.log(actionFrame, w.cells[0].key).path
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, path, append(b, b[:60]...))
	size := func() int64 {
		n, err := s.size(filepath.Join(dir, "index"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := size()
	for range 3 {
		w.wholeStore(t, dir)
		if grown := size() - before; grown != int64(len(appendMark(nil, 0, 0))) {
			t.Errorf("the index grew by %d bytes", grown)
		}
	}
}

// TestIndexAheadOfLogs: an index that claims to know more than the logs hold, because they were rewritten, is
// made to know what they hold.
func TestIndexAheadOfLogs(t *testing.T) {
	w := newWorld(4)
	dir := w.filled(t)
	var b []byte
	for i := range buckets {
		b = appendMark(b, byte(i), 1<<40)
	}
	if err := os.WriteFile(filepath.Join(dir, "index"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	w.wholeStore(t, dir)
	s := open(t, dir, Options{ReadOnly: true})
	if c := s.index.logs[w.cells[0].key[0]]; c.mark >= 1<<40 {
		t.Errorf("the mark is still %d", c.mark)
	}
}

// TestLatestWithoutIndex: an index made again from the logs knows what came last, whichever log it's in.
func TestLatestWithoutIndex(t *testing.T) {
	dir := scratch(t)
	s := open(t, dir, Options{})
	low, high := stages.Digest{1}, stages.Digest{200}
	recordNamed(t, s, "up", low)
	recordNamed(t, s, "up", high)
	recordNamed(t, s, "down", high)
	recordNamed(t, s, "down", low)
	if err := os.Remove(filepath.Join(dir, "index")); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, Options{})
	for cell, want := range map[string]stages.Digest{"up": high, "down": low} {
		if a, ok := s.Latest("test", cell); !ok || a.Key != want {
			t.Errorf("%s was last %s", cell, a.Key.Short())
		}
	}
}

// TestMalformed: records that contradict themselves aren't taken, even if their checksums are right.
func TestMalformed(t *testing.T) {
	object := ObjectRef{number(7), 20}
	good := Ref{Digest: number(6), Len: 9, Off: 11, Object: object}
	text := func(r Ref) []byte {
		var objects objectTable
		objects.number(r.Object)
		b := objects.appendObjects([]byte{listingVersion, 0, 0})
		return objects.appendRef(appendUint(b, 1), r)
	}
	if _, err := decodeListing(text(good)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Ref){
		"too far":  func(r *Ref) { r.Off = 12 },
		"too long": func(r *Ref) { r.Len = 21; r.Off = 0 },
		"overflow": func(r *Ref) { r.Off = 1<<63 - 1; r.Len = 9 },
		"negative": func(r *Ref) { r.Off = -1 },
	} {
		r := good
		change(&r)
		if _, err := decodeListing(text(r)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for name, b := range map[string][]byte{
		"nothing":           nil,
		"another format":    append([]byte{listingVersion + 1}, text(good)[1:]...),
		"more":              append(text(good), 0),
		"less":              text(good)[:40],
		"many items":        binary.AppendUvarint([]byte{listingVersion, 0, 0, 0}, 1<<60),
		"many facts":        binary.AppendUvarint([]byte{listingVersion, 0}, 1<<60),
		"origins of no ids": {listingVersion, byte(Origins), 0, 0, 0},
		"same of no ids":    {listingVersion, byte(sameOrigins), 0, 0, 0},
		"origins twice":     {listingVersion, byte(IDs | Origins | sameOrigins), 0, 0, 0},
		"another part":      {listingVersion, byte(sameOrigins << 1), 0, 0, 0},
	} {
		if _, err := decodeListing(b); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	// A listing that isn't the one its action names.
	s := open(t, scratch(t), Options{})
	o := Output{Port: "maps", Items: 1}
	l := listingOf(nil, 0, Entry{Ref: good})
	o.Listing, o.Inline = l.digest(), slices.Concat(l.encode()...)
	if _, err := s.listing(&o); err != nil {
		t.Fatal(err)
	}
	o.Listing = number(1)
	if _, err := s.listing(&o); err == nil {
		t.Error("another listing is taken")
	}
}
