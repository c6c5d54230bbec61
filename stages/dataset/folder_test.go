package dataset

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// dot returns a PNG file of w×h pixels of one colour.
func dot(w, h int, c color.Color) string {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		m.Set(i%w, i/w, c)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.String()
}

// folderOf writes files given by path and returns their folder.
func folderOf(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func defaults(path string) *FolderParams {
	p := Folder.NewParams().(*FolderParams)
	p.Path = path
	return p
}

// sourceLines formats sources as "id note".
func sourceLines(t testing.TB, p *FolderParams) []string {
	t.Helper()
	sources, err := Folder.Sources(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range sources {
		out = append(out, s.ID+" "+s.Note)
		if _, err := os.Stat(s.File); err != nil {
			t.Error(err)
		}
	}
	return out
}

func TestFolderListings(t *testing.T) {
	px := dot(1, 1, color.Black)
	words := folderOf(t, map[string]string{"names.txt": "n01 tench, Tinca\r\nn02 goldfish\r\nn03 shark\r\n"})
	for name, tc := range map[string]struct {
		files  map[string]string
		names  bool
		list   string
		want   []string
		labels string
	}{
		"class folders": {
			files: map[string]string{"dog/b.png": px, "dog/a.JPG": px, "cat/x/deep.png": px,
				"cat/notes.txt": "", ".git/x.png": px, "dog/.hidden.png": px},
			want:   []string{"cat/x/deep.png label=0", "dog/a.JPG label=1", "dog/b.png label=1"},
			labels: "cat\ndog",
		},
		"class folders with names": {
			files: map[string]string{"n03/b.png": px, "n01/a.png": px, "n02/readme": ""}, names: true,
			want:   []string{"n01/a.png label=0", "n03/b.png label=2"},
			labels: "n01 tench, Tinca\nn02 goldfish\nn03 shark",
		},
		"no classes": {
			files: map[string]string{"b.png": px, "a.png": px, "readme": ""},
			want:  []string{"a.png unlabelled", "b.png unlabelled"},
		},
		"numbers, spreadsheet style": {
			files: map[string]string{"z.png": px, "a b.png": px,
				"labels.csv": "\ufeffFile,Label,name\r\nz.png,7,\"a, b\"\r\n\"a b.png\", 2 ,x\r\n"},
			want: []string{"z.png label=7", "a b.png label=2"},
		},
		"names in a list": {
			files: map[string]string{"z.png": px, "d/a.png": px,
				"labels.csv": "label,file\nzebra,./d/a.png\nant,z.png\n"},
			want:   []string{"d/a.png label=1", "z.png label=0"},
			labels: "ant\nzebra",
		},
		"names in a list with names": {
			files: map[string]string{"z.png": px, "a.png": px,
				"labels.csv": "file,label\nz.png,n02\na.png,0\n"}, names: true,
			want:   []string{"z.png label=1", "a.png label=0"},
			labels: "n01 tench, Tinca\nn02 goldfish\nn03 shark",
		},
		"another list": {
			files: map[string]string{"a.png": px, "sub/mine.csv": "file,label\na.png,4\n",
				"labels.csv": "nonsense"},
			list: "sub/mine.csv",
			want: []string{"a.png label=4"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := defaults(folderOf(t, tc.files))
			if tc.names {
				p.Names = filepath.Join(words, "names.txt")
			}
			if tc.list != "" {
				p.List = filepath.Join(p.Path, tc.list)
			}
			if diff := cmp.Diff(tc.want, sourceLines(t, p)); diff != "" {
				t.Error(diff)
			}
			facts, err := Folder.Facts(p, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := facts["labels"]["labels"]; got != tc.labels {
				t.Errorf("labels are %q, want %q", got, tc.labels)
			}
		})
	}
}

func TestFolderFollowsLinks(t *testing.T) {
	px := dot(1, 1, color.White)
	elsewhere := folderOf(t, map[string]string{"one.png": px, "two.png": px})
	dir := folderOf(t, map[string]string{"cat/a.png": px})
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip("skipped where links can't be made: ", err)
		}
	}
	link(elsewhere, "dog")
	link(filepath.Join(elsewhere, "one.png"), "cat/b.png")
	if got := sourceLines(t, defaults(dir)); len(got) != 4 || got[1] != "cat/b.png label=0" ||
		got[3] != "dog/two.png label=1" {
		t.Errorf("got %q", got)
	}
	link(dir, "cat/loop")
	if _, err := Folder.Sources(defaults(dir), nil); err == nil ||
		!strings.Contains(err.Error(), "points to a folder that contains it") {
		t.Errorf("a loop of links gives the error %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "cat/loop")); err != nil {
		t.Fatal(err)
	}
	link(filepath.Join(dir, "gone"), "cat/gone.png")
	if _, err := Folder.Sources(defaults(dir), nil); err == nil ||
		!strings.Contains(err.Error(), "gone.png") {
		t.Errorf("a link to nothing gives the error %v", err)
	}
}

func TestFolderErrors(t *testing.T) {
	px := dot(1, 1, color.Black)
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"empty":          {nil, "contains no JPEG, PNG, WebP, BMP or TIFF file, nor any other file"},
		"other files":    {map[string]string{"a.txt": "", "b.gif": ""}, "TIFF file: only 1 .gif, 1 .txt"},
		"an empty class": {map[string]string{"cat/a.png": px, "dog/a.txt": ""}, `dog" contains no JPEG`},
		"loose images": {map[string]string{"cat/a.png": px, "a.png": px},
			"1 images next to class folders"},
		"an empty list": {map[string]string{"labels.csv": ""}, `labels.csv" is empty`},
		"a header only": {map[string]string{"labels.csv": "file,label\n"}, "lists no files"},
		"no header": {map[string]string{"labels.csv": "a.png,1\n"},
			`labels.csv:1: no column "file" among ["a.png" "1"]`},
		"no label": {map[string]string{"labels.csv": "file,kind\na.png,1\n"},
			`no column "label"`},
		"a short line": {map[string]string{"a.png": px, "labels.csv": "file,label\na.png,1\na.png\n"},
			"labels.csv:3: 1 fields, the first line has 2"},
		"an empty field": {map[string]string{"a.png": px, "labels.csv": "file,label\na.png,\n"},
			"labels.csv:2: missing file or label"},
		"a file twice": {map[string]string{"a.png": px,
			"labels.csv": "file,label\na.png,1\n\n./a.png,2\n"},
			`labels.csv:4: duplicate file "./a.png": first on line 2`},
		"no such file": {map[string]string{"labels.csv": "file,label\nb.png,1\n"},
			`labels.csv:2: file "b.png": no such file`},
		"a folder": {map[string]string{"b/a.png": px, "labels.csv": "file,label\nb,1\n"},
			`"b" isn't a regular file`},
		"outside": {map[string]string{"labels.csv": "file,label\n../b.png,1\n"},
			"isn't inside the folder"},
		"a name amid numbers": {map[string]string{"a.png": px, "b.png": px,
			"labels.csv": "file,label\na.png,1\nb.png,cat\n"},
			`labels.csv:2: the label "1" is a number, and on line 3 "cat" is a name`},
		"a negative number": {map[string]string{"a.png": px, "labels.csv": "file,label\na.png,-1\n"},
			"label -1 isn't between 0"},
		"a stray quote": {map[string]string{"labels.csv": "file,label\na\"b.png,1\n"}, "labels.csv:2:2: "},
		"an open quote": {map[string]string{"labels.csv": "file,label\n\"a.png,1\n"}, "labels.csv:"},
		"UTF-16":        {map[string]string{"labels.csv": "\xff\xfef\x00i\x00"}, "isn't UTF-8 text"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Folder.Sources(defaults(folderOf(t, tc.files)), nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got the error %v, want %q", err, tc.want)
			}
		})
	}
	dir := folderOf(t,
		map[string]string{"a.png": px, "labels.csv": "file,label\na.png,5\n", "names": "cat\ndog\n",
			"gap": "cat\n\ndog\n", "dog/b.png": px, "x.csv": "text\n"})
	for name, tc := range map[string]struct {
		change func(p *FolderParams)
		want   string
	}{
		"no such folder": {func(p *FolderParams) { p.Path += "x" }, "no such file"},
		"texts":          {func(p *FolderParams) { p.Path += "/x.csv" }, "; dataset/text takes texts"},
		"not a folder":   {func(p *FolderParams) { p.Path += "/a.png" }, "neither a folder nor an archive"},
		"a label past names": {func(p *FolderParams) { p.Names = dir + "/names" },
			"labels.csv:2: label 5 has no name: there are 2 names"},
		"a nameless class": {func(p *FolderParams) { p.Names = dir + "/gap" },
			"gap:2: empty line"},
		"no such list":        {func(p *FolderParams) { p.List = dir + "/none.csv" }, "no such file"},
		"no such class names": {func(p *FolderParams) { p.Names = dir + "/none" }, "no such file"},
	} {
		p := defaults(dir)
		tc.change(p)
		if _, err := Folder.Sources(p, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got the error %v, want %q", name, err, tc.want)
		}
	}
	if err := (&FolderParams{}).Validate(); err == nil {
		t.Error("a missing path is accepted")
	}
	p := defaults("x")
	p.Resize, p.Size.H, p.Size.W = 10, 10, 10
	if err := p.Validate(); err == nil {
		t.Error("two sizes are accepted")
	}
}

func TestFolderShapesImages(t *testing.T) {
	dir := folderOf(t,
		map[string]string{"a/wide.png": dot(40, 20, color.NRGBA{10, 20, 30, 128}),
			"b/one.bmp": dot(1, 1, color.White)})
	p := defaults(dir)
	p.Resize = 8
	p.Crop.H, p.Crop.W = 6, 8
	r := stagetest.Run(t, Folder, p, nil)
	if diff := cmp.Diff(stages.Facts{"height": "6", "width": "8"}, r.Facts["images"]); diff != "" {
		t.Error(diff)
	}
	for i, want := range [][]byte{{10, 20, 30}, {255, 255, 255}} {
		m, err := stages.DecodeTensor(r.Payloads["images"][i])
		if err != nil {
			t.Fatal(err)
		}
		if m.DType != stages.U8 || !cmp.Equal(m.Shape, []int{3, 6, 8}) {
			t.Fatalf("image %d is %s %v", i, m.DType, m.Shape)
		}
		for c := range 3 {
			if m.Raw[c*48] != want[c] || m.Raw[c*48+47] != want[c] {
				t.Errorf("image %d: channel %d is %d, want %d", i, c, m.Raw[c*48], want[c])
			}
		}
		if label, err := stages.ScalarOf(r.Payloads["labels"][i]); err != nil || label != float64(i) {
			t.Errorf("label %d is %v, %v", i, label, err)
		}
	}
	p.Crop.W = 100
	if _, err := stagetest.Try(Folder, p, nil); err == nil ||
		!strings.Contains(err.Error(),
			`"a/wide.png": an image of 16×8 pixels is smaller than the crop of 100×6`) {
		t.Errorf("a crop that's too large gives the error %v", err)
	}
}

func TestFolderCorruptFiles(t *testing.T) {
	good := dot(9, 9, color.White)
	files := map[string]string{"a/cut.png": good[:len(good)-20], "a/good.png": good, "b/empty.jpg": "",
		"b/text.webp": "hello", "b/z.jpg": good}
	p := defaults(folderOf(t, files))
	_, err := stagetest.Try(Folder, p, nil)
	for _, want := range []string{"3 of 5 files can't be read", "corrupt: skip",
		`"a/cut.png": a truncated PNG file`, `"b/empty.jpg": an empty file`,
		`"b/text.webp": neither JPEG, PNG, WebP, BMP nor TIFF`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want %q", err, want)
		}
	}
	p.Corrupt = "skip"
	r := stagetest.Run(t, Folder, p, nil)
	if len(r.Payloads["images"]) != 2 || len(r.Payloads["labels"]) != 2 {
		t.Errorf("%d images and %d labels are left", len(r.Payloads["images"]), len(r.Payloads["labels"]))
	}
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "3 of 5 files are skipped") {
		t.Errorf("warned %q", r.Warnings)
	}
}

// TestFolderChunks checks that a file's payloads don't depend on the other files of its chunk.
func TestFolderChunks(t *testing.T) {
	files := map[string]string{}
	for i := range 12 {
		files[fmt.Sprintf("c/%02d.png", i)] = dot(4+i, 30-i, color.NRGBA{uint8(20 * i), uint8(i), 9, 255})
	}
	p := defaults(folderOf(t, files))
	p.Size.H, p.Size.W = 7, 5
	whole := stagetest.Run(t, Folder, p, nil).Payloads["images"]
	sources, err := Folder.Sources(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sources {
		e := &stages.Env{Stage: &Folder, Slot: stagetest.NewSlot(),
			Calls: []stages.Call{{Source: &sources[i]}}}
		if err := Folder.Run(context.Background(), p, e); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(e.Outputs[0].Data, whole[i]) {
			t.Errorf("%s alone differs", sources[i].ID)
		}
	}
}
