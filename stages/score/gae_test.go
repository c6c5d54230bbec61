package score

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestGAE checks the scores of maps that are best, constant, contrary, zero and undefined, on an image of two
// pixels with one masked state.
func TestGAE(t *testing.T) {
	type scores struct{ total, consistency, contrastiveness, faithfulness, robustness float64 }
	nan := math.NaN()
	for _, tt := range []struct {
		what                         string
		original, morf, lerf, mosaic []float32
		impact, scoring              []float32
		outputs                      []float64 // of MoRF and then of LeRF, the unmasked image first
		variant                      string
		want                         scores
	}{
		{what: "the best", original: []float32{4, 0}, morf: []float32{0, 4}, lerf: []float32{4, 0},
			mosaic: []float32{2, -1}, impact: []float32{0.1, -0.1}, scoring: []float32{1, -1},
			outputs: []float64{8, 0, 8, 8}, want: scores{1, 1, 1, 1, 1}},
		{what: "a constant map", original: []float32{1, 1}, morf: []float32{1, 1}, lerf: []float32{1, 1},
			mosaic: []float32{1, 1}, impact: []float32{0.1, 0.1}, scoring: []float32{1, 0},
			outputs: []float64{8, 0, 8, 8}, want: scores{0, 0, 0.5, 1, -1}},
		{what: "the worst", original: []float32{0, 4}, morf: []float32{0, 4}, lerf: []float32{4, 0},
			mosaic: []float32{-2, 1}, impact: []float32{0.1, -0.1}, scoring: []float32{1, -1},
			outputs: []float64{8, 0, 8, 8}, want: scores{0, 0, 0, -1, -1}},
		// The distances differ by 0.2, the outputs by 1.
		{what: "a map that changes less", original: []float32{2, 0}, morf: []float32{2, 1},
			lerf: []float32{2, 0}, mosaic: []float32{1, 3}, impact: []float32{0.1, -0.1},
			scoring: []float32{1, 0.5},
			outputs: []float64{8, 0, 8, 8}, want: scores{0.625 * (1 + 1 - 2*0.8/1.2) / 2,
				(1 + 1 - 2*0.8/1.2) / 2, 0.625, 1, 1 - 2*0.8/1.2}},
		{what: "a zero map", original: []float32{0, 0}, morf: []float32{0, 0}, lerf: []float32{0, 0},
			mosaic: []float32{0, 0}, impact: []float32{0.1, -0.1}, scoring: []float32{1, -1},
			outputs: []float64{8, 0, 8, 8}, want: scores{nan, nan, nan, nan, nan}},
		{what: "a zero map, as the code has it", original: []float32{0, 0}, morf: []float32{0, 0},
			lerf: []float32{0, 0}, mosaic: []float32{0, 0}, impact: []float32{0.1, -0.1},
			scoring: []float32{1, -1}, outputs: []float64{8, 0, 8, 8}, variant: official,
			want: scores{0, 0, 0, 0, -1}},
		{what: "a map that isn't finite", original: []float32{float32(math.Inf(1)), 0}, morf: []float32{1, 1},
			lerf: []float32{1, 1}, mosaic: []float32{2, 1}, impact: []float32{0.1, -0.1},
			scoring: []float32{1, -1}, outputs: []float64{8, 0, 8, 8},
			want: scores{nan, nan, 1.0 / 3, nan, nan}},
	} {
		item := func(v []float32) stages.Data {
			return stagetest.Items(nil, stages.NewTensor(v, 1, len(v)).Encode())
		}
		in := map[string][]stages.Data{
			"maps": {item(tt.original)}, "mosaic_maps": {item(tt.mosaic)}, "impact": {item(tt.impact)},
			"scoring": {item(tt.scoring)},
			"masked_maps": {stagetest.At(item(tt.morf), "order", "morf", "step", "1"),
				stagetest.At(item(tt.lerf), "order", "lerf", "step", "1")},
			"outputs": {stagetest.Items(stages.Facts{"responses": "morf,lerf"},
				stages.NewTensor(tt.outputs, 2, 2).Encode())},
		}
		p := GAE.NewParams().(*GAEParams)
		if tt.variant != "" {
			p.Variant = tt.variant
		}
		r := stagetest.Run(t, GAE, p, in)
		for port, want := range map[string]float64{"total": tt.want.total, "consistency": tt.want.consistency,
			"contrastiveness": tt.want.contrastiveness, "faithfulness": tt.want.faithfulness,
			"robustness": tt.want.robustness} {
			got, err := stages.ScalarOf(r.Payloads[port][0])
			if err != nil {
				t.Fatal(err)
			}
			if !(math.Abs(got-want) <= 1e-8) && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%s: %s is %v, want %v", tt.what, port, got, want)
			}
		}
	}
}

// TestGAERefuses checks that axes of another kind, steps that don't exist and maps of other sizes are
// refused, and that a masked image without a map leaves its item undefined.
func TestGAERefuses(t *testing.T) {
	one := func(side int) stages.Data {
		return stagetest.Items(nil, stages.NewTensor(make([]float32, side*side), side, side).Encode())
	}
	input := func(masked ...stages.Data) map[string][]stages.Data {
		return map[string][]stages.Data{
			"maps": {one(2)}, "mosaic_maps": {one(2)}, "impact": {one(2)}, "scoring": {one(2)},
			"masked_maps": masked,
			"outputs": {stagetest.Items(stages.Facts{"responses": "morf,lerf"},
				stages.NewTensor([]float64{8, 0, 8, 8}, 2, 2).Encode())},
		}
	}
	at := func(order string, step int) stages.Data {
		return stagetest.At(one(2), "order", order, "step", strconv.Itoa(step))
	}
	for want, masked := range map[string][]stages.Data{
		"masked_maps need a collapsed axis order of morf and lerf":   {at("first", 1), at("lerf", 1)},
		"masked_maps need a collapsed axis step of the steps 1 to 1": {at("morf", 2), at("lerf", 2)},
		"a masked image's map has the shape [3 3], the image's [2 2]": {
			stagetest.At(one(3), "order", "morf", "step", "1")},
	} {
		_, err := stagetest.Try(GAE, nil, input(masked...))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	r := stagetest.Run(t, GAE, nil, input(at("morf", 1)))
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "1 of the 2 masked images have no map") {
		t.Errorf("warnings %q", r.Warnings)
	}
}
