package dataset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/stagetest"
)

// pictureOf returns a PNG file of w×h pixels that are white in a box and otherwise black.
func pictureOf(w, h int, box image.Rectangle) string {
	m := image.NewGray(image.Rect(0, 0, w, h))
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			m.SetGray(x, y, color.Gray{Y: 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.String()
}

// withOrientation adds an EXIF orientation to a PNG file.
func withOrientation(file string, orientation byte) string {
	const header = 8 + 25 // the signature and IHDR
	chunk := "eXIfMM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00" +
		string([]byte{orientation}) + "\x00\x00\x00\x00\x00\x00"
	length := binary.BigEndian.AppendUint32(nil, uint32(len(chunk)-4))
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(chunk)))
	return file[:header] + string(length) + chunk + string(sum) + file[header:]
}

// voc returns an annotation of an image with objects, each a class and its box.
func voc(w, h int, objects ...any) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "<annotation><size><width>%d</width><height>%d</height></size>", w, h)
	for i := 0; i < len(objects); i += 2 {
		r, difficult := objects[i+1].(image.Rectangle), 0
		class, marked := strings.CutSuffix(objects[i].(string), "?")
		if marked {
			difficult = 1
		}
		fmt.Fprintf(b, "<object><name>%s</name><difficult>%d</difficult><bndbox>"+
			"<xmin>%d</xmin><ymin>%d</ymin>"+
			"<xmax>%d</xmax><ymax>%d</ymax></bndbox></object>", class, difficult, r.Min.X+1, r.Min.Y+1,
			r.Max.X,
			r.Max.Y)
	}
	return b.String() + "</annotation>"
}

// coco returns annotations of one image with a polygon and a box an object.
func coco(file string, w, h int, objects ...any) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, `{"images":[{"id":1,"file_name":%q,"width":%d,"height":%d}],"categories":[{"id":1,`+
		`"name":"cat"},`+
		`{"id":2,"name":"dog"}],"annotations":[`, file, w, h)
	for i := 0; i < len(objects); i += 2 {
		category, r := 1, objects[i+1].(image.Rectangle)
		if objects[i] == "dog" {
			category = 2
		}
		if i > 0 {
			b.WriteString(",")
		}
		l, t, rr, bb := r.Min.X, r.Min.Y, r.Max.X, r.Max.Y
		fmt.Fprintf(b, `{"id":%d,"image_id":1,"category_id":%d,"iscrowd":0,"bbox":[%d,%d,%d,%d],`+
			`"segmentation":`+
			`[[%d,%d,%d,%d,%d,%d,%d,%d]]}`, i, category, l, t, r.Dx(), r.Dy(), l, t, l, bb, rr, bb, rr, t)
	}
	return b.String() + "]}"
}

func decoded(t testing.TB, payload []byte) stages.Tensor {
	t.Helper()
	m, err := stages.DecodeTensor(payload)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestObjectsFollowTheImage checks, for every EXIF orientation, enlarged and cropped, that a mask from PNG
// and from COCO's polygons and boxes from VOC and COCO all show the pixels that are white in the image.
func TestObjectsFollowTheImage(t *testing.T) {
	const w, h = 10, 14
	box := image.Rect(2, 3, 7, 5)
	for orientation := byte(1); orientation <= 8; orientation++ {
		dir := folderOf(t, map[string]string{
			"images/cat/a.png": withOrientation(pictureOf(w, h, box), orientation),
			"masks/cat/a.png":  pictureOf(w, h, box),
			"boxes/cat/a.xml":  voc(w, h, "cat", box),
			"coco.json":        coco("a.png", w, h, "cat", box),
		})
		for _, sources := range [][2]string{{"masks", "boxes"}, {"coco.json", "coco.json"}, {"masks",
			"coco.json"}} {
			for name, set := range map[string]func(p *FolderParams){
				"as it is": func(*FolderParams) {},
				"sensor":   func(p *FolderParams) { p.Orientation = "sensor" },
				"twice":    func(p *FolderParams) { p.Resize = 20 },
				"cropped":  func(p *FolderParams) { p.Crop = picture.Square(7) },
				"both":     func(p *FolderParams) { p.Resize, p.Crop = 20, picture.Size{H: 12, W: 16} },
			} {
				p := defaults(filepath.Join(dir, "images"))
				p.Masks, p.Boxes = filepath.Join(dir, sources[0]), filepath.Join(dir, sources[1])
				set(p)
				r := stagetest.Run(t, Folder, p, nil)
				img, mask := decoded(t, r.Payloads["images"][0]), decoded(t, r.Payloads["masks"][0])
				boxes := decoded(t, r.Payloads["boxes"][0])
				height, width := img.Shape[1], img.Shape[2]
				if mask.Shape[0] != height || mask.Shape[1] != width {
					t.Fatalf("orientation %d, %s: a mask of %v for an image of %v", orientation, name,
						mask.Shape,
						img.Shape)
				}
				boxed := metric.BoxMask(boxes.Float64s(), height, width)
				for i, m := range mask.Raw {
					white := uint8(0)
					if img.Raw[i] > 127 {
						white = 1
					}
					if m != white || boxed[i] != white {
						t.Fatalf("orientation %d, %s, %v: pixel %d is %d in the image, %d in the mask and "+
							"%d in the boxes %v", orientation, name, sources, i, white, m, boxed[i],
							boxes.Float64s())
					}
				}
			}
		}
	}
}

// TestObjectsOfAClass checks which annotated objects count, and that an image's key depends on them alone.
func TestObjectsOfAClass(t *testing.T) {
	cat, dog := image.Rect(0, 0, 2, 2), image.Rect(3, 3, 6, 6)
	make := func(dog image.Rectangle) *FolderParams {
		dir := folderOf(t, map[string]string{
			"images/cat/a.png": pictureOf(6, 6, cat), "images/dog/b.png": pictureOf(6, 6, dog),
			"a.json": strings.Replace(coco("a.png", 6, 6, "cat", cat, "dog", dog), `"images":[`,
				`"images":[{"id":9,"file_name":"b.png","width":6,"height":6},`, 1),
		})
		p := defaults(filepath.Join(dir, "images"))
		p.Masks = filepath.Join(dir, "a.json")
		p.Boxes = p.Masks
		return p
	}
	p := make(dog)
	for objects, want := range map[string]string{"all": "13 0", "class": "4 0"} {
		p.Objects = objects
		r := stagetest.Run(t, Folder, p, nil)
		var areas []string
		for k, b := range r.Payloads["masks"] {
			area := metric.MaskArea(decoded(t, b).Raw)
			areas = append(areas, fmt.Sprint(area))
			boxes := decoded(t, r.Payloads["boxes"][k])
			if got := metric.MaskArea(metric.BoxMask(boxes.Float64s(), 6, 6)); got != area {
				t.Errorf("%s: boxes of %d pixels, and a mask of %d", objects, got, area)
			}
		}
		if got := strings.Join(areas, " "); got != want {
			t.Errorf("%s: masks of %s pixels, want %s", objects, got, want)
		}
	}
	note := func(p *FolderParams, objects string) string {
		p.Objects = objects
		sources, err := Folder.Sources(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		return sources[0].Note
	}
	other := make(image.Rect(2, 2, 5, 5))
	if note(p, "class") != note(other, "class") {
		t.Error("the cat's note depends on the dog")
	}
	if note(p, "all") == note(other, "all") || note(p, "all") == note(p, "class") {
		t.Error("the note doesn't depend on the objects")
	}
}

// TestObjectsErrors checks the errors of masks and boxes that don't fit.
func TestObjectsErrors(t *testing.T) {
	px := pictureOf(4, 4, image.Rect(0, 0, 1, 1))
	for name, tc := range map[string]struct {
		files map[string]string
		set   func(p *FolderParams, dir string)
		want  string
	}{
		"no mask": {nil, func(p *FolderParams, dir string) { p.Masks = dir + "/m" },
			`"cat/a.png" has no mask, and every image needs one`},
		"no boxes": {nil, func(p *FolderParams, dir string) { p.Boxes = dir + "/m" },
			`"cat/a.png" has no file of boxes`},
		"a folder": {map[string]string{"m/cat/a.png/b": ""},
			func(p *FolderParams, dir string) { p.Masks = dir + "/m" }, "isn't a regular file"},
		"no such image": {map[string]string{"m.json": coco("b.png", 4, 4)},
			func(p *FolderParams, dir string) { p.Masks = dir + "/m.json" }, `lists no image "cat/a.png"`},
		"broken JSON": {map[string]string{"m.json": `{"images":[}`},
			func(p *FolderParams, dir string) { p.Masks = dir + "/m.json" },
			"m.json: byte 11: invalid character"},
		"no classes": {map[string]string{"m.json": coco("a.png", 4, 4), "i/a.png": px},
			func(p *FolderParams, dir string) {
				p.Path, p.Masks, p.Objects = dir+"/i", dir+"/m.json",
					"class"
			},
			"needs the names of classes"},
		"another size": {map[string]string{"m/cat/a.png": pictureOf(3, 4, image.Rectangle{})},
			func(p *FolderParams, dir string) { p.Masks = dir + "/m" },
			"marked in a picture of 3×4 pixels, the image has 4×4"},
		"no PNG": {map[string]string{"m/cat/a.png": "GIF89a"},
			func(p *FolderParams, dir string) { p.Masks = dir + "/m" }, "neither JPEG, PNG"},
		"broken XML": {map[string]string{"m/cat/a.xml": "<annotation>\n<size>"},
			func(p *FolderParams, dir string) { p.Boxes = dir + "/m" }, "a.xml:2: unexpected EOF"},
		"a hostile region": {map[string]string{"m.json": strings.Replace(
			coco("a.png", 4, 4, "cat", image.Rect(0, 0, 2, 2)), "[[0,0", "[[1e99,0", 1)},
			func(p *FolderParams, dir string) { p.Masks = dir + "/m.json" },
			"m.json: annotation 0: polygon 0: a polygon's corner at 1e+99"},
	} {
		files := map[string]string{"images/cat/a.png": px}
		for k, v := range tc.files {
			files[k] = v
		}
		dir := folderOf(t, files)
		p := defaults(filepath.Join(dir, "images"))
		tc.set(p, dir)
		if _, err := stagetest.Try(Folder, p, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
	for port, lacks := range map[string]bool{"images": false, "labels": false, "masks": true, "boxes": true} {
		if err := Folder.HooksOf(defaults("x")).Lacks(port, nil); (err != nil) != lacks {
			t.Errorf("%s: %v", port, err)
		}
	}
}

// TestMasksNextToImages checks that masks with a suffix aren't images.
func TestMasksNextToImages(t *testing.T) {
	p := defaults(folderOf(t, map[string]string{
		"cat/a.png": pictureOf(4, 4, image.Rect(0, 0, 1, 1)), "cat/a_mask.png": pictureOf(4, 4, image.Rect(0,
			0, 1, 1))}))
	p.Masks, p.MaskSuffix = p.Path, "_mask.png"
	if got := sourceLines(t, p); len(got) != 1 || got[0] != "cat/a.png label=0; mask" {
		t.Errorf("%q", got)
	}
}

// indexed returns a PNG file whose pixels in boxes have their values, and else 0.
func indexed(w, h int, boxes ...any) string {
	m := image.NewPaletted(image.Rect(0, 0, w, h), make(color.Palette, 256))
	for i := range m.Palette {
		m.Palette[i] = color.NRGBA{uint8(i), 0, 0, 255}
	}
	for i := 0; i < len(boxes); i += 2 {
		r := boxes[i+1].(image.Rectangle)
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for x := r.Min.X; x < r.Max.X; x++ {
				m.SetColorIndex(x, y, uint8(boxes[i].(int)))
			}
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.String()
}

// TestVOC reads a data set of three images: a has two small cats, a dog and a difficult horse, b a cat, and c
// only a difficult horse.
func TestVOC(t *testing.T) {
	cat1, cat2 := image.Rect(0, 0, 2, 2), image.Rect(4, 0, 7, 1)
	dog, horse := image.Rect(3, 3, 6, 6), image.Rect(0, 3, 3, 8)
	dir := folderOf(t, map[string]string{
		"ImageSets/Main/val.txt":     "a\nb\nc\n",
		"ImageSets/Main/cat_val.txt": "a  1\nb -1\nc  0\n",
		"ImageSets/Main/odd.txt":     "../a\n",
		"JPEGImages/a.jpg":           pictureOf(8, 8, dog), // the content tells the format
		"JPEGImages/b.jpg":           pictureOf(8, 8, cat1),
		"JPEGImages/c.jpg":           pictureOf(8, 8, horse),
		"Annotations/a.xml":          voc(8, 8, "cat", cat1, "horse?", horse, "dog", dog, "cat", cat2),
		"Annotations/b.xml":          voc(8, 8, "cat", cat1),
		"Annotations/c.xml":          voc(8, 8, "horse?", horse),
		"SegmentationClass/a.png": indexed(8, 8, 8, cat1, 13, horse, 12, dog, 8, cat2, 255, image.Rect(7,
			7, 8, 8)),
		"SegmentationClass/b.png": indexed(8, 8, 8, cat1),
		"SegmentationClass/c.png": indexed(8, 8, 13, horse),
		"SegmentationObject/a.png": indexed(8, 8, 1, cat1, 2, horse, 3, dog, 4, cat2, 255, image.Rect(7, 7,
			8, 8)),
		"SegmentationObject/b.png": indexed(8, 8, 1, cat1),
		"SegmentationObject/c.png": indexed(8, 8, 1, horse),
	})
	for _, c := range []struct {
		set  func(p *VOCParams)
		want string // label and pixels of the mask, which are those of the boxes too
	}{
		{func(p *VOCParams) {}, "11:9 7:4"},
		{func(p *VOCParams) { p.Label = "first" }, "7:7 7:4"},
		{func(p *VOCParams) { p.Label, p.Objects = "first", "one" }, "7:4 7:4"},
		{func(p *VOCParams) { p.Label = "each" }, "7:7 11:9 7:4"},
		{func(p *VOCParams) { p.Difficult = true }, "12:15 7:4 12:15"},
		{func(p *VOCParams) { p.Difficult, p.Objects = true, "one" }, "12:15 7:4 12:15"},
		{func(p *VOCParams) { p.Set = "cat_val" }, "11:9"},
		{func(p *VOCParams) { p.Set = "Main/val"; p.Count = 1 }, "11:9"},
		{func(p *VOCParams) { p.Label, p.PerClass = "first", 1 }, "7:7"},
	} {
		p := VOC.NewParams().(*VOCParams)
		p.Path, p.Masks = dir, true
		c.set(p)
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		r := stagetest.Run(t, VOC, p, nil)
		var got []string
		for k, b := range r.Payloads["labels"] {
			mask, boxes := decoded(t, r.Payloads["masks"][k]).Raw, decoded(t,
				r.Payloads["boxes"][k]).Float64s()
			if boxed := metric.BoxMask(boxes, 8, 8); !bytes.Equal(boxed, mask) {
				t.Errorf("%+v: boxes %v around the mask %v", *p, boxes, mask)
			}
			got = append(got, fmt.Sprintf("%d:%d", decoded(t, b).Int64s()[0], metric.MaskArea(mask)))
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%+v: %s, want %s", *p, got, c.want)
		}
		if n := len(r.Payloads["images"]); n != len(got) {
			t.Errorf("%d images, want %d", n, len(got))
		}
		sources, err := VOC.Sources(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		of := map[string]stages.Amount{stages.SourcesAmount: {Items: len(sources)}}
		if n := VOC.HooksOf(p).Most(of); n != len(got) {
			t.Errorf("%+v: %d images are told before a run, want %d", *p, n, len(got))
		}
	}
	for _, c := range []struct {
		set  func(p *VOCParams)
		want string
	}{
		{func(p *VOCParams) { p.Path = "" }, "path is required"},
		{func(p *VOCParams) { p.Set = "../x" }, "isn't a list in ImageSets"},
		{func(p *VOCParams) { p.Label, p.Objects = "each", "one" }, "objects is class"},
		{func(p *VOCParams) { p.Label, p.PerClass = "each", 1 }, "several classes"},
		{func(p *VOCParams) { p.Set = "train" }, "no such file"},
		{func(p *VOCParams) { p.Set = "Main/odd" }, "odd.txt:1: "},
	} {
		p := VOC.NewParams().(*VOCParams)
		p.Path = dir
		c.set(p)
		err := p.Validate()
		if err == nil {
			_, err = VOC.Sources(p, nil)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}
