package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runexp/runexp/stages"
)

// A file is a member of an archive that a test packs.
type file struct {
	name, text string
	mode       fs.FileMode
	typ        byte // of a member of a tar file
	flags      uint16
	method     uint16
}

func packZip(t testing.TB, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Flags: f.flags}
		h.SetMode(f.mode | 0o644)
		if f.flags != 0 || f.method != 0 {
			h.Method = f.method
			m, err := w.CreateRaw(h)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(m, f.text)
			continue
		}
		m, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(m, f.text)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func packTar(t testing.TB, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Size: int64(len(f.text)), Typeflag: f.typ, Mode: 0o644, Linkname: "x"}
		if f.typ == 0 {
			h.Typeflag, h.Linkname = tar.TypeReg, ""
		}
		if f.typ == tar.TypeXGlobalHeader {
			h = &tar.Header{Typeflag: f.typ, PAXRecords: map[string]string{"comment": "a commit"}}
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w, f.text)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

var small = limits{members: 100, bytes: 1 << 24, member: 1 << 21, ratio: 200, free: 1 << 22}

// unpackInto unpacks an archive, and returns the folder.
func unpackInto(t testing.TB, l limits, name string, b []byte) (dir string, err error) {
	t.Helper()
	at := t.TempDir()
	archive := filepath.Join(at, name)
	if err := os.WriteFile(archive, b, 0o600); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(at, "inside", "content")
	if err := os.Mkdir(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = l.unpack(archive, dir)
	for _, folder := range []string{at, filepath.Dir(dir)} {
		if list, _ := os.ReadDir(folder); len(list) > 2 || folder != at && len(list) > 1 {
			t.Errorf("written outside: %v", list)
		}
	}
	return dir, err
}

// tree returns the files below a folder with their texts.
func tree(t testing.TB, dir string) string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out = append(out, filepath.ToSlash(rel)+"="+string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

func TestUnpack(t *testing.T) {
	files := []file{{name: "./cat/1.png", text: "one"}, {name: "__MACOSX/cat/._1.png", text: "junk"},
		{name: ".DS_Store", text: "junk"}, {name: "cat/._1.png", text: "junk"},
		{name: "dog//2.png", text: "two"}, {name: "labels.csv"}}
	const want = "cat/1.png=one dog/2.png=two labels.csv="
	global := append([]file{{typ: tar.TypeXGlobalHeader}}, files...)
	for name, b := range map[string][]byte{"a.zip": packZip(t, files...), "A.ZIP": packZip(t, files...),
		"a.tar": packTar(t, global...), "a.tar.gz": zipped(packTar(t, files...)),
		"a.tgz": zipped(packTar(t, files...))} {
		dir, err := unpackInto(t, small, name, b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := tree(t, dir); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	// More than 65 535 members make a zip64 file.
	many := make([]file, 70_000)
	for i := range many {
		many[i] = file{name: "folder/", mode: fs.ModeDir}
	}
	many = append(many, file{name: "folder/1.png", text: "one"})
	dir, err := unpackInto(t, defaultLimits, "a.zip", packZip(t, many...))
	if got := tree(t, dir); err != nil || got != "folder/1.png=one" {
		t.Errorf("zip64: %v %s", err, got)
	}
}

func TestHostileMembers(t *testing.T) {
	good := file{name: "a.png", text: "good"}
	for _, tc := range []struct {
		file
		want string
	}{
		{file{name: "/etc/a.png"}, `the member "/etc/a.png" has an absolute path`},
		{file{name: "x/../../a.png"}, `the member "x/../../a.png" has a path that leads upwards`},
		{file{name: "x/.."}, "leads upwards"},
		{file{name: `..\..\a.png`}, "backslash"},
		{file{name: "cat/\xff.png"}, "isn't UTF-8"},
		{file{name: "a.png"}, `the member "a.png" has the name of another one`},
		{file{name: "./x/../a.png"}, "leads upwards"},
		{file{name: ".//a.png"}, "has the name of another one"},
		{file{name: "a.png/b.png"}, `the member "a.png/b.png" can't be written: `},
		{file{name: strings.Repeat("x/", 4000) + "y.png"}, "has a name of 8005 bytes"},
		{file{name: "b.png", text: strings.Repeat("x", 1<<21+1)},
			`the member "b.png" has more than 2097152 bytes`},
	} {
		for name, b := range map[string][]byte{"a.zip": packZip(t, good, tc.file),
			"a.tgz": zipped(packTar(t, good, tc.file))} {
			_, err := unpackInto(t, small, name, b)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %.40q: %v", name, tc.name, err)
			} else if len(err.Error()) > 400 {
				t.Errorf("an error of %d letters", len(err.Error()))
			}
		}
	}
	for _, tc := range []struct {
		file
		want string
	}{
		{file{name: "l.png", text: "/etc/passwd", mode: fs.ModeSymlink},
			`the member "l.png" is a symbolic link: only files`},
		{file{name: "d.png", mode: fs.ModeDevice}, "is a device"},
		{file{name: "p.png", mode: fs.ModeNamedPipe}, "is a pipe"},
		{file{name: "e.png", text: "secret", flags: 1}, `the member "e.png" is encrypted`},
		{file{name: "m.png", text: "x", method: 12}, "method 12"},
		{file{name: "n\x00.png"}, "zero byte"},
		{file{name: "", text: "x"}, "has no name"},
	} {
		if _, err := unpackInto(t, small, "a.zip", packZip(t, good, tc.file)); err == nil ||
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("zip: %q: %v", tc.name, err)
		}
	}
	for typ, want := range map[byte]string{tar.TypeSymlink: "is a symbolic link", tar.TypeLink: "link",
		tar.TypeChar: "is a device", tar.TypeBlock: "is a device", tar.TypeFifo: "is a pipe",
		'Q': "special file"} {
		f := file{name: "x.png", typ: typ}
		if _, err := unpackInto(t, small, "a.tar", packTar(t, good, f)); err == nil ||
			!strings.Contains(err.Error(), `the member "x.png" is `) || !strings.Contains(err.Error(), want) {
			t.Errorf("tar: %c: %v", typ, err)
		}
	}
}

// TestDamagedArchives: an archive that lost bytes anywhere, or has others, is an error.
func TestDamagedArchives(t *testing.T) {
	noise := make([]byte, 5000)
	for i := range noise {
		noise[i] = byte(i*i>>3 + i)
	}
	files := []file{{name: "a.png", text: string(noise)}, {name: "b.png", text: string(noise[:1536])}}
	packed := map[string][]byte{"a.zip": packZip(t, files...), "a.tar": packTar(t, files...),
		"a.tgz": zipped(packTar(t, files...))}
	for name, b := range packed {
		for cut := 0; cut < len(b); cut += 256 {
			if name == "a.tar" && cut > len(b)-1024 {
				continue // one block of zeros ends a tar file too
			}
			if _, err := unpackInto(t, small, name, b[:cut]); err == nil {
				t.Errorf("%s with %d of %d bytes: no error", name, cut, len(b))
			}
		}
		if _, err := unpackInto(t, small, name, []byte("<!DOCTYPE html><title>404</title>")); err == nil {
			t.Errorf("%s: a page of text is accepted", name)
		}
	}
	b := packed["a.zip"]
	b[bytes.Index(b, []byte("a.png"))+50] ^= 1
	_, err := unpackInto(t, small, "a.zip", b)
	if err == nil || !strings.Contains(err.Error(), `the member "a.png" is damaged`) {
		t.Errorf("a changed byte: %v", err)
	}
}

func TestBounds(t *testing.T) {
	var many, bomb []file
	for i := range 101 {
		many = append(many, file{name: fmt.Sprintf("%d.png", i), text: "x"})
		bomb = append(bomb, file{name: fmt.Sprintf("%d.png", i), text: strings.Repeat("x", 1<<20)})
	}
	hidden := make([]file, 100)
	for i := range hidden {
		hidden[i] = file{name: fmt.Sprintf(".%d", i), text: strings.Repeat("x", 1<<20)}
	}
	long := packZip(t, file{name: strings.Repeat("x", 60_000), text: "x"})
	for _, tc := range []struct {
		name string
		b    []byte
		want string
	}{
		{"a.zip", packZip(t, many...), "101 members, more than 100"},
		{"a.tgz", zipped(packTar(t, many...)), "more than 100 members"},
		{"a.zip", packZip(t, bomb[:20]...), "makes the content too large"},
		{"a.tgz", zipped(packTar(t, bomb[:20]...)), "too large"},
		{"a.tgz", zipped(packTar(t, hidden...)), "too large"}, // what isn't unpacked is read
		{"a.zip", long, "its directory has more than 100 members"},
	} {
		_, err := unpackInto(t, small, tc.name, tc.b)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, not %q", tc.name, err, tc.want)
		}
	}
}

// TestCache: an archive is unpacked once, by however many processes; one that changed, or that lost a file in
// the cache, is unpacked anew.
func TestCache(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "a.zip")
	write := func(text string) {
		b := packZip(t, file{name: "photos/cat/1.png", text: text})
		if err := os.WriteFile(archive, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	c := cache{filepath.Join(dir, "cache"), small}
	get := func() string {
		stamp, settled, err := stages.StampOf(archive)
		if err != nil {
			t.Fatal(err)
		}
		content, err := c.open(archive, stamp, settled)
		if err != nil {
			t.Error(err)
		}
		return content
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { get() })
	}
	wg.Wait()
	content := get()
	if list, _ := os.ReadDir(c.dir); len(list) != 1 {
		t.Errorf("%d entries in the cache, not only the folder", len(list))
	}
	if got := tree(t, content); got != "photos/cat/1.png=one" {
		t.Error(got)
	}
	before, err := os.Stat(content)
	if err != nil {
		t.Fatal(err)
	}
	get()
	if after, _ := os.Stat(content); !os.SameFile(before, after) {
		t.Error("unpacked twice")
	}
	if err := os.Remove(filepath.Join(content, "photos", "cat", "1.png")); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, get()); got != "photos/cat/1.png=one" {
		t.Errorf("after a file is lost: %q", got)
	}
	write("two")
	if got := tree(t, get()); got != "photos/cat/1.png=two" {
		t.Errorf("after a change: %q", got)
	}
	part := filepath.Join(c.dir, "x"+partMark+"1")
	if err := os.Mkdir(part, 0o700); err != nil {
		t.Fatal(err)
	}
	c.sweep()
	if !exists(part) {
		t.Error("a folder that a process may work on is removed")
	}
	old := time.Now().Add(-2 * abandoned)
	if err := os.Chtimes(part, old, old); err != nil {
		t.Fatal(err)
	}
	c.sweep()
	if exists(part) {
		t.Error("an abandoned folder stays")
	}
}

func TestPath(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	b := packZip(t, file{name: "photos/cat/1.png", text: "one"}, file{name: "__MACOSX/photos/._cat"})
	if err := os.WriteFile("a.zip", b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("folder.zip/inside", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, same := range []string{"folder.zip", "folder.zip/inside", "none.zip", "none/a.png", "."} {
		if got, err := Path(same); err != nil || got != same {
			t.Errorf("%s: %s, %v", same, got, err)
		}
	}
	content, err := Path("a.zip")
	if err != nil || tree(t, content) != "cat/1.png=one" {
		t.Errorf("%v: the folder that all is in stays: %s", err, tree(t, content))
	}
	for path, want := range map[string]string{"a.zip/cat/": "cat", "a.zip/photos": ".",
		"a.zip/photos/cat": "cat", "a.zip/photos/dog": "photos/dog", "a.zip/dog": "dog"} {
		if inside, err := Path(path); err != nil || inside != filepath.Join(content, want) {
			t.Errorf("%s: %s, %v", path, inside, err)
		}
	}
	if err := os.WriteFile("b.tar", []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Path("b.tar")
	if err == nil || !strings.HasPrefix(err.Error(), `the archive "b.tar": it isn't `) {
		t.Error(err)
	}
}

// FuzzUnpack: no bytes make it write more than the limits allow, or anything outside.
func FuzzUnpack(f *testing.F) {
	files := []file{{name: "cat/1.png", text: "one"}, {name: "../x", text: "two"}}
	f.Add(uint8(0), packZip(f, files...))
	f.Add(uint8(1), packTar(f, files...))
	f.Add(uint8(2), zipped(packTar(f, files...)))
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		// The name of the archive is the user's own; only its end matters.
		dir, _ := unpackInto(t, small, "a"+Extensions[int(kind)%len(Extensions)], b)
		var bytes int64
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, _ error) error {
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
				bytes += info.Size()
			} else if !d.IsDir() {
				t.Errorf("%s is %v", d.Name(), d.Type())
			}
			return nil
		})
		if bytes > small.total(int64(len(b)))+1 {
			t.Errorf("%d bytes of %d", bytes, len(b))
		}
	})
}

// TestFoldersCount: folders count as members and as what they take on a disk, named by members or by paths.
func TestFoldersCount(t *testing.T) {
	var deep, many []file
	for i := range 20 {
		deep = append(deep, file{name: fmt.Sprintf("%d/a/b/c/d/e/x.txt", i)})
	}
	for i := range 40 {
		many = append(many, file{name: fmt.Sprintf("%d/", i), typ: tar.TypeDir})
	}
	few := small
	few.bytes = 30 * folderBytes
	for name, c := range map[string]struct {
		l     limits
		files []file
		want  string
	}{
		"paths":    {small, deep, "members and folders"},
		"members":  {few, many, "makes the content too large"},
		"too deep": {small, []file{{name: strings.Repeat("a/", deepest+1) + "x"}}, "folders deep"},
	} {
		for _, b := range [][]byte{packTar(t, c.files...), packZip(t, c.files...)} {
			archive := "x.zip"
			if b[0] != 'P' {
				archive = "x.tar"
			}
			if _, err := unpackInto(t, c.l, archive, b); err == nil || !strings.Contains(err.Error(),
				c.want) {
				t.Errorf("%s, %s: %v, want %q", name, archive, err, c.want)
			}
		}
	}
	// A folder costs a few bytes of an archive.
	var bomb []file
	for i := range 5000 {
		bomb = append(bomb, file{name: fmt.Sprintf("%d/", i), typ: tar.TypeDir})
	}
	b := zipped(packTar(t, bomb...))
	strict := defaultLimits
	strict.free = 1 << 22
	dir, err := unpackInto(t, strict, "x.tar.gz", b)
	if made, _ := os.ReadDir(dir); err == nil || len(made) > int(strict.total(int64(len(b)))/folderBytes)+1 {
		t.Errorf("%d folders of %d bytes: %v", len(made), len(b), err)
	}
}

// TestChangedBytes holds that what an archive's checksums cover is never unpacked with other bytes: an
// archive of which a byte changed, of which some are missing or to which some were added, gives the same
// content or an error. Tar files have checksums of headers alone; a zip file's directory has none.
func TestChangedBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	noise := make([]byte, 3000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	files := []file{{name: "a/x.txt", text: string(noise)}, {name: "a/y.txt", text: strings.Repeat("y",
		5000)},
		{name: "z.txt"}}
	zip, targz := packZip(t, files...), zipped(packTar(t, files...))
	directory := bytes.Index(zip, []byte("PK\x01\x02"))
	for name, c := range map[string]struct {
		b      []byte
		covers int // bytes
	}{"x.zip": {zip, directory}, "x.tar.gz": {targz, len(targz)}, "x.tar": {packTar(t, files...), 0}} {
		dir, err := unpackInto(t, small, name, c.b)
		if err != nil {
			t.Fatal(err)
		}
		want := tree(t, dir)
		try := func(what string, b []byte) {
			t.Helper()
			if dir, err := unpackInto(t, small, name, b); err == nil && tree(t, dir) != want {
				t.Errorf("%s, %s: unpacked with another content", name, what)
			}
		}
		for range 50 {
			if c.covers > 0 {
				b := bytes.Clone(c.b)
				at := r.IntN(c.covers)
				b[at] ^= 1 << r.IntN(8)
				try(fmt.Sprintf("byte %d", at), b)
			}
			if n := r.IntN(len(c.b)); name != "x.tar" {
				try(fmt.Sprintf("%d bytes", n), c.b[:n])
			}
		}
		for n := range 40 { // the last bytes are the checksums
			if _, err := unpackInto(t, small, name, c.b[:len(c.b)-1-n]); err == nil && name != "x.tar" {
				t.Errorf("%s without its last %d bytes is unpacked", name, n+1)
			}
		}
		other := file{name: "other.txt", text: "other"}
		for what, add := range map[string][]byte{"garbage": []byte("garbage"), "zip": packZip(t, other),
			"tar": packTar(t, other), "gzip": zipped(packTar(t, other)), "text": zipped([]byte("text"))} {
			if _, err := unpackInto(t, small, name, append(bytes.Clone(c.b), add...)); err == nil {
				t.Errorf("%s is unpacked with %s behind it", name, what)
			}
		}
	}
	// A checksum of 0 is one.
	b := bytes.Clone(zip)
	copy(b[directory+16:directory+20], make([]byte, 4))
	if _, err := unpackInto(t, small, "x.zip", b); err == nil {
		t.Error("a zip file with a checksum of 0 is unpacked")
	}
}
