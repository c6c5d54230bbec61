package dataset

import (
	"fmt"
	"image/color"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	locHead = "ImageId,PredictionString\n"
	synsets = "n01 tench, Tinca\nn02 goldfish\nn03 shark\n"
)

// TestPublishedLists reads data sets as they are published.
func TestPublishedLists(t *testing.T) {
	px := dot(1, 1, color.Black)
	val := func(n int) string { return fmt.Sprintf("ILSVRC2012_val_%08d.JPEG", n) }
	for name, tc := range map[string]struct {
		files  map[string]string
		set    func(p *FolderParams)
		want   []string
		labels string
	}{
		"ImageNet, LOC_val_solution": {
			files: map[string]string{"val/" + val(1): px, "val/" + val(2): px,
				"LOC.csv": locHead + "ILSVRC2012_val_00000002,n03 1 2 3 4 n03 5 6 7 8 " +
					"\nILSVRC2012_val_00000001,n01 1 2 3 4 \n",
				"mapping.txt": synsets},
			set: func(p *FolderParams) {
				p.List, p.Names = p.Path+"/LOC.csv", p.Path+"/mapping.txt"
				p.Path += "/val"
			},
			want:   []string{val(2) + " label=2", val(1) + " label=0"},
			labels: "n01 tench, Tinca\nn02 goldfish\nn03 shark",
		},
		"ImageNet, ground truth with ids": {
			files: map[string]string{"val/" + val(1): px, "val/" + val(3): px,
				"truth.txt": "2\n3\n1\n", "ids.txt": "n03 1 shark\nn01 2 tench\nn02 3 goldfish\n",
				"mapping.txt": synsets},
			set: func(p *FolderParams) {
				p.List, p.Names, p.IDs = p.Path+"/truth.txt", p.Path+"/mapping.txt", p.Path+"/ids.txt"
				p.Path += "/val"
			},
			want:   []string{val(1) + " label=0", val(3) + " label=2"},
			labels: "n01 tench, Tinca\nn02 goldfish\nn03 shark",
		},
		"ImageNet, ground truth with ids in the order of their names": {
			files: map[string]string{"val/" + val(1): px, "truth.txt": "1\n",
				"ids.txt": "n03 1 shark\nn01 2 tench\n"},
			set: func(p *FolderParams) {
				p.List, p.IDs = p.Path+"/truth.txt", p.Path+"/ids.txt"
				p.Path += "/val"
			},
			want:   []string{val(1) + " label=1"},
			labels: "n01\nn03",
		},
		"ImageNet, ground truth as it is": {
			files: map[string]string{val(1): px, val(2): px, "truth.txt": "490\r\n361\r\n"},
			set:   func(p *FolderParams) { p.List, p.First = p.Path+"/truth.txt", 1 },
			want:  []string{val(1) + " label=489", val(2) + " label=360"},
		},
		"ImageNet, val.txt": {
			files: map[string]string{val(1): px, val(2): px, "val.txt": val(2) + " 970\n" + val(1) + " 65\n"},
			set:   func(p *FolderParams) { p.List = p.Path + "/val.txt" },
			want:  []string{val(2) + " label=970", val(1) + " label=65"},
		},
		"Places365": {
			files: map[string]string{"Places365_val_00000001.jpg": px, "a/airfield/00000001.jpg": px,
				"places365_val.txt": "Places365_val_00000001.jpg 165\n/a/airfield/00000001.jpg 0\n"},
			set:  func(p *FolderParams) { p.List = p.Path + "/places365_val.txt" },
			want: []string{"Places365_val_00000001.jpg label=165", "a/airfield/00000001.jpg label=0"},
		},
		"Food-101": {
			files: map[string]string{"images/apple_pie/101.jpg": px, "images/waffles/7.jpg": px,
				"images/waffles/8.jpg": px, "meta/test.txt": "waffles/7\napple_pie/101\n",
				"meta/labels.txt": "Apple pie\nBaby back ribs\nWaffles\n"},
			want:   []string{"images/waffles/7.jpg label=2", "images/apple_pie/101.jpg label=0"},
			labels: "Apple pie\nBaby back ribs\nWaffles",
		},
		"RESISC45": {
			files: map[string]string{"airplane/airplane_002.jpg": px, "airplane/airplane_001.jpg": px,
				"wetland/wetland_001.jpg": px, "beach/beach_001.jpg": px},
			want: []string{"airplane/airplane_001.jpg label=0", "airplane/airplane_002.jpg label=0",
				"beach/beach_001.jpg label=1", "wetland/wetland_001.jpg label=2"},
			labels: "airplane\nbeach\nwetland",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := defaults(folderOf(t, tc.files))
			if tc.set != nil {
				tc.set(p)
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

// TestPublishedListErrors checks the file and line of what is wrong with a list.
func TestPublishedListErrors(t *testing.T) {
	px := dot(1, 1, color.Black)
	for text, want := range map[string]string{
		"":                         "lists no files",
		"1\n2\n":                   "ids names a file with their names",
		"a.png 1\na.png\n":         `list.txt:2: "a.png": the first line has 2 columns`,
		"a.png 1\n\na.png 1\n":     `list.txt:3: duplicate file "a.png": first on line 1`,
		"b.png 1\n":                `list.txt:1: file "b.png": no such file`,
		"../a.png 1\n":             "list.txt:1: the file \"../a.png\" isn't inside the folder",
		"a.png 1\na.jpg 2\n":       `list.txt:2: file "a.jpg": no such file`,
		"a\n":                      `list.txt:1: "a" has no label, and isn't in the folder of a class`,
		"cat/a\n":                  `list.txt:1: file "cat/a": no such file`,
		"\x00":                     "isn't UTF-8 text",
		strings.Repeat("x", 1<<17): "token too long",
	} {
		p := defaults(folderOf(t, map[string]string{"a.png": px, "list.txt": text}))
		p.List = filepath.Join(p.Path, "list.txt")
		if _, err := Folder.Sources(p, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want one with %q", text, err, want)
		}
	}
	for ids, want := range map[string]string{
		"n01\n":        `ids.txt:1: "n01": a class's number and name are needed`,
		"n01 1\nn02 1": "ids.txt:2: a second class has the number 1",
		"n01 2\n":      `list.txt:1: `,
	} {
		p := defaults(folderOf(t, map[string]string{"a1.png": px, "list.txt": "1\n", "ids.txt": ids}))
		p.List, p.IDs = filepath.Join(p.Path, "list.txt"), filepath.Join(p.Path, "ids.txt")
		if _, err := Folder.Sources(p, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want one with %q", ids, err, want)
		}
	}
}

// TestChoice checks which images of a list are chosen.
func TestChoice(t *testing.T) {
	files := map[string]string{}
	for i := range 12 {
		files[fmt.Sprintf("%c/%02d.png", 'a'+i%3, i)] = ""
	}
	dir := folderOf(t, files)
	chosen := func(c Choice) string {
		t.Helper()
		p := defaults(dir)
		p.Choice = c
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		sources, err := Folder.Sources(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, s := range sources {
			ids = append(ids, strings.TrimSuffix(s.ID, ".png"))
		}
		return strings.Join(ids, " ")
	}
	for _, c := range []struct {
		choice Choice
		want   string
	}{
		{Choice{}, "a/00 a/03 a/06 a/09 b/01 b/04 b/07 b/10 c/02 c/05 c/08 c/11"},
		{Choice{Count: 5}, "a/00 a/03 a/06 a/09 b/01"},
		{Choice{Count: 99}, "a/00 a/03 a/06 a/09 b/01 b/04 b/07 b/10 c/02 c/05 c/08 c/11"},
		{Choice{PerClass: 1}, "a/00 b/01 c/02"},
		{Choice{Count: 5, PerClass: 2}, "a/00 a/03 b/01 b/04 c/02"},
	} {
		if got := chosen(c.choice); got != c.want {
			t.Errorf("%+v: %s, want %s", c.choice, got, c.want)
		}
	}
	// Smaller samples are parts of larger ones, other seeds have others, and classes have their share.
	last := ""
	for n := 1; n <= 12; n++ {
		now := chosen(Choice{Sample: n})
		if len(strings.Fields(now)) != n {
			t.Errorf("a sample of %d: %s", n, now)
		}
		for _, id := range strings.Fields(last) {
			if !strings.Contains(now, id) {
				t.Errorf("%s is in a sample of %d and not in one of %d", id, n-1, n)
			}
		}
		last = now
	}
	if a, b := chosen(Choice{Sample: 6}), chosen(Choice{Sample: 6, SampleSeed: 1}); a == b {
		t.Errorf("two seeds have the same sample %s", a)
	}
	// What a sample has, and what is left out, are parts of one draw.
	for n := 1; n < 12; n++ {
		first, next, rest := chosen(Choice{Sample: n}), chosen(Choice{Sample: 1, SampleSkip: n}),
			chosen(Choice{SampleSkip: n})
		parts := slices.Sorted(slices.Values(strings.Fields(first + " " + rest)))
		if all := chosen(Choice{}); strings.Join(parts, " ") != all {
			t.Errorf("a sample of %d and the others are %s, not %s", n, parts, all)
		}
		larger := slices.Sorted(slices.Values(strings.Fields(first + " " + next)))
		if want := chosen(Choice{Sample: n + 1}); strings.Join(larger, " ") != want {
			t.Errorf("a sample of %d and the next image are %s, not %s", n, larger, want)
		}
	}
	if got := chosen(Choice{Sample: 6, PerClass: 2}); strings.Count(got, "a/") != 2 || strings.Count(got,
		"b/") != 2 {
		t.Errorf("two a class: %s", got)
	}
	p := defaults(dir)
	p.Count, p.Sample = 1, 1
	if err := p.Validate(); err == nil {
		t.Error("count and sample are accepted together")
	}
	p.Sample, p.SampleSkip = 0, 1
	if err := p.Validate(); err == nil {
		t.Error("count and sample_skip are accepted together")
	}
	p.Count, p.SampleSkip = 0, 12
	_, err := Folder.Sources(p, nil)
	if err == nil || !strings.Contains(err.Error(), "leaves out all of the 12") {
		t.Errorf("a draw of which nothing is left: %v", err)
	}
	p = defaults(folderOf(t, map[string]string{"a.png": ""}))
	p.PerClass = 1
	if _, err := Folder.Sources(p, nil); err == nil || !strings.Contains(err.Error(), "has no class: ") ||
		!strings.Contains(err.Error(), "list: labels.csv") {
		t.Errorf("per_class without classes: %v", err)
	}
}

// TestManyImages lists as many images as ImageNet's validation set has.
func TestManyImages(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: 50000 files")
	}
	files, list := map[string]string{}, &strings.Builder{}
	for i := range 50000 {
		name := fmt.Sprintf("%05d.png", i)
		files[name] = ""
		fmt.Fprintf(list, "%s %d\n", name, i%1000)
	}
	p := defaults(folderOf(t, files))
	p.List = filepath.Join(folderOf(t, map[string]string{"val.txt": list.String()}), "val.txt")
	p.PerClass = 3
	sources, err := Folder.Sources(p, nil)
	if err != nil || len(sources) != 3000 {
		t.Errorf("%d images and the error %v, want 3000", len(sources), err)
	}
}
