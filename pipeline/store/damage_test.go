package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// files lists the files of a store, sorted.
func files(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestFlippedBits changes one bit of one byte of every file, in turn. The store may say that it doesn't have
// something, but never anything wrong, and a change in an object is always noticed.
func TestFlippedBits(t *testing.T) {
	w := newWorld(4)
	dir := w.filled(t)
	s := open(t, dir, Options{ReadOnly: true})
	whole := w.check(t, s)
	if whole.misses > 0 {
		t.Fatalf("%d misses without damage", whole.misses)
	}
	flips, noticed := 0, 0
	for _, path := range files(t, dir) {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		step := max(1, st.Size()/80)
		if testing.Short() {
			step *= 8
		}
		for off := int64(0); off < st.Size(); off += step {
			back := flip(t, path, off, 1<<(off%8))
			s := open(t, dir, Options{ReadOnly: true})
			v := w.check(t, s)
			back()
			flips++
			if v.misses > 0 {
				noticed++
			} else if strings.Contains(path, "objects") {
				t.Errorf("byte %d of %s: not noticed", off, filepath.Base(path))
			}
			if t.Failed() {
				t.Fatalf("byte %d of %s", off, path)
			}
		}
	}
	t.Logf("%d flips, %d of them cost something", flips, noticed)
}

// TestTruncatedFiles cuts every file, at several lengths down to nothing.
func TestTruncatedFiles(t *testing.T) {
	w := newWorld(5)
	dir := w.filled(t)
	for _, path := range files(t, dir) {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		n := len(whole)
		for _, size := range []int{0, 1, n / 3, n / 2, n - frameLen, n - 1, n + 1, 2 * n} {
			if size < 0 || size == n {
				continue
			}
			cut := append(whole[:n:n], whole...)
			rewrite(t, path, cut[:size])
			w.check(t, open(t, dir, Options{ReadOnly: true}))
			if t.Failed() {
				t.Fatalf("%s cut to %d of %d bytes", path, size, n)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		w.check(t, open(t, dir, Options{ReadOnly: true}))
		rewrite(t, path, whole)
	}
	w.wholeStore(t, dir)
}

func rewrite(t testing.TB, path string, b []byte) {
	t.Helper()
	os.Remove(path)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestDamageIsMended damages every file in turn, lets a run find out and do its work again, and expects a
// whole store.
func TestDamageIsMended(t *testing.T) {
	w := newWorld(4)
	pristine := w.filled(t)
	for n, path := range files(t, pristine) {
		rel, err := filepath.Rel(pristine, path)
		if err != nil {
			t.Fatal(err)
		}
		for _, verify := range []bool{false, true} {
			dir := scratch(t)
			if err := os.CopyFS(dir, os.DirFS(pristine)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, rel)
			st, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			flip(t, path, int64(n)%st.Size(), 0x20)
			s := open(t, dir, Options{})
			if verify {
				problems, err := s.Verify(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(problems) == 0 && filepath.Base(rel) != formatName {
					t.Errorf("%s: verify finds nothing", rel)
				}
				if again, err := s.Verify(t.Context()); err != nil || len(again) > 0 {
					t.Errorf("%s: verify finds %v %v, then %v", rel, problems, err, again)
				}
			} else {
				w.check(t, s)
			}
			if err := w.write(s, "a", nil); err != nil {
				t.Fatal(err)
			}
			s = open(t, dir, Options{})
			if v := w.check(t, s); v.misses > 0 {
				t.Errorf("%s: %d misses after the work was done again", rel, v.misses)
			}
			os.RemoveAll(dir)
		}
	}
}

// TestProblemNamesFile: what's damaged is told by the name of its file, and costs the cells that need it.
func TestProblemNamesFile(t *testing.T) {
	w := newWorld(2)
	dir := w.filled(t)
	s := open(t, dir, Options{})
	h, _ := s.Lookup(w.cells[1].key, "")
	for p := range h.Objects() {
		flip(t, s.objectPath(p.Digest), 0, 1)
	}
	problems, err := s.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(problems) != 1 || !strings.HasPrefix(problems[0], "objects/") {
		t.Errorf("problems: %+v", problems)
	}
	if _, ok := s.Lookup(w.cells[1].key, ""); ok {
		t.Error("the cell is still there")
	}
	if _, ok := s.Lookup(w.cells[0].key, ""); !ok {
		t.Error("the other cell is gone")
	}
}

// TestReasons tells the three ways to lose an object apart.
func TestReasons(t *testing.T) {
	payload := make([]byte, 5000)
	for _, tc := range []struct {
		name   string
		damage func(path string) error
		want   string
		check  string // of the size alone; "" if that shows nothing
	}{
		{"missing", os.Remove, "is missing", "is missing"},
		{"truncated", func(p string) error { return os.Truncate(p, 4999) }, "truncated: 4999 of 5000 bytes",
			"truncated: 4999 of 5000 bytes"},
		{"empty", func(p string) error { return os.Truncate(p, 0) }, "truncated: 0 of 5000 bytes",
			"truncated: 0 of 5000 bytes"},
		{"longer", func(p string) error { return os.Truncate(p, 5001) },
			"altered: 5001 bytes instead of 5000", "altered: 5001 bytes instead of 5000"},
		{"altered", func(p string) error { flip(t, p, 500, 1); return nil }, "is altered", ""},
		{"folder", func(p string) error { os.Remove(p); return os.Mkdir(p, 0o755) }, "object", "object"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := scratch(t)
			s := open(t, dir, Options{})
			refs, err := s.Put([][]byte{payload})
			if err != nil {
				t.Fatal(err)
			}
			path := s.objectPath(refs[0].Object.Digest)
			os.Chmod(path, 0o644)
			if err := tc.damage(path); err != nil {
				t.Fatal(err)
			}
			if tc.name == "truncated" {
				// Putting it again needs nobody to have noticed.
				fresh := open(t, dir, Options{})
				if _, err := fresh.Put([][]byte{payload}); err != nil {
					t.Fatal(err)
				}
				if b, err := fresh.Load(refs[0]); err != nil || len(b) != len(payload) {
					t.Errorf("put over the truncated object: %v", err)
				}
				os.Chmod(path, 0o644)
				if err := tc.damage(path); err != nil {
					t.Fatal(err)
				}
			}
			s = open(t, dir, Options{})
			m := s.Check(refs[0].Object)
			if (m == nil) != (tc.check == "") || m != nil && !strings.Contains(m.Reason, tc.check) {
				t.Errorf("check says %v", m)
			}
			if _, err := s.Load(refs[0]); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("load says %v", err)
			}
			if s.Check(refs[0].Object) == nil {
				t.Error("check forgot what load found")
			}
			if _, err := s.Put([][]byte{payload}); err != nil {
				t.Fatal(err)
			}
			if m := s.Check(refs[0].Object); m != nil {
				t.Errorf("after putting it again: %v", m)
			}
			if b, err := s.Load(refs[0]); err != nil || len(b) != len(payload) {
				t.Errorf("after putting it again: %v", err)
			}
		})
	}
}

// TestWrongRefSparesObject: a record that leads to the wrong place of a sound object doesn't cost the object.
func TestWrongRefSparesObject(t *testing.T) {
	s := open(t, scratch(t), Options{})
	a, b := make([]byte, 1000), make([]byte, 4000)
	b[0] = 1
	refs, err := s.Put([][]byte{a, b})
	if err != nil {
		t.Fatal(err)
	}
	wrong := refs[0]
	wrong.Off++
	for _, r := range []Ref{wrong, {Digest: refs[0].Digest, Object: refs[0].Object, Off: 4500, Len: 1000},
		{Digest: refs[0].Digest, Object: refs[0].Object, Off: -1, Len: 1000}} {
		if _, err := s.Load(r); err == nil {
			t.Errorf("loaded %+v", r)
		}
	}
	if got, err := s.Load(refs[1]); err != nil || len(got) != 4000 {
		t.Errorf("the object is gone: %v", err)
	}
}
