package dataset

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/text/unicode/norm"

	"github.com/runexp/runexp/stages"
)

// A truth is a folder of which is known what is right.
type truth struct {
	files map[string]string // by path
	list  string            // the content of labels.csv, "" without one
	want  []string          // the items in their order, as "id label=3"
	grey  map[string]uint8  // of images, by id

	unread   int // pictures whose format isn't read
	others   int // files that aren't pictures
	unlisted int // images that the list doesn't name
	absent   int // files that the list names and the folder lacks
}

// foreign are files that aren't read: as pictures, and as others.
var foreign = map[bool][][2]string{
	true: {{".gif", "GIF89a"}, {".heic", "\x00\x00\x00\x18ftypheic"}, {".avif", "\x00\x00\x00\x18ftypavif"},
		{".svg", "<svg xmlns='x'/>"}, {".dcm", strings.Repeat("\x00", 128) + "DICM"}, {"", "8BPS\x00\x01"},
		{".NEF", "II*\x00abcd"}, {".npy", "\x93NUMPY"}, {".bin", "\x00\x00\x00\x0cJXL \r\n\x87\n"}},
	false: {{".txt", "hello"}, {".md", "# hello"}, {"", "no picture"}, {".json", "{}"},
		{".dat", "version https://git-lfs.github.com/spec/v1\n"}, {".xml", "<annotation/>"}},
}

// quiet are files that nobody put there.
var quiet = []string{".DS_Store", "Thumbs.db", "desktop.ini", "._im.png", ".ipynb_checkpoints/im.png",
	"__MACOSX/im.png"}

// encoded returns an image of one grey in a format, and how its name may end.
func encoded(r *rand.Rand, grey uint8) (file string, extensions []string) {
	m := image.NewGray(image.Rect(0, 0, 8, 8))
	for i := range m.Pix {
		m.Pix[i] = grey
	}
	var b bytes.Buffer
	var err error
	switch r.IntN(4) {
	case 0:
		err, extensions = png.Encode(&b, m), []string{".png", ".PNG", ".Png"}
	case 1:
		err, extensions = jpeg.Encode(&b, m, nil), []string{".jpg", ".JPG", ".jpeg", ".jpe", ".jfif",
			".JFIF", ".pjpeg"}
	case 2:
		err, extensions = bmp.Encode(&b, m), []string{".bmp", ".BMP", ".dib"}
	case 3:
		err, extensions = tiff.Encode(&b, m, nil), []string{".tif", ".TIFF"}
	}
	if err != nil {
		panic(err)
	}
	return b.String(), append(extensions, "", ".img", ".gif", ".heic", ".0001")
}

// drawFolder returns a random folder that lies at a path.
func drawFolder(r *rand.Rand, at string) *truth {
	f := &truth{files: map[string]string{}, grey: map[string]uint8{}}
	layout := r.IntN(3) // unlabelled, class folders, a list
	folders := []string{""}
	if layout > 0 {
		folders = []string{"ant", "bee", "cat", "Été d'août"}[:2+r.IntN(3)]
	}
	if layout == 2 && r.IntN(2) == 0 {
		folders = []string{"img"}
	}
	var ids []string
	for k, folder := range folders {
		for i := range 2 + r.IntN(4) {
			grey := uint8(r.IntN(256))
			content, extensions := encoded(r, grey)
			id := path.Join(folder, fmt.Sprintf("im %d%d é", k, i)+extensions[r.IntN(len(extensions))])
			if r.IntN(3) == 0 {
				id = path.Join(folder, norm.NFD.String(path.Base(id)))
			}
			f.files[id], f.grey[id] = content, grey
			ids = append(ids, id)
		}
	}
	draw := func(pictures bool) (n int) {
		for i := range r.IntN(4) {
			kind := foreign[pictures][r.IntN(len(foreign[pictures]))]
			f.files[path.Join(folders[r.IntN(len(folders))], fmt.Sprintf("file%v%d%s", pictures, i,
				kind[0]))] = kind[1]
			n++
		}
		return n
	}
	f.unread, f.others = draw(true), draw(false)
	for range r.IntN(3) {
		f.files[path.Join(folders[r.IntN(len(folders))], quiet[r.IntN(len(quiet))])] = "\x00"
	}
	slices.SortFunc(ids, func(a, b string) int {
		return slices.Compare(strings.Split(a, "/"),
			strings.Split(b, "/"))
	})
	if layout < 2 {
		classes := slices.Clone(folders)
		// Folders are numbered in the order of their names.
		slices.Sort(classes)
		for _, id := range ids {
			note := noteOf(-1)
			if layout == 1 {
				note = noteOf(slices.Index(classes, path.Dir(id)))
			}
			f.want = append(f.want, id+" "+note)
		}
		return f
	}
	f.drawList(r, at, ids)
	return f
}

// drawList draws a list of the images, as one of the programs that write lists would write it.
func (f *truth) drawList(r *rand.Rand, at string, ids []string) {
	r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	f.unlisted = r.IntN(len(ids))
	separator := []string{",", ";", "\t"}[r.IntN(3)]
	label := []func(n int) string{strconv.Itoa,
		func(n int) string { return fmt.Sprintf("%d.0", n) },
		func(n int) string { return fmt.Sprintf("%de0", n) },
		func(n int) string { return fmt.Sprintf("[%d]", n) },
		func(n int) string { return fmt.Sprintf("%03d", n) },
		func(n int) string { return fmt.Sprintf(" +%d ", n) },
		func(n int) string { return "kind " + string(rune('a'+n)) }}[r.IntN(7)]
	name := []func(id string) string{
		func(id string) string { return id },
		func(id string) string { return "./" + id },
		func(id string) string { return strings.ReplaceAll(id, "/", `\`) },
		func(id string) string { return filepath.ToSlash(filepath.Join(at, id)) },
		func(id string) string { return "/data/of somebody/photos/" + id },
		func(id string) string { return `D:\photos\` + strings.ReplaceAll(id, "/", `\`) },
		norm.NFC.String, norm.NFD.String, strings.ToUpper}[r.IntN(9)]
	head := [][2]string{{"file", "label"}, {"File", "Label"}, {"image_id", "label"}, {"filename", "class"},
		{"image_path", "target"}, {"path", "class_id"}}[r.IntN(6)]
	end := []string{"\n", "\r\n"}[r.IntN(2)]
	lines := []string{head[1] + separator + "note" + separator + head[0]}
	listed := ids[:len(ids)-f.unlisted]
	var used []string
	for _, id := range listed {
		n := r.IntN(3)
		used = append(used, label(n))
		f.want = append(f.want, fmt.Sprintf("%s label=%d", id, n))
		lines = append(lines, label(n)+separator+`"a, b; c"`+separator+`"`+name(id)+`"`)
		if r.IntN(6) == 0 {
			lines = append(lines, label(0)+separator+"x"+separator+name(fmt.Sprintf("gone%d.png",
				len(lines))))
			used = append(used, label(0))
			f.absent++
		}
	}
	if strings.HasPrefix(label(0), "kind") { // names are numbered in sorted order
		slices.Sort(used)
		used = slices.Compact(used)
		for i, w := range f.want {
			k := strings.LastIndex(w, "=")
			n, _ := strconv.Atoi(w[k+1:])
			f.want[i] = w[:k+1] + strconv.Itoa(slices.Index(used, label(n)))
		}
	}
	f.list = []string{"", "\ufeff"}[r.IntN(2)] + strings.Join(lines, end) + end
	f.files["labels.csv"] = f.list
}

// countIn returns the number that a sentence with a text begins a count with: 3 of "left out …: 3 of 7
// images".
func countIn(told []string, text string) (n int) {
	for _, s := range told {
		_, rest, ok := strings.Cut(s, text)
		if ok {
			fmt.Sscanf(rest, "%d", &n)
		}
	}
	return n
}

// checkTruth draws a folder and compares what the stage makes of it with what is known.
func checkTruth(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	dir := filepath.Join(t.TempDir(), "photos")
	f := drawFolder(r, dir)
	for id, content := range f.files {
		file := filepath.Join(dir, filepath.FromSlash(id))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := defaults(dir)
	if f.absent > 0 {
		if _, err := Folder.Sources(p, nil); err == nil || !strings.Contains(err.Error(),
			fmt.Sprintf("%d of %d files that labels.csv lists", f.absent, f.absent+len(f.want))) {
			t.Fatalf("seed %d: %d absent files, and the error %v", seed, f.absent, err)
		}
		p.Absent = "skip"
	}
	sources, err := Folder.Sources(p, nil)
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, f.list)
	}
	if len(sources) != len(f.want) {
		t.Fatalf("seed %d: %d images, want %d:\n%q", seed, len(sources), len(f.want), f.want)
	}
	for i, s := range sources {
		id, note, _ := strings.Cut(f.want[i], " label=")
		if note == "" {
			id = strings.TrimSuffix(strings.TrimSuffix(f.want[i], " "+unlabelled), " ")
		} else if s.Note != "label="+note {
			t.Errorf("seed %d: %q has %s, want the label %s\n%s", seed, s.ID, s.Note, note, f.list)
		}
		if s.ID != id {
			t.Errorf("seed %d: image %d is %q, want %q\n%s", seed, i, s.ID, id, f.list)
			continue
		}
		photo, err := readImage(p.framing(), s.File)
		if err != nil {
			t.Fatalf("seed %d: %q: %v", seed, s.ID, err)
		}
		m, err := stages.DecodeTensor(photo.image)
		if err != nil || max(m.Raw[0], f.grey[id])-min(m.Raw[0], f.grey[id]) > 2 {
			t.Errorf("seed %d: %q is of grey %d, want %d", seed, s.ID, m.Raw[0], f.grey[id])
		}
	}
	told := p.remarks()
	for text, want := range map[string]int{"format isn't read: ": f.unread,
		"doesn't list them: ": f.unlisted} {
		if got := countIn(told, text); got != want {
			t.Errorf("seed %d: %q counts %d, want %d: %q", seed, text, got, want, told)
		}
	}
	got := 0
	for _, s := range told {
		if strings.Contains(s, "no images: ") {
			fmt.Sscanf(s, "%d", &got)
		}
		if strings.Contains(s, "labels.csv lists") {
			var absent int
			if fmt.Sscanf(s, "%d", &absent); absent != f.absent {
				t.Errorf("seed %d: %d absent files, want %d: %q", seed, absent, f.absent, s)
			}
		}
	}
	if got != f.others {
		t.Errorf("seed %d: %d other files are told of, want %d: %q\n%q", seed, got, f.others, told,
			slices.Sorted(maps.Keys(f.files)))
	}
}

// TestFoldersOfKnownTruth draws folders as people have them: every file is used as it should be, or counted
// in a sentence.
func TestFoldersOfKnownTruth(t *testing.T) {
	for seed := range uint64(50) {
		checkTruth(t, seed)
		if t.Failed() {
			return
		}
	}
}

func FuzzFoldersOfKnownTruth(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(checkTruth)
}
