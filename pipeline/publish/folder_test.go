package publish

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestForeignFolder: a folder that has files and no mark of ours stays as it is.
func TestForeignFolder(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a project": {"README.md": "# Mine", ".gitattributes": "*.png binary",
			"experiment.yaml": "name: x"},
		"a home": {".profile": "", "notes.txt": "x"},
		"like a store": {"cells/a.jsonl": `{"mine": 1}`, "items/a.csv": "a,b\n1,2\n",
			"figures/a.svg": "<svg></svg>"},
	} {
		dir := t.TempDir()
		for f, text := range files {
			put(t, dir, f, text)
		}
		before := folder(t, dir)
		_, err := Write(dir, newWorld().results(), Options{})
		var foreign *ForeignError
		if !errors.As(err, &foreign) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: error %v", name, err)
		}
		same(t, folder(t, dir), before)
	}
	// Each file of ours is a mark but those that people write by hand, too.
	dir, _ := fresh(t, newWorld().results())
	os.Remove(filepath.Join(dir, ".gitattributes"))
	if err := Check(dir); err != nil {
		t.Error(err)
	}
	put(t, dir, "notes.txt", "people may add what they like")
	write(t, dir, newWorld().results())
}

// TestNothingBeyondLinks: where a file or folder of ours is a link, or something else that we didn't put
// there, nothing is written, and nothing blocks.
func TestNothingBeyondLinks(t *testing.T) {
	now := newWorld()
	now.methods = now.methods[:2] // something goes
	_, whole := fresh(t, newWorld().results())
	for name := range whole {
		if name == "./" {
			name = ""
		}
		for kind, make := range map[string]func(at, outside string) error{
			"link":     func(at, outside string) error { return os.Symlink(outside, at) },
			"dangling": func(at, outside string) error { return os.Symlink(outside+"-none", at) },
			"loop":     func(at, _ string) error { return os.Symlink(filepath.Base(at), at) },
			"pipe":     func(at, _ string) error { return syscall.Mkfifo(at, 0o600) },
		} {
			dir, _ := fresh(t, newWorld().results())
			at := strings.TrimSuffix(filepath.Join(dir, name), "/")
			outside := filepath.Join(t.TempDir(), "outside")
			if err := os.Rename(at, outside); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Dir(outside), "other", "mine")
			if err := make(at, outside); err != nil {
				t.Fatal(err)
			}
			before := folder(t, filepath.Dir(outside))
			if _, err := Write(dir, now.results(), Options{}); err == nil {
				t.Errorf("%q as %s: published", name, kind)
			}
			if _, err := Verify(dir, now.results()); err == nil && name != "" {
				t.Errorf("%q as %s: read", name, kind)
			}
			same(t, folder(t, filepath.Dir(outside)), before)
		}
	}
}

// lossy is a disk that loses its power as soon as a file is closed: what wasn't synced is gone.
type lossy struct{ fileSystem }

func (l lossy) Create(name string) (file, error) {
	f, err := l.fileSystem.Create(name)
	return &lossyFile{file: f}, err
}

type lossyFile struct {
	file
	cache bytes.Buffer
}

func (f *lossyFile) Write(b []byte) (int, error) { return f.cache.Write(b) }

func (f *lossyFile) Sync() error {
	_, err := f.cache.WriteTo(f.file)
	return errors.Join(err, f.file.Sync())
}

// TestPowerCut: no file gets its name before its bytes are on the disk.
func TestPowerCut(t *testing.T) {
	_, want := fresh(t, newWorld().results())
	dir := filepath.Join(t.TempDir(), "small")
	if _, err := Write(dir, newWorld().results(),
		Options{wrap: func(s fileSystem) fileSystem { return lossy{s} }}); err != nil {
		t.Fatal(err)
	}
	same(t, folder(t, dir), want)
}

// TestInterruptedAtFirst: what a first run that was killed leaves is a folder that the next one takes for
// ours.
func TestInterruptedAtFirst(t *testing.T) {
	_, want := fresh(t, newWorld().results())
	stop := errors.New("killed")
	for at := 0; ; at++ {
		dir := filepath.Join(t.TempDir(), "small")
		n := 0
		_, err := Write(dir, newWorld().results(), killed(&n, at, stop))
		write(t, dir, newWorld().results())
		same(t, folder(t, dir), want)
		if err == nil {
			return
		}
	}
}
