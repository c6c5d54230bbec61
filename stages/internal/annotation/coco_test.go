package annotation

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// goldenCOCO returns the annotations that testdata/coco.py generated, and pycocotools' masks by annotation.
func goldenCOCO(t testing.TB) (all struct {
	Images []struct {
		ID   int64
		File string `json:"file_name"`
		W    int    `json:"width"`
		H    int    `json:"height"`
	}
	Annotations []struct {
		ID           json.Number
		Image        int64           `json:"image_id"`
		Category     int64           `json:"category_id"`
		Segmentation json.RawMessage `json:"segmentation"`
		Box          []float64       `json:"bbox"`
	}
}, masks map[string][]uint32) {
	t.Helper()
	for name, to := range map[string]any{"coco.json": &all, "coco.masks.json": &masks} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err == nil {
			err = json.Unmarshal(b, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return all, masks
}

// TestRegions compares masks of polygons, run lengths and crowds with those of pycocotools, bit by
// bit.
func TestRegions(t *testing.T) {
	all, masks := goldenCOCO(t)
	if len(all.Annotations) != 72 || len(masks) != 72 {
		t.Fatalf("%d annotations and %d masks, want 72", len(all.Annotations), len(masks))
	}
	size := map[int64][2]int{}
	for _, m := range all.Images {
		size[m.ID] = [2]int{m.W, m.H}
	}
	covered := 0
	for _, a := range all.Annotations {
		got, err := NewMask(size[a.Image][0], size[a.Image][1])
		if err == nil {
			err = got.AddRegion(a.Segmentation)
		}
		if err != nil {
			t.Errorf("annotation %s: %v", a.ID, err)
			continue
		}
		want, _ := NewMask(got.W, got.H)
		if err := want.add(masks[a.ID.String()]); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Pix, want.Pix) {
			t.Errorf("annotation %s, %.80s: the mask isn't pycocotools'", a.ID, a.Segmentation)
		}
		if bytes.IndexByte(want.Pix, 1) >= 0 {
			covered++
		}
	}
	if covered < 50 {
		t.Errorf("only %d masks have a pixel", covered)
	}
}

// TestCOCO checks that an image's mask is the union of its annotations of the wanted categories, and its
// boxes theirs.
func TestCOCO(t *testing.T) {
	all, masks := goldenCOCO(t)
	c, err := OpenCOCO(filepath.Join("testdata", "coco.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, m := range all.Images {
		image, ok := c.Image("some/folder/" + m.File)
		if !ok {
			t.Fatalf("no image %s", m.File)
		}
		image = image.Of(func(category string) bool { return category != "dog" })
		want, _ := NewMask(m.W, m.H)
		var boxes []Box
		for _, a := range all.Annotations {
			if a.Image != m.ID || a.Category == 2 {
				continue
			}
			if err := want.add(masks[a.ID.String()]); err != nil {
				t.Fatal(err)
			}
			boxes = append(boxes, Box{a.Box[0], a.Box[1], a.Box[0] + a.Box[2], a.Box[1] + a.Box[3]})
		}
		got, err := image.Mask()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Pix, want.Pix) {
			t.Errorf("%s: the mask isn't the union of its annotations", m.File)
		}
		list, err := image.Boxes()
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != len(boxes) || list[0] != boxes[0] || list[len(list)-1] != boxes[len(boxes)-1] {
			t.Errorf("%s: boxes %v, want %v", m.File, list, boxes)
		}
		rows := got.Rows()
		if x, y := m.W/2, m.H/3; rows[y*m.W+x] != got.Pix[x*m.H+y] {
			t.Errorf("%s: row by row, pixel (%d, %d) is another", m.File, x, y)
		}
	}
	if _, ok := c.Image("other.jpg"); ok {
		t.Error("an image that isn't listed was found")
	}
}

// hostileCOCO are files that must be errors, by a part of the error.
var hostileCOCO = map[string]string{
	``:                           "the file ends",
	`[]`:                         "byte 1: [ where { should be",
	`{}`:                         "no images",
	`{"images":[`:                "the file ends",
	`{"images":[{"id":1,}]}`:     "images[0]: byte",
	`{"images":7}`:               "images: byte 11: 7 where [ should be",
	`{"images":[{"id":1}]}`:      "images[0]: an image without id or file_name",
	`{"annotations":[{"id":5}]}`: "annotations[0]: annotation 5 has no image_id",
	`{"annotations":[{"id":5,"image_id":3}]}`: "annotations[0] is about the " +
		"image 3, which isn't listed",
	`{"images":[{"id":1,"file_name":"a","width":9e9,"height":1}]}`:       "images[0]",
	`{"images":[{"id":1,"file_name":"a","width":99999,"height":99999}]}`: "image 1 has 99999×99999 pixels",
	`{"images":[{"id":1,"file_name":"a","width":-1,"height":-1}]}`:       "image 1 has -1×-1 pixels",
	`{"images":[{"id":1,"file_name":"a","width":1,"height":1},{"id":1,"file_name":"b","width":1,"height":1}` +
		`]}`: "two images have the id 1",
	`{"images":[{"id":1,"file_name":"a","width":1,"height":1},{"id":2,"file_name":"a","width":1,"height":1}` +
		`]}`: `two images are called "a"`,
	`{"info":` + strings.Repeat(`[`,
		100000): "",
	`{"images":[` + strings.Repeat(`[`,
		100000): "exceeded max depth",
}

func TestHostileCOCO(t *testing.T) {
	for text, part := range hostileCOCO {
		file := filepath.Join(t.TempDir(), "a.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := OpenCOCO(file)
		if err == nil || !strings.Contains(err.Error(), part) || !strings.HasPrefix(err.Error(), file) {
			t.Errorf("%.60s: error %v, want one with %q", text, err, part)
		}
	}
	if _, err := OpenCOCO(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
}

// hostileRegions are segmentations of an image of 4×3 pixels that must be errors.
var hostileRegions = map[string]string{
	`7`:                                      "segmentation",
	`[[1,2,3,4,5]]`:                          "polygon 0: a polygon of 5 numbers",
	`[[1,2,3,4,5,6],[]]`:                     "polygon 1: a polygon of 0 numbers",
	`[[1,2,3,4,5,1e300]]`:                    "a polygon's corner at 1e+300",
	`[[1,2,3,4,5,NaN]]`:                      "segmentation: invalid character 'N'",
	`[[1,2,1e999,4,5,1]]`:                    "segmentation",
	`[[1,2,3,-1]]`:                           "polygon 0: a polygon of 4 numbers",
	`{"size":[4,3],"counts":[12]}`:           "run lengths of the size [4 3] in an image of 4×3 pixels",
	`{"size":[3],"counts":[12]}`:             "run lengths of the size [3]",
	`{"size":[3,4],"counts":[6,7]}`:          "run 1 of 7 pixels ends behind the last of 4×3 pixels",
	`{"size":[3,4],"counts":[-1]}`:           "counts",
	`{"size":[3,4],"counts":[0,4294967295]}`: "ends behind",
	`{"size":[3,4],"counts":[99999999999]}`:  "counts",
	`{"size":[3,4],"counts":"P"}`:            "end within a number",
	`{"size":[3,4],"counts":"ooooooooooo"}`:  "too large",
	`{"size":[3,4],"counts":"\n"}`:           "the character '\\n'",
	`{"size":[3,4],"counts":"@"}`:            "run 0 has -16 pixels",
	`{"size":[3,4]}`:                         "counts",
}

func TestHostileRegions(t *testing.T) {
	for text, part := range hostileRegions {
		m, err := NewMask(4, 3)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.AddRegion([]byte(text)); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: error %v, want one with %q", text, err, part)
		}
	}
	long := "[[" + strings.Repeat("-1000000,-1000000,1000000,1000000,", 20) + "0,0]]"
	m, _ := NewMask(4, 3)
	if err := m.AddRegion([]byte(long)); err == nil || !strings.Contains(err.Error(),
		"boundary is too long") {
		t.Errorf("a long boundary: %v", err)
	}
}

// FuzzRegion looks for segmentations that panic, or leave another value than 0 and 1.
func FuzzRegion(f *testing.F) {
	all, _ := goldenCOCO(f)
	for _, a := range all.Annotations[:20] {
		f.Add([]byte(a.Segmentation))
	}
	for text := range hostileRegions {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<12 {
			return // more would only take longer
		}
		m, err := NewMask(17, 13)
		if err != nil {
			t.Fatal(err)
		}
		_ = m.AddRegion(b)
		if i := bytes.IndexFunc(m.Pix, func(r rune) bool { return r > 1 }); i >= 0 {
			t.Errorf("pixel %d is %d", i, m.Pix[i])
		}
	})
}
