package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// briefsIn returns the briefs in a store's folder.
func briefsIn(t testing.TB, dir string) []string {
	t.Helper()
	briefs, err := filepath.Glob(filepath.Join(dir, "parts", "brief-*"))
	if err != nil {
		t.Fatal(err)
	}
	return briefs
}

// TestBrief: of an experiment there is one brief, which goes with the last wave, and with a collection when
// no share can need it any more.
func TestBrief(t *testing.T) {
	w := newWorld(4)
	dir := parted(t, scratch(t), w)
	fold(t, dir)
	w.close(t, dir)
	w.close(t, dir)
	s := open(t, dir, Options{})
	defer s.Close()
	h, _ := s.Lookup(w.cells[0].key, "a")
	if err := s.WriteBrief("another", []Hit{h}); err != nil {
		t.Fatal(err)
	}
	if briefs := briefsIn(t, dir); len(briefs) != 2 {
		t.Errorf("two experiments have the briefs %q", briefs)
	}
	if err := s.WriteBrief("test", nil); err != nil {
		t.Fatal(err)
	}
	briefs := briefsIn(t, dir)
	if len(briefs) != 1 {
		t.Fatalf("left: %q", briefs)
	}
	for _, c := range []struct {
		age  time.Duration
		left int
	}{{2 * inFlight, 1}, {partInUse + time.Minute, 0}} {
		at := time.Now().Add(-c.age)
		if err := os.Chtimes(briefs[0], at, at); err != nil {
			t.Fatal(err)
		}
		if _, err := s.GC(Roots{}, true); err != nil || len(briefsIn(t, dir)) != c.left {
			t.Errorf("after %v: %q, %v", c.age, briefsIn(t, dir), err)
		}
	}
	reader := open(t, dir, Options{ReadOnly: true})
	if err := reader.WriteBrief("test", []Hit{h}); err == nil {
		t.Error("written in a store opened for reading")
	}
}

// TestHostileBriefs alters, cuts and replaces a brief: no wrong byte arrives, and the share finds all that
// was copied where it came from.
func TestHostileBriefs(t *testing.T) {
	w := newWorld(8)
	from := parted(t, scratch(t), w)
	fold(t, from)
	w.close(t, from)
	name := briefsIn(t, from)[0]
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	damages := []func(path string) error{
		func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)) },
		func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o777)) },
		func(path string) error { return os.Truncate(path, 0) },
	}
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
		if err := damage(filepath.Join(dir, "parts", filepath.Base(name))); err != nil {
			t.Fatal(err)
		}
		s := openPart(t, dir, Options{})
		for i := range w.cells {
			if !w.checkCell(t, s, &w.cells[i]) {
				t.Errorf("damage %d: %s can't be had", n, w.cells[i].name)
			}
		}
		s.Close()
		os.RemoveAll(dir)
	}
}
