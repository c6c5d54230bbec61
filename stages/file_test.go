package stages

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOpenFile checks that only regular files are opened, directly or through links, and that no other kind
// blocks.
func TestOpenFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("file"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	for name, target := range map[string]string{"link": "file", "piped": "pipe", "zero": "/dev/zero",
		"loop": "loop", "nowhere": "none"} {
		if err := os.Symlink(target, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]error{
		"file": nil, "link": nil, "pipe": ErrNotRegular, "piped": ErrNotRegular, "zero": ErrNotRegular,
		".":    ErrNotRegular,
		"loop": syscall.ELOOP, "nowhere": fs.ErrNotExist,
	} {
		b, err := ReadFile(at(name), 4)
		if !errors.Is(err, want) || err == nil && string(b) != "text" {
			t.Errorf("%s: %q, %v, want %v", name, b, err, want)
		}
	}
	if _, err := ReadFile(at("file"), 3); err == nil ||
		!strings.Contains(err.Error(), "4 bytes exceed the limit of 3") {
		t.Errorf("a file that's too large: %v", err)
	}
	if b, err := ReadFile("/proc/self/status", 1<<20); err == nil && len(b) < 100 {
		t.Errorf("a file that doesn't know its size: %d bytes", len(b))
	}
}
