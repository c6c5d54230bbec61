package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// nobody is a user who owns no file.
const nobody = 65534

// TestFolderNotWritable: readers work on a folder that can't be written, writers get a sentence that names
// it.
func TestFolderNotWritable(t *testing.T) {
	w := newWorld(2)
	dir := w.filled(t)
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			t.Cleanup(func() { os.Chmod(p, 0o755) })
			return os.Chmod(p, 0o555)
		}
		return os.Chmod(p, 0o444)
	})
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		// Root may write everywhere: be somebody else, on this thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		syscall.Setfsuid(nobody)
		defer syscall.Setfsuid(0)
		if _, err := os.ReadDir(dir); err != nil {
			t.Skipf("user %d can't read below %s", nobody, filepath.Dir(dir))
		}
	}
	var warnings []string
	s := open(t, dir, Options{Warn: func(w string) { warnings = append(warnings, w) }})
	if v := w.check(t, s); v.misses > 0 {
		t.Errorf("%d misses", v.misses)
	}
	_, putErr := s.Put([][]byte{make([]byte, smallObject)})
	for name, err := range map[string]error{"put": putErr,
		"items": s.RecordItems(number(1), "a", make([]ItemRecord, 1))} {
		if err == nil || !strings.Contains(err.Error(), "can't be written") ||
			!strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range 2 {
		if err := s.SetMemo(number(1), []byte("new")); err != nil {
			t.Errorf("a memo that can't be written: %v", err)
		}
	}
	if b, ok := s.Memo(number(1)); !ok || string(b) != "new" {
		t.Errorf("a memo that can't be written is forgotten: %q", b)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "can't be written") {
		t.Errorf("warnings %q, want one", warnings)
	}
}
