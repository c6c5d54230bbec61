package score

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/stagetest"
)

// quadrants is the mask of the quadrants, row by row, whose numbers aren't 0, of an image of height×width.
func quadrants(of []int64, height, width int) []byte {
	mask := make([]uint8, height*width)
	for i := range mask {
		mask[i] = uint8(min(1, of[2*(i/width/(height/2))+i%width/(width/2)]))
	}
	return stages.NewTensor(mask, height, width).Encode()
}

// TestFocus: cases by hand, the best and the worst score, and those of a constant map and of none.
func TestFocus(t *testing.T) {
	of := func(v ...float32) []byte { return stages.NewTensor(v, 2, 2).Encode() }
	diagonal := quadrants([]int64{1, 0, 0, 1}, 2, 2)
	in := map[string][]stages.Data{
		"maps": {stagetest.Items(nil, of(3, 1, -5, 0), of(1, 0, 0, 1), of(-1, 2, 3, -1), of(1, 1, 1, 1),
			of(-1, -2, -3, -4), of(0, 0, 0, 0), of(float32(math.NaN()), 1, 1, 1),
			stages.NewTensor([]float32{2, 0, -2, 0, -1, 1, 3, 0}, 2, 2, 2).Encode())},
		"masks": {stagetest.Items(nil, diagonal, diagonal, diagonal, diagonal, diagonal, diagonal, diagonal,
			diagonal)},
	}
	r := stagetest.Run(t, Focus, nil, in)
	check(t, r, "scores", 1e-12, 0.75, 1, 0, 0.5, nan, nan, nan, 1.0/3)
	if f := r.Facts["scores"]; f["baseline"] != "0.5" || f["direction"] != "higher" {
		t.Errorf("facts %v", f)
	}
	check(t, stagetest.Run(t, Focus, &FocusParams{Variant: "quantus"}, in), "scores", 2e-9,
		0.75, 1, 0, 0.5, 0, 0, nan, 1.0/3)
}

// TestGoldenFocus holds both variants against the code of the authors and of Quantus.
func TestGoldenFocus(t *testing.T) {
	a := golden.Arrays(t, "testdata/focus.npz")
	all, where := a["a"].Float32s(), a["positions"].Int64s()
	h, w := a["a"].Shape[2], a["a"].Shape[3]
	var maps, masks [][]byte
	for i := range a["a"].Shape[0] {
		maps = append(maps, stages.NewTensor(all[i*h*w:(i+1)*h*w], h, w).Encode())
		masks = append(masks, quadrants(where[4*i:4*i+4], h, w))
	}
	in := map[string][]stages.Data{"maps": {stagetest.Items(nil, maps...)},
		"masks": {stagetest.Items(nil, masks...)}}
	for variant, official := range map[string]string{paper: "hpai", "quantus": "quantus"} {
		r := stagetest.Run(t, Focus, &FocusParams{Variant: variant}, in)
		check(t, r, "scores", 1e-6, a[official].Float64s()...)
	}
}

func TestFocusRefuses(t *testing.T) {
	m := stages.NewTensor(make([]float32, 36), 6, 6).Encode()
	fails(t, Focus, nil, map[string][]stages.Data{"maps": {stagetest.Items(nil, m)},
		"masks": {stagetest.Items(nil, quadrants([]int64{1, 0, 0, 1}, 4, 4))}},
		"a map of 6×6 pixels doesn't match a grid of 4×4")
}

// TestChance: a constant map has exactly its chance of being right in each mosaic, and random maps have it on
// average, within three standard errors, at the mosaic's size and where they are enlarged.
func TestChance(t *testing.T) {
	const side, n = 16, 400
	r := rand.New(rand.NewPCG(1, 2))
	flat := make([]float32, side*side)
	for i := range flat {
		flat[i] = 0.3
	}
	for _, of := range []int{side, side / 4} {
		var constant, random, cells, masks [][]byte
		for i := range n {
			v := make([]float32, of*of)
			for k := range v {
				v[k] = float32(r.NormFloat64())
			}
			constant = append(constant, stages.NewTensor(flat[:of*of], of, of).Encode())
			random = append(random, stages.NewTensor(v, of, of).Encode())
			cells = append(cells, quarter(i%4, side))
			masks = append(masks, quadrants([][]int64{{1, 1, 0, 0}, {0, 1, 1, 0}}[i%2], side, side))
		}
		for chance, s := range map[float64]struct {
			stage stages.Stage
			port  string
			marks stages.Data
		}{
			0.25: {GridPointing, "cells", stagetest.Items(gridFacts(side), cells...)},
			0.5:  {Focus, "masks", stagetest.Items(nil, masks...)},
		} {
			score := func(maps [][]byte) []float64 {
				res := stagetest.Run(t, s.stage, nil, map[string][]stages.Data{
					"maps": {stagetest.Items(nil, maps...)}, s.port: {s.marks}})
				return scalars(t, stagetest.Items(nil, res.Payloads["scores"]...))
			}
			for _, x := range score(constant) {
				if math.Abs(x-chance) > 1e-12 {
					t.Fatalf("%s: a constant map scores %v, not %v", s.stage.Name, x, chance)
				}
			}
			sum, squares := 0.0, 0.0
			for _, x := range score(random) {
				sum += x
				squares += x * x
			}
			mean := sum / n
			e := math.Sqrt((squares/n - mean*mean) / (n - 1))
			if !(math.Abs(mean-chance) <= 3*e) || e > 0.01 {
				t.Errorf("%s: random maps of %d×%d score %v ± %v, not %v", s.stage.Name, of, of, mean, e,
					chance)
			}
		}
	}
}
