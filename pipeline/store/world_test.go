package store

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
)

// A world is what a test writes into a store, and so the truth that the store's answers are compared with.
type world struct {
	cells []worldCell
}

type worldCell struct {
	key      stages.Digest
	group    stages.Digest
	name     string
	payloads [2][][]byte // of two ports: bulk, and scores
	facts    stages.Facts
	ids      []string
	parents  []int32
	drop     bool
	memos    [2][]byte // its memo's values, one after the other
}

func (c *worldCell) memoKey() stages.Digest { return stages.Sum([]byte("memo" + c.name)) }

// itemKey is the key of item i within the cell's group.
func (c *worldCell) itemKey(i int) stages.Digest {
	return stages.Sum(fmt.Appendf(nil, "%s/%d", c.name, i))
}

// newWorld makes up cells, from few bytes to listings with an object of their own.
func newWorld(cells int) *world {
	r := rand.New(rand.NewPCG(1, 2))
	w := &world{}
	for n := range cells {
		c := worldCell{
			key: number(n), group: number(1000 + n/2), name: fmt.Sprintf("maps[n=%d]", n),
			facts: stages.Facts{"unit": "share", "n": fmt.Sprint(n)}, drop: n%4 == 3,
			memos: [2][]byte{fmt.Appendf(nil, "first %d", n), fmt.Appendf(nil, "second %d", n)},
		}
		items := []int{1, 3, 100, 5}[n%4]
		for i := range items {
			bulk := make([]byte, 1400+r.IntN(100))
			for j := range bulk {
				bulk[j] = byte(r.Uint32())
			}
			if i == 2 {
				bulk = slices.Clone(c.payloads[0][0]) // equal payloads
			}
			c.payloads[0] = append(c.payloads[0], bulk)
			c.payloads[1] = append(c.payloads[1], fmt.Appendf(nil, "score %d/%d", n, i))
			c.ids = append(c.ids, fmt.Sprintf("image-%02d", i))
			c.parents = append(c.parents, int32(i/2))
		}
		w.cells = append(w.cells, c)
	}
	return w
}

// entry returns item i as it stands in a listing with some parts.
func (c *worldCell) entry(i int, parts Parts, r Ref) Entry {
	e := Entry{Ref: r}
	if parts != 0 {
		e.Parent, e.ID, e.Origin = c.parents[i], c.ids[i], c.ids[i]
	}
	return e
}

// done tells how far a script came before it was killed.
type done struct {
	recorded map[stages.Digest]bool // cells
	items    map[stages.Digest]bool // cells whose items are recorded
}

// record records everything, cell by cell.
func (w *world) record(s *Store, madeBy string, d *done) error {
	for n := range w.cells {
		c := &w.cells[n]
		var listings []*Listing
		var records []ItemRecord
		for port := range c.payloads {
			refs, err := c.put(s, port)
			if err != nil {
				return err
			}
			l := newListing(c.facts, c.parts(port))
			for i, r := range refs {
				l.Append(c.entry(i, c.parts(port), r))
				if port == 0 {
					records = append(records, ItemRecord{c.itemKey(i), ItemOutcome{}})
				}
				records[i].Ports = append(records[i].Ports, []SubItem{{r, c.ids[i]}})
			}
			listings = append(listings, l)
		}
		if err := s.RecordItems(c.group, madeBy, records); err != nil {
			return err
		}
		if d != nil {
			d.items[c.key] = true
		}
		if err := s.Record(w.action(n, madeBy), listings); err != nil {
			return err
		}
		if d != nil {
			d.recorded[c.key] = true
		}
		for _, m := range c.memos {
			if err := s.SetMemo(c.memoKey(), m); err != nil {
				return err
			}
		}
	}
	if err := s.Seen("test", "other", w.cells[0].key); err != nil {
		return err
	}
	return nil
}

// action is the action of cell n.
func (w *world) action(n int, madeBy string) Action {
	c := &w.cells[n]
	return Action{
		Key: c.key, Experiment: "test", Cell: c.name, Definition: number(500 + n), MadeBy: madeBy,
		Ingredients: []Ingredient{{"implementation", "attribute/random"}, {"params", `{"a":"<1>"}`}},
		Outputs:     []Output{{Port: "maps", Dropped: c.drop}, {Port: "scores"}},
	}
}

// parts are those of the listing of a port.
func (c *worldCell) parts(port int) Parts {
	if port == 0 {
		return Parents | IDs | Origins
	}
	return 0
}

// write records everything and closes the store.
func (w *world) write(s *Store, madeBy string, d *done) error {
	if err := w.record(s, madeBy, d); err != nil {
		return err
	}
	return s.Close()
}

// put stores the payloads of a port, unless they're to be dropped.
func (c *worldCell) put(s *Store, port int) ([]Ref, error) {
	if !c.drop || port != 0 {
		return s.Put(c.payloads[port])
	}
	var refs []Ref
	for _, p := range c.payloads[port] {
		refs = append(refs, Ref{Digest: stages.Sum(p), Len: int64(len(p))})
	}
	return refs, nil
}

// A verdict counts the answers of a store.
type verdict struct{ hits, misses int }

// check compares every answer of the store with the truth. A miss is no error; it's counted.
func (w *world) check(t testing.TB, s *Store) (v verdict) {
	t.Helper()
	for n := range w.cells {
		c := &w.cells[n]
		if w.checkCell(t, s, c) {
			v.hits++
		} else {
			v.misses++
		}
		items := s.Items(c.group, "a")
		for i := range c.ids {
			if w.checkItem(t, s, c, items, i) {
				v.hits++
			} else {
				v.misses++
			}
		}
		if m, ok := s.Memo(c.memoKey()); !ok {
			v.misses++
		} else if v.hits++; !bytes.Equal(m, c.memos[0]) && !bytes.Equal(m, c.memos[1]) {
			t.Fatalf("memo of %q is %q", c.name, m)
		}
		if a, ok := s.Latest("test", c.name); ok && (a.Key != c.key || a.Cell != c.name) {
			t.Fatalf("cell %q was last %q", c.name, a.Cell)
		}
	}
	if _, ok := s.Lookup(stages.Sum([]byte("never recorded")), ""); ok {
		t.Fatal("the store knows a key that was never recorded")
	}
	return v
}

// checkCell reports whether the whole cell can be had.
func (w *world) checkCell(t testing.TB, s *Store, c *worldCell) bool {
	t.Helper()
	h, ok := s.Lookup(c.key, "a")
	if !ok {
		return false
	}
	whole := true
	missed := func(err error) bool {
		var m *Miss
		if err != nil && !errors.As(err, &m) {
			t.Fatalf("cell %q: %v isn't a miss", c.name, err)
		}
		whole = whole && err == nil
		return err != nil
	}
	for p := range h.Objects() {
		if m := s.Check(p); m != nil {
			whole = false
		}
	}
	a, err := s.Action(h)
	if !missed(err) &&
		(a.Cell != c.name || a.Experiment != "test" || len(a.Ingredients) != 2 ||
			a.Ingredients[1].Value != `{"a":"<1>"}`) {
		t.Fatalf("the action of %q is %+v", c.name, a)
	}
	for port := range c.payloads {
		want := listingHash(c.facts, len(c.ids))
		for _, p := range c.payloads[port] {
			d := stages.Sum(p)
			want.Write(d[:])
		}
		digest, items, dropped := h.Output(port)
		if digest != stages.Digest(want.Sum(nil)) || items != len(c.ids) || dropped != (c.drop && port == 0) {
			t.Fatalf("cell %q port %d: the index says %s, %d items, dropped %v", c.name, port, digest.Short(),
				items, dropped)
		}
		l, err := s.Listing(h, port)
		if missed(err) {
			continue
		}
		size := 0
		for _, p := range c.payloads[port] {
			size += len(p)
		}
		if n, err := s.PayloadBytes(h, port); err != nil || n != int64(size) {
			t.Fatalf("cell %q port %d: payloads of %d bytes, %v, want %d", c.name, port, n, err, size)
		}
		if l.Len() != items || !maps.Equal(l.Facts, c.facts) || l.HasParents() != (port == 0) {
			t.Fatalf("cell %q port %d: another listing", c.name, port)
		}
		for i := range l.Len() {
			e := l.At(i)
			if want := c.entry(i, l.parts, e.Ref); !reflect.DeepEqual(e, want) ||
				e.Digest != stages.Sum(c.payloads[port][i]) {
				t.Fatalf("cell %q port %d item %d: %+v, want %+v", c.name, port, i, e, want)
			}
			b, err := s.Load(e.Ref)
			if dropped {
				if err == nil {
					t.Fatalf("cell %q: dropped bytes are there", c.name)
				}
				continue
			}
			if !missed(err) && !bytes.Equal(b, c.payloads[port][i]) {
				t.Fatalf("cell %q port %d item %d: other bytes", c.name, port, i)
			}
		}
	}
	return whole
}

// checkItem reports whether the outcome of an item can be had.
func (w *world) checkItem(t testing.TB, s *Store, c *worldCell, items *Items, i int) bool {
	t.Helper()
	o, ok := outcomeOf(items, c.itemKey(i))
	if !ok {
		return false
	}
	if len(o.Ports) != 2 {
		t.Fatalf("cell %q item %d has %d ports", c.name, i, len(o.Ports))
	}
	whole := true
	for port, subs := range o.Ports {
		if len(subs) != 1 || subs[0].ID != c.ids[i] {
			t.Fatalf("cell %q item %d port %d: %+v", c.name, i, port, subs)
		}
		if c.drop && port == 0 {
			if subs[0].Kept() || subs[0].Digest != stages.Sum(c.payloads[0][i]) {
				t.Fatalf("cell %q item %d: kept %v", c.name, i, subs[0].Kept())
			}
			continue
		}
		b, err := s.Load(subs[0].Ref)
		if err != nil {
			whole = false
		} else if !bytes.Equal(b, c.payloads[port][i]) {
			t.Fatalf("cell %q item %d port %d: other bytes", c.name, i, port)
		}
	}
	return whole
}

func open(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// scratch returns an empty folder, in memory where there's such a file system: these tests make and remove
// many thousands of files.
func scratch(t testing.TB) string {
	t.Helper()
	if dir, err := os.MkdirTemp("/dev/shm", "store"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		return dir
	}
	return t.TempDir()
}

// filled returns the folder of a store that holds w.
func (w *world) filled(t testing.TB) string {
	t.Helper()
	dir := scratch(t)
	s := open(t, dir, Options{})
	if err := w.write(s, "a", nil); err != nil {
		t.Fatal(err)
	}
	return dir
}

// wholeStore fails unless everything can be had and nothing is wrong.
func (w *world) wholeStore(t testing.TB, dir string) {
	t.Helper()
	s := open(t, dir, Options{})
	defer s.Close()
	if v := w.check(t, s); v.misses > 0 {
		t.Fatalf("%d of %d answers are misses", v.misses, v.hits+v.misses)
	}
	problems, err := s.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("verify: %v", p)
	}
}

// outcomeOf returns the outcome of an item, and whether it's known.
func outcomeOf(items *Items, key stages.Digest) (o ItemOutcome, ok bool) {
	row := items.Find(key)
	if row >= 0 {
		o = items.At(row)
	}
	return o, row >= 0
}
