package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runexp/runexp/stages"
)

// ownOf returns the file of a share.
func ownOf(s *Store) *shareFile { return s.layer.(*share).own }

func endShare(s *Store, outcome string) { s.layer.(*share).end(outcome) }

// openShare opens a store for share 1 of 3.
func openShare(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, _, err := OpenShare(dir, ShareName{Share: 1, Shares: 3, Experiment: "test", Job: "17"}, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sharedBy returns the folder of a store whose shares hold the worlds, each written by a share that ended.
func sharedBy(t testing.TB, dir string, worlds ...*world) string {
	t.Helper()
	for _, w := range worlds {
		s := openShare(t, dir, Options{})
		if err := w.record(s, "a", nil); err != nil {
			t.Fatal(err)
		}
		endShare(s, ShareOK)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// items counts the items that can be had, and those that can't.
func (w *world) items(t testing.TB, s *Store) (v verdict) {
	t.Helper()
	for n := range w.cells {
		c := &w.cells[n]
		items := s.Items(c.group, "a")
		for i := range c.ids {
			if w.checkItem(t, s, c, items, i) {
				v.hits++
			} else {
				v.misses++
			}
		}
	}
	return v
}

// hasItems fails the test unless the store has all items of the world, and nothing is wrong in it.
func (w *world) hasItems(t testing.TB, dir string) {
	t.Helper()
	s := open(t, dir, Options{ReadOnly: true, Warn: func(m string) { t.Errorf("warning: %s", m) }})
	defer s.Close()
	if v := w.items(t, s); v.misses > 0 {
		t.Errorf("%d of %d items are missing", v.misses, v.hits+v.misses)
	}
	if problems, err := s.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("verify: %q, %v", problems, err)
	}
}

// close records the actions of the world from the records of items, and writes an extract of them and of the
// groups of the next wave, as the closing of a wave does.
func (w *world) close(t testing.TB, dir string, next ...stages.Digest) {
	t.Helper()
	s := open(t, dir, Options{})
	var hits []Hit
	for n := range w.cells {
		c := &w.cells[n]
		items := s.Items(c.group, "a")
		a := w.action(n, "a")
		var listings []*Listing
		for port := range c.payloads {
			l := newListing(c.facts, c.parts(port))
			for i := range c.ids {
				o, _ := outcomeOf(items, c.itemKey(i))
				l.Append(c.entry(i, c.parts(port), o.Ports[port][0].Ref))
			}
			listings = append(listings, l)
		}
		if err := s.Record(a, listings); err != nil {
			t.Fatal(err)
		}
		h, _ := s.Lookup(c.key, "a")
		hits = append(hits, h)
	}
	if err := errors.Join(s.WriteExtract("test", hits, next), s.Close()); err != nil {
		t.Fatal(err)
	}
}

func mergeShares(t testing.TB, dir string) SharesReport {
	t.Helper()
	s := open(t, dir, Options{})
	r, err := s.MergeShares(t.Context())
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return r
}

func shareNames(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "shares", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestShare: a store that was opened for a share answers as any other, writes one file, and is found again by
// the next attempt at the share and by nobody else.
func TestShare(t *testing.T) {
	w := newWorld(8)
	dir := (&world{cells: w.cells[:3]}).filled(t)
	before := files(t, dir)
	s := openShare(t, dir, Options{Warn: func(m string) { t.Errorf("warning: %s", m) }})
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	if d, err := s.FileDigest(outside); err != nil || d != stages.Sum([]byte("x")) {
		t.Errorf("digest %v, %v", d, err)
	}
	if err := w.record(s, "a", nil); err != nil {
		t.Fatal(err)
	}
	if v := w.check(t, s); v.misses > 0 {
		t.Errorf("%d misses in the share", v.misses)
	}
	names := shareNames(t, dir)
	if len(names) != 1 || !strings.HasPrefix(filepath.Base(names[0]), "1of3.") {
		t.Fatalf("shares: %q", names)
	}
	info, err := s.Shares()
	if err != nil || len(info) != 1 || info[0].End != nil || !info[0].InUse() || info[0].Items != 218 ||
		info[0].Start.Experiment != "test" || info[0].Start.Job != "17" {
		t.Errorf("while it runs: %+v, %v", info, err)
	}
	endShare(s, "it failed")
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	after := files(t, dir)
	after = slices.DeleteFunc(after, func(f string) bool { return strings.Contains(f, "shares") })
	if !slices.Equal(before, after) {
		t.Error("the share wrote more than its file")
	}
	info, err = open(t, dir, Options{ReadOnly: true}).Shares()
	if err != nil || len(info) != 1 || info[0].InUse() || info[0].End.Outcome != "it failed" {
		t.Errorf("after its end: %+v, %v", info, err)
	}
	if left := shareNames(t, dir); !slices.Equal(left, names) {
		t.Errorf("a look at shares leaves %q", left)
	}
	again := openShare(t, dir, Options{})
	if v := w.items(t, again); v.misses > 0 {
		t.Errorf("%d items are missing in the second attempt", v.misses)
	}
	// put puts cells after a look at what is known of them, and returns how many bytes that wrote.
	put := func(s *Store, cells []worldCell) int64 {
		size := ownOf(s).end
		for n := range cells {
			c := &cells[n]
			items := s.Items(c.group, "a")
			for i := range c.ids {
				o, _ := outcomeOf(items, c.itemKey(i))
				for _, port := range o.Ports {
					if p := port[0].Object; p != (ObjectRef{}) && s.Check(p) != nil {
						t.Errorf("item %d of %s: %v", i, c.name, s.Check(p))
					}
				}
			}
			for port := range c.payloads {
				if _, err := c.put(s, port); err != nil {
					t.Fatal(err)
				}
			}
		}
		return ownOf(s).end - size
	}
	if n := put(again, w.cells); n == 0 {
		t.Error("the second attempt relies on the share of the first, which may go")
	}
	if n := put(again, w.cells); n != 0 {
		t.Errorf("the second attempt writes %d bytes twice", n)
	}
	again.Close()
	other, _, err := OpenShare(dir, ShareName{Share: 2, Shares: 3}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if v := w.items(t, other); v.hits != 104 {
		t.Errorf("another share has %d items", v.hits)
	}
	if n := put(other, w.cells[:3]); n != 0 {
		t.Errorf("a share writes %d bytes that the store has", n)
	}
	other.Close()
}

// TestAppendReturnsPlace holds that a share's append returns where the frame begins.
func TestAppendReturnsPlace(t *testing.T) {
	dir := t.TempDir()
	s := openShare(t, dir, Options{})
	defer s.Close()
	key, payload := stages.Sum([]byte("key")), []byte("a memo")
	for range 2 {
		off, n, err := s.layer.append(memoFrame, key, payload)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readFrame(ownOf(s).file, span{off, n}, memoFrame, key)
		if err != nil || string(got) != string(payload) {
			t.Errorf("at %d is %q, %v", off, got, err)
		}
	}
}

// TestMergeShares: what shares left comes into the store, and shares go when all they hold is there.
func TestMergeShares(t *testing.T) {
	w := newWorld(8)
	dir := (&world{cells: w.cells[:2]}).filled(t)
	sharedBy(t, dir, &world{cells: w.cells[:5]}, &world{cells: w.cells[4:]}, w)
	r := mergeShares(t, dir)
	if r.Shares != 3 || r.Removed != 0 || r.Items == 0 || r.Objects == 0 || r.Refused != nil {
		t.Errorf("first: %+v", r)
	}
	w.hasItems(t, dir)
	if r := mergeShares(t, dir); r.Shares != 3 || r.Removed != 3 || r.Items+r.Objects != 0 {
		t.Errorf("second: %+v", r)
	}
	w.hasItems(t, dir)
	if r := mergeShares(t, dir); r.Shares != 0 || len(shareNames(t, dir)) > 0 {
		t.Errorf("third: %+v", r)
	}
	empty := filepath.Join(t.TempDir(), "store")
	mergeShares(t, empty)
	if _, err := os.Stat(empty); err == nil {
		t.Error("a merge of nothing made a store")
	}
	s := open(t, dir, Options{ReadOnly: true})
	if _, err := s.MergeShares(t.Context()); err == nil {
		t.Error("merged into a store opened for reading")
	}
}

// TestSharesOfEarlierVersions: shares in the folder parts/ are found as others are, by the store, by one that
// it is merged into, and by the next attempt at the same share; and a brief next to them goes when it is old.
func TestSharesOfEarlierVersions(t *testing.T) {
	w := newWorld(4)
	dir := sharedBy(t, scratch(t), w)
	parts := filepath.Join(dir, "parts")
	brief := filepath.Join(parts, "brief-0123456789abcdef.0123456789abcdef")
	long := time.Now().Add(-2 * shareInUse)
	err := errors.Join(os.Rename(filepath.Join(dir, "shares"), parts), os.WriteFile(brief, nil, 0o666),
		os.Chtimes(brief, long, long))
	if err != nil {
		t.Fatal(err)
	}
	other := open(t, scratch(t), Options{})
	if r, err := other.Merge(t.Context(), open(t, dir, Options{ReadOnly: true})); err != nil || r.Items == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	other.Close()
	w.hasItems(t, other.dir)
	again := openShare(t, dir, Options{})
	if v := w.items(t, again); v.misses > 0 {
		t.Errorf("the next attempt misses %d items", v.misses)
	}
	again.Close()
	mergeShares(t, dir)
	w.hasItems(t, dir)
	if r := mergeShares(t, dir); r.Removed != 1 {
		t.Errorf("%+v", r)
	}
	s := open(t, dir, Options{})
	defer s.Close()
	if r, err := s.GC(Roots{}, true); err != nil || r.Leftovers != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if left, err := os.ReadDir(parts); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestSharesCarryMemos holds that of what all shares remember one share has each, and that a merge takes it.
func TestSharesCarryMemos(t *testing.T) {
	dir := scratch(t)
	key := func(i int) stages.Digest { return stages.Sum([]byte{byte(i)}) }
	const shares, memos = 3, 60
	var sizes int64
	for k := range shares {
		s, _, err := OpenShare(dir, ShareName{Share: k, Shares: shares}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range memos {
			if err := s.SetMemo(key(i), []byte{1, byte(i)}); err != nil {
				t.Fatal(err)
			}
			if b, ok := s.Memo(key(i)); !ok || b[1] != byte(i) {
				t.Errorf("the share itself forgets memo %d", i)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for _, m := range ownOf(s).memos {
			sizes += int64(len(m))
		}
	}
	if sizes != 2*memos {
		t.Errorf("shares hold %d bytes of memos, want those of one share", sizes)
	}
	mergeShares(t, dir)
	s := open(t, dir, Options{ReadOnly: true})
	defer s.Close()
	for i := range memos {
		if b, ok := s.Memo(key(i)); !ok || b[1] != byte(i) {
			t.Errorf("memo %d is lost", i)
		}
	}
}

// TestShareInUse: a share stays while its share may write it, and goes when that was killed long ago.
func TestShareInUse(t *testing.T) {
	w := newWorld(4)
	dir := scratch(t)
	s := openShare(t, dir, Options{})
	if err := w.record(s, "a", nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if r := mergeShares(t, dir); r.Shares != 1 || r.Removed != 0 {
			t.Errorf("in use: %+v", r)
		}
	}
	w.hasItems(t, dir)
	s.Close() // it says nothing of an end
	if r := mergeShares(t, dir); r.Removed != 0 {
		t.Errorf("killed just now: %+v", r)
	}
	long := time.Now().Add(-shareInUse - time.Hour)
	if err := os.Chtimes(shareNames(t, dir)[0], long, long); err != nil {
		t.Fatal(err)
	}
	if r := mergeShares(t, dir); r.Removed != 1 {
		t.Errorf("killed long ago: %+v", r)
	}
	w.hasItems(t, dir)
}

// TestMergeSharesTwiceAtOnce merges by two stores at once, as often as it takes until no share is left.
func TestMergeSharesTwiceAtOnce(t *testing.T) {
	w := newWorld(8)
	dir := sharedBy(t, scratch(t), w, &world{cells: w.cells[:4]}, w)
	for round := 0; len(shareNames(t, dir)) > 0; round++ {
		if round == 5 {
			t.Fatal("shares stay")
		}
		errs := make(chan error)
		for range 2 {
			go func() {
				s, err := Open(dir, Options{})
				if err == nil {
					_, err = s.MergeShares(t.Context())
					err = errors.Join(err, s.Close())
				}
				errs <- err
			}()
		}
		if err := errors.Join(<-errs, <-errs); err != nil {
			t.Fatal(err)
		}
		w.hasItems(t, dir)
	}
}

// TestSharesTwiceAtOnce runs the same share twice at once: neither sees what the other writes.
func TestSharesTwiceAtOnce(t *testing.T) {
	w := newWorld(8)
	dir := scratch(t)
	errs := make(chan error)
	for range 2 {
		s := openShare(t, dir, Options{})
		go func() { errs <- errors.Join(w.record(s, "a", nil), s.Close()) }()
	}
	if err := errors.Join(<-errs, <-errs); err != nil {
		t.Fatal(err)
	}
	if r := mergeShares(t, dir); r.Shares != 2 || r.Refused != nil {
		t.Errorf("%+v", r)
	}
	w.hasItems(t, dir)
}

// TestShareKilled ends a share at every point between two system calls, and within every write. What it had
// recorded is found by the next attempt and by a merge, and nothing is damaged.
func TestShareKilled(t *testing.T) {
	w := newWorld(4)
	points := 0
	for _, tear := range []int{0, 1, 4} {
		for n := 1; ; n++ {
			dir := scratch(t)
			k := &killer{n: n, tear: tear}
			d := &done{map[stages.Digest]bool{}, map[stages.Digest]bool{}}
			s, _, err := OpenShare(dir, ShareName{Share: 1, Shares: 3}, Options{Hook: k.hook})
			if err == nil {
				if err = w.record(s, "a", d); err == nil {
					endShare(s, ShareOK)
					err = s.Close()
				}
			}
			if !k.struck() {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			if err == nil {
				t.Fatalf("tear %d: killed at point %d, and nobody noticed", tear, n)
			}
			points++
			recorded := &world{}
			for _, c := range w.cells {
				if d.items[c.key] {
					recorded.cells = append(recorded.cells, c)
				}
			}
			again := openShare(t, dir, Options{})
			if v := recorded.items(t, again); v.misses > 0 {
				t.Errorf("%d items were recorded and are gone", v.misses)
			}
			again.Close()
			if r := mergeShares(t, dir); r.Refused != nil {
				t.Errorf("refused: %q", r.Refused)
			}
			recorded.hasItems(t, dir)
			os.RemoveAll(dir)
			if t.Failed() {
				t.Fatalf("tear %d: killed at point %d", tear, n)
			}
		}
	}
	if t.Logf("killed at %d points", points); points < 50 {
		t.Errorf("only %d points", points)
	}
}

// TestMergeSharesKilled ends a merge, the one that adds and the one that removes, at every point, by a kill
// and by a crash that leaves zeros where nothing was synced.
func TestMergeSharesKilled(t *testing.T) {
	combineAt(t, 20_000) // several objects
	w := newWorld(6)
	from := sharedBy(t, (&world{cells: w.cells[:2]}).filled(t), w, &world{cells: w.cells[3:]})
	points := 0
	for mode, tear := range []int{0, 1, 4, 0} {
		for n := 1; ; n++ {
			dir := scratch(t)
			if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			k := &killer{n: n, tear: tear}
			c := newClient(uint64(n))
			c.names = true
			var err error
			for range 2 {
				s := open(t, dir, Options{Hook: k.hook, files: c})
				if err == nil {
					_, err = s.MergeShares(t.Context())
				}
				if err == nil {
					err = s.Close()
				}
			}
			if !k.struck() {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			if err == nil {
				t.Fatalf("tear %d: killed at point %d, and nobody noticed", tear, n)
			}
			if points++; mode == 3 {
				c.crash(t)
			} else {
				(&world{cells: w.cells[:2]}).hasItems(t, dir)
			}
			for range 2 {
				if r := mergeShares(t, dir); r.Refused != nil {
					t.Errorf("refused: %q", r.Refused)
				}
				s := open(t, dir, Options{})
				if v := w.items(t, s); v.misses > 0 {
					t.Errorf("%d items are lost", v.misses)
				}
				s.Close()
			}
			left := slices.DeleteFunc(shareNames(t, dir), func(name string) bool {
				_, ok := shareNamed(filepath.Base(name))
				return !ok
			})
			if len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			os.RemoveAll(dir)
			if t.Failed() {
				t.Fatalf("mode %d: killed at point %d", mode, n)
			}
		}
	}
	if t.Logf("killed at %d points", points); points < 50 {
		t.Errorf("only %d points", points)
	}
}

// TestHostileShares alters each byte region of a share, cuts it, and puts other things in its place: no wrong
// byte arrives, nothing that was here goes, what can't be had is told, and the share stays.
func TestHostileShares(t *testing.T) {
	w := newWorld(4)
	from := sharedBy(t, scratch(t), w)
	path := shareNames(t, from)[0]
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, whole, 0o666); err != nil {
		t.Fatal(err)
	}
	type damage struct {
		name string
		do   func(path string) error
		told bool
	}
	write := func(b []byte) func(string) error {
		return func(path string) error { return os.WriteFile(path, b, 0o666) }
	}
	later := appendFrame(nil, noteFrame, stages.Digest{}, []byte(`{"format":2}`))
	cases := []damage{
		{"a link", func(path string) error { return os.Symlink(secret, path) }, true},
		{"a link to itself", func(path string) error { return os.Symlink(path, path) }, true},
		{"a folder", func(path string) error { return os.Mkdir(path, 0o777) }, true},
		{"garbage", write([]byte(strings.Repeat("garbage", 1000))), true},
		{"nothing", write(nil), false},
		{"zeros", write(make([]byte, 5000)), false},
		{"another format", write(later), true},
		{"a memo", write(appendFrame(nil, memoFrame, stages.Digest{}, nil)), true},
	}
	for off := 3; off < len(whole); off += 997 {
		altered := slices.Clone(whole)
		altered[off] ^= 0x41
		cases = append(cases, damage{"altered", write(altered), true},
			damage{"cut", write(whole[:off]), false})
	}
	for _, c := range cases {
		dir := scratch(t)
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		path := shareNames(t, dir)[0]
		if err := errors.Join(os.Remove(path), c.do(path)); err != nil {
			t.Fatal(err)
		}
		told, removed := false, false
		for range 3 {
			r := mergeShares(t, dir)
			told, removed = told || len(r.Refused) > 0, removed || r.Removed > 0
			s := open(t, dir, Options{ReadOnly: true})
			w.items(t, s) // fails at a wrong byte
			s.Close()
		}
		_, err := os.Lstat(path)
		switch {
		case removed: // what was altered is what the store doesn't need
			w.hasItems(t, dir)
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.told && !told:
			t.Errorf("%s: not told", c.name)
		}
		if s := openShare(t, dir, Options{}); true {
			w.items(t, s)
			s.Close()
		}
		os.RemoveAll(dir)
	}
	if b, err := os.ReadFile(secret); err != nil || !slices.Equal(b, whole) {
		t.Error("what a link led to was touched")
	}
}

// TestMergeFiles: shares come from another store, from a folder and from files, and stay there.
func TestMergeFiles(t *testing.T) {
	w := newWorld(4)
	from := sharedBy(t, scratch(t), w)
	before := files(t, from)
	other := open(t, from, Options{ReadOnly: true})
	for how, merge := range map[string]func(s *Store) (MergeReport, bool, error){
		"store": func(s *Store) (MergeReport, bool, error) {
			r, err := s.Merge(t.Context(), other)
			return r, true, err
		},
		"folder": func(s *Store) (MergeReport, bool, error) {
			return s.MergeFiles(t.Context(), filepath.Join(from, "shares"))
		},
		"file": func(s *Store) (MergeReport, bool, error) {
			return s.MergeFiles(t.Context(), shareNames(t, from)[0])
		},
	} {
		s := open(t, scratch(t), Options{})
		for round := range 2 {
			r, found, err := merge(s)
			if err != nil || !found || r.Refused != nil || (r.Items == 4) != (round == 0) {
				t.Errorf("%s: %+v, %v, %v", how, r, found, err)
			}
		}
		s.Close()
		w.hasItems(t, s.dir)
	}
	if !slices.Equal(before, files(t, from)) {
		t.Error("the other store was changed")
	}
	if _, found, err := other.MergeFiles(t.Context(), from); found || err == nil {
		t.Errorf("a store's own folder: found %v, %v", found, err)
	}
}

// TestCollectWithShares: a collection leaves shares, and the objects that only records of shares refer to.
func TestCollectWithShares(t *testing.T) {
	w := newWorld(4)
	dir := w.filled(t)
	s := openShare(t, dir, Options{})
	for n := range w.cells { // the share refers to the store's objects
		c := &w.cells[n]
		items := s.Items(c.group, "a")
		var records []ItemRecord
		for i := range c.ids {
			o, _ := outcomeOf(items, c.itemKey(i))
			records = append(records, ItemRecord{c.itemKey(i), o})
		}
		if err := s.RecordItems(number(3000+n), "a", records); err != nil {
			t.Fatal(err)
		}
		c.group = number(3000 + n)
	}
	if err := os.WriteFile(filepath.Join(dir, "shares", tempPrefix+"old"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-2 * inFlight)
	if err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, long, long))
	}); err != nil {
		t.Fatal(err)
	}
	store := open(t, dir, Options{})
	none := func(stages.Digest) bool { return false }
	r, err := store.GC(Roots{none, none}, true)
	if err != nil || r.ActionsKept > 0 || r.Leftovers != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := errors.Join(store.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	mergeShares(t, dir)
	w.hasItems(t, dir)
	in, err := open(t, dir, Options{}).Info()
	if err != nil || in.Shares != 1 || in.SharesInUse != 1 || in.ShareItems != in.Items ||
		in.ShareBytes == 0 {
		t.Errorf("%+v, %v", in, err)
	}
}

// TestVerifyShares: damaged shares are named and set aside when what is whole of them is in the store.
func TestVerifyShares(t *testing.T) {
	w := newWorld(4)
	dir := sharedBy(t, scratch(t), w)
	path := shareNames(t, dir)[0]
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	flip(t, path, info.Size()/2, 1)
	if err := os.Symlink("/etc", filepath.Join(dir, "shares", "2of3.0000000000000001")); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, Options{})
	problems, err := s.Verify(t.Context())
	if err != nil || len(problems) != 2 || !strings.HasPrefix(problems[0], "shares/1of3.") ||
		!strings.Contains(problems[1], "link") {
		t.Errorf("%q, %v", problems, err)
	}
	if problems, err := s.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("again: %q, %v", problems, err)
	}
	if names := shareNames(t, dir); len(names) > 0 {
		t.Errorf("left: %q", names)
	}
	if v := w.items(t, s); v.hits == 0 || v.misses == 0 {
		t.Errorf("%+v", v)
	}
}

// others is a file system on which shares are in another user's folder.
type others struct{ osFiles }

func (others) Rename(from, to string) error {
	if filepath.Base(filepath.Dir(from)) == "shares" {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrPermission}
	}
	return os.Rename(from, to)
}

// TestVerifySharesOfOthers: damaged shares that can't be set aside are named, with all other problems.
func TestVerifySharesOfOthers(t *testing.T) {
	w := newWorld(4)
	dir := sharedBy(t, scratch(t), w)
	path := shareNames(t, dir)[0]
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	flip(t, path, info.Size()/2, 1)
	s := open(t, dir, Options{})
	s.fs = others{}
	problems, err := s.Verify(t.Context())
	if err != nil || len(problems) != 2 || !strings.HasPrefix(problems[0], "shares/1of3.") &&
		!strings.HasPrefix(problems[1], "shares/1of3.") ||
		!strings.Contains(strings.Join(problems, "\n"), "another user's") {
		t.Errorf("%q, %v", problems, err)
	}
}

// TestMergeSharesersOfGroups: what is made in a store that a group shares is open to the group, whatever the
// umask.
func TestMergeSharesersOfGroups(t *testing.T) {
	was := syscall.Umask(0o077)
	defer syscall.Umask(was)
	dir := scratch(t)
	if err := errors.Join(os.MkdirAll(dir, 0o777), os.Chmod(dir, 0o770|fs.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	sharedBy(t, dir, newWorld(4))
	mergeShares(t, dir)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm() != 0o770 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
