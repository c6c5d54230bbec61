package experiments

import (
	"io/fs"
	"regexp"
	"testing"
)

// TestQuickstart checks that the command carries each net of the quickstart and no other, within 6 MB.
func TestQuickstart(t *testing.T) {
	text, err := Quickstart.ReadFile("quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]bool{"quickstart.yaml": true}
	for _, m := range regexp.MustCompile(`quickstart/[\w-]+\.onnx`).FindAllString(string(text), -1) {
		read[m] = true
	}
	var size int64
	err = fs.WalkDir(Quickstart, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !read[path] {
			t.Errorf("%s isn't read by the quickstart", path)
		}
		delete(read, path)
		info, err := d.Info()
		size += info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for path := range read {
		t.Errorf("the quickstart reads %s, which isn't embedded", path)
	}
	if size > 6e6 {
		t.Errorf("%d bytes", size)
	}
}
