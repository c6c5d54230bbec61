package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
)

var errKilled = errors.New("killed")

// killer is a hook that kills at the n-th point. With tear it kills within the n-th write instead, after a
// share of tear/4 of its bytes.
type killer struct {
	n, tear, count int
}

func (k *killer) hook(point string) error {
	if k.tear > 0 && point != "write" {
		return nil
	}
	if k.count++; k.count != k.n {
		return nil
	}
	if k.tear > 0 {
		return tear(k.tear * 40)
	}
	return errKilled
}

func (k *killer) struck() bool { return k.count >= k.n }

// TestKill ends the writing of a world at every point between two system calls, and within every write. What
// was recorded before is there, all of it; doing it again completes it, and nothing is damaged.
func TestKill(t *testing.T) {
	w := newWorld(4) // one of each sort
	points := 0
	for _, tear := range []int{0, 1, 4} {
		for n := 1; ; n++ {
			dir := scratch(t)
			k := &killer{n: n, tear: tear}
			s := open(t, dir, Options{Hook: k.hook})
			d := &done{map[stages.Digest]bool{}, map[stages.Digest]bool{}}
			err := w.write(s, "a", d)
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
			afterKill(t, w, dir, d)
			os.RemoveAll(dir)
			if t.Failed() {
				t.Fatalf("tear %d: killed at point %d", tear, n)
			}
		}
	}
	t.Logf("killed at %d points", points)
	if points < 200 {
		t.Errorf("only %d points", points)
	}
}

func afterKill(t *testing.T, w *world, dir string, d *done) {
	t.Helper()
	// Someone only looks, before the index is mended and after.
	for _, readOnly := range []bool{true, false} {
		s := open(t, dir,
			Options{ReadOnly: readOnly, Warn: func(m string) { t.Errorf("a kill gives the warning %q", m) }})
		for n := range w.cells {
			c := &w.cells[n]
			if whole := w.checkCell(t, s, c); !whole && d.recorded[c.key] {
				t.Errorf("cell %q was recorded and is gone", c.name)
			}
			items := s.Items(c.group, "a")
			for i := range c.ids {
				if whole := w.checkItem(t, s, c, items, i); !whole && d.items[c.key] {
					t.Errorf("item %d of cell %q was recorded and is gone", i, c.name)
				}
			}
		}
		if problems, err := s.Verify(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("verify after a kill: %v %v", problems, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	s := open(t, dir, Options{})
	if err := w.write(s, "a", nil); err != nil {
		t.Fatal(err)
	}
	w.wholeStore(t, dir)
}

// TestKillCollection ends a collection, and the mending of a damaged store, at every point. What the roots
// keep is there all the time.
func TestKillCollection(t *testing.T) {
	w := newWorld(6)
	// Groups are shared by two cells: keep the first two of each.
	kept := &world{cells: w.cells[:2]}
	isKept := func(k stages.Digest) bool { return k == w.cells[0].key || k == w.cells[1].key }
	roots := Roots{isKept, func(g stages.Digest) bool { return g == w.cells[0].group }}
	for n := 1; ; n++ {
		dir := w.filled(t)
		k := &killer{n: n}
		s := open(t, dir, Options{Hook: k.hook})
		_, err := s.GC(roots, true)
		if k.struck() != (err != nil) {
			t.Fatalf("point %d: struck %v, error %v", n, k.struck(), err)
		}
		kept.wholeStore(t, dir)
		s = open(t, dir, Options{})
		w.check(t, s)
		if _, err := s.GC(roots, true); err != nil {
			t.Fatal(err)
		}
		in, err := s.Info()
		if err != nil {
			t.Fatal(err)
		}
		if in.Actions != 2 || groups(t, s) != 1 {
			t.Fatalf("point %d: %d actions and %d groups are left", n, in.Actions, groups(t, s))
		}
		kept.wholeStore(t, dir)
		os.RemoveAll(dir)
		if !k.struck() {
			t.Logf("killed at %d points", n-1)
			return
		}
	}
}

func TestKillMending(t *testing.T) {
	w := newWorld(6)
	for n := 1; ; n++ {
		dir := w.filled(t)
		objects, _ := filepath.Glob(filepath.Join(dir, "objects", "*", "*"))
		flip(t, objects[n%len(objects)], 3, 0x10)
		logs, _ := filepath.Glob(filepath.Join(dir, "actions", "*.log"))
		flip(t, logs[n%len(logs)], 60, 0x10)
		k := &killer{n: n}
		s := open(t, dir, Options{Hook: k.hook})
		problems, err := s.Verify(t.Context())
		if k.struck() != (err != nil) {
			t.Fatalf("point %d: struck %v, error %v", n, k.struck(), err)
		}
		if err == nil && len(problems) < 2 {
			t.Fatalf("problems: %v", problems)
		}
		s = open(t, dir, Options{})
		w.check(t, s)
		if _, err := s.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.write(s, "a", nil); err != nil {
			t.Fatal(err)
		}
		w.wholeStore(t, dir)
		os.RemoveAll(dir)
		if !k.struck() {
			t.Logf("killed at %d points", n-1)
			return
		}
	}
}

// flip changes bits of one byte of a file, and returns what changes them back.
func flip(t testing.TB, path string, off int64, bits byte) (back func()) {
	t.Helper()
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], off); err != nil {
		t.Fatal(err)
	}
	b[0] ^= bits
	if _, err := f.WriteAt(b[:], off); err != nil {
		t.Fatal(err)
	}
	return func() { flip(t, path, off, bits) }
}
