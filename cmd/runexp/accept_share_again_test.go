package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shares runs all of a number of shares, one after another.
func (w *world) shares(of int, args ...string) {
	w.Helper()
	for k := range of {
		w.run(0, append(args, "--share", fmt.Sprintf("%d/%d", k, of))...)
	}
}

// TestSharesNarrowed holds that shares, and what closes them, take overrides as a run does.
func TestSharesNarrowed(t *testing.T) {
	for _, args := range []string{
		"--set images.with.count=4", "--only method=uniform", "--limit 3",
		"--only seed=1,2 --set images.with.size=20 --limit 5",
	} {
		command := append([]string{"run", "kills.yaml"}, strings.Fields(args)...)
		one := newKills(t)
		one.run(0, command...)
		w := newKills(t)
		w.shares(3, command...)
		w.run(0, append(command, "--share", "close")...)
		sameFiles(t, args, one.folder(".runexp/out"), w.folder(".runexp/out"))
		if e := w.run(0, append(command, "--json")...); len(e.executed(t)) > 0 {
			t.Errorf("%s: a run afterwards executes %v", args, e.executed(t))
		}
	}
	w := newKills(t)
	w.shares(2, "run", "kills.yaml", "--limit", "3")
	if e := w.run(1, "run", "kills.yaml", "--share", "close"); !strings.Contains(e.stderr, " are missing") {
		t.Errorf("a limit's shares are taken for all: %s", e.stderr)
	}
}

// TestSharesKilled holds that shares that are killed inside any write, or run twice at once, go on and make
// the folder of one run.
func TestSharesKilled(t *testing.T) {
	const of = 4
	whole := newKills(t)
	whole.run(0, "run", "kills.yaml")
	rng := rand.New(rand.NewPCG(5, 6))
	killed := 0
	for range 2 {
		w := newKills(t)
		for _, k := range rng.Perm(of) {
			for range 3 {
				share := fmt.Sprintf("%d/%d", k, of)
				cmd := w.prepare("runexp-dying", "run", "kills.yaml", "--share", share, "--chunk", "1")
				cmd.Env = append(cmd.Env, fmt.Sprint("DIE=", 1+rng.IntN(100)))
				_ = cmd.Run()
				if cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
					killed++
				}
			}
		}
		ends := make(chan ending, 2*of)
		for k := range of {
			for range 2 {
				go func() {
					ends <- w.command("runexp", "run", "kills.yaml", "--share", fmt.Sprintf("%d/%d", k, of))
				}()
			}
		}
		for range 2 * of {
			if e := <-ends; e.code != 0 {
				t.Errorf("a share after kills: exit code %d\n%s", e.code, e.stderr)
			}
		}
		w.run(0, "run", "kills.yaml", "--share", "close")
		same(t, whole.path("artifacts"), w.path("artifacts"))
		w.run(0, "cache", "verify")
	}
	t.Logf("%d shares were killed", killed)
	if killed < 2*of {
		t.Error("too few shares were killed")
	}
}

// TestPartAppearsLate holds that closing waits for a part that a file server shows late.
func TestPartAppearsLate(t *testing.T) {
	one := newKills(t)
	one.run(0, "run", "kills.yaml")
	w := newKills(t)
	w.shares(3, "run", "kills.yaml")
	late, err := filepath.Glob(w.path(".runexp/store/parts/1of3.*"))
	if err != nil || len(late) != 1 {
		t.Fatalf("parts: %v, %v", late, err)
	}
	if err := os.Rename(late[0], w.path("hidden")); err != nil {
		t.Fatal(err)
	}
	cmd := w.prepare("runexp", "run", "kills.yaml", "--share", "close", "--json")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), `{"event":"finished"`) {
			_ = os.Rename(w.path("hidden"), late[0]) // the second time there is nothing to rename
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	same(t, one.path("artifacts"), w.path("artifacts"))
}

// TestSharesLack holds that closing tells which items are missing, and of what they failed; and that an item
// that fails in all shares is looked for once only.
func TestSharesLack(t *testing.T) {
	w := sharedPhotos(t)
	w.write("photos/c.bmp", []byte("BM, and nothing else"))
	failed := 0
	for k := range 3 {
		e := w.command("runexp", "run", "photos.yaml", "--share", fmt.Sprintf("%d/3", k))
		if e.code == exitFailed {
			failed++
		} else if e.code != 0 {
			t.Errorf("share %d: exit code %d\n%s", k, e.code, e.stderr)
		}
	}
	if failed != 1 {
		t.Errorf("%d shares failed, want that of one image", failed)
	}
	for range 3 {
		began := time.Now()
		e := w.run(1, "run", "photos.yaml", "--share", "close")
		for _, want := range []string{" items are missing", "failed: images: ", "c.bmp"} {
			if !strings.Contains(e.stderr, want) {
				t.Errorf("closing doesn't say %q: %s", want, e.stderr)
			}
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("closing took %v", took)
		}
	}
	w.picture("photos/c.bmp", 7)
	w.run(1, "run", "photos.yaml", "--share", "close") // notes that it changed
	w.shares(2, "run", "photos.yaml")
	w.run(0, "run", "photos.yaml", "--share", "close")
	one := sharedPhotos(t)
	one.picture("photos/c.bmp", 7)
	one.run(0, "run", "photos.yaml")
	sameFiles(t, "an image mended", one.folder("artifacts/photos"), w.folder("artifacts/photos"))
}
