package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/runexp/runexp/stages"
)

// extractsIn returns the extracts in a store's folder.
func extractsIn(t testing.TB, dir string) []string {
	t.Helper()
	extracts, err := filepath.Glob(filepath.Join(dir, "shares", "extract-*"))
	if err != nil {
		t.Fatal(err)
	}
	return extracts
}

// TestExtract: of an experiment there is one extract, which goes with the last wave, and with a collection
// when no share can need it any more.
func TestExtract(t *testing.T) {
	w := newWorld(4)
	dir := sharedBy(t, scratch(t), w)
	mergeShares(t, dir)
	w.close(t, dir)
	w.close(t, dir)
	s := open(t, dir, Options{})
	defer s.Close()
	h, _ := s.Lookup(w.cells[0].key, "a")
	if err := s.WriteExtract("another", []Hit{h}, nil); err != nil {
		t.Fatal(err)
	}
	if extracts := extractsIn(t, dir); len(extracts) != 2 {
		t.Errorf("two experiments have the extracts %q", extracts)
	}
	if err := s.RemoveExtract("test"); err != nil {
		t.Fatal(err)
	}
	extracts := extractsIn(t, dir)
	if len(extracts) != 1 {
		t.Fatalf("left: %q", extracts)
	}
	info, err := os.Stat(extracts[0])
	with, e := s.Info()
	if err := errors.Join(err, e, os.Rename(extracts[0], dir+"/away")); err != nil {
		t.Fatal(err)
	}
	without, err := s.Info()
	if err != nil || with.RecordBytes-without.RecordBytes != info.Size() {
		t.Errorf("an extract of %d bytes counts %d", info.Size(), with.RecordBytes-without.RecordBytes)
	}
	if err := os.Rename(dir+"/away", extracts[0]); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		age  time.Duration
		left int
	}{{2 * inFlight, 1}, {shareInUse + time.Minute, 0}} {
		at := time.Now().Add(-c.age)
		if err := os.Chtimes(extracts[0], at, at); err != nil {
			t.Fatal(err)
		}
		if _, err := s.GC(Roots{}, true); err != nil || len(extractsIn(t, dir)) != c.left {
			t.Errorf("after %v: %q, %v", c.age, extractsIn(t, dir), err)
		}
	}
	reader := open(t, dir, Options{ReadOnly: true})
	if err := reader.WriteExtract("test", []Hit{h}, nil); err == nil {
		t.Error("written in a store opened for reading")
	}
}

// TestExtractOfGroups: a share reads no log of items whose groups the extract has, be it that they have no
// records, and finds all records, also where two extracts lie there or one is cut.
func TestExtractOfGroups(t *testing.T) {
	w := newWorld(8)
	from := w.filled(t)
	s := open(t, from, Options{})
	groups := []stages.Digest{number(7001), number(7002)}
	for n := range w.cells {
		groups = append(groups, w.cells[n].group)
	}
	if err := errors.Join(s.WriteExtract("test", nil, groups), s.Close()); err != nil {
		t.Fatal(err)
	}
	cut := func(dir string) error {
		path := extractsIn(t, dir)[0]
		info, err := os.Stat(path)
		return errors.Join(err, os.Truncate(path, info.Size()/2))
	}
	older := func(dir string) error { // of a time when there were no records
		b := appendFrame(nil, noteFrame, stages.Digest{}, []byte(`{"format":1}`))
		for _, g := range groups {
			b = appendFrame(b, itemFrame, g, encodeItems("", nil))
		}
		b = appendFrame(b, noteFrame, stages.Digest{}, []byte(`{"outcome":"ok"}`))
		return os.WriteFile(filepath.Join(dir, "shares", extractName("test")+"0000000000000000"), b, 0o666)
	}
	for name, change := range map[string]func(dir string) error{
		"as it was": func(string) error { return nil }, "cut": cut, "two": older,
	} {
		dir := scratch(t)
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		c := newClient(1)
		s := openShare(t, dir, Options{files: c})
		before := c.calls["open"]
		for _, g := range groups {
			if s.Items(g, "a").Find(stages.Digest{}) >= 0 {
				t.Errorf("%s: an item of nowhere", name)
			}
		}
		if opens := c.calls["open"] - before; opens > 0 && name == "as it was" {
			t.Errorf("%d files are opened for groups that the extract has", opens)
		}
		if v := w.items(t, s); v.misses > 0 {
			t.Errorf("%s: %d items are missing", name, v.misses)
		}
		s.Close()
	}
}

// TestExtractIsBounded: what has no room in an extract is read where it would be copied from.
func TestExtractIsBounded(t *testing.T) {
	before := maxExtract
	t.Cleanup(func() { maxExtract = before })
	w := newWorld(8)
	var groups []stages.Digest
	for n := range w.cells {
		groups = append(groups, w.cells[n].group)
	}
	var sizes []int64
	for _, maxExtract = range []int64{0, 5000, before} {
		dir := sharedBy(t, scratch(t), w)
		mergeShares(t, dir)
		w.close(t, dir, groups...)
		info, err := os.Stat(extractsIn(t, dir)[0])
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, info.Size())
		s := openShare(t, dir, Options{})
		for n := range w.cells {
			if !w.checkCell(t, s, &w.cells[n]) {
				t.Errorf("within %d bytes: %s can't be had", maxExtract, w.cells[n].name)
			}
		}
		if v := w.items(t, s); v.misses > 0 {
			t.Errorf("within %d bytes: %d items are missing", maxExtract, v.misses)
		}
		s.Close()
	}
	if sizes[0] >= sizes[1] || sizes[1] >= sizes[2] {
		t.Errorf("extracts of %d bytes", sizes)
	}
}

// TestMergeOutdatesExtracts: a share finds what a merge added since its extract was written, even if that
// merge was killed before it removed the extract.
func TestMergeOutdatesExtracts(t *testing.T) {
	w := newWorld(2)
	for _, killed := range []bool{false, true} {
		dir := scratch(t)
		s := open(t, dir, Options{})
		if err := s.WriteExtract("test", nil, []stages.Digest{w.cells[0].group}); err != nil {
			t.Fatal(err)
		}
		s.Close()
		extract := extractsIn(t, dir)[0]
		b, err := os.ReadFile(extract)
		if err != nil {
			t.Fatal(err)
		}
		sharedBy(t, dir, w)
		mergeShares(t, dir)
		if killed {
			if err := os.WriteFile(extract, b, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if f := mergeShares(t, dir); f.Removed != 1 {
			t.Fatalf("%+v", f)
		}
		share := openShare(t, dir, Options{})
		if v := w.items(t, share); v.misses > 0 {
			t.Errorf("killed %v: %d items are hidden", killed, v.misses)
		}
		share.Close()
	}
}

// TestHostileExtracts alters, cuts and replaces an extract: no wrong byte arrives, and the share finds all
// that was copied where it came from.
func TestHostileExtracts(t *testing.T) {
	w := newWorld(8)
	from := sharedBy(t, scratch(t), w)
	mergeShares(t, from)
	w.close(t, from)
	name := extractsIn(t, from)[0]
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	damages := []func(path string) error{
		func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)) },
		func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o777)) },
		func(path string) error { return os.Truncate(path, 0) },
	}
	lies := func(path string) error { // whole frames, and listings that aren't those of the objects
		b := bytes.ReplaceAll(whole, []byte("image-00"), []byte("image-77"))
		if bytes.Equal(b, whole) {
			return errors.New("there is no listing in the extract")
		}
		return os.WriteFile(path, withChecksums(b), 0o666)
	}
	damages = append(damages, lies)
	for off := 0; off < len(whole); off += 997 {
		damages = append(damages,
			func(path string) error { return os.Truncate(path, int64(off)) },
			func(path string) error { flip(t, path, int64(off), 0x41); return nil })
	}
	for n, damage := range damages {
		dir := scratch(t)
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		if err := damage(filepath.Join(dir, "shares", filepath.Base(name))); err != nil {
			t.Fatal(err)
		}
		s := openShare(t, dir, Options{})
		for i := range w.cells {
			if !w.checkCell(t, s, &w.cells[i]) {
				t.Errorf("damage %d: %s can't be had", n, w.cells[i].name)
			}
		}
		s.Close()
		os.RemoveAll(dir)
	}
}
