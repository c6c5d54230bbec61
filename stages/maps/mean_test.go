package maps

import (
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
