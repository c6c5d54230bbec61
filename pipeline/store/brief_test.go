package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/runexp/runexp/stages"
)

// briefsIn returns the briefs in a store's folder.
func briefsIn(t testing.TB, dir string) []string {
	t.Helper()
	briefs, err := filepath.Glob(filepath.Join(dir, "parts", "brief-*"))
	if err != nil {
		t.Fatal(err)
	}
	return briefs
}

// TestBrief: of an experiment there is one brief, which goes with the last wave, and with a collection when
// no share can need it any more.
func TestBrief(t *testing.T) {
	w := newWorld(4)
	dir := parted(t, scratch(t), w)
	fold(t, dir)
	w.close(t, dir)
	w.close(t, dir)
	s := open(t, dir, Options{})
	defer s.Close()
	h, _ := s.Lookup(w.cells[0].key, "a")
	if err := s.WriteBrief("another", []Hit{h}, nil); err != nil {
		t.Fatal(err)
	}
	if briefs := briefsIn(t, dir); len(briefs) != 2 {
		t.Errorf("two experiments have the briefs %q", briefs)
	}
	if err := s.WriteBrief("test", nil, nil); err != nil {
		t.Fatal(err)
	}
	briefs := briefsIn(t, dir)
	if len(briefs) != 1 {
		t.Fatalf("left: %q", briefs)
	}
	info, err := os.Stat(briefs[0])
	with, e := s.Info()
	if err := errors.Join(err, e, os.Rename(briefs[0], dir+"/away")); err != nil {
		t.Fatal(err)
	}
	without, err := s.Info()
	if err != nil || with.RecordBytes-without.RecordBytes != info.Size() {
		t.Errorf("a brief of %d bytes counts %d", info.Size(), with.RecordBytes-without.RecordBytes)
	}
	if err := os.Rename(dir+"/away", briefs[0]); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		age  time.Duration
		left int
	}{{2 * inFlight, 1}, {partInUse + time.Minute, 0}} {
		at := time.Now().Add(-c.age)
		if err := os.Chtimes(briefs[0], at, at); err != nil {
			t.Fatal(err)
		}
		if _, err := s.GC(Roots{}, true); err != nil || len(briefsIn(t, dir)) != c.left {
			t.Errorf("after %v: %q, %v", c.age, briefsIn(t, dir), err)
		}
	}
	reader := open(t, dir, Options{ReadOnly: true})
	if err := reader.WriteBrief("test", []Hit{h}, nil); err == nil {
		t.Error("written in a store opened for reading")
	}
}

// TestBriefTellsPlaces: a share reads no log of items whose groups have no records there, and of others those
// records alone, also when the log was rewritten meanwhile or the brief lies.
func TestBriefTellsPlaces(t *testing.T) {
	w := newWorld(8)
	from := w.filled(t)
	s := open(t, from, Options{})
	groups := []stages.Digest{number(7001), number(7002)}
	for n := range w.cells {
		groups = append(groups, w.cells[n].group)
	}
	if err := errors.Join(s.WriteBrief("test", nil, groups), s.Close()); err != nil {
		t.Fatal(err)
	}
	rewrite := func(dir string) error {
		s := open(t, dir, Options{})
		defer s.Close()
		for n := range w.cells {
			log := s.log(itemFrame, w.cells[n].group)
			b, err := os.ReadFile(log.path)
			if err != nil {
				return err
			}
			other := appendFrame(nil, itemFrame, number(9000), encodeItems("a", nil))
			if err := os.WriteFile(log.path, append(other, b...), 0o666); err != nil {
				return err
			}
		}
		return nil
	}
	lie := func(dir string) error {
		var b []byte
		for _, g := range groups {
			lies := appendUint(appendUint(nil, 1<<62), 1<<62)
			b = appendFrame(b, briefFrame, g, append(lies, lies...))
		}
		return os.WriteFile(briefsIn(t, dir)[0], b, 0o666)
	}
	older := func(dir string) error { // of a time when there were no records
		var b []byte
		for _, g := range groups {
			b = appendFrame(b, briefFrame, g, nil)
		}
		name := briefName("test") + "0000000000000000"
		return os.WriteFile(filepath.Join(dir, "parts", name), b, 0o666)
	}
	for name, change := range map[string]func(dir string) error{
		"as it was": func(string) error { return nil }, "rewritten": rewrite, "a lie": lie, "two": older,
	} {
		dir := scratch(t)
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		c := newClient(1)
		s := openPart(t, dir, Options{files: c})
		before := c.calls["open"]
		for _, g := range groups[:2] {
			if s.Items(g, "a").Find(stages.Digest{}) >= 0 {
				t.Errorf("%s: an item of nowhere", name)
			}
		}
		if opens := c.calls["open"] - before; opens > 0 && name == "as it was" {
			t.Errorf("%d files are opened for groups without records", opens)
		}
		if v := w.items(t, s); v.misses > 0 {
			t.Errorf("%s: %d items are missing", name, v.misses)
		}
		s.Close()
	}
}

// TestFoldOutdatesBriefs: a share finds what a fold added since its brief was written, even if that fold was
// killed before it removed the brief.
func TestFoldOutdatesBriefs(t *testing.T) {
	w := newWorld(2)
	for _, killed := range []bool{false, true} {
		dir := scratch(t)
		s := open(t, dir, Options{})
		if err := s.WriteBrief("test", nil, []stages.Digest{w.cells[0].group}); err != nil {
			t.Fatal(err)
		}
		s.Close()
		brief := briefsIn(t, dir)[0]
		b, err := os.ReadFile(brief)
		if err != nil {
			t.Fatal(err)
		}
		parted(t, dir, w)
		fold(t, dir)
		if killed {
			if err := os.WriteFile(brief, b, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if f := fold(t, dir); f.Removed != 1 {
			t.Fatalf("%+v", f)
		}
		share := openPart(t, dir, Options{})
		if v := w.items(t, share); v.misses > 0 {
			t.Errorf("killed %v: %d items are hidden", killed, v.misses)
		}
		share.Close()
	}
}

// TestHostileBriefs alters, cuts and replaces a brief: no wrong byte arrives, and the share finds all that
// was copied where it came from.
func TestHostileBriefs(t *testing.T) {
	w := newWorld(8)
	from := parted(t, scratch(t), w)
	fold(t, from)
	w.close(t, from)
	name := briefsIn(t, from)[0]
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	damages := []func(path string) error{
		func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)) },
		func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o777)) },
		func(path string) error { return os.Truncate(path, 0) },
	}
	lies := func(path string) error { // whole frames, of listings that aren't those of the objects
		var b []byte
		scanLog(whole, briefFrame, func(_ int64, key stages.Digest, payload []byte) {
			if payload[0] != '{' {
				payload = bytes.Replace(payload, []byte("image-00"), []byte("image-77"), 1)
			}
			b = appendFrame(b, briefFrame, key, payload)
		})
		if bytes.Equal(b, whole) {
			return errors.New("there is no listing in the brief")
		}
		return os.WriteFile(path, b, 0o666)
	}
	damages = append(damages, lies)
	for off := 0; off < len(whole); off += 997 {
		damages = append(damages,
			func(path string) error { return os.Truncate(path, int64(off)) },
			func(path string) error { flip(t, path, int64(off), 0x41); return nil })
	}
	for n, damage := range damages {
		dir := scratch(t)
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		if err := damage(filepath.Join(dir, "parts", filepath.Base(name))); err != nil {
			t.Fatal(err)
		}
		s := openPart(t, dir, Options{})
		for i := range w.cells {
			if !w.checkCell(t, s, &w.cells[i]) {
				t.Errorf("damage %d: %s can't be had", n, w.cells[i].name)
			}
		}
		s.Close()
		os.RemoveAll(dir)
	}
}
