package store

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/runexp/runexp/stages"
)

// TestGC: a dry run changes nothing and tells what a real one does; that keeps what the roots name, with
// everything it needs, and removes the rest.
func TestGC(t *testing.T) {
	w := newWorld(8)
	dir := w.filled(t)
	s := open(t, dir, Options{})
	if err := w.write(s, "a", nil); err != nil { // every record twice
		t.Fatal(err)
	}
	kept := &world{cells: slices.Concat(w.cells[0:2], w.cells[4:6])}
	keep := map[stages.Digest]bool{}
	for _, c := range kept.cells {
		keep[c.key], keep[c.group] = true, true
	}
	root := func(k stages.Digest) bool { return keep[k] }
	before := files(t, dir)
	dry, err := s.GC(Roots{root, root}, false)
	if err != nil {
		t.Fatal(err)
	}
	if after := files(t, dir); !slices.Equal(before, after) {
		t.Error("a dry run changed files")
	}
	w.wholeStore(t, dir)
	if dry.ActionsKept != 4 || dry.Actions != 12 || groups(t, s) != 4 ||
		dry.Objects == 0 || dry.ObjectsKept == 0 {
		t.Errorf("report: %+v", dry)
	}
	if want := []string{"test: maps[n=2]", "test: maps[n=3]", "test: maps[n=6]",
		"test: maps[n=7]"}; !slices.Equal(dry.Cells, want) {
		t.Errorf("cells: %v", dry.Cells)
	}
	real, err := s.GC(Roots{root, root}, true)
	if err != nil {
		t.Fatal(err)
	}
	if real.Objects != dry.Objects || real.Bytes != dry.Bytes || real.Actions != dry.Actions {
		t.Errorf("announced %+v, did %+v", dry, real)
	}
	kept.wholeStore(t, dir)
	for _, s := range []*Store{s, open(t, dir, Options{})} {
		in, err := s.Info()
		if err != nil {
			t.Fatal(err)
		}
		if in.Actions != 4 || groups(t, s) != 2 || in.Objects != real.ObjectsKept ||
			in.ObjectBytes != real.BytesKept {
			t.Errorf("info: %+v", in)
		}
		for _, c := range w.cells {
			if _, ok := s.Lookup(c.key, ""); ok != keep[c.key] {
				t.Errorf("cell %q: found %v", c.name, ok)
			}
		}
	}
	if again, err := s.GC(Roots{root, root}, true); err != nil ||
		again.Objects+again.Actions != 0 || groups(t, s) != 2 {
		t.Errorf("again: %+v, %v", again, err)
	}
	if all, err := s.GC(Roots{}, true); err != nil || all.ActionsKept != 4 {
		t.Errorf("keep everything: %+v, %v", all, err)
	}
	kept.wholeStore(t, dir)
}

// groups counts the groups that have item records.
func groups(t testing.TB, s *Store) int {
	t.Helper()
	seen := map[stages.Digest]bool{}
	for _, log := range must(s.logs(itemFrame)) {
		must(s.readLog(log, 0, func(_ int64, group stages.Digest, _ []byte) { seen[group] = true }))
	}
	return len(seen)
}

// TestGCSparesWorkInProgress: an object that nothing refers to yet stays, until it's certain that nobody is
// about to.
func TestGCSparesWorkInProgress(t *testing.T) {
	dir := scratch(t)
	s := open(t, dir, Options{})
	refs, err := s.Put([][]byte{make([]byte, smallObject)})
	if err != nil {
		t.Fatal(err)
	}
	path := s.objectPath(refs[0].Object.Digest)
	temp := s.tempName(path)
	if err := os.WriteFile(temp, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err := s.GC(Roots{}, true); err != nil || r.ObjectsKept != 1 || r.Leftovers != 0 {
		t.Errorf("%+v %v", r, err)
	}
	old := time.Now().Add(-2 * inFlight)
	for _, p := range []string{path, temp} {
		if err := os.Chtimes(p, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if in, err := s.Info(); err != nil || in.Leftovers != 1 || in.Objects != 1 {
		t.Errorf("%+v %v", in, err)
	}
	if r, err := s.GC(Roots{}, true); err != nil || r.Objects != 1 || r.Leftovers != 1 {
		t.Errorf("%+v %v", r, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "objects", "*", "*")); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	if m := s.Check(refs[0].Object); m == nil {
		t.Error("check says that it's still there")
	}
}

// TestGCOfNothing: caring for a store that isn't there doesn't make one.
func TestGCOfNothing(t *testing.T) {
	dir := filepath.Join(scratch(t), "none")
	s := open(t, dir, Options{})
	if r, err := s.GC(Roots{}, true); err != nil || r.ObjectsKept != 0 {
		t.Errorf("%+v %v", r, err)
	}
	if p, err := s.Verify(t.Context()); err != nil || len(p) > 0 {
		t.Errorf("%v %v", p, err)
	}
	if _, err := s.Info(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder was made")
	}
}
