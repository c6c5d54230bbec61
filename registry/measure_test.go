package registry

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// drawn writes labelled drawings as photographs are kept: one folder a class.
func drawn(t *testing.T, count int) string {
	t.Helper()
	p := dataset.Shapes.NewParams().(*dataset.ShapesParams)
	p.Count = count
	r := stagetest.Run(t, dataset.Shapes, p, nil)
	dir := t.TempDir()
	for i, payload := range r.Payloads["images"] {
		m, err := stages.DecodeTensor(payload)
		if err != nil {
			t.Fatal(err)
		}
		label, err := stages.ScalarOf(r.Payloads["labels"][i])
		if err != nil {
			t.Fatal(err)
		}
		h, w := m.Shape[1], m.Shape[2]
		img := image.NewNRGBA(image.Rect(0, 0, w, h))
		for k := range h * w {
			img.Set(k%w, k/w, color.NRGBA{m.Raw[k], m.Raw[h*w+k], m.Raw[2*h*w+k], 255})
		}
		folder := filepath.Join(dir, fmt.Sprintf("%02d", int(label)))
		if err := os.MkdirAll(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join(folder, fmt.Sprintf("%d.png", i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := png.Encode(f, img); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestMeasure holds that a preset is found with which a net is always right, of equals the most usual one,
// and none on too few images to tell.
func TestMeasure(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	const file = "../experiments/quickstart/vgg.onnx"
	x, err := Inspect(t.Context(), file, Look{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := Measure(t.Context(), file, Look{}, &x, Folder{Path: drawn(t, 64)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	best, ok := m.Best()
	if f := m.Feeds[best.Feed]; !ok || f.Preset != "imagenet" || best.Images != 64 || best.Right < 60 {
		t.Errorf("best is %v, %v of %+v", f, ok, best)
	}
	for _, h := range m.Hypotheses {
		if f := m.Feeds[h.Feed]; f.Preset == "raw" && h.Posterior > 0.01 {
			t.Errorf("%v: %+v", f, h)
		}
	}
	x.Measured = &m.Feeds[best.Feed]
	if s := x.StanzaAt(Look{}, file); !strings.Contains(s, "preset: imagenet\n") {
		t.Error(s)
	}
	if m, err := Measure(t.Context(), file, Look{}, &x, Folder{Path: drawn(t, 2)}, nil); err != nil {
		t.Error(err)
	} else if best, ok := m.Best(); ok {
		t.Errorf("on two images the best is %+v", best)
	}
}
