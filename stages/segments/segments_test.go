package segments

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/stagetest"
)

func images(t ...stages.Tensor) map[string][]stages.Data {
	var payloads [][]byte
	for _, image := range t {
		payloads = append(payloads, image.Encode())
	}
	return map[string][]stages.Data{"images": {stagetest.Items(nil, payloads...)}}
}

// labelsOf returns the first item's segments.
func labelsOf(t *testing.T, r stagetest.Result) []uint32 {
	t.Helper()
	m, err := stages.DecodeTensor(r.Payloads["segments"][0])
	if err != nil || m.DType != stages.U32 || len(m.Shape) != 2 {
		t.Fatalf("segments of type %s and shape %v: %v", m.DType, m.Shape, err)
	}
	return m.Uint32s()
}

func fails(t *testing.T, s stages.Stage, params any, in map[string][]stages.Data, want string) {
	t.Helper()
	if _, err := stagetest.Try(s, params, in); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want one with %q", s.Name, err, want)
	}
}

// TestGrid checks grids by hand.
func TestGrid(t *testing.T) {
	in := images(stages.NewTensor(make([]uint8, 3*3*5), 3, 3, 5))
	for _, tc := range []struct {
		p    GridParams
		want []uint32
	}{
		{GridParams{Cells: 2}, []uint32{0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 2, 2, 2, 3, 3}},
		{GridParams{Cells: 8, Side: 2}, []uint32{0, 0, 1, 1, 2, 0, 0, 1, 1, 2, 3, 3, 4, 4, 5}},
		{GridParams{Cells: 1}, make([]uint32, 15)},
		{GridParams{Cells: 9}, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}},
	} {
		if got := labelsOf(t, stagetest.Run(t, Grid, &tc.p, in)); !slices.Equal(got, tc.want) {
			t.Errorf("%+v: %v, want %v", tc.p, got, tc.want)
		}
	}
}

// TestMask checks that each value of a mask is a segment.
func TestMask(t *testing.T) {
	values := []uint8{0, 1, 255, 1, 0, 0}
	in := map[string][]stages.Data{"masks": {stagetest.Items(nil, stages.NewTensor(values, 2, 3).Encode())}}
	r := stagetest.Run(t, Mask, nil, in)
	if got := labelsOf(t, r); !slices.Equal(got, []uint32{0, 1, 255, 1, 0, 0}) {
		t.Error(got)
	}
	m, err := stages.DecodeTensor(r.Payloads["segments"][0])
	if err != nil || !slices.Equal(m.Shape, []int{2, 3}) {
		t.Errorf("shape %v: %v", m.Shape, err)
	}
	in["masks"] = []stages.Data{stagetest.Items(nil, stages.NewTensor([]float32{1}, 1, 1).Encode())}
	fails(t, Mask, nil, in, `"item-0": a mask of type f32`)
}

// TestDefaults compares segments under default parameters with those of scikit-image: of u8 pixels, of f32
// pixels, and of a grey model's input.
func TestDefaults(t *testing.T) {
	arrays, err := stagetest.Arrays("../internal/superpixel/testdata/segments.npz")
	if err != nil {
		t.Fatal(err)
	}
	same := func(name string, s stages.Stage, params any, in map[string][]stages.Data) {
		t.Helper()
		for i, got := range labelsOf(t, stagetest.Run(t, s, params, in)) {
			if want := arrays[name].Int64s()[i]; int64(got) != want {
				t.Fatalf("%s: pixel %d is of segment %d, want %d", name, i, got, want)
			}
		}
	}
	tensor := func(name string) stages.Tensor {
		m, err := arrays[name].Tensor()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for name, s := range map[string]stages.Stage{"slic0": SLIC, "felzenszwalb0": Felzenszwalb} {
		same("odd."+name, s, nil, images(tensor("odd")))
		same("normalised."+name, s, nil, images(tensor("normalised")))
	}
	grey := tensor("negative-grey")
	spec := modelfile.Spec{Channels: 1, Classes: 2, Height: grey.Shape[1], Width: grey.Shape[2], Scale: 1,
		Mean: []float64{0}, Std: []float64{1}}
	model, err := modelfile.Model{Spec: spec}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	in := images(stages.NewTensor(slices.Repeat(grey.Float32s(), 3), 3, spec.Height, spec.Width))
	in["model"] = []stages.Data{stagetest.Value(nil, model)}
	same("negative-grey.slic0", SLIC, &SLICParams{Source{"input"}, 100, 10, 10, 0, .5, 3}, in)
}

// TestQuickshift checks that the draws are the item's, and that without ties segments don't depend on them.
func TestQuickshift(t *testing.T) {
	arrays, err := stagetest.Arrays("../internal/superpixel/testdata/segments.npz")
	if err != nil {
		t.Fatal(err)
	}
	m, err := arrays["photo"].Tensor()
	if err != nil {
		t.Fatal(err)
	}
	differ := 0
	for i, got := range labelsOf(t, stagetest.Run(t, Quickshift, nil, images(m))) {
		if int64(got) != arrays["photo.quickshift0"].Int64s()[i] {
			differ++
		}
	}
	if differ > 0 {
		t.Errorf("%d of %d pixels of a photograph differ from scikit-image", differ, m.Len()/3)
	}
}

func TestImagesThatCannotBeSegmented(t *testing.T) {
	fails(t, SLIC, nil, images(stages.NewTensor(make([]uint8, 6), 2, 3)), "has no pixels")
	fails(t, Grid, nil, images(stages.NewTensor(make([]uint8, 0), 3, 0, 3)), "has no pixels")
	nan := float32(math.NaN())
	fails(t, Felzenszwalb, nil, images(stages.NewTensor([]float32{nan, 0, 0}, 3, 1, 1)), "isn't a number")
	for wired, of := range map[bool]string{true: "pixels", false: "input"} {
		err := SLIC.Check(&SLICParams{Source: Source{of}}, func(string) bool { return wired })
		if err == nil || !strings.Contains(err.Error(), "the port model") {
			t.Errorf("of: %s with a model: %v: %v", of, wired, err)
		}
	}
}

// TestExternal reads label maps of every form, and checks the errors of those that aren't any.
func TestExternal(t *testing.T) {
	grey := image.NewGray(image.Rect(0, 0, 3, 2))
	deep := image.NewGray16(grey.Rect)
	paletted := image.NewPaletted(grey.Rect,
		color.Palette{color.White, color.Black, color.RGBA{R: 9, A: 255}})
	colours := image.NewRGBA(grey.Rect)
	want := []uint32{0, 2, 1, 1, 0, 2}
	for i, v := range want {
		grey.Pix[i], paletted.Pix[i] = uint8(v), uint8(v)
		deep.SetGray16(i%3, i/3, color.Gray16{Y: uint16(300 * v)})
		colours.Set(i%3, i/3, color.RGBA{R: uint8(v), G: 7, A: 255})
	}
	integers := golden.NPY(stages.NewTensor([]int64{0, 2, 1, 1, 0, 2}, 1, 2, 3))
	in := images(stages.NewTensor(make([]uint8, 18), 3, 2, 3))
	for _, tc := range []struct {
		name string
		b    []byte
		err  string
	}{
		{"item-0.npy", integers, ""},
		{"item-0.png", pngOf(t, grey), ""},
		{"item-0.png", pngOf(t, paletted), ""},
		{"item-0.png", pngOf(t, deep), ""},
		{"item-0.png", pngOf(t, colours), "a picture in colours: label maps are in grey or have a palette"},
		{"item-0.npy", golden.NPY(stages.NewTensor(make([]float32, 6), 2, 3)),
			"labels of type f32: a label map has integers"},
		{"item-0.npy", golden.NPY(stages.NewTensor(make([]int64, 6), 3, 2)),
			"a label map of 3×2 pixels doesn't fit an image of 2×3"},
		{"item-0.npy", golden.NPY(stages.NewTensor(make([]int64, 6), 6)),
			"a label map has shape [height, width], not [6]"},
		{"item-0.npy", golden.NPY(stages.NewTensor([]int64{0, 0, 0, 0, -1, 0}, 2, 3)),
			"the label -1 in row 1, column 1"},
		{"item-0.npy", integers[:60], "item-0.npy: "},
		{"item-0.png", []byte("no picture"), "item-0.png: "},
		{"item-1.npy", integers,
			"has no label map of 1 of 1 items: item \"item-0\" would be item-0.npy or item-0.png"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, tc.name), tc.b, 0o644); err != nil {
			t.Fatal(err)
		}
		p := &ExternalParams{Path: dir}
		if tc.err != "" {
			fails(t, External, p, in, tc.err)
			continue
		}
		got := labelsOf(t, stagetest.Run(t, External, p, in))
		for i, v := range want {
			if got[i] != v && got[i] != 300*v {
				t.Errorf("%s: %v, want %v", tc.name, got, want)
			}
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"item-0.npy", "item-0.png"} {
		if err := os.WriteFile(filepath.Join(dir, name), integers, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fails(t, External, &ExternalParams{Path: dir}, in, "item-0.npy and item-0.png are both its label map")
	fails(t, External, &ExternalParams{Path: filepath.Join(dir, "item-0.npy")}, in, "isn't a folder")
	fails(t, External, &ExternalParams{Path: filepath.Join(dir, "none")}, in, "the label maps: ")
}

func pngOf(t *testing.T, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
