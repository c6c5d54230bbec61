package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

// TestStore: what's recorded is there, at once and after opening again, with or without the index.
func TestStore(t *testing.T) {
	w := newWorld(9)
	dir := w.filled(t)
	w.wholeStore(t, dir)
	before := open(t, dir, Options{ReadOnly: true})
	if err := os.Remove(filepath.Join(dir, "index")); err != nil {
		t.Fatal(err)
	}
	w.wholeStore(t, dir)
	after := open(t, dir, Options{ReadOnly: true})
	for _, c := range w.cells {
		a, _ := before.Lookup(c.key, "")
		b, _ := after.Lookup(c.key, "")
		if !bytes.Equal(a.rec, b.rec) {
			t.Errorf("cell %q is another after the index was made again", c.name)
		}
	}
}

// TestSecondRunWritesNothing: recording the same again adds no object, and a store that only answers touches
// no file.
func TestSecondRunWritesNothing(t *testing.T) {
	w := newWorld(6)
	dir := w.filled(t)
	state := func() map[string]int64 {
		m := map[string]int64{}
		for _, p := range files(t, dir) {
			st, err := os.Stat(p)
			if err != nil {
				t.Fatal(err)
			}
			m[p] = st.ModTime().UnixNano()
		}
		return m
	}
	before := state()
	s := open(t, dir,
		Options{Hook: func(p string) error { return errors.New("a system call that writes: " + p) }})
	w.check(t, s)
	for _, c := range w.cells {
		for i, m := range c.memos {
			if i == 1 {
				if err := s.SetMemo(c.memoKey(), m); err != nil {
					t.Error(err)
				}
			}
		}
		if err := s.Seen("test", c.name, c.key); err != nil {
			t.Error(err)
		}
		for port := range c.payloads {
			if _, err := c.put(s, port); err != nil {
				t.Error(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	after := state()
	for p, m := range before {
		if after[p] != m {
			t.Errorf("%s was written", p)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files became %d", len(before), len(after))
	}
}

// TestReadOnly: a store opened for reading answers, and writes nothing anywhere.
func TestReadOnly(t *testing.T) {
	none := filepath.Join(scratch(t), "a", "b")
	s := open(t, none, Options{ReadOnly: true})
	if _, ok := s.Lookup(number(1), ""); ok {
		t.Error("an empty store has something")
	}
	_, putErr := s.Put([][]byte{make([]byte, smallObject)})
	for name, err := range map[string]error{
		"put": putErr, "record": s.Record(Action{}, nil),
		"items": s.RecordItems(number(1), "", make([]ItemRecord, 1)), "memo": s.SetMemo(number(1), nil),
	} {
		if !errors.Is(err, errReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
	file := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FileDigest(file); err != nil {
		t.Error(err)
	}
	if err := s.Seen("e", "c", number(1)); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(none)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("opening a store for reading made its folder")
	}
	// Nor is a damaged object moved.
	w := newWorld(2)
	dir := w.filled(t)
	s = open(t, dir, Options{ReadOnly: true})
	h, _ := s.Lookup(w.cells[1].key, "")
	damaged := 0
	for p := range h.Objects() {
		flip(t, s.objectPath(p.Digest), 1, 1)
		damaged++
	}
	if damaged == 0 {
		t.Error("no object to damage")
	}
	before := files(t, dir)
	w.check(t, s)
	if _, err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.GC(Roots{}, true); !errors.Is(err, errReadOnly) {
		t.Errorf("collection: %v", err)
	}
	if after := files(t, dir); !slices.Equal(before, after) {
		t.Errorf("files were %v and are %v", before, after)
	}
}

// TestNotAFolder: paths that can't be a store are refused by name.
func TestNotAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, Options{}); err == nil || !strings.Contains(err.Error(), "is a file") {
		t.Errorf("a file: %v", err)
	}
	if _, err := Open(filepath.Join(file, "y"), Options{}); err == nil ||
		!strings.Contains(err.Error(), file) {
		t.Errorf("below a file: %v", err)
	}
}

// TestFormat: a store of another version is refused; a damaged FORMAT isn't one.
func TestFormat(t *testing.T) {
	w := newWorld(1)
	dir := w.filled(t)
	path := filepath.Join(dir, formatName)
	rewrite(t, path, []byte(formatLine(format+1)))
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "format 2") {
		t.Errorf("another format: %v", err)
	}
	rewrite(t, path, []byte("runexp store 3 00000000\n"))
	var warned string
	s := open(t, dir, Options{Warn: func(m string) { warned = m }})
	if !strings.Contains(warned, "damaged") {
		t.Errorf("warning: %q", warned)
	}
	if err := w.write(s, "b", nil); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); string(b) != formatLine(format) {
		t.Errorf("FORMAT is %q", b)
	}
}

// TestPut: small payloads are inline, equal ones stored once, objects are read-only and named by their bytes.
func TestPut(t *testing.T) {
	s := open(t, scratch(t), Options{})
	big := func(b byte, n int) []byte { return bytes.Repeat([]byte{b}, n) }
	payloads := [][]byte{big(1, smallObject), {}, nil, big(2, InlineMax+1), big(1, smallObject),
		big(7, InlineMax), big(2, InlineMax+1)}
	refs, err := s.Put(payloads)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range refs {
		b, err := s.Load(r)
		if err != nil || !bytes.Equal(b, payloads[i]) || r.Len != int64(len(payloads[i])) || !r.Kept() {
			t.Errorf("payload %d: %v %v %+v", i, b, err, r)
		}
		if (r.Inline != nil) != (len(payloads[i]) <= InlineMax) {
			t.Errorf("payload %d of %d bytes: inline %v", i, len(payloads[i]), r.Inline != nil)
		}
		if d := r.Dropped(); d.Kept() != (r.Inline != nil) || d.Digest != r.Digest {
			t.Errorf("payload %d dropped: %+v", i, d)
		} else if _, err := s.Load(d); (err == nil) != (r.Inline != nil) {
			t.Errorf("payload %d dropped: load says %v", i, err)
		}
	}
	if refs[0].Off != refs[4].Off || refs[3].Off != refs[6].Off ||
		refs[0].Object.Size != smallObject+InlineMax+1 {
		t.Errorf("equal payloads are stored twice: %+v", refs)
	}
	path := s.objectPath(refs[0].Object.Digest)
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm()&0o222 != 0 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if b, err := os.ReadFile(path); err != nil || stages.Sum(b) != refs[0].Object.Digest {
		t.Errorf("the object's name isn't its digest: %v", err)
	}
	// An object of one payload is that payload: sha256sum and cmp work on it.
	one, err := s.Put([][]byte{big(9, smallObject)})
	if err != nil || one[0].Object.Digest != one[0].Digest {
		t.Errorf("%+v %v", one, err)
	}
	// What would make a small object is inline.
	few, err := s.Put([][]byte{big(1, smallObject/2), big(2, smallObject/2-1), big(1, smallObject/2)})
	if err != nil || few[0].Inline == nil || few[1].Inline == nil || few[2].Inline == nil {
		t.Errorf("%+v %v", few, err)
	}
	if _, err := s.Load(Ref{Digest: number(1), Inline: []byte("x")}); err == nil {
		t.Error("an altered inline payload is loaded")
	}
}

// TestPrefer: a key's results of several classes live side by side.
func TestPrefer(t *testing.T) {
	w := newWorld(4)
	dir := w.filled(t) // by "a"
	s := open(t, dir, Options{})
	if err := w.write(s, "b", nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, c := range w.cells {
			for _, tc := range []struct{ prefer, want string }{{"a", "a"}, {"b", "b"}, {"", "b"},
				{"c", "b"}} {
				h, ok := s.Lookup(c.key, tc.prefer)
				if !ok || h.MadeBy() != tc.want {
					t.Errorf("lookup preferring %q gives %q", tc.prefer, h.MadeBy())
				}
				items := s.Items(c.group, tc.prefer) // of that class alone
				if _, ok := outcomeOf(items, c.itemKey(0)); ok != (tc.prefer == tc.want) {
					t.Errorf("an item made by %q: %v", tc.prefer, ok)
				}
			}
		}
		s = open(t, dir, Options{})
	}
}

// TestLatest: what a cell was is what it was last executed or found as.
func TestLatest(t *testing.T) {
	w := newWorld(3)
	dir := w.filled(t)
	s := open(t, dir, Options{})
	want := func(cell string, key stages.Digest) {
		t.Helper()
		if a, ok := s.Latest("test", cell); !ok || a.Key != key {
			t.Errorf("%s was %v %s, want %s", cell, ok, a.Key.Short(), key.Short())
		}
	}
	want("maps[n=0]", w.cells[0].key)
	want("other", w.cells[0].key)
	if err := s.Seen("test", "maps[n=0]", w.cells[2].key); err != nil {
		t.Fatal(err)
	}
	want("maps[n=0]", w.cells[2].key)
	s.Close()
	s = open(t, dir, Options{})
	want("maps[n=0]", w.cells[2].key)
	if err := w.write(s, "a", nil); err != nil {
		t.Fatal(err)
	}
	want("maps[n=0]", w.cells[0].key)
	if _, ok := s.Latest("another", "maps[n=0]"); ok {
		t.Error("a cell of another experiment")
	}
	// Without the index, the time of recording decides.
	os.Remove(filepath.Join(dir, "index"))
	s = open(t, dir, Options{})
	want("maps[n=2]", w.cells[2].key)
}

// TestExpand: one item may become none, or many with names of their own.
func TestExpand(t *testing.T) {
	s := open(t, scratch(t), Options{})
	refs, err := s.Put([][]byte{make([]byte, 1000), []byte("x"), bytes.Repeat([]byte("y"), 300)})
	if err != nil {
		t.Fatal(err)
	}
	rs := []ItemRecord{
		{number(1), ItemOutcome{Ports: [][]SubItem{{{refs[0], "a"}, {refs[1], "b"}}, {{refs[2], ""}}}}},
		{number(2), ItemOutcome{Ports: [][]SubItem{{}, {}}}},
		{number(3), ItemOutcome{}},
	}
	if err := s.RecordItems(number(9), "cpu", rs); err != nil {
		t.Fatal(err)
	}
	items := s.Items(number(9), "cpu")
	if len(items.newest) != 3 {
		t.Fatalf("%d items", len(items.newest))
	}
	for _, r := range rs {
		o, ok := outcomeOf(items, r.Key)
		if !ok || len(o.Ports) != len(r.Ports) {
			t.Fatalf("item %s: %+v", r.Key.Short(), o)
		}
		for p := range r.Ports {
			if !slices.EqualFunc(o.Ports[p], r.Ports[p], func(a, b SubItem) bool {
				return a.ID == b.ID && a.Digest == b.Digest && a.Object == b.Object && a.Off == b.Off &&
					a.Len == b.Len && bytes.Equal(a.Inline, b.Inline)
			}) {
				t.Errorf("item %s port %d: %+v, want %+v", r.Key.Short(), p, o.Ports[p], r.Ports[p])
			}
		}
	}
	if _, ok := outcomeOf(items, number(4)); ok {
		t.Error("an item that nobody recorded")
	}
}
