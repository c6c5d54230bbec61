package store

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runexp/runexp/stages"
)

// outside is a file for the tests of outside files. Its times are set so that the store may trust them: only
// the inode's own time can't be set, so the index is told of a file's state by hand.
func outside(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.png")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// changeState changes what the store remembers of a file.
func changeState(t *testing.T, s *Store, path string, write bool, change func(f *fileState)) {
	t.Helper()
	key := stages.Sum([]byte(path))
	b, _ := s.files.get(key)
	f, ok := decodeState(b)
	if !ok {
		t.Fatalf("nothing is remembered of %s", path)
	}
	change(&f)
	if err := s.files.set(key, f.encode(), write); err != nil {
		t.Fatal(err)
	}
}

func digestOf(t *testing.T, s *Store, path string) stages.Digest {
	t.Helper()
	d, err := s.FileDigest(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestFileDigest: a settled file isn't read again, until anything about it changes.
func TestFileDigest(t *testing.T) {
	dir := scratch(t)
	path := outside(t, "one")
	s := open(t, dir, Options{})
	if digestOf(t, s, path) != stages.Sum([]byte("one")) {
		t.Error("wrong digest")
	}
	if len(s.files.pending) > 0 {
		t.Error("a file that was just written is trusted")
	}
	// As if the file had been left alone for long.
	changeState(t, s, path, true, func(f *fileState) { f.racy = false })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, Options{ReadOnly: true})
	digestOf(t, s, path)
	changeState(t, s, path, false, func(f *fileState) {
		if f.racy {
			t.Error("a remembered file was read again")
		}
	})
	for name, change := range map[string]func(){
		"written":  func() { os.WriteFile(path, []byte("two"), 0o644) },
		"replaced": func() { os.WriteFile(path+"x", []byte("six"), 0o644); os.Rename(path+"x", path) },
		"backdated": func() {
			st, _ := os.Stat(path)
			os.WriteFile(path, []byte("ten"), 0o644)
			os.Chtimes(path, st.ModTime(), st.ModTime())
		},
	} {
		before := digestOf(t, s, path)
		change()
		want, _ := os.ReadFile(path)
		if got := digestOf(t, s, path); got == before || got != stages.Sum(want) {
			t.Errorf("%s: not noticed", name)
		}
	}
}

// TestRacyFile: a change that leaves size and times as they are is noticed all the same, if it may have
// happened within their resolution.
func TestRacyFile(t *testing.T) {
	s := open(t, scratch(t), Options{})
	path := outside(t, "one")
	d := digestOf(t, s, path)
	if err := s.FileUnchanged(path, d); err != nil {
		t.Error(err)
	}
	// The same stamp, other bytes: as if both were written in one tick.
	if err := os.WriteFile(path, []byte("two"), 0o644); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	changeState(t, s, path, false, func(f *fileState) { f.stamp, _ = stampOf(info) })
	if err := s.FileUnchanged(path, d); err == nil || !strings.Contains(err.Error(), "changed while") {
		t.Errorf("got %v", err)
	}
	if digestOf(t, s, path) != stages.Sum([]byte("two")) {
		t.Error("the old digest is back")
	}
}

// TestYoungFile: what changed less than two seconds ago isn't remembered, whatever time somebody gave it;
// what's older is.
func TestYoungFile(t *testing.T) {
	path := outside(t, "one")
	for _, age := range []time.Duration{time.Hour, -time.Hour} {
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		f, err := readState(path)
		if err != nil {
			t.Fatal(err)
		}
		if !f.racy {
			t.Errorf("a file that was just made, and set to %v ago, is trusted", age)
		}
	}
	old, err := readState("/bin/sh")
	if err != nil {
		t.Skipf("no old file to look at: %v", err)
	}
	if old.racy {
		t.Error("an old file isn't trusted")
	}
}

// TestNotRegular: a folder, a missing file and a pipe are refused, and at once.
func TestNotRegular(t *testing.T) {
	dir := t.TempDir()
	s := open(t, scratch(t), Options{})
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, pipe, filepath.Join(dir, "missing"), "/dev/zero"} {
		if _, err := s.FileDigest(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
