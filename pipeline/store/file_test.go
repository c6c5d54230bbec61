package store

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runexp/runexp/stages"
)

// tree returns what is below a folder: names, kinds and contents.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		all[path] = e.Type().String()
		if e.Type().IsRegular() {
			b, err := os.ReadFile(path)
			all[path] += stages.Sum(b).Short()
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestNothingOutsideTheStore puts links, pipes, folders and files in the place of every kind of file and
// folder of a store, in turn. Nothing blocks; what's behind a link stays as it is and is never taken for the
// store's; the next writer makes the store whole again; and GC removes nothing beyond.
func TestNothingOutsideTheStore(t *testing.T) {
	w := newWorld(3)
	kinds := map[string]func(at, outside string) error{
		"link":     func(at, outside string) error { return os.Symlink(outside, at) },
		"dangling": func(at, outside string) error { return os.Symlink(outside+"-none", at) },
		"loop":     func(at, outside string) error { return os.Symlink(filepath.Base(at), at) },
		"pipe":     func(at, outside string) error { return syscall.Mkfifo(at, 0o600) },
		"zero":     func(at, outside string) error { return os.Symlink("/dev/zero", at) },
		"folder": func(at, outside string) error {
			return os.MkdirAll(filepath.Join(at, "deeper"), 0o700)
		},
		"file": func(at, outside string) error { return os.WriteFile(at, []byte("text"), 0o600) },
	}
	places := func(dir string) []string {
		var all []string
		seen := map[string]bool{}
		filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(dir, path)
			// One of the objects' folders, one object, one log of each folder.
			kind := filepath.Ext(rel) + fmt.Sprint(strings.Count(rel, "/")) + strings.Split(rel, "/")[0]
			if path != dir && !seen[kind] {
				seen[kind] = true
				all = append(all, rel)
			}
			return err
		})
		return append(all, "damaged")
	}(w.filled(t))
	if len(places) < 11 {
		t.Fatalf("only %q", places)
	}
	for _, place := range places {
		for kind, put := range kinds {
			dir := w.filled(t)
			at := filepath.Join(dir, place)
			info, err := os.Lstat(at)
			if err != nil { // damaged
				if err := os.Mkdir(at, 0o700); err != nil {
					t.Fatal(err)
				}
				info, _ = os.Lstat(at)
				os.WriteFile(filepath.Join(at, "keep"), nil, 0o600)
			}
			if kind == "folder" && info.IsDir() || kind == "file" && !info.IsDir() {
				continue
			}
			outside := filepath.Join(scratch(t), "outside")
			if err := os.Rename(at, outside); err != nil {
				// Another file system: a copy is as tempting.
				t.Fatal(err)
			}
			old := time.Now().Add(-2 * inFlight)
			filepath.WalkDir(outside,
				func(path string, _ fs.DirEntry, _ error) error { return os.Chtimes(path, old, old) })
			before := tree(t, filepath.Dir(outside))
			if err := put(at, outside); err != nil {
				t.Fatal(err)
			}
			name := place + " as " + kind
			reader := open(t, dir, Options{ReadOnly: true})
			w.check(t, reader)
			if _, err := reader.Info(); err != nil {
				t.Errorf("%s: info: %v", name, err)
			}
			if _, err := reader.Verify(t.Context()); err != nil {
				t.Errorf("%s: verify by a reader: %v", name, err)
			}
			reader.Close()

			s := open(t, dir, Options{})
			w.check(t, s)
			if err := w.write(s, "a", nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			s = open(t, dir, Options{})
			if _, err := s.Verify(t.Context()); err != nil {
				t.Errorf("%s: verify: %v", name, err)
			}
			if err := w.write(s, "a", nil); err != nil {
				t.Errorf("%s: after verify: %v", name, err)
			}
			s = open(t, dir, Options{})
			if _, err := s.GC(Roots{}, true); err != nil {
				t.Errorf("%s: gc: %v", name, err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			w.wholeStore(t, dir)
			if after := tree(t, filepath.Dir(outside)); !maps.Equal(before, after) {
				t.Errorf("%s: what was outside the store is another:\n%q\nwas\n%q", name, after, before)
			}
			if t.Failed() {
				t.FailNow()
			}
		}
	}
}

// TestFewOpenFiles: a store that may have few files open writes what any other does.
func TestFewOpenFiles(t *testing.T) {
	w := newWorld(40)
	dir := scratch(t)
	s := open(t, dir, Options{})
	s.maxLogs = 3
	for range 2 {
		if err := w.record(s, "a", nil); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		logs := 0
		for _, f := range files {
			if to, _ := os.Readlink(filepath.Join("/proc/self/fd", f.Name())); strings.HasPrefix(to, dir) &&
				strings.HasSuffix(to, ".log") {
				logs++
			}
		}
		if logs > s.maxLogs {
			t.Errorf("%d logs are open, %d may be", logs, s.maxLogs)
		}
		w.check(t, s)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	w.wholeStore(t, dir)
}
