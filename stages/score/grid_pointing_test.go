package score

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/stagetest"
)

func gridFacts(side int) stages.Facts {
	return stages.Facts{"height": fmt.Sprint(side), "width": fmt.Sprint(side), "grid": "2"}
}

// quarter is the box of cell k of a 2×2 grid.
func quarter(k, side int) []byte {
	half := float32(side / 2)
	left, top := half*float32(k%2), half*float32(k/2)
	return stages.NewTensor([]float32{left, top, left + half, top + half}, 1, 4).Encode()
}

func TestGridPointing(t *testing.T) {
	of := func(v ...float32) []byte { return stages.NewTensor(v, 4, 4).Encode() }
	ones := make([]float32, 16)
	for i := range ones {
		ones[i] = 1
	}
	upper := of(3, 1, 2, 0, 0, 0, 0, 2, -9, 0, 0, 0, 0, 0, 0, -1)
	in := map[string][]stages.Data{
		"maps": {stagetest.Items(nil, of(ones...), upper, upper, upper, of(make([]float32, 16)...),
			of(0, 0, 0, 0, 5e-8, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
			stages.NewTensor([]float64{1, 0, 0, 0, -1, 0, 0, 1}, 2, 2, 2).Encode(),
			stages.NewTensor([]float32{1, 0, 0, -1}, 2, 2).Encode())},
		"cells": {stagetest.Items(gridFacts(4), quarter(3, 4), quarter(0, 4), quarter(1, 4), quarter(2, 4),
			quarter(0, 4), quarter(0, 4),
			quarter(3, 4), quarter(0, 4))},
	}
	// The last two maps are upsampled. A single 1 in a corner has 1¾ of 2 in its half of each side; the last
	// map is the difference of two such corners.
	const corner = 1.75 * 1.75 / 4
	within, upscaled := 0.0, 0.0
	for y, a := range []float64{1, 0.75, 0.25, 0} {
		for x, b := range []float64{1, 0.75, 0.25, 0} {
			v := math.Max(0, a*b-(1-a)*(1-b))
			upscaled += v
			if y < 2 && x < 2 {
				within += v
			}
		}
	}
	r := stagetest.Run(t, GridPointing, nil, in)
	check(t, r, "scores", 1e-12, 0.25, 0.5, 0.5, 0, nan, 1, corner, within/upscaled)
	if f := r.Facts["scores"]; f["baseline"] != "0.25" || f["variant"] != "" || f["direction"] != "higher" {
		t.Errorf("facts %v", f)
	}
	r = stagetest.Run(t, GridPointing, &GridPointingParams{Variant: official}, in)
	check(t, r, "scores", 1e-12, 0.25, 0.5, 0.5, 0, 0, 0, corner, within/upscaled)
	if f := r.Facts["scores"]; f["variant"] != "official" {
		t.Errorf("facts %v", f)
	}
}

func TestGridPointingRefuses(t *testing.T) {
	m := stages.NewTensor(make([]float32, 16), 4, 4).Encode()
	box := func(v ...float32) []byte { return stages.NewTensor(v, 1, len(v)).Encode() }
	for want, cell := range map[string][]byte{
		"boxes of shape [1 3]: one box is needed": box(0, 0, 2),
		"isn't aligned to pixels":                 box(0, 0, 1.5, 2),
		"isn't inside a grid of 4×4":              box(0, 0, 5, 2),
		"[2 2 2 4] isn't inside":                  box(2, 2, 2, 4),
	} {
		fails(t, GridPointing, nil,
			map[string][]stages.Data{"maps": {stagetest.Items(nil, m)},
				"cells": {stagetest.Items(gridFacts(4), cell)}}, `item "item-0": `)
		fails(t, GridPointing, nil,
			map[string][]stages.Data{"maps": {stagetest.Items(nil, m)},
				"cells": {stagetest.Items(gridFacts(4), cell)}}, want)
	}
	fails(t, GridPointing, nil,
		map[string][]stages.Data{"maps": {stagetest.Items(nil, m)},
			"cells": {stagetest.Items(gridFacts(2), quarter(0, 2))}},
		"a map of 4×4 pixels doesn't match a grid of 2×2")
	fails(t, GridPointing, nil,
		map[string][]stages.Data{"maps": {stagetest.Items(nil, m)},
			"cells": {stagetest.Items(nil, quarter(0, 4))}},
		`has no fact "grid": wire the cells of mosaic/grid`)
}

// pointing runs the official variant on maps [N,heads,…,h,w] of 2×2 grids with the given explained cells, and
// returns the scores in the official order: all images of the first cell, then all of the next.
func pointing(t *testing.T, maps npy.Array, cells []int, side int) []float64 {
	t.Helper()
	n := maps.Shape[0]
	h, w := maps.Shape[len(maps.Shape)-2], maps.Shape[len(maps.Shape)-1]
	all := maps.Float32s()
	var m, boxes [][]byte
	for k, cell := range cells {
		for i := range n {
			at := (i*len(cells) + k) * h * w
			m = append(m, stages.NewTensor(all[at:at+h*w], h, w).Encode())
			boxes = append(boxes, quarter(cell, side))
		}
	}
	r := stagetest.Run(t, GridPointing, &GridPointingParams{Variant: official}, map[string][]stages.Data{
		"maps": {stagetest.Items(nil, m...)}, "cells": {stagetest.Items(gridFacts(side), boxes...)},
	})
	return scalars(t, stagetest.Items(nil, r.Payloads["scores"]...))
}

// agree compares scores of maps with the official ones. The official score of an undefined map is 0, because
// NaN > 0 is false; here it is undefined.
func agree(t *testing.T, name string, maps npy.Array, cells []int, side int, want npy.Array) {
	t.Helper()
	got := pointing(t, maps, cells, side)
	if len(got) != want.Len() {
		t.Fatalf("%s: %d scores, want %d", name, len(got), want.Len())
	}
	all, images := maps.Float32s(), maps.Shape[0]
	size := len(all) / len(got)
	for i, w := range want.Float64s() {
		at := (i%images*len(cells) + i/images) * size
		if w == 0 && slices.ContainsFunc(all[at:at+size], func(v float32) bool { return v != v }) {
			w = nan
		}
		if math.IsNaN(got[i]) != math.IsNaN(w) || math.Abs(got[i]-w) > 2e-6 {
			t.Errorf("%s: score %d is %v, want %v", name, i, got[i], w)
		}
	}
}

// TestGoldenGridPointing compares the score and the upsampled maps with the official ones, some of which have
// no positive relevance.
func TestGoldenGridPointing(t *testing.T) {
	a := golden.Arrays(t, "testdata/localisation_arrays.npz")
	agree(t, "four cells", a["A"], []int{0, 1, 2, 3}, 64, a["scores"])
	agree(t, "corners", a["A2"], []int{0, 3}, 64, a["scores_corners"])
	up := a["upsampled"].Float64s()
	small := a["A"].Float64s()
	for head := range a["upsampled"].Shape[0] { // of the first image
		for i, v := range metric.Enlarge(small[head*14*14:(head+1)*14*14], 14, 14, 64, 64) {
			if want := up[head*64*64+i]; !(math.Abs(v-want) <= 2e-6) {
				t.Fatalf("map %d, pixel %d: %v, want %v", head, i, v, want)
			}
		}
	}
}

// TestGoldenGridSettings compares the score for every method, layer and setting of the official runs whose
// maps are stored.
func TestGoldenGridSettings(t *testing.T) {
	dir := filepath.Join(golden.Dir(t), "gridpg_difull_dipart")
	for setting, cells := range map[string][]int{"GridPG": {0, 1, 2, 3}, "DiFull": {0, 3}, "DiPart": {0, 3}} {
		for _, net := range []string{"gapcnn", "smallcnn"} {
			name := net + "_" + setting
			a := golden.Arrays(t, filepath.Join(dir, name+".npz"))
			compared := 0
			for key, maps := range a {
				if what, ok := strings.CutPrefix(key, "attr_"); ok {
					agree(t, name+" "+what, maps, cells, 64, a["score_"+what])
					compared++
				}
			}
			if compared < 19 {
				t.Errorf("%s: only %d methods and layers were compared", name, compared)
			}
		}
	}
}
