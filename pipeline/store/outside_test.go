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

func outside(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.png")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// remember has the store remember a file's stamp, with the digest of a text. The inode's own time can't be
// set, so a file that was just made isn't remembered otherwise.
func remember(t *testing.T, s *Store, path, text string) {
	t.Helper()
	st, _, err := stages.StampOf(path)
	if err != nil {
		t.Fatal(err)
	}
	state := fileState{st, stages.Sum([]byte(text))}
	if err := s.files.set(stages.Sum([]byte(path)), state.encode()); err != nil {
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
	// As if the file had been left alone for long; the text shows that it isn't read.
	remember(t, s, path, "remembered")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, Options{ReadOnly: true})
	if digestOf(t, s, path) != stages.Sum([]byte("remembered")) {
		t.Error("a remembered file was read again")
	}
	for name, change := range map[string]func(){
		"written":  func() { os.WriteFile(path, []byte("two"), 0o644) },
		"replaced": func() { os.WriteFile(path+"x", []byte("six"), 0o644); os.Rename(path+"x", path) },
		"backdated": func() {
			st, _ := os.Stat(path)
			os.WriteFile(path, []byte("ten"), 0o644)
			os.Chtimes(path, st.ModTime(), st.ModTime())
		},
	} {
		remember(t, s, path, "remembered")
		change()
		want, _ := os.ReadFile(path)
		if got := digestOf(t, s, path); got != stages.Sum(want) {
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
	// Maybe the same stamp, and other bytes: both may be written in one tick.
	if err := os.WriteFile(path, []byte("two"), 0o644); err != nil {
		t.Fatal(err)
	}
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
	s := open(t, scratch(t), Options{})
	path := outside(t, "one")
	for _, age := range []time.Duration{time.Hour, -time.Hour} {
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		if digestOf(t, s, path); len(s.files.pending) > 0 {
			t.Errorf("a file that was just made, and set to %v ago, is trusted", age)
		}
	}
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skipf("no old file to look at: %v", err)
	}
	if digestOf(t, s, "/bin/sh"); len(s.files.pending) == 0 {
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

// TestShareBelievesNotes holds that a share takes a noted digest unseen, but nothing that was made from
// another file; and that looking at the file ends the belief, even if it has just been written.
func TestShareBelievesNotes(t *testing.T) {
	dir, path := scratch(t), outside(t, "one")
	whole := func(use func(s *Store)) {
		s := open(t, dir, Options{})
		use(s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	one, two := stages.Sum([]byte("one")), stages.Sum([]byte("two"))
	whole(func(s *Store) { remember(t, s, path, "one") })
	if err := os.WriteFile(path, []byte("two"), 0o644); err != nil {
		t.Fatal(err)
	}
	share := openShare(t, dir, Options{})
	defer share.Close()
	if digestOf(t, share, path) != one {
		t.Error("a share doesn't trust the remembered digest")
	}
	if err := share.FileUnchanged(path, one); err == nil || !strings.Contains(err.Error(), "--share close") {
		t.Errorf("a share that meets another file: %v", err)
	}
	whole(func(s *Store) {
		if digestOf(t, s, path) != two {
			t.Error("wrong digest")
		}
	})
	next := openShare(t, dir, Options{})
	defer next.Close()
	if digestOf(t, next, path) != two {
		t.Error("a share trusts the digest of an earlier file")
	}
}
