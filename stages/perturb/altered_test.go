package perturb

import (
	"math"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestShift checks by hand that bytes are pixel values from 0 to 255, and numbers are from 0 to 1.
func TestShift(t *testing.T) {
	in := map[string][]stages.Data{"images": {stagetest.Items(nil,
		stages.NewTensor([]uint8{0, 51, 255}, 3, 1, 1).Encode(),
		stages.NewTensor([]float32{0, 0.25, 1}, 3, 1, 1).Encode())}}
	for by, want := range map[float64][2][]float64{
		-1:  {{-1, 51./255 - 1, 0}, {-1, -0.75, 0}},
		0.5: {{0.5, 0.7, 1.5}, {0.5, 0.75, 1.5}},
	} {
		r := stagetest.Run(t, Shift, &ShiftParams{By: by}, in)
		for i := range want {
			for k, got := range decode(t, r.Payloads["images"][i]) {
				if math.Abs(got-want[i][k]) > 1e-7 {
					t.Errorf("shifted by %v, value %d of image %d is %v, want %v", by, k, i, got, want[i][k])
				}
			}
		}
	}
}

// TestTranslate moves images of two channels by hand, in both directions, also out of the frame.
func TestTranslate(t *testing.T) {
	image := []uint8{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16} // of 2×3 pixels
	var numbers []float32
	for _, v := range image {
		numbers = append(numbers, float32(v))
	}
	in := map[string][]stages.Data{"images": {stagetest.Items(nil, stages.NewTensor(image, 2, 2, 3).Encode(),
		stages.NewTensor(numbers, 2, 2, 3).Encode())}}
	for _, tt := range []struct {
		p    TranslateParams
		want []float64
	}{
		{TranslateParams{}, []float64{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16}},
		{TranslateParams{X: 1}, []float64{0, 1, 2, 0, 4, 5, 0, 11, 12, 0, 14, 15}},
		{TranslateParams{X: -2}, []float64{3, 0, 0, 6, 0, 0, 13, 0, 0, 16, 0, 0}},
		{TranslateParams{Y: 1}, []float64{0, 0, 0, 1, 2, 3, 0, 0, 0, 11, 12, 13}},
		{TranslateParams{X: 1, Y: -1}, []float64{0, 4, 5, 0, 0, 0, 0, 14, 15, 0, 0, 0}},
		{TranslateParams{X: 3}, make([]float64, 12)},
		{TranslateParams{Y: -2}, make([]float64, 12)},
	} {
		r := stagetest.Run(t, Translate, &tt.p, in)
		for i, b := range r.Payloads["images"] {
			if got := decode(t, b); !slices.Equal(got, tt.want) {
				t.Errorf("image %d moved by %+v is %v, want %v", i, tt.p, got, tt.want)
			}
		}
	}
}

// TestResponse checks the responses of the linear net by hand: its logits are Σx/64 and 0. The correct class
// is the label's, or the target where there is none.
func TestResponse(t *testing.T) {
	m := linear(t, "unit", func(int, int) float32 { return 1. / 64 })
	image := slices.Repeat([]float32{0.5}, 3*linearN) // of 72 values
	in := linearInput(m, image, make([]uint32, linearN))
	delete(in, "maps")
	const z = 72. / 128
	one := func(v ...int64) []stages.Data {
		return []stages.Data{stagetest.Items(nil, stages.NewTensor(v, len(v)).Encode())}
	}
	for _, tt := range []struct {
		target, labels []stages.Data
		want           []float64
	}{
		{one(0), nil, []float64{1 / (1 + math.Exp(-z)), z, 1}},
		{one(1), nil, []float64{1 / (1 + math.Exp(z)), 0, 0}},
		{one(1), one(0), []float64{1 / (1 + math.Exp(z)), 0, 1}},
		{one(0), one(1), []float64{1 / (1 + math.Exp(-z)), z, 0}},
	} {
		in["targets"] = tt.target
		if delete(in, "labels"); tt.labels != nil {
			in["labels"] = tt.labels
		}
		r := stagetest.Run(t, Response, nil, in)
		for k, got := range decode(t, r.Payloads["curves"][0]) {
			if math.Abs(got-tt.want[k]) > 1e-6 {
				t.Errorf("response %d is %v, want %v", k, got, tt.want[k])
			}
		}
	}
}
