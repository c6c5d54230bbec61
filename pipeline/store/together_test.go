package store

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/runexp/runexp/stages"
)

// childEnv makes the test binary do something else: see TestMain.
const childEnv = "RUNEXP_STORE_TEST"

// TestMain lets the test binary be the other process.
func TestMain(m *testing.M) {
	what, dir, _ := strings.Cut(os.Getenv(childEnv), ":")
	var err error
	switch what {
	case "write":
		err = writeStore(dir)
	case "full":
		err = fillDisk(dir)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(what, dir string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+what+":"+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

const togetherCells = 24

// writeStore records the same world again and again.
func writeStore(dir string) error {
	w := newWorld(togetherCells)
	for range 10 {
		s, err := Open(dir, Options{})
		if err != nil {
			return err
		}
		if err := w.write(s, "a", nil); err != nil {
			return err
		}
	}
	return nil
}

// TestTwoWriters: several writers, in this process and in others, record the same and different things at
// once. All of it is there, and nothing is torn.
func TestTwoWriters(t *testing.T) {
	dir := scratch(t)
	w := newWorld(togetherCells)
	var children []*exec.Cmd
	for range 3 {
		c := child("write", dir)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, c)
	}
	var wg sync.WaitGroup
	for k := range 3 {
		wg.Go(func() {
			s, err := Open(dir, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			mine := &world{cells: slices.Clone(w.cells)}
			if k == 1 {
				slices.Reverse(mine.cells)
			}
			if err := mine.write(s, "a", nil); err != nil {
				t.Error(err)
			}
		})
	}
	// One store is also used by many goroutines.
	shared := open(t, dir, Options{})
	for k := range 4 {
		wg.Go(func() {
			part := &world{cells: w.cells[k*togetherCells/4 : (k+1)*togetherCells/4]}
			if err := part.record(shared, "a", nil); err != nil {
				t.Error(err)
			}
			part.check(t, shared)
		})
	}
	wg.Wait()
	for _, c := range children {
		if err := c.Wait(); err != nil {
			t.Errorf("the other process: %v", err)
		}
	}
	for _, path := range files(t, dir) {
		if strings.Contains(path, tempPrefix) {
			t.Errorf("%s is left", path)
		}
	}
	for _, log := range must(shared.logs(actionFrame, itemFrame)) {
		scan := must(shared.readLog(log, 0, func(int64, stages.Digest, []byte) {}))
		if scan.torn+scan.altered > 0 {
			t.Errorf("%s is damaged: %+v", log.path, scan)
		}
	}
	w.wholeStore(t, dir)
}

// TestCollectionMeanwhile: what other writers record while a store is collected again and again isn't lost by
// it.
func TestCollectionMeanwhile(t *testing.T) {
	dir := scratch(t)
	w := newWorld(togetherCells)
	c := child("write", dir)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	finished := make(chan error, 1)
	go func() { finished <- c.Wait() }()
	for n := 0; ; n++ {
		s := open(t, dir, Options{})
		// An older record of everything makes each log one to rewrite.
		if err := w.write(s, fmt.Sprint("b", n%2), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := s.GC(Roots{}, true); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-finished:
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d collections", n+1)
			w.wholeStore(t, dir)
			s := open(t, dir, Options{})
			for _, c := range w.cells {
				if h, ok := s.Lookup(c.key, "a"); !ok || h.MadeBy() != "a" {
					t.Errorf("cell %q of the other process is gone", c.name)
				}
			}
			return
		default:
		}
	}
}

// fillDisk writes more than the process may, and then, allowed again, the same.
func fillDisk(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	w := newWorld(8)
	for limit := uint64(1); limit < 8000; limit += 173 {
		low := old
		low.Cur = limit
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &low); err != nil {
			return err
		}
		s, err := Open(dir, Options{})
		if err != nil {
			return fmt.Errorf("limit %d: %w", limit, err)
		}
		if err := w.write(s, "a", nil); err != nil && !strings.Contains(err.Error(), "file too large") {
			return fmt.Errorf("limit %d: %w", limit, err)
		} else if err == nil && limit < 1000 {
			return fmt.Errorf("limit %d: nothing was too large", limit)
		}
	}
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old)
}

// TestFullDisk: writes that end in the middle for want of space give an error with that cause, and cost
// nothing that was there.
func TestFullDisk(t *testing.T) {
	dir := scratch(t)
	if out, err := child("full", dir).Output(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w := newWorld(8)
	s := open(t, dir, Options{})
	w.check(t, s)
	for _, path := range files(t, dir) {
		if strings.Contains(path, tempPrefix) {
			t.Errorf("%s is left", path)
		}
	}
	if err := w.write(s, "a", nil); err != nil {
		t.Fatal(err)
	}
	w.wholeStore(t, dir)
}

// TestFullDiskSentence is the error's wording.
func TestFullDiskSentence(t *testing.T) {
	s := open(t, scratch(t), Options{})
	got := s.writeErr(&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}).Error()
	if !strings.Contains(got, "the disk of store") || !strings.Contains(got, "full") ||
		!strings.Contains(got, "kept") {
		t.Errorf("error: %s", got)
	}
}
