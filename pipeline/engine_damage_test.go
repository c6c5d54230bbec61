package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/store"
)

func objects(t *testing.T, l *lab) (files []string) {
	err := filepath.WalkDir(filepath.Join(l.dir, "store", "objects"),
		func(p string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				files = append(files, p)
			}
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Every object is damaged in turn, in three ways; a run that reads it computes it again, with a warning.
func TestDamagedObjects(t *testing.T) {
	damage := map[string]func(path string, b []byte) error{
		"truncated": func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)-1], 0o644) },
		"altered": func(path string, b []byte) error {
			b = slices.Clone(b)
			b[len(b)/2] ^= 1
			return os.WriteFile(path, b, 0o644)
		},
		"gone": func(path string, _ []byte) error { return os.Remove(path) },
	}
	for name, do := range damage {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.items, l.chunk = []string{"a=1", "b=2", "c=3"}, 2
			want := l.text(l.mustRun(chain), "total")
			paths := objects(t, l)
			if len(paths) < 5 {
				t.Fatalf("only %d objects", len(paths))
			}
			for _, path := range paths {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				os.Chmod(path, 0o644)
				if err := do(path, b); err != nil {
					t.Fatal(err)
				}
				// Every payload is read: by what runs anew, and by the text below.
				res := l.mustRun(strings.Replace(chain, "[2, 3]", "[2, 3, 4]", 1))
				for _, c := range res.Plan.Cells {
					l.text(res, c.String())
				}
				if got := l.text(l.mustRun(chain), "total"); got != want {
					t.Errorf("%s: got %q, want %q", filepath.Base(path), got, want)
				}
				if after, err := os.ReadFile(path); err != nil || !slices.Equal(after, b) {
					t.Errorf("%s wasn't repaired: %v", filepath.Base(path), err)
				}
			}
		})
	}
}

func TestDrainFinishesWhatHasBegun(t *testing.T) {
	l := newLab(t)
	for i := range 64 {
		l.items = append(l.items, fmt.Sprintf("i%d=%d", i, i))
	}
	l.chunk, l.devices = 1, "cpu:0"
	l.drain = make(chan struct{})
	close(l.drain)
	res, err := l.run(chain)
	if !errors.Is(err, pipeline.ErrDrained) {
		t.Fatalf("error %v, want ErrDrained", err)
	}
	res.Close()
	l.drain = nil
	done := l.ran["scale"]
	l.mustRun(chain)
	if l.ran["scale"]+done > 128 {
		t.Errorf("%d items before the stop and %d after it are more than all", done, l.ran["scale"])
	}
}

// The run is killed at every point where it writes; the next one finishes with the right results and less
// than all the work.
func TestKilledAnywhere(t *testing.T) {
	want := ""
	kills, resumed := 0, 0
	for n := 1; ; n++ {
		l := newLab(t)
		l.items, l.chunk, l.devices = []string{"a=1", "b=2", "c=3", "d=4"}, 1, "cpu:0"
		var mu sync.Mutex
		points := 0
		l.hook = func(string) error {
			mu.Lock()
			defer mu.Unlock()
			if points++; points >= n {
				return errors.New("killed")
			}
			return nil
		}
		res, err := l.run(chain)
		if res != nil {
			res.Close()
		}
		reached := points >= n
		before := l.ran["scale"]
		l.hook = nil
		res = l.mustRun(chain)
		got := l.text(res, "total")
		if want == "" {
			want = got
		}
		if got != want {
			t.Fatalf("killed at point %d: got %q, want %q", n, got, want)
		}
		s, err2 := store.Open(filepath.Join(l.dir, "store"), store.Options{})
		if err2 != nil {
			t.Fatal(err2)
		}
		problems, err2 := s.Verify(context.Background())
		if err2 != nil || len(problems) > 0 {
			t.Fatalf("killed at point %d: the store has problems %v %v", n, problems, err2)
		}
		if before > 1 && l.ran["scale"] < 8 {
			resumed++
		}
		if !reached {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		kills++
	}
	if kills < 50 || resumed < 10 {
		t.Errorf("%d kills of which %d left work that was resumed: too few to mean anything", kills, resumed)
	}
	t.Logf("%d kill points, %d resumed with less than all the work", kills, resumed)
}
