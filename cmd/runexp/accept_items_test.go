package main

import (
	"fmt"
	"image"
	"image/color"
	"os"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
)

// picture writes an image whose pixels follow from its name's number. A bitmap can be changed by a byte and
// is still an image.
func (w *world) picture(name string, look int) {
	w.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 64, 64))
	for y := range 64 {
		for x := range 64 {
			m.Set(x, y, color.RGBA{uint8(x*look + y), uint8(x + y*look), uint8(x*y + 31*look), 255})
		}
	}
	var b strings.Builder
	if err := bmp.Encode(&b, m); err != nil {
		w.Fatal(err)
	}
	w.write(name, []byte(b.String()))
}

// list writes labels.csv with these files in this order. An image's label follows from the letter its name
// begins with.
func (w *world) list(files ...string) {
	w.Helper()
	var b strings.Builder
	b.WriteString("file,label\n")
	for _, f := range files {
		fmt.Fprintf(&b, "%s.bmp,%d\n", f, strings.Index("abcdefgh", f[:1]))
	}
	w.write("photos/labels.csv", []byte(b.String()))
}

const photosYAML = `name: photos
stages:
  images: {uses: dataset/folder, with: {path: photos}}
  maps: {uses: attribute/random, in: {images: images}}
  sheet: {uses: report/sheet, in: {maps: maps, images: images}, over: all, with: {items: 9}}
publish: [sheet]
`

const curvesYAML = `name: curves
stages:
  images: {uses: dataset/folder, with: {path: photos}}
  model: {uses: model/onnx, with: {path: %q, preset: half}}
  maps: {uses: attribute/occlusion, in: {model: model, images: images}, with: {window: 32, stride: 32}}
  deletion: {uses: perturb/deletion, in: {model: model, images: images, maps: maps}, with: {steps: 2}}
  auc: {uses: score/auc, in: {curves: deletion}}
  table: {uses: report/table, in: {values: auc}, over: all}
publish: [table]
`

// An edit changes the folder of photos, which holds a to e.
type edit struct {
	name string
	do   func(w *world)
	args []string
	new  int  // images that weren't there before
	same bool // the sheet is the same
	mean bool // the table of means is the same
}

func edits() []edit {
	return []edit{
		{name: "nothing", do: func(*world) {}, same: true, mean: true},
		{name: "append",
			do:  func(w *world) { w.picture("photos/f.bmp", 6); w.list("a", "b", "c", "d", "e", "f") },
			new: 1},
		{name: "append three", do: func(w *world) {
			for i, name := range []string{"f", "g", "h"} {
				w.picture("photos/"+name+".bmp", 6+i)
			}
			w.list("a", "b", "c", "d", "e", "f", "g", "h")
		}, new: 3},
		{name: "in front",
			do:  func(w *world) { w.picture("photos/f.bmp", 6); w.list("f", "a", "b", "c", "d", "e") },
			new: 1},
		{name: "in the middle",
			do:  func(w *world) { w.picture("photos/f.bmp", 6); w.list("a", "b", "f", "c", "d", "e") },
			new: 1},
		{name: "delete the last", do: func(w *world) { w.list("a", "b", "c", "d") }},
		{name: "delete the first", do: func(w *world) { w.list("b", "c", "d", "e") }},
		{name: "reorder", do: func(w *world) { w.list("c", "e", "a", "d", "b") }},
		{name: "rename", do: func(w *world) {
			if err := os.Rename(w.path("photos/c.bmp"), w.path("photos/cc.bmp")); err != nil {
				w.Fatal(err)
			}
			w.list("a", "b", "cc", "d", "e")
		}, mean: true},
		{name: "duplicate",
			do: func(w *world) { w.picture("photos/b2.bmp", 2); w.list("a", "b", "c", "d", "e", "b2") }},
		{name: "duplicate a new one", do: func(w *world) {
			w.picture("photos/f.bmp", 6)
			w.picture("photos/f2.bmp", 6)
			w.list("a", "f", "b", "c", "f2", "d", "e")
		}, new: 1},
		{name: "replace", do: func(w *world) { w.picture("photos/c.bmp", 9) }, new: 1},
		{name: "another chunk", do: func(*world) {}, args: []string{"--chunk", "1"}, same: true, mean: true},
		{name: "another chunk and an image", do: func(w *world) {
			w.picture("photos/f.bmp", 6)
			w.list("f", "a", "b", "c", "d", "e")
		}, args: []string{"--chunk", "2", "--batch", "3"}, new: 1},
		{name: "everything touched", do: func(w *world) {
			for i, name := range []string{"a", "b", "c", "d", "e"} {
				w.picture("photos/"+name+".bmp", 1+i)
			}
		}, same: true, mean: true},
	}
}

func fivePhotos(t *testing.T, name, text string) *world {
	w := newWorld(t, map[string]string{name: text})
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		w.picture("photos/"+name+".bmp", 1+i)
	}
	w.list("a", "b", "c", "d", "e")
	return w
}

// Exactly the images that are new run, wherever they stand in the list.
func TestItemsThatRun(t *testing.T) {
	for _, e := range edits() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			w := fivePhotos(t, "photos.yaml", photosYAML)
			want(t, w.counting("run", "photos.yaml"), "attribute/random 5, dataset/folder 5, report/sheet 1")
			e.do(w)
			var parts []string
			if e.new > 0 {
				parts = append(parts, fmt.Sprintf("attribute/random %d, dataset/folder %[1]d", e.new))
			}
			if !e.same {
				parts = append(parts, "report/sheet 1")
			}
			args := append([]string{"run", "photos.yaml"}, e.args...)
			want(t, w.counting(args...), strings.Join(parts, ", "))
			want(t, w.counting(args...), "")
		})
	}
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("executed %q, want %q", got, want)
	}
}

// The same with a model: nothing is asked of it for an image that was known.
func TestItemsThatRunThroughAModel(t *testing.T) {
	runtimeOrSkip(t)
	model := net(t, "vgg")
	const first = "attribute/occlusion 5, dataset/folder 5, maps/rank 5, model/onnx 1, model/predict 5, " +
		"perturb/deletion 5, report/table 1, score/auc 5"
	const each = "attribute/occlusion %d, dataset/folder %[1]d, maps/rank %[1]d, model/predict %[1]d, " +
		"perturb/deletion %[1]d, report/table 1, score/auc %[1]d"
	for _, e := range edits() {
		t.Run(e.name, func(t *testing.T) {
			w := fivePhotos(t, "curves.yaml", fmt.Sprintf(curvesYAML, model))
			want(t, w.counting("run", "curves.yaml"), first)
			e.do(w)
			again := ""
			switch {
			case e.new > 0:
				again = fmt.Sprintf(each, e.new)
			case !e.mean:
				again = "report/table 1"
			}
			want(t, w.counting(append([]string{"run", "curves.yaml"}, e.args...)...), again)
		})
	}
}
