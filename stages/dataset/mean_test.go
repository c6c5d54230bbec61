package dataset

import (
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

func TestMean(t *testing.T) {
	bytes := func(v ...uint8) []byte { return stages.NewTensor(v, 3, 1, 2).Encode() }
	floats := stages.NewTensor([]float32{0, 1, 0.5, 0.5, 0, 0}, 3, 1, 2).Encode()
	facts := stages.Facts{"height": "1", "width": "2"}
	in := map[string][]stages.Data{
		"images": {stagetest.Items(facts, bytes(255, 0, 0, 0, 0, 0), bytes(0, 0, 0, 255, 255, 0), floats)},
	}
	for of, want := range map[string][]float32{
		"image":  {1. / 3, 1. / 3, 0.5 / 3, 0.5, 1. / 3, 0},
		"colour": {1. / 3, 1. / 3, 1. / 3, 1. / 3, 1. / 6, 1. / 6},
	} {
		r := stagetest.Run(t, Mean, &MeanParams{of}, in)
		for i, b := range r.Payloads["images"] {
			m, err := stages.DecodeTensor(b)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(m.Float32s(), want) || !slices.Equal(m.Shape, []int{3, 1, 2}) {
				t.Errorf("%s: image %d is %v of shape %v, want %v", of, i, m.Float32s(), m.Shape, want)
			}
		}
		if len(r.Payloads["images"]) != 3 || r.Facts["images"]["height"] != "1" {
			t.Errorf("%s: %d images, facts %v", of, len(r.Payloads["images"]), r.Facts)
		}
	}
	other := stages.NewTensor([]uint8{255, 255, 255}, 3, 1, 1).Encode()
	in["images"] = []stages.Data{stagetest.Items(nil, bytes(0, 0, 0, 0, 0, 0), other)}
	if _, err := stagetest.Try(Mean, nil, in); err == nil || !strings.Contains(err.Error(), `item "item-1"`) {
		t.Errorf("error %v of images of two sizes", err)
	}
	r := stagetest.Run(t, Mean, &MeanParams{"colour"}, in)
	for i, n := range []int{6, 3} {
		want := slices.Repeat([]float32{1. / 3}, n)
		m, err := stages.DecodeTensor(r.Payloads["images"][i])
		if err != nil || !slices.Equal(m.Float32s(), want) {
			t.Errorf("image %d is %v, want %v", i, m.Float32s(), want)
		}
	}
}
