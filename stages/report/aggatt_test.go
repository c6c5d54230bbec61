package report

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/stagetest"
)

// quarterOf is the box of cell k of a 2×2 grid, and gridOf the facts of such boxes.
func quarterOf(k, side int) []byte {
	half := float32(side / 2)
	left, top := half*float32(k%2), half*float32(k/2)
	return stages.NewTensor([]float32{left, top, left + half, top + half}, 1, 4).Encode()
}

func gridOf(side string) stages.Facts {
	return stages.Facts{"height": side, "width": side, "grid": "2"}
}

// aggregated runs the first half of the stage on maps that explain these cells.
func aggregated(t *testing.T, p AggAttParams, maps [][]byte, cells [][]byte, side string) *aggregate {
	t.Helper()
	d := stagetest.Items(nil, maps...)
	e, err := stagetest.Env(&AggAtt, map[string][]stages.Data{"maps": {d},
		"cells": {stagetest.Items(gridOf(side), cells...)}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.aggregate(t.Context(), e, d)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestGoldenAggAtt holds order, bins and scales against the official code, of maps shown in their positive
// part and as they are.
func TestGoldenAggAtt(t *testing.T) {
	g := golden.Arrays(t, "testdata/aggatt.npz")
	all := g["A"].Float32s()
	var maps, cells [][]byte
	for i := range g["A"].Shape[0] {
		maps = append(maps, stages.NewTensor(all[i*4*64:i*4*64+64], 8, 8).Encode()) // of head 0
		cells = append(cells, quarterOf(0, 16))
	}
	for values, key := range map[string]string{metric.Positive: "pos", metric.Signed: "all"} {
		a := aggregated(t, AggAttParams{Values: values, Variant: "official"}, maps, cells, "16")
		order := g["sorted_idx"].Int64s()
		loc, inside := g["loc"].Float64s(), g["inside"].Float64s()
		for i, r := range a.order {
			if int64(r.item) != order[i] {
				t.Fatalf("map %d is at place %d, want %d", r.item, i, order[i])
			}
			if math.Abs(r.share-loc[r.item]) > 1e-6 ||
				math.Abs(r.inside-inside[r.item]) > 1e-5*inside[r.item] {
				t.Errorf("map %d: %v, want %v and %v", r.item, r, loc[r.item], inside[r.item])
			}
		}
		for k, end := range g["bins"].Float64s() {
			if want := int(math.Round(end * 200)); a.bins[k] != want {
				t.Errorf("bins %v, want %d", a.bins, want)
			}
		}
		want := g["bin_maps_"+key].Float64s()
		for k, m := range a.maps {
			for i, v := range m {
				if math.Abs(v-want[k*256+i]) > 1e-6 {
					t.Fatalf("%s: bin %d, pixel %d: %v, want %v", key, k, i, v, want[k*256+i])
				}
			}
		}
		if want := g["scale_"+key].Float64s()[0]; math.Abs(a.scale-want) > 1e-6 {
			t.Errorf("%s: scale %v, want %v", key, a.scale, want)
		}
	}
}

// TestGoldenThreshold holds percentages of sorted values against the official code.
func TestGoldenThreshold(t *testing.T) {
	g := golden.Arrays(t, "testdata/threshold.npz")
	v := slices.Sorted(slices.Values(g["arr"].Float64s()))
	for name, percent := range map[string]float64{"thr50": 50, "thr98": 98, "thr99.5": 99.5} {
		if got, want := threshold(v, percent), g[name].Float64s()[0]; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestBinsOf: shares that are whole are exact, and no bin is empty.
func TestBinsOf(t *testing.T) {
	for n, want := range map[int][]int{
		200: {0, 4, 10, 100, 190, 196, 200}, 400: {0, 8, 20, 200, 380, 392, 400},
		6: {0, 1, 2, 3, 4, 5, 6}, 7: {0, 1, 2, 3, 5, 6, 7}, 32: {0, 1, 2, 16, 30, 31, 32},
		50: {0, 1, 2, 25, 47, 49, 50},
	} {
		if got := binsOf(n); !slices.Equal(got, want) {
			t.Errorf("%d maps: %v, want %v", n, got, want)
		}
	}
	for n := len(binEnds); n < 3000; n++ {
		b := binsOf(n)
		for k := range binEnds {
			if b[k+1] <= b[k] || b[len(b)-1] != n {
				t.Fatalf("%d maps: %v", n, b)
			}
		}
	}
}

// TestAggAtt: by hand, eight maps of one pixel each, of which two explain another cell, one has no score and
// the others are in five places; a constant map scores a quarter, and the best and worst 1 and 0.
func TestAggAtt(t *testing.T) {
	one := func(at ...int) []byte {
		v := make([]float32, 16)
		for _, i := range at {
			v[i]++
		}
		return stages.NewTensor(v, 4, 4).Encode()
	}
	ones := make([]int, 16)
	for i := range ones {
		ones[i] = i
	}
	maps := [][]byte{one(ones...), one(0, 15), one(0, 1), one(15), one(2), one(0, 1, 15), one(), one(15),
		one(0, 15, 15, 15)}
	var cells [][]byte
	for _, k := range []int{0, 0, 0, 0, 1, 0, 0, 3, 0} {
		cells = append(cells, quarterOf(k, 4))
	}
	a := aggregated(t, AggAttParams{Values: metric.Positive, Variant: "paper"}, maps, cells, "4")
	var items []int
	for _, r := range a.order {
		items = append(items, r.item)
	}
	if want := []int{2, 5, 1, 0, 8, 3}; !slices.Equal(items, want) || a.undefined != 1 {
		t.Errorf("order %v, want %v; %d undefined", items, want, a.undefined)
	}
	if a.order[0].share != 1 || a.order[3].share != 0.25 || a.order[5].share != 0 {
		t.Errorf("shares %v", a.order)
	}
	official := aggregated(t, AggAttParams{Values: metric.Positive, Variant: "official"}, maps, cells, "4")
	if n := len(official.order); n != 7 || official.order[6].item != 6 {
		t.Errorf("%d maps, the last is %d", n, official.order[n-1].item)
	}
	// Cell 3 has too few.
	e, _ := stagetest.Env(&AggAtt,
		map[string][]stages.Data{"cells": {stagetest.Items(gridOf("4"), cells...)}})
	for cell, want := range map[int]string{3: "1 map with a score for cell 3", 4: "the grids have 4 cells"} {
		_, err := AggAttParams{Cell: cell}.aggregate(t.Context(), e, stagetest.Items(nil, maps...))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("cell %d: %v", cell, err)
		}
	}
}

// TestAggAttFigure: the figure is the same twice, white and green alone without negative values, and says how
// many maps its bins have.
func TestAggAttFigure(t *testing.T) {
	var maps, cells, images [][]byte
	for i := range 40 {
		v := make([]float32, 64)
		for k := range v {
			v[k] = float32(math.Sin(float64((i+1)*(k+3)))) - 0.3
		}
		maps = append(maps, stages.NewTensor(v, 8, 8).Encode())
		cells = append(cells, quarterOf(2, 64))
		images = append(images, stages.NewTensor(make([]uint8, 3*64*64), 3, 64, 64).Encode())
	}
	in := map[string][]stages.Data{"cells": {stagetest.Items(gridOf("64"), cells...)},
		"images": {stagetest.Items(nil, images...)}}
	for _, method := range []string{"a", "b"} {
		in["maps"] = append(in["maps"], stagetest.At(stagetest.Items(nil, maps...), "method", method))
	}
	for _, values := range []string{metric.Positive, metric.Signed} {
		p := &AggAttParams{Cell: 2, Values: values, Variant: "paper", Tile: 40, DPI: 144, Budget: 200}
		r := stagetest.Run(t, AggAtt, p, in)
		m := lookAt(t, "aggatt-"+values, r)
		if again := stagetest.Run(t, AggAtt, p, in).Payloads["figure"][0]; !bytes.Equal(again,
			r.Payloads["figure"][0]) {
			t.Error("drawn twice, the figure differs")
		}
		// Two rows of eight maps, equal in both; the examples are two photographs that look the same.
		if sizes := imageSizes(r.Payloads["pdf"][0]); sizes["64×64"] != 8+1 {
			t.Errorf("the PDF has images %v", sizes)
		}
		if got := shownBy(t, r); len(got.Items) != 2 || len(got.Rows) != 2 || len(got.Columns) != 10 {
			t.Errorf("the figure says that it shows %+v", got)
		}
		red := 0
		for y := range m.Bounds().Dy() {
			for x := range m.Bounds().Dx() {
				if c, g, b, _ := m.At(x, y).RGBA(); c>>8 == 255 && g>>8 < 200 && b>>8 < 200 {
					red++
				}
			}
		}
		if (red > 2000) != (values == metric.Signed) {
			t.Errorf("%s: %d pixels are red", values, red)
		}
		if c := r.Facts["figure"]["caption"]; !strings.Contains(c, "1, 1, 18, 18, 1, 1 of 40 maps") ||
			!strings.Contains(c, "cell 2") {
			t.Error(c)
		}
		table, err := stages.DecodeTable(r.Payloads["bins"][0])
		if err != nil || len(table.Rows) != 12 || !slices.Equal(table.Rows[7].Keys, []string{"b", "2–5 %"}) {
			t.Errorf("%v, %v", table, err)
		}
	}
}

// TestAggAttRows: rows are sorted by the axes that are asked for, then by the others.
func TestAggAttRows(t *testing.T) {
	var maps, cells [][]byte
	for i := range 50 {
		v := make([]float32, 16)
		for k := range v {
			v[k] = float32((i*k)%7 + 1)
		}
		maps, cells = append(maps, stages.NewTensor(v, 4, 4).Encode()), append(cells, quarterOf(0, 4))
	}
	in := map[string][]stages.Data{"cells": {stagetest.Items(gridOf("4"), cells...)}}
	for _, layer := range []string{"final", "input"} {
		for _, method := range []string{"ig", "rise"} {
			in["maps"] = append(in["maps"], stagetest.At(stagetest.Items(nil, maps...), "layer", layer,
				"method", method))
		}
	}
	for _, c := range []struct {
		rows []string
		want [][]string
	}{
		{nil, [][]string{{"final", "ig"}, {"final", "rise"}, {"input", "ig"}, {"input", "rise"}}},
		{[]string{"method"}, [][]string{{"ig", "final"}, {"ig", "input"}, {"rise", "final"},
			{"rise", "input"}}},
	} {
		p := AggAtt.NewParams().(*AggAttParams)
		p.Rows = c.rows
		got := shownBy(t, stagetest.Run(t, AggAtt, p, in)).Rows
		if !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("rows %v: %v, want %v", c.rows, got, c.want)
		}
	}
}
