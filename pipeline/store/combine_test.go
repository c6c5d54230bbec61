package store

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
)

// A chunk is what one call of a stage records in these tests: a payload of random bytes for each item.
type chunk struct {
	group    stages.Digest
	payloads [][]byte
}

func newChunk(r *rand.Rand, group, items, size int) chunk {
	c := chunk{group: number(group)}
	for range items {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		c.payloads = append(c.payloads, b)
	}
	return c
}

func (c chunk) key(i int) stages.Digest { return stages.Sum(c.payloads[i]) }

func (c chunk) record(t testing.TB, s *Store) {
	t.Helper()
	refs, err := s.Put(c.payloads)
	if err != nil {
		t.Fatal(err)
	}
	var records []ItemRecord
	for i, r := range refs {
		records = append(records, ItemRecord{c.key(i), ItemOutcome{[][]SubItem{{{r, ""}}}}})
	}
	if err := s.RecordItems(c.group, "a", records); err != nil {
		t.Fatal(err)
	}
}

// shared writes chunks to a share.
func shared(t testing.TB, dir string, chunks ...chunk) {
	t.Helper()
	s := openShare(t, dir, Options{})
	for _, c := range chunks {
		c.record(t, s)
	}
	endShare(s, ShareOK)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// hasChunks fails the test unless the store has all payloads, in as many objects.
func hasChunks(t testing.TB, dir string, objects int, chunks ...chunk) {
	t.Helper()
	s := open(t, dir, Options{ReadOnly: true}) // whose verification merges nothing
	defer s.Close()
	for _, c := range chunks {
		items := s.Items(c.group, "a")
		for i, want := range c.payloads {
			o, ok := outcomeOf(items, c.key(i))
			if !ok {
				t.Fatalf("item %d is missing", i)
			}
			if b, err := s.Load(o.Ports[0][0].Ref); err != nil || !bytes.Equal(b, want) {
				t.Fatalf("item %d: %v", i, err)
			}
		}
	}
	if problems, err := s.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("verify: %q, %v", problems, err)
	}
	if in, err := s.Info(); err != nil || in.Objects != objects {
		t.Errorf("%d objects, want %d; %v", in.Objects, objects, err)
	}
}

// TestMergeCombines holds that a merge makes few objects of the many that shares put, keeps the large ones,
// and finds again what it has combined: that of the same share, of its twin, and of a store that has the
// same items in objects of their own.
func TestMergeCombines(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var small []chunk
	for n := range 400 {
		small = append(small, newChunk(r, n%7, 1+n%3, 4096+r.IntN(4096)))
	}
	large := newChunk(r, 3, 1, int(combinedSize))
	quarter := int(combinedSize / 4)
	medium := []chunk{newChunk(r, 1000, 3, quarter), newChunk(r, 1001, 2, quarter)}
	all := append(append([]chunk{large}, medium...), small...)
	dir := scratch(t)
	shared(t, dir, small[:250]...)
	shared(t, dir, append(append([]chunk{large}, medium...), small[250:]...)...)
	if f := mergeShares(t, dir); f.Objects != 3 || f.Items != len(all) || f.Refused != nil {
		t.Errorf("%+v", f)
	}
	hasChunks(t, dir, 3, all...)
	shared(t, dir, small[100:300]...) // the index is older than that
	if f := mergeShares(t, dir); f.Objects+f.Items != 0 || f.Removed != 3 {
		t.Errorf("again: %+v", f)
	}
	hasChunks(t, dir, 3, all...)

	alone := open(t, scratch(t), Options{})
	for _, c := range small {
		c.record(t, alone)
	}
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, Options{})
	m, err := s.Merge(t.Context(), open(t, alone.dir, Options{ReadOnly: true}))
	if err != nil || m.Items+m.Objects != 0 || m.ItemsKnown != len(small) || m.Refused != nil {
		t.Errorf("of another store: %+v, %v", m, err)
	}
	s.Close()
	shared(t, alone.dir, small[:50]...)
	if f := mergeShares(t, alone.dir); f.Objects+f.Items != 0 || f.Removed != 1 {
		t.Errorf("where a run has them: %+v", f)
	}
}

// TestMergeCombinesAgain: a combined object that is lost or damaged is combined again while a share has what
// was in it.
func TestMergeCombinesAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	chunks := []chunk{newChunk(r, 1, 2, 5000), newChunk(r, 2, 3, 6000), newChunk(r, 300, 1, 7000)}
	for name, harm := range map[string]func(object string) error{
		"lost": os.Remove,
		"cut": func(object string) error {
			return errors.Join(os.Chmod(object, 0o666), os.Truncate(object, 9))
		},
		"a folder": func(object string) error {
			return errors.Join(os.Remove(object), os.Mkdir(object, 0o777))
		},
	} {
		dir := scratch(t)
		shared(t, dir, chunks...)
		mergeShares(t, dir)
		objects, err := filepath.Glob(filepath.Join(dir, "objects", "*", "*"))
		if err != nil || len(objects) != 1 {
			t.Fatalf("%q, %v", objects, err)
		}
		if err := harm(objects[0]); err != nil {
			t.Fatal(err)
		}
		if f := mergeShares(t, dir); f.Removed > 0 || f.Items != len(chunks) || f.Objects != 1 {
			t.Errorf("%s: %+v", name, f)
		}
		hasChunks(t, dir, 1, chunks...)
		if f := mergeShares(t, dir); f.Removed != 1 || f.Items > 0 {
			t.Errorf("%s, again: %+v", name, f)
		}
	}
}

// TestMergeRefusesOne: an altered object of a share takes only its own records with it.
func TestMergeRefusesOne(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	chunks := []chunk{newChunk(r, 1, 1, 5000), newChunk(r, 1, 1, 6000), newChunk(r, 2, 1, 7000)}
	dir := scratch(t)
	shared(t, dir, chunks...)
	path := shareNames(t, dir)[0]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flip(t, path, int64(bytes.Index(b, chunks[1].payloads[0])+2500), 1)
	for round, added := range []int{2, 0} {
		if f := mergeShares(t, dir); f.Items != added || len(f.Refused) != 1 || f.Removed > 0 {
			t.Errorf("%d: %+v", round, f)
		}
	}
	if err := os.Remove(path); err != nil { // which a verification would name
		t.Fatal(err)
	}
	hasChunks(t, dir, 1, chunks[0], chunks[2])
}

// TestMergeUndoes: a record that is refused leaves nothing in the objects that are combined.
func TestMergeUndoes(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	dir := scratch(t)
	good := newChunk(r, 1, 1, 5000)
	s := openShare(t, dir, Options{})
	nowhere := Ref{Digest: number(1), Object: ObjectRef{number(2), 8000}, Len: 8000}
	for n := range 5 {
		c := newChunk(r, 1, 1, 6000)
		refs, err := s.Put(c.payloads)
		if err != nil {
			t.Fatal(err)
		}
		o := ItemOutcome{[][]SubItem{{{refs[0], ""}}, {{nowhere, ""}}}}
		if err := s.RecordItems(number(1), "a", []ItemRecord{{number(100 + n), o}}); err != nil {
			t.Fatal(err)
		}
	}
	good.record(t, s)
	endShare(s, ShareOK)
	s.Close()
	if f := mergeShares(t, dir); f.Items != 1 || f.Bytes != 5000 || len(f.Refused) != 5 || f.Removed > 0 {
		t.Errorf("%+v", f)
	}
	hasChunks(t, dir, 1, good)
}

// TestMergeAfterEarlier: what a share makes again of an earlier attempt is in its own share, as that of the
// earlier one may be merged and gone.
func TestMergeAfterEarlier(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	c := newChunk(r, 1, 2, 5000)
	dir := scratch(t)
	shared(t, dir, c, newChunk(r, 1, 2, 6000))
	s := openShare(t, dir, Options{})
	if o, ok := outcomeOf(s.Items(c.group, "a"), c.key(0)); !ok || s.Check(o.Ports[0][0].Object) != nil {
		t.Fatal("the earlier attempt isn't found")
	}
	mergeShares(t, dir)
	if f := mergeShares(t, dir); f.Removed != 1 {
		t.Fatalf("%+v", f)
	}
	again := chunk{number(500), c.payloads}
	again.record(t, s)
	endShare(s, ShareOK)
	s.Close()
	if f := mergeShares(t, dir); f.Items != 1 || f.Refused != nil {
		t.Errorf("%+v", f)
	}
	hasChunks(t, dir, 2, c, again)
	if f := mergeShares(t, dir); f.Removed != 1 {
		t.Errorf("%+v", f)
	}
}

// TestMergeCombined: of a store that has the same cells, merged otherwise, nothing is copied.
func TestMergeCombined(t *testing.T) {
	w := newWorld(8)
	stores := []*Store{open(t, w.filled(t), Options{})}
	for _, size := range []int64{4 << 10, 1 << 20} {
		combineAt(t, size)
		dir := sharedBy(t, scratch(t), w)
		mergeShares(t, dir)
		w.close(t, dir)
		stores = append(stores, open(t, dir, Options{}))
	}
	for _, s := range stores {
		for _, other := range stores {
			if s == other {
				continue
			}
			m, err := s.Merge(t.Context(), other)
			if err != nil || m.Actions+m.Items+m.Objects > 0 || m.ActionsKnown != 8 || m.Refused != nil {
				t.Errorf("%+v, %v", m, err)
			}
		}
	}
}

// TestMergeLooks: a merge looks at no objects but those of the groups that shares have.
func TestMergeLooks(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	one := newChunk(r, 0, 1, 5000)
	dir := scratch(t)
	s := open(t, dir, Options{})
	for range 200 {
		c := newChunk(r, 0, 1, 5000)
		c.group = one.group
		c.group[31]++ // in the same log
		c.record(t, s)
	}
	s.Close()
	shared(t, dir, one)
	c := newClient(1)
	s = open(t, dir, Options{files: c})
	defer s.Close()
	if _, err := s.MergeShares(t.Context()); err != nil || c.calls["lstat"] > 20 {
		t.Errorf("%v, %v", c.calls, err)
	}
}

// TestMergeInBatches: shares of more frames than memory should hold are merged a few shares at a time, those
// of one share together.
func TestMergeInBatches(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 10))
	dir := scratch(t)
	var all []chunk
	for share := range 7 {
		for range 2 {
			c := newChunk(r, share, 1, 5000)
			all = append(all, c)
			s, _, err := OpenShare(dir, ShareName{Share: share, Shares: 7}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			c.record(t, s)
			endShare(s, ShareOK)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := batchFrames
	t.Cleanup(func() { batchFrames = before })
	batchFrames = 10 // a share has a note, an object, a record and an end
	if f := mergeShares(t, dir); f.Shares != 14 || f.Items != 14 || f.Objects != 4 || f.Removed > 0 {
		t.Errorf("%+v", f)
	}
	hasChunks(t, dir, 4, all...)
	if f := mergeShares(t, dir); f.Removed != 14 {
		t.Errorf("%+v", f)
	}
	hasChunks(t, dir, 4, all...)
}

// combineAt has merges combine objects to a size, until the test ends.
func combineAt(t *testing.T, size int64) {
	before := combinedSize
	t.Cleanup(func() { combinedSize = before })
	combinedSize = size
}

// BenchmarkMergeShares measures the merge of items with payloads of 2 KiB, in chunks of 16, and the one that
// finds them all.
func BenchmarkMergeShares(b *testing.B) {
	r := rand.New(rand.NewPCG(6, 6))
	from := scratch(b)
	const chunks = 2000
	var all []chunk
	for n := range chunks {
		all = append(all, newChunk(r, n%50, 16, 2048))
	}
	shared(b, from, all...)
	for name, times := range map[string]int{"adds": 1, "removes": 2} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(chunks * 16 * 2048)
			for b.Loop() {
				b.StopTimer()
				dir := scratch(b)
				if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
					b.Fatal(err)
				}
				for range times - 1 {
					mergeShares(b, dir)
				}
				b.StartTimer()
				mergeShares(b, dir)
				b.StopTimer()
				os.RemoveAll(dir)
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(chunks*16), "ns/item")
		})
	}
}
