package main

import (
	"encoding/csv"
	"fmt"
	"image"
	"image/color"
	"os"
	"strings"
	"testing"
)

// drawShapes writes n images of dataset/shapes, which the quickstart's nets have never seen, into the folder
// photos, with their classes.
func (w *world) drawShapes(n int) {
	w.Helper()
	w.write("shapes.yaml", fmt.Appendf(nil, "name: shapes\nseed: 1\nstages:\n  images: {uses: dataset/shapes, "+
		"with: {count: %d, seed: 1000007}}\n", n))
	w.run(0, "get", "shapes.yaml", "images", "-o", "shapes")
	rows, err := csv.NewReader(strings.NewReader(w.read("shapes/labels.csv"))).ReadAll()
	if err != nil || len(rows) != n+1 {
		w.Fatalf("%d rows: %v", len(rows), err)
	}
	const side = 64
	b := []byte(w.read("shapes/images.npy"))
	pixels := b[len(b)-n*3*side*side:]
	labels := "file,label\n"
	for i, row := range rows[1:] {
		m := image.NewNRGBA(image.Rect(0, 0, side, side))
		for k := range side * side {
			at := func(c int) uint8 { return pixels[(i*3+c)*side*side+k] }
			m.Set(k%side, k/side, color.NRGBA{at(0), at(1), at(2), 255})
		}
		w.writePNG("photos/"+row[0]+".png", m)
		labels += row[0] + ".png," + row[2] + "\n"
	}
	w.write("photos/labels.csv", []byte(labels))
}

func TestDump(t *testing.T) {
	w := newWorld(t, nil)
	w.drawShapes(60)
	os.CopyFS("/tmp/rec/photos", os.DirFS(w.path("photos")))
}
