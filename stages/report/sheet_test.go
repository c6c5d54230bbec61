package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

func TestSheetFigure(t *testing.T) {
	for _, size := range []int{64, 224} {
		s := shapes(t, 7, size)
		in := map[string][]stages.Data{"maps": mapsOf(s["masks"], size), "images": {s["images"]},
			"labels": {s["labels"]}}
		for _, overlay := range []bool{false, true} {
			name := fmt.Sprintf("sheet-%d-overlay-%v", size, overlay)
			p := &SheetParams{Items: 6, Columns: "method", Overlay: overlay}
			r := stagetest.Run(t, Sheet, p, in)
			b := r.Payloads["figure"][0]
			if m := look(t, name, b); m.Bounds().Dx() != 724 || m.Bounds().Dy() != 720 {
				t.Errorf("%s: the figure has %v pixels", name, m.Bounds().Max)
			}
			if len(b) > figureBudget {
				t.Errorf("%s: the figure has %d bytes", name, len(b))
			}
			if again := stagetest.Run(t, Sheet, p, in).Payloads["figure"][0]; !bytes.Equal(b, again) {
				t.Errorf("%s: drawn twice, the figure differs", name)
			}
		}
	}
}

// TestSheetRowsOfOtherAxes checks that images on the axis model are paired with the maps of that model, and
// that a method without a map has an empty tile.
func TestSheetRowsOfOtherAxes(t *testing.T) {
	flat := func(v float32, shape ...int) []byte {
		n := 1
		for _, d := range shape {
			n *= d
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = v
		}
		return stages.NewTensor(x, shape...).Encode()
	}
	// The first half of it, or of each row, is x, the second y.
	half := func(x, y float32, shape ...int) []byte {
		b := flat(x, shape...)
		t, _ := stages.DecodeTensor(b)
		v := t.Float32s()
		for i := range v {
			if i%8 >= 4 {
				v[i] = y
			}
		}
		return stages.NewTensor(v, shape...).Encode()
	}
	in := map[string][]stages.Data{
		"images": {
			stagetest.At(stagetest.Items(nil, flat(0, 3, 5, 5)), "model", "black"),
			stagetest.At(stagetest.Items(nil, flat(1, 3, 9, 9)), "model", "white"),
		},
		"maps": {
			stagetest.At(stagetest.Items(nil, half(2, 4, 8, 8)), "method", "up", "model", "black"),
			stagetest.At(stagetest.Items(nil, flat(2, 9, 9)), "method", "up", "model", "white"),
			stagetest.At(stagetest.Items(nil, half(-2, 1, 3, 8, 8)), "method", "down", "model", "white"),
		},
	}
	m := look(t, "sheet-axes", stagetest.Run(t, Sheet, nil, in).Payloads["figure"][0])
	const side, step = 112, 112 + tileGap
	at := func(row, col int) color.Color {
		return m.At(tileGap+labelWidth+col*step+10, headHeight+row*(side+scaleHeight+8)+10)
	}
	right := func(row, col int) color.Color {
		return m.At(tileGap+labelWidth+col*step+side-10, headHeight+row*(side+scaleHeight+8)+10)
	}
	for _, tc := range []struct {
		what string
		got  color.Color
		want color.RGBA
	}{
		{"the black image", at(0, 0), color.RGBA{0, 0, 0, 255}},
		{"the white image", at(1, 0), color.RGBA{255, 255, 255, 255}},
		{"a missing map", at(0, 1), blank},
		{"all of the negative side", at(1, 1), shade(0, mapColours, true)},
		{"half of the positive side", right(1, 1), shade(3*(mapColours-1)/4, mapColours, true)},
		{"the low end", at(0, 2), shade(0, mapColours, false)},
		{"the high end", right(0, 2), shade(mapColours-1, mapColours, false)},
		{"a constant map", at(1, 2), blank},
	} {
		if r, g, b, _ := tc.got.RGBA(); uint8(r>>8) != tc.want.R || uint8(g>>8) != tc.want.G ||
			uint8(b>>8) != tc.want.B {
			t.Errorf("%s has the colour %v, want %v", tc.what, tc.got, tc.want)
		}
	}
}

func TestSheetScale(t *testing.T) {
	s := &sheet{side: 20}
	// One pixel in 400 is an outlier and doesn't set the scale; two in 400 do.
	for outliers, want := range []float64{1, 1, 1, 1000} {
		v := make([]float64, 400)
		for i := range v {
			v[i] = 1
			if i < outliers {
				v[i] = -1000
			}
		}
		v[399] = 0.5 // otherwise it would be constant
		tile, negative, err := s.tile(stages.NewTensor(v, 20, 20).Encode())
		if err != nil {
			t.Fatal(err)
		}
		if !(math.Abs(tile.scale-want) <= 1e-5*want) || negative != (outliers > 0) {
			t.Errorf("with %d outliers the scale is %g, want %g", outliers, tile.scale, want)
		}
	}
	for name, tc := range map[string]struct {
		v    []float64
		want string
	}{"zero": {[]float64{0, 0}, "constant"}, "constant": {[]float64{0.3, 0.3}, "constant"},
		"NaN": {[]float64{0, nan}, "undefined"}, "infinite": {[]float64{math.Inf(1), 0}, "undefined"}} {
		tile, _, err := s.tile(stages.NewTensor(tc.v, 1, 2).Encode())
		if err != nil || tile.state != tc.want {
			t.Errorf("%s: state %q, error %v", name, tile.state, err)
		}
	}
	lonely := make([]float64, 400)
	lonely[17] = 3
	if tile, _, err := s.tile(stages.NewTensor(lonely, 20, 20).Encode()); err != nil ||
		!(math.Abs(tile.scale-3) <= 1e-5) || tile.low != 0 || !(math.Abs(tile.high-3) <= 1e-5) {
		t.Errorf("a map with a single value goes from %v to %v, %v, %v", tile.low, tile.high, tile.scale, err)
	}
	// Non-negative values use the whole colour map, whatever their range.
	ramp := make([]float64, 400)
	for i := range ramp {
		ramp[i] = 100 + float64(i)
	}
	ramp[0], ramp[399] = 0, 1e6 // each is one in 400
	tile, negative, err := s.tile(stages.NewTensor(ramp, 20, 20).Encode())
	if err != nil || negative || !(math.Abs(tile.low-101) <= 1e-9) || !(math.Abs(tile.high-497) <= 1e-9) {
		t.Errorf("a ramp goes from %v to %v, %v", tile.low, tile.high, err)
	}
	for v, want := range map[float64]float64{0: 0, 101: 0, 299: 0.5, 497: 1, 1e6: 1} {
		if got := tile.level(v, false); !(math.Abs(got-want) <= 1e-9) {
			t.Errorf("%v is at %v of the colours, want %v", v, got, want)
		}
	}
	if got := tile.ends(false); got[0] != "101" || got[1] != "497" {
		t.Errorf("its ends are written %q", got)
	}
}

func TestSheetRefuses(t *testing.T) {
	s := shapes(t, 2, 16)
	in := map[string][]stages.Data{"maps": mapsOf(s["masks"], 16), "images": {s["images"]}}
	refuses(t, Sheet, &SheetParams{Items: 1, Columns: "model"}, in,
		`the axis "model" isn't collapsed, only method`)
	in["maps"] = []stages.Data{stagetest.Items(nil, stages.Scalar(1))}
	refuses(t, Sheet, nil, in, "isn't that of a map")
	in["maps"] = []stages.Data{stagetest.Items(nil)}
	refuses(t, Sheet, nil, in, "none of the maps is of the first 2 images")
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", -0.5: "−0.5", 1: "1", 0.0123: "0.012", 0.001: "0.001",
		9.96: "10", 181.4: "181", 12345: "12345", 2.14e-4: "2.1e−4", 3e7: "3.0e7"} {
		if got := short(v); got != want {
			t.Errorf("%g is written %q, want %q", v, got, want)
		}
	}
}
