//go:build unix

package ort

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
)

func build() string { return "build" }

// die ends the use of models as a process does that is killed.
func (u *inUse) die() { u.file.Close() }

func files(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return len(entries)
}

func TestInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "running")
	a, b := stages.Sum([]byte("a")), stages.Sum([]byte("b"))
	first := newInUse(dir, build)
	if first.suspect(a) || first.suspect(b) {
		t.Error("a suspect where nothing is")
	}
	// The first is alive.
	second := newInUse(dir, build)
	if second.suspect(a) {
		t.Error("a model that another process uses is a suspect")
	}
	second.end()
	first.die()
	if n := files(t, dir); n != 1 {
		t.Errorf("%d files, want that of the process that died", n)
	}
	other := newInUse(dir, func() string { return "other build" })
	if other.suspect(a) {
		t.Error("what one build noted makes a suspect for another")
	}
	other.die()
	// Of two that begin now, both know. One uses a, and a process ends; b waits.
	third, fourth := newInUse(dir, build), newInUse(dir, build)
	if !third.suspect(a) || !fourth.suspect(a) {
		t.Error("what a process used that died is no suspect")
	}
	fourth.end()
	third.ended(a)
	third.end()
	fifth := newInUse(dir, build)
	if !fifth.suspect(a) || !fifth.suspect(b) {
		t.Error("a model of which a process ended again, or one that wasn't used, is no suspect any more")
	}
	fifth.end()
	if n := files(t, dir); n != 0 {
		t.Errorf("%d files where all went well", n)
	}
}

// A link in the place of the folder, or of a file in it, isn't followed, and what isn't a file isn't opened.
func TestInUseFollowsNoLink(t *testing.T) {
	a := stages.Sum([]byte("a"))
	mine := t.TempDir()
	text := []byte(newInUse("", build).line(a))
	if err := os.WriteFile(filepath.Join(mine, "file"), text, 0o666); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	linked := filepath.Join(dir, "linked")
	if err := os.Symlink(mine, linked); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(mine, "file"), filepath.Join(dir, "file")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{linked, dir} {
		u := newInUse(dir, build)
		if u.suspect(a) {
			t.Errorf("%s: what a link leads to was read", dir)
		}
		u.end()
	}
	if b, err := os.ReadFile(filepath.Join(mine, "file")); err != nil || string(b) != string(text) ||
		files(t, mine) != 1 {
		t.Errorf("what links lead to has changed: %v", err)
	}
}
