package dataset

import (
	"fmt"
	"image/color"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestSeveralLabels checks which items a list makes of images with several labels, and what is told of it.
func TestSeveralLabels(t *testing.T) {
	white := dot(4, 4, color.White)
	files := func(list string) map[string]string {
		return map[string]string{"a.png": white, "b.png": white, "d/c.png": white, "labels.csv": list,
			"names.txt": "cat\ndog\ntench, Tinca tinca\n"}
	}
	catDog := []string{"a.png/cat label=0", "a.png/dog label=1", "b.png/dog label=1"}
	for name, tt := range map[string]struct {
		list  string
		names bool
		want  []string
		told  string
	}{
		"semicolons": {"file,label\na.png,cat;dog\nb.png,dog\n", false, catDog,
			"1 of 2 images have several labels"},
		"bars":               {"file,label\na.png,cat|dog\nb.png,dog\n", false, catDog, ""},
		"bars as separators": {"file|label\na.png|cat;dog\nb.png|dog\n", false, catDog, ""},
		"spaces around":      {"file,label\na.png,cat ; dog\nb.png,dog;\n", false, catDog, ""},
		"brackets":           {"file,label\na.png,\"['cat', 'dog']\"\nb.png,['dog']\n", false, catDog, ""},
		"JSON": {"file,label\na.png,\"[\"\"cat\"\", \"\"dog\"\"]\"\nb.png,\"[\"\"dog\"\"]\"\n",
			false, catDog, ""},
		"rows": {"file,label\na.png,cat\nb.png,dog\na.png,dog\n", false,
			[]string{"a.png/cat label=0", "b.png/dog label=1", "a.png/dog label=1"}, ""},
		"no label": {"file,label\na.png,cat;dog\nb.png,dog\nd/c.png,\n", false, catDog,
			"left out, as they have no label: 1 of 3 images"},
		"numbers": {"file,label\na.png,0 1\nb.png,1\n", true, catDog, ""},
		"bare numbers": {"file,label\na.png,0 1\nb.png,1\nd/c.png,\"[2, 0]\"\n", false,
			[]string{"a.png/0 label=0", "a.png/1 label=1", "b.png/1 label=1", "d/c.png/2 label=2",
				"d/c.png/0 label=0"}, ""},
		"commas of numbers": {"file,label\na.png,\"0,1,2\"\nb.png,1\n", false,
			[]string{"a.png/0 label=0", "a.png/1 label=1", "a.png/2 label=2", "b.png/1 label=1"}, ""},
		"commas of known names": {"file,label\na.png,\"cat, dog\"\nb.png,\"tench, Tinca tinca\"\n", true,
			[]string{"a.png/cat label=0", "a.png/dog label=1", "b.png/tench, Tinca tinca label=2"}, ""},
		"a comma in a name": {"file,label\na.png,\"tench, Tinca tinca\"\nb.png,dog\n", false,
			[]string{"a.png label=1", "b.png label=0"}, ""},
		"one label": {"file,label\na.png,[1]\nb.png,0\n", false, []string{"a.png label=1",
			"b.png label=0"}, ""},
		"columns": {"file,cat,dog\na.png,1,1\nb.png,0,1\nd/c.png,0,0\n", false, catDog,
			"its 2 columns cat, dog are classes"},
		"CheXpert's": {"Path,Age,Sex,cat,dog,owl\na.png,61,M,1.0,1.0,\nb.png,17,F,-1.0,1.0,0.0\n", false,
			catDog,
			"1 values are −1"},
		"CelebA's": {"image_id,dog,cat\na.png,1,1\nb.png,1,-1\n", false,
			[]string{"a.png/dog label=0", "a.png/cat label=1", "b.png/dog label=0"}, ""},
		"columns of known names": {"file,dog,cat\na.png,1,1\nb.png,True,False\n", true,
			[]string{"a.png/dog label=1", "a.png/cat label=0", "b.png/dog label=1"}, ""},
		"numbered columns": {"file,1,0\na.png,1,1\nb.png,1,0\n", false,
			[]string{"a.png/1 label=1", "a.png/0 label=0", "b.png/1 label=1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := defaults(folderOf(t, files(tt.list)))
			if tt.names {
				p.Names = p.Path + "/names.txt"
			}
			if diff := cmp.Diff(tt.want, sourceLines(t, p)); diff != "" {
				t.Error(diff)
			}
			if told := strings.Join(p.remarks(), "\n"); !strings.Contains(told, tt.told) {
				t.Errorf("told is %q, want %q in it", told, tt.told)
			}
			if told := strings.Join(p.remarks(), "\n"); strings.Contains(tt.told, "no label") &&
				strings.Contains(told, "doesn't list") {
				t.Errorf("told is %q, of an image that is listed", told)
			}
		})
	}
	for list, want := range map[string]string{
		"file,label\na.png,cat\na.png,cat\n":                      "duplicate file",
		"file,label\na.png,cat;dog\na.png,dog\n":                  "duplicate file",
		"file,label\na.png,\"cat,dog\"\nb.png,dog\nd/c.png,cat\n": "may be one class or 2: write \"cat;dog\"",
		"file,label\na.png,\"1,0\"\nb.png,\"2,0\"\n":              "several numbers",
		"file,label\na.png,cat\nb.png,\n":                         "labels.csv:3: missing file or label",
		"file,label\na.png,[]\n":                                  "gives no image a label",
		"file,label\na.png,cat;3\n":                               "labels are all numbers or all names",
		"file,cat,cat\na.png,1,0\n":                               "two columns are called",
	} {
		_, err := Folder.Sources(defaults(folderOf(t, files(list))), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q in it", list, err, want)
		}
	}
}

// TestSeveralLabelsKeepImages checks that the items of an image are its pixels, with the mask of the image.
func TestSeveralLabelsKeepImages(t *testing.T) {
	dir := folderOf(t, map[string]string{
		"images/a.png": dot(4, 4, color.White), "images/b.png": dot(4, 4, color.Black),
		"masks/a.png": dot(4, 4, color.White), "masks/b.png": dot(4, 4, color.White),
		"images/labels.csv": "file,label\na.png,x/y;z\nb.png,z\n"})
	p := defaults(dir + "/images")
	p.Masks = dir + "/masks"
	r := stagetest.Run(t, Folder, p, nil)
	for port, payloads := range r.Payloads {
		if len(payloads) != 3 {
			t.Fatalf("%d %s", len(payloads), port)
		}
	}
	if !slices.Equal(r.Payloads["images"][0], r.Payloads["images"][1]) ||
		slices.Equal(r.Payloads["images"][0], r.Payloads["images"][2]) {
		t.Error("items of one image have other pixels, or those of another")
	}
	var labels []int64
	for _, b := range r.Payloads["labels"] {
		d, err := stages.DecodeTensor(b)
		if err != nil {
			t.Fatal(err)
		}
		labels = append(labels, d.Int64s()...)
	}
	if !slices.Equal(labels, []int64{0, 1, 1}) {
		t.Errorf("labels %v", labels)
	}
}

// TestGeneratedLabels holds that lists of every form with the same labels make the same items.
func TestGeneratedLabels(t *testing.T) {
	white := dot(2, 2, color.White)
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 3))
		names := []string{"ant", "bee bug", "cow", "dog-9"}
		files := map[string]string{}
		var want []string
		rows := make([][]int, 3+r.IntN(4))
		seen := make([]bool, len(names))
		for i := range rows {
			file := fmt.Sprintf("%d.png", i)
			files[file] = white
			for c := range names {
				if r.IntN(2) == 0 || i == 0 { // the first has all
					rows[i] = append(rows[i], c)
					seen[c] = true
					want = append(want, fmt.Sprintf("%s/%s label=%d", file, names[c], c))
				}
			}
		}
		join := func(row []int, separator, quote string) string {
			var parts []string
			for _, c := range row {
				parts = append(parts, quote+names[c]+quote)
			}
			return strings.Join(parts, separator)
		}
		for form, write := range map[string]func(file string, row []int) string{
			"semicolons": func(f string, row []int) string { return f + "," + join(row, ";", "") + "\n" },
			"bars":       func(f string, row []int) string { return f + "," + join(row, "|", "") + "\n" },
			"brackets": func(f string, row []int) string {
				return f + ",\"[" + join(row, ", ", "'") + "]\"\n"
			},
			"columns": func(f string, row []int) string {
				for c := range names {
					f += "," + map[bool]string{true: "1", false: "0"}[slices.Contains(row, c)]
				}
				return f + "\n"
			},
			"rows": func(f string, row []int) (text string) {
				for _, c := range row {
					text += f + "," + names[c] + "\n"
				}
				return text
			},
		} {
			list := "file,label\n"
			if form == "columns" {
				list = "file," + strings.Join(names, ",") + "\n"
			}
			for i, row := range rows {
				list += write(fmt.Sprintf("%d.png", i), row)
			}
			files["labels.csv"] = list
			p := defaults(folderOf(t, files))
			if diff := cmp.Diff(want, sourceLines(t, p)); diff != "" {
				t.Errorf("seed %d, %s:\n%s\n%s", seed, form, list, diff)
			}
		}
	}
}
