package dataset

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// maskFile returns a PNG file of numbers, in one of the kinds that people write.
func maskFile(t testing.TB, kind string, w int, values []int) string {
	t.Helper()
	r := image.Rect(0, 0, w, len(values)/w)
	var palette color.Palette
	for i := range 256 {
		palette = append(palette, color.NRGBA{uint8(i * 37), uint8(i * 91), 9, 255})
	}
	paletted, grey, deep, alpha := image.NewPaletted(r, palette), image.NewGray(r), image.NewGray16(r),
		image.NewNRGBA(r)
	for i, v := range values {
		x, y := i%w, i/w
		paletted.SetColorIndex(x, y, uint8(v))
		grey.SetGray(x, y, color.Gray{Y: uint8(v)})
		deep.SetGray16(x, y, color.Gray16{Y: uint16(v)})
		alpha.SetNRGBA(x, y, color.NRGBA{255, 255, 255, uint8(v)})
	}
	var b bytes.Buffer
	if err := png.Encode(&b, map[string]image.Image{"palette": paletted, "grey": grey, "deep": deep,
		"alpha": alpha}[kind]); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// masksOf reads the mask of an image of the same size by the rule of some values.
func masksOf(t testing.TB, w int, file string, set func(p *FolderParams)) ([]uint8, error) {
	t.Helper()
	m, err := png.DecodeConfig(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	dir := folderOf(t, map[string]string{"photos/a.png": dot(w, m.Height, color.White), "masks/a.png": file})
	p := defaults(filepath.Join(dir, "photos"))
	p.Masks = filepath.Join(dir, "masks")
	if set != nil {
		set(p)
	}
	if _, err := Folder.Sources(p, nil); err != nil {
		return nil, err
	}
	r, err := stagetest.Try(Folder, p, nil)
	if err != nil {
		return nil, err
	}
	return decoded(t, r.Payloads["masks"][0]).Raw, nil
}

// TestMaskValues reads masks by what their values mean, in every kind of PNG file, and refuses those whose
// values may mean several things.
func TestMaskValues(t *testing.T) {
	const w = 6
	for name, tc := range map[string]struct {
		values         []int
		object, ignore Values
		want           []uint8
		refused        string
	}{
		"0 and 255":            {[]int{0, 255, 0, 255, 0, 0}, "", "", []uint8{0, 1, 0, 1, 0, 0}, ""},
		"0 and 1":              {[]int{0, 1, 0, 1, 0, 0}, "", "", []uint8{0, 1, 0, 1, 0, 0}, ""},
		"instances":            {[]int{0, 1, 2, 3, 0, 0}, "", "", []uint8{0, 1, 1, 1, 0, 0}, ""},
		"one of the instances": {[]int{0, 1, 2, 3, 0, 0}, "2-3", "", []uint8{0, 0, 1, 1, 0, 0}, ""},
		"full":                 {[]int{255, 255, 255, 255, 255, 255}, "", "", []uint8{1, 1, 1, 1, 1, 1}, ""},
		"VOC":                  {[]int{0, 15, 255, 0, 15, 255}, "", "", nil, "its values are 0, 15 and 255"},
		"VOC without its border": {[]int{0, 15, 255, 0, 15, 255}, "", "255",
			[]uint8{0, 1, stages.Ignored, 0, 1, stages.Ignored}, ""},
		"VOC with its border": {[]int{0, 15, 255, 0, 15, 255}, "1-255", "", []uint8{0, 1, 1, 0, 1, 1}, ""},
		"VOC full":            {[]int{15, 15, 255, 15, 15, 255}, "", "", nil, "no pixel of it is 0"},
		"trimap":              {[]int{1, 2, 3, 1, 2, 3}, "", "", nil, "its values are 1, 2 and 3"},
		"trimap, said": {[]int{1, 2, 3, 1, 2, 3}, "1", "3",
			[]uint8{1, 0, stages.Ignored, 1, 0, stages.Ignored}, ""},
		"trimap, border ignored alone": {[]int{1, 2, 3, 1, 2, 3}, "", "3", nil, "its values are 1, 2 and 3"},
		"matting":                      {[]int{0, 128, 255, 0, 128, 255}, "", "", nil, "255 may be a border"},
		"background of a number": {[]int{7, 7, 9, 7, 7, 7}, "9", "",
			[]uint8{0, 0, 1, 0, 0, 0}, ""},
	} {
		for _, kind := range []string{"palette", "grey", "deep"} {
			set := func(p *FolderParams) { p.Object, p.Ignore = tc.object, tc.ignore }
			got, err := masksOf(t, w, maskFile(t, kind, w, tc.values), set)
			switch {
			case tc.refused != "":
				if err == nil || !strings.Contains(err.Error(), tc.refused) || !strings.Contains(err.Error(),
					"object: and ignore:") {
					t.Errorf("%s, %s: error %v, want one with %q", name, kind, err, tc.refused)
				}
			case err != nil || !slices.Equal(got, tc.want):
				t.Errorf("%s, %s: %v, %v, want %v", name, kind, got, err, tc.want)
			}
		}
	}
	alpha := maskFile(t, "alpha", w, []int{0, 255, 0, 255, 0, 0})
	if _, err := masksOf(t, w, alpha, nil); err == nil || !strings.Contains(err.Error(), "object: alpha") {
		t.Errorf("an object in the alpha channel gives the error %v", err)
	}
	got, err := masksOf(t, w, alpha, func(p *FolderParams) { p.Object = inAlpha })
	if err != nil || !slices.Equal(got, []uint8{0, 1, 0, 1, 0, 0}) {
		t.Errorf("alpha: %v, %v", got, err)
	}
	// A smooth edge has many greys, and 255 is the object.
	smooth := []int{0, 20, 50, 90, 130, 170, 200, 230, 250, 254, 255, 255}
	if got, err := masksOf(t, w, maskFile(t, "grey", w, smooth), nil); err != nil ||
		slices.Contains(got[1:], 0) {
		t.Errorf("a smooth edge: %v, %v", got, err)
	}
}

// TestIgnoredFollowsTheImage draws masks with a border and resizes, crops and turns them: each pixel is that
// of the file at its place.
func TestIgnoredFollowsTheImage(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	const w, h = 12, 9
	values := make([]int, w*h)
	for i := range values {
		values[i] = []int{0, 4, 255}[r.IntN(3)]
	}
	kind := map[int]uint8{0: 0, 4: 1, 255: stages.Ignored}
	got, err := masksOf(t, w, maskFile(t, "grey", w, values), func(p *FolderParams) {
		p.Ignore, p.Resize = "255", 2*h
		p.Crop.H, p.Crop.W = 10, 14
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		x, y := (i%14+(2*w-14)/2)/2, (i/14+(2*h-10)/2)/2
		if v != kind[values[y*w+x]] {
			t.Fatalf("pixel %d is %d, want %d", i, v, kind[values[y*w+x]])
		}
	}
}

func TestValues(t *testing.T) {
	for text, want := range map[string]Values{"none": "", "1": "1", "[1, 3-5]": "1, 3-5", "1-254": "1-254",
		"alpha": "alpha", "65535": "65535"} {
		var v Values
		if err := v.UnmarshalText([]byte(text)); err != nil || v != want {
			t.Errorf("%q: %q, %v", text, v, err)
		}
		b, err := v.MarshalText()
		var back Values
		if err != nil || back.UnmarshalText(b) != nil || back != v {
			t.Errorf("%q isn't read back as %q", b, v)
		}
	}
	for _, text := range []string{"x", "1,", "5-3", "65536", "-1", "1.5"} {
		var v Values
		if err := v.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestVOCBorder checks that pixels of value 255 are never object, and don't count where asked.
func TestVOCBorder(t *testing.T) {
	mask := maskFile(t, "palette", 4, []int{0, 8, 255, 3})
	dir := folderOf(t, map[string]string{"ImageSets/Main/val.txt": "a\n", "JPEGImages/a.jpg": dot(4, 1,
		color.White),
		"Annotations/a.xml": voc(4, 1, "cat", image.Rect(0, 0, 3, 1)), "SegmentationClass/a.png": mask})
	for border, want := range map[string][]uint8{"background": {0, 1, 0, 0}, "ignored": {0, 1,
		stages.Ignored, 0}} {
		p := VOC.NewParams().(*VOCParams)
		p.Path, p.Masks, p.Border = dir, true, border
		r := stagetest.Run(t, VOC, p, nil)
		if got := decoded(t, r.Payloads["masks"][0]).Raw; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", border, got, want)
		}
	}
}

// TestFullMasks checks that masks without background are told of.
func TestFullMasks(t *testing.T) {
	files := map[string]string{}
	for i := range 3 {
		files[fmt.Sprintf("photos/%d.png", i)] = dot(2, 2, color.White)
		files[fmt.Sprintf("masks/%d.png", i)] = maskFile(t, "grey", 2, []int{255, 255, 255, 255})
	}
	files["masks/other.png"] = ""
	dir := folderOf(t, files)
	p := defaults(filepath.Join(dir, "photos"))
	p.Masks = filepath.Join(dir, "masks")
	told := strings.Join(p.remarks(), "\n")
	for _, want := range []string{"3 of the 3 masks looked at have no background",
		"1 of 4 files in the folder of masks without an image"} {
		if !strings.Contains(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	}
	if r := stagetest.Run(t, Folder, p, nil); len(r.Warnings) != 3 || !strings.Contains(r.Warnings[0],
		"every pixel of its mask is object") {
		t.Errorf("warned %q", r.Warnings)
	}
}
