package maps

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestMean checks the mean over draws, value by value, that one map is its own mean, and the refusal of maps
// of other sizes.
func TestMean(t *testing.T) {
	at := func(draw string, v []float32, shape ...int) stages.Data {
		return stagetest.At(stagetest.Items(nil, stages.NewTensor(v, shape...).Encode()), "draw", draw)
	}
	for _, c := range []struct {
		draws []stages.Data
		want  []float64
	}{
		{[]stages.Data{at("a", []float32{1, -2}, 1, 2)}, []float64{1, -2}},
		{[]stages.Data{at("a", []float32{1, -2}, 1, 2), at("b", []float32{2, 2}, 1, 2),
			at("c", []float32{6, 3}, 1, 2)}, []float64{3, 1}},
	} {
		r := stagetest.Run(t, Mean, nil, map[string][]stages.Data{"maps": c.draws})
		m, err := stages.DecodeTensor(r.Payloads["maps"][0])
		if err != nil || !slices.Equal(m.Float64s(), c.want) {
			t.Errorf("mean %v, %v, want %v", m.Float64s(), err, c.want)
		}
	}
	if _, err := stagetest.Try(Mean, nil, map[string][]stages.Data{"maps": {at("a", []float32{1, 2}, 1, 2),
		at("b", []float32{1, 2}, 2, 1)}}); err == nil {
		t.Error("maps of two sizes have a mean")
	}
}

// TestMeanOfMethods computes ensembles by hand: of methods in different units, with signs, of a map of zeros
// and of one with an undefined value.
func TestMeanOfMethods(t *testing.T) {
	nan := float32(math.NaN())
	at := func(method string, v ...float32) stages.Data {
		return stagetest.At(stagetest.Items(nil, stages.NewTensor(v, 2, 2).Encode()), "method", method)
	}
	for _, c := range []struct {
		normalise string
		maps      []stages.Data
		want      []float64
	}{
		{"none", []stages.Data{at("a", 1, 0, 0, 3), at("b", 200, -200, 0, 400)},
			[]float64{100.5, -100, 0, 201.5}},
		{"sum", []stages.Data{at("a", 1, 0, 0, 3), at("b", 200, -200, 0, 400)},
			[]float64{0.25, -0.125, 0, 0.625}},
		{"max", []stages.Data{at("a", 1, 0, 0, 4), at("b", 200, -200, 0, 400)},
			[]float64{0.375, -0.25, 0, 1}},
		{"sum", []stages.Data{at("a", 0, 0, 0, 0), at("b", 1, 1, 1, 1)},
			[]float64{0.125, 0.125, 0.125, 0.125}},
		{"max", []stages.Data{at("a", nan, 1, -2, 0), at("b", 4, 4, 4, 4)},
			[]float64{math.NaN(), 0.75, 0, 0.5}},
		{"sum", []stages.Data{at("a", nan, 1, -3, 0), at("b", 2, 2, 2, 2)},
			[]float64{math.NaN(), 0.25, -0.25, 0.125}},
	} {
		r := stagetest.Run(t, Mean, &MeanParams{Normalise: c.normalise},
			map[string][]stages.Data{"maps": c.maps})
		m, err := stages.DecodeTensor(r.Payloads["maps"][0])
		same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
		if err != nil || !slices.EqualFunc(m.Float64s(), c.want, same) {
			t.Errorf("%s: mean %v, %v, want %v", c.normalise, m.Float64s(), err, c.want)
		}
	}
	for normalise, want := range map[string]stages.Declared{
		"none": {"map": "gradient", "target": "predicted"},
		"sum":  {"target": "predicted"},
	} {
		in := stages.Declared{"map": "gradient", "target": "predicted", "reference": "zero"}
		got := Mean.Declares(&MeanParams{Normalise: normalise}, map[string]stages.Declared{"maps": in})
		if !maps.Equal(got, want) {
			t.Errorf("%s: it declares %v, want %v", normalise, got, want)
		}
	}
}
