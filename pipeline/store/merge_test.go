package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// halves returns a world, and two stores that have the cells up to the fifth and from the third on.
func halves(t *testing.T) (w *world, a, b string) {
	t.Helper()
	w = newWorld(8)
	return w, (&world{cells: w.cells[:5]}).filled(t), (&world{cells: w.cells[2:]}).filled(t)
}

// wholeBut fails the test unless the store has all of the world but so many memos, and nothing damaged.
func (w *world) wholeBut(t *testing.T, dir string, memos int) {
	t.Helper()
	s := open(t, dir, Options{Warn: func(m string) { t.Errorf("warning: %s", m) }})
	if v := w.check(t, s); v.misses != memos {
		t.Errorf("%d misses, want %d", v.misses, memos)
	}
	if problems, err := s.Verify(context.Background()); err != nil || len(problems) > 0 {
		t.Errorf("verify: %q, %v", problems, err)
	}
}

// TestMerge: what another store has is added, what is here stays, facts aren't taken, the other store keeps
// its bytes, and the second merge finds nothing to do.
func TestMerge(t *testing.T) {
	w, a, b := halves(t)
	before := files(t, b)
	s, other := open(t, a, Options{}), open(t, b, Options{ReadOnly: true})
	got, err := s.Merge(context.Background(), other)
	if err != nil {
		t.Fatal(err)
	}
	if got.Actions != 3 || got.ActionsKnown != 3 || got.Items != 3 || got.ItemsKnown != 3 ||
		got.Objects == 0 || got.Bytes == 0 || got.Refused != nil {
		t.Errorf("report: %+v", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if after := files(t, b); !slices.Equal(before, after) {
		t.Error("the other store was changed")
	}
	w.wholeBut(t, a, 3)
	s = open(t, a, Options{})
	again, err := s.Merge(context.Background(), other)
	if err != nil || again.Actions+again.Items+again.Objects != 0 || again.ActionsKnown != 6 ||
		again.ItemsKnown != 6 {
		t.Errorf("again: %+v, %v", again, err)
	}
	empty := open(t, filepath.Join(t.TempDir(), "new"), Options{})
	got, err = empty.Merge(context.Background(), s)
	if err != nil || got.Actions != 8 || got.Refused != nil {
		t.Errorf("into an empty store: %+v, %v", got, err)
	}
	empty.Close()
	w.wholeBut(t, empty.dir, 8)
}

// TestMergeKilled ends a merge at every point between two system calls, and within every write. What was
// there is there, nothing is damaged, and a merge completes it.
func TestMergeKilled(t *testing.T) {
	w, a, b := halves(t)
	other := open(t, b, Options{ReadOnly: true})
	points := 0
	for _, tear := range []int{0, 1, 4} {
		for n := 1; ; n++ {
			dir := scratch(t)
			if err := os.CopyFS(dir, os.DirFS(a)); err != nil {
				t.Fatal(err)
			}
			k := &killer{n: n, tear: tear}
			s := open(t, dir, Options{Hook: k.hook})
			_, err := s.Merge(context.Background(), other)
			err = errors.Join(err, s.Close())
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
			(&world{cells: w.cells[:5]}).wholeBut(t, dir, 0)
			s = open(t, dir, Options{})
			if got, err := s.Merge(context.Background(), other); err != nil || got.Refused != nil {
				t.Errorf("again: %+v, %v", got, err)
			}
			s.Close()
			w.wholeBut(t, dir, 3)
			os.RemoveAll(dir)
			if t.Failed() {
				t.Fatalf("tear %d: killed at point %d", tear, n)
			}
		}
	}
	t.Logf("killed at %d points", points)
	if points < 50 {
		t.Errorf("only %d points", points)
	}
}

// TestMergeStranger alters a byte of each file of the other store, cuts it in half, and puts a link in its
// place: no wrong byte arrives, what was here is whole, and what's refused is told.
func TestMergeStranger(t *testing.T) {
	w, a, b := halves(t)
	var names []string
	if err := filepath.WalkDir(b, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, strings.TrimPrefix(path, b+string(filepath.Separator)))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		for how, damage := range map[string]func(path string, b []byte) error{
			"altered": func(path string, b []byte) error {
				b[len(b)/2] ^= 0x40
				return os.WriteFile(path, b, 0o666)
			},
			"cut":  func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)/2], 0o666) },
			"link": func(path string, _ []byte) error { return os.Symlink(secret, path) },
		} {
			t.Run(fmt.Sprintf("%s of %s", how, filepath.Base(name)), func(t *testing.T) {
				here, there := t.TempDir(), t.TempDir()
				for from, to := range map[string]string{a: here, b: there} {
					if err := os.CopyFS(to, os.DirFS(from)); err != nil {
						t.Fatal(err)
					}
				}
				path := filepath.Join(there, name)
				content, err := os.ReadFile(path)
				if err == nil {
					err = errors.Join(os.Remove(path), damage(path, content))
				}
				if err != nil {
					t.Fatal(err)
				}
				s := open(t, here, Options{})
				other, err := Open(there, Options{ReadOnly: true})
				if err != nil {
					return // its FORMAT is another's
				}
				got, err := s.Merge(context.Background(), other)
				if err != nil {
					t.Fatal(err)
				}
				s.Close()
				(&world{cells: w.cells[:5]}).wholeBut(t, here, 0)
				s = open(t, here, Options{})
				w.check(t, s) // fails at a wrong byte
				needed := strings.HasPrefix(name, "objects") || strings.HasPrefix(name, "actions") ||
					strings.HasPrefix(name, "items")
				lost := got.Actions < 3 || got.Items < 3
				if lost && how == "altered" && len(got.Refused) == 0 {
					t.Errorf("lost something without a word: %+v", got)
				} else if lost && !needed {
					t.Errorf("lost something without a need: %+v", got)
				}
			})
		}
	}
}
