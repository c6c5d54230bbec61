package dataset

import (
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRemarks has folders that hold something else than they seem to.
func TestRemarks(t *testing.T) {
	px := dot(2, 2, color.Black)
	for name, tc := range map[string]struct {
		files map[string]string
		want  []string // parts of sentences, in order; as many as there are sentences
	}{
		"nothing": {map[string]string{"a/1.png": px, "b/1.png": px, "a/.x": "", "Thumbs.db": ""}, nil},
		"masks next to images": {map[string]string{"1.png": px, "1_mask.png": px, "2.png": px,
			"2_mask.png": px},
			[]string{`2 of 4 images are named like others with "_mask.png" in the place of the extension`}},
		"any ending": {map[string]string{"1.png": px, "1-q.png": px, "2.png": px, "2-q.png": px},
			[]string{`"-q.png"`}},
		"numbers are no ending": {map[string]string{"1.png": px, "1_1.png": px, "2.png": px, "3.png": px},
			nil},
		"a list by another name": {map[string]string{"1.png": px, "2.png": px,
			"train.csv": "image_id,label\n1.png,3\n"},
			[]string{`has the columns "image_id" and "label", and isn't read: list takes it`}},
		"a list of something else": {map[string]string{"1.png": px, "train.csv": "image_id,label\nx.png,3\n"},
			[]string{"1 file in "}},
		"levels": {map[string]string{"x/a/1.png": px, "x/b/1.png": px, "y/c/1.png": px, "y/d/1.png": px},
			[]string{"are the classes, x, y, not the 4 folders in these"}},
		"masks as a class": {map[string]string{"images/1.png": px, "masks/1.png": px},
			[]string{`the folders "images" and "masks" are read as classes`}},
	} {
		told := defaults(folderOf(t, tc.files)).remarks()
		if len(told) != len(tc.want) {
			t.Errorf("%s: told %q, want %q", name, told, tc.want)
			continue
		}
		for i, want := range tc.want {
			if !strings.Contains(told[i], want) {
				t.Errorf("%s: told %q, want %q", name, told[i], want)
			}
		}
	}
	for _, files := range []map[string]string{
		{"train/a/1.png": px, "train/b/1.png": px, "val/a/1.png": px, "val/b/1.png": px},
		{"Train/1.png": px, "TEST/1.png": px},
		{"val/a/1.png": px, "val/b/1.png": px},
	} {
		if _, err := Folder.Sources(defaults(folderOf(t, files)), nil); err == nil ||
			!strings.Contains(err.Error(),
				"parts of a data set") {
			t.Errorf("%q: error %v", files, err)
		}
	}
}

// TestPathsOfLists has lists whose paths differ from the files' in a way that isn't to be guessed.
func TestPathsOfLists(t *testing.T) {
	px := dot(1, 1, color.Black)
	files := map[string]string{"photos/cat/1.png": px, "photos/1.png": px, "photos/2.png": px,
		"outside.png": px,
		"lists/l.csv": ""}
	for list, want := range map[string]string{
		"../outside.png,1\n":                         "isn't inside the folder",
		"/a/1.png,1\n/b/2.png,1\n":                   `may be "/a/" or "/b/"`,
		"/a/1.png,1\n/b/photos/2.png,1\n":            "isn't inside the folder",
		"/a/1.png,1\n/a/gone.png,1\n":                "gone.png",
		"elsewhere/1.png,1\n":                        "no such file",
		"1.png,1\n1.PNG,1\n":                         "duplicate",
		"../photos/1.png,1\n2.png,2\n":               "",
		"photos/1.png,1\nphotos/2.png,2\n":           "",
		"/x/photos/1.png,1\n/x/photos/cat/1.png,2\n": "",
		"C:\\x\\cat\\1.png,1\nC:\\x\\2.png,2\n":      "",
	} {
		files["lists/l.csv"] = "file,label\n" + list
		dir := folderOf(t, files)
		p := defaults(filepath.Join(dir, "photos"))
		p.List = filepath.Join(dir, "lists", "l.csv")
		_, err := Folder.Sources(p, nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v, want %q", list, err, want)
		}
	}
}

// TestLabelsThatArentNumbers names the line of a label that isn't one.
func TestLabelsThatArentNumbers(t *testing.T) {
	px := dot(1, 1, color.Black)
	for labels, want := range map[string]string{
		"0.5 0":    `:2: the label "0.5" isn't a whole number`,
		"nan 0":    `:2: the label is missing: "nan"`,
		"0 NaN":    `:3: the label is missing: "NaN"`,
		"cat nan":  `:3: the label is missing`,
		"null dog": `:2: the label is missing`,
		"cat 1.0":  `:3: the label "1.0" is a number, and on line 2 "cat" is a name`,
		"1e99 0":   `:2: label 1e99 isn't between 0 and`,
		"1e-1 0":   `:2: the label "1e-1" isn't a whole number`,
		"inf 0":    `:2: the label is missing`,
	} {
		first, second, _ := strings.Cut(labels, " ")
		p := defaults(folderOf(t, map[string]string{"a.png": px, "b.png": px,
			"labels.csv": "file,label\na.png," + first + "\nb.png," + second + "\n"}))
		if _, err := Folder.Sources(p, nil); err == nil || !strings.Contains(err.Error(), "labels.csv"+want) {
			t.Errorf("%q: error %v, want %q", labels, err, want)
		}
	}
	// "none" and "nan" may be names of classes, if a file lists them.
	p := defaults(folderOf(t, map[string]string{"a.png": px, "b.png": px, "names": "curry\nnan\n",
		"labels.csv": "file,label\na.png,nan\nb.png,curry\n"}))
	p.Names = filepath.Join(p.Path, "names")
	if got := sourceLines(t, p); !slices.Equal(got, []string{"a.png label=1", "b.png label=0"}) {
		t.Errorf("got %q", got)
	}
}

// TestWhite tells of 12-bit values, and reads them by white.
func TestWhite(t *testing.T) {
	files := map[string]string{}
	for i, v := range []int{100, 4000} {
		files[string(rune('a'+i))+".png"] = maskFile(t, "deep", 2, []int{v, v, v, v})
	}
	p := defaults(folderOf(t, files))
	told := p.remarks()
	if len(told) != 1 || !strings.Contains(told[0], "the largest value of the 2 16-bit pictures looked at "+
		"is 4000") ||
		!strings.Contains(told[0], "white: 4095") {
		t.Errorf("told %q", told)
	}
	c, err := Inspect(p.Path)
	if err != nil || c.White != 4095 || !slices.Equal(c.Told, told) {
		t.Errorf("%+v, %v", c, err)
	}
	p.White = 4095
	photo, err := readImage(p.framing(), filepath.Join(p.Path, "b.png"))
	if err != nil || decoded(t, photo.image).Raw[0] != 249 { // 255·4000/4095
		t.Errorf("%v, %v", photo.image, err)
	}
	if told := p.remarks(); told != nil {
		t.Errorf("told %q", told)
	}
}

// TestRemarksOfArchives has an archive tell what its folder tells, by paths that users know: review folders
// repeat it, and are the same on every machine.
func TestRemarksOfArchives(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	px := dot(2, 2, color.Black)
	dir := folderOf(t, map[string]string{"val/a/1.png": px, "val/b/1.png": px, "val/b/1.gif": "GIF89a",
		"val/own.csv": "image_id,label\na/1.png,3\n", "outside.csv": "file,label\na/1.png,3\n",
		"other/x": "x"})
	file := zipOf(t, dir)
	remarks := func(top string) []string { return defaults(filepath.Join(top, "val")).remarks() }
	told, want := remarks(file), remarks(dir)
	t.Chdir(dir)
	near := remarks("")
	if len(want) != 3 || !slices.Equal(told, want) || !slices.Equal(near, want) {
		t.Errorf("of an archive %q is told, of the folder in it %q, and from the folder around that %q", told,
			want, near)
	}
	next := filepath.Join(filepath.Dir(zipOf(t, filepath.Join(dir, "val"))), "next.csv")
	if err := os.WriteFile(next, []byte("file,label\na/1.png,3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	alone := strings.Join(defaults(filepath.Join(filepath.Dir(next), "photos.zip")).remarks(), "\n")
	if !strings.Contains(alone, `next.csv next to "photos.zip" lists images`) {
		t.Errorf("a list next to an archive isn't told: %q", alone)
	}
}
