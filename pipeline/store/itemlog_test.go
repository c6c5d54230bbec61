package store

import (
	"testing"

	"github.com/runexp/runexp/stages"
)

// Item records are read once; what this store, another one or a rewriting adds is seen all the same, and what
// is kept in memory is bounded.
func TestItemsAreReadOnce(t *testing.T) {
	dir := scratch(t)
	a, b := open(t, dir, Options{}), open(t, dir, Options{})
	group := number(1)
	other := group // of the same file
	other[31] = 2
	record := func(s *Store, group stages.Digest, key int, val string) {
		t.Helper()
		refs, err := s.Put([][]byte{[]byte(val)})
		if err == nil {
			err = s.RecordItems(group, "cpu",
				[]ItemRecord{{number(key), ItemOutcome{Ports: [][]SubItem{{{Ref: refs[0]}}}}}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(s *Store, group stages.Digest, vals map[int]string) {
		t.Helper()
		items := s.Items(group, "cpu")
		if len(items.newest) != len(vals) {
			t.Fatalf("%d items, want %d", len(items.newest), len(vals))
		}
		for key, val := range vals {
			if o, ok := outcomeOf(items, number(key)); !ok || string(o.Ports[0][0].Inline) != val {
				t.Errorf("item %d: %v %+v, want %q", key, ok, o, val)
			}
		}
	}
	want(a, group, nil)
	record(a, group, 1, "one")
	want(a, group, map[int]string{1: "one"})
	want(b, group, map[int]string{1: "one"})
	record(b, group, 2, "two")
	record(b, other, 7, "seven")
	record(b, group, 1, "won")
	want(a, group, map[int]string{1: "won", 2: "two"})
	want(a, other, map[int]string{7: "seven"})
	var held int64
	for _, g := range a.groups {
		held += g.items.bytes()
	}
	if held != a.itemBytes {
		t.Errorf("%d bytes are accounted for, of %d", a.itemBytes, held)
	}

	// Rewritten without the first record, as gc does.
	if err := b.rewriteLog(b.log(itemFrame, group), map[place]bool{{group, 0}: true}); err != nil {
		t.Fatal(err)
	}
	record(b, group, 3, "three")
	want(a, group, map[int]string{1: "won", 2: "two", 3: "three"})

	old := a.Items(group, "cpu")
	a.itemMu.Lock()
	a.itemBytes = itemMemory
	a.itemMu.Unlock()
	record(a, group, 4, "four")
	want(a, group, map[int]string{1: "won", 2: "two", 3: "three", 4: "four"})
	if len(a.groups) > 0 || a.itemBytes != 0 {
		t.Errorf("%d bytes are kept", a.itemBytes)
	}
	want(a, group, map[int]string{1: "won", 2: "two", 3: "three", 4: "four"})
	if _, ok := outcomeOf(old, number(3)); !ok {
		t.Error("items that were handed out are gone")
	}
}
