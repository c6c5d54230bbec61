package dataset

import (
	"archive/zip"
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
)

// zipOf packs a folder.
func zipOf(t testing.TB, dir string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "photos.zip")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := zip.NewWriter(f)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestArchives: an archive is listed as its folder is, with the same bytes, so that keys are the same.
func TestArchives(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	black, white := dot(4, 4, color.Black), dot(4, 4, color.White)
	files := map[string]string{"images/cat/a.png": black, "images/dog/b.png": white,
		"masks/cat/a.png": white, "masks/dog/b.png": black, "names.txt": "dog\ncat\n",
		"list.csv": "file,label\ndog/b.png,1\n"}
	type item struct {
		ID, Note          string
		File, Mask, Boxes stages.Digest
	}
	digest := func(file string) stages.Digest {
		if file == "" {
			return stages.Digest{}
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return stages.Sum(b)
	}
	list := func(path string, listed bool) (out []item) {
		p := defaults(filepath.Join(path, "images"))
		p.Masks, p.Names = filepath.Join(path, "masks"), filepath.Join(path, "names.txt")
		if listed {
			p.List = filepath.Join(path, "list.csv")
		}
		sources, err := Folder.Sources(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sources {
			out = append(out, item{s.ID, s.Note, digest(s.File), digest(s.With[0]), digest(s.With[1])})
		}
		facts, err := Folder.Facts(p, nil)
		if err != nil || facts["labels"]["labels"] != "dog\ncat" {
			t.Errorf("%v %v", facts, err)
		}
		return out
	}
	dir := folderOf(t, files)
	above := t.TempDir()
	if err := os.CopyFS(filepath.Join(above, "data"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for _, listed := range []bool{false, true} {
		want := list(dir, listed)
		if len(want) == 0 {
			t.Fatal("no item")
		}
		for _, packed := range []string{dir, above} {
			if diff := cmp.Diff(want, list(zipOf(t, packed), listed)); diff != "" {
				t.Error(diff)
			}
		}
	}
	file := zipOf(t, folderOf(t, map[string]string{"images/no/x.txt": "x", "images/a.png": black,
		"list.csv": "x"}))
	for path, want := range map[string]string{
		"images/cow": `photos.zip/images/cow": no such file`,
		"list.csv":   `photos.zip/list.csv" is neither a folder nor an archive`,
		"images":     `photos.zip/images/no" contains no JPEG`,
	} {
		_, err := Folder.Sources(defaults(filepath.Join(file, path)), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
