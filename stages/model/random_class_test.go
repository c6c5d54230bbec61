package model

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/stagetest"
)

// smallcnn returns an official net of 10 classes.
func smallcnn(t *testing.T) stages.Data {
	t.Helper()
	r := stagetest.Run(t, ONNX, &ONNXParams{Path: filepath.Join(golden.Dir(t), "models", "smallcnn.onnx"),
		Preset: "unit"}, nil)
	return stagetest.Value(r.Facts["model"], r.Payloads["model"][0])
}

// TestRandomClass checks that every other class is drawn about equally often, and the target never.
func TestRandomClass(t *testing.T) {
	const n = 900
	var images, targets [][]byte
	for i := range n {
		images = append(images, stages.NewTensor([]uint8{uint8(i), uint8(i >> 8)}, 2).Encode())
		targets = append(targets, stages.NewTensor([]int64{3}, 1).Encode())
	}
	in := map[string][]stages.Data{"model": {smallcnn(t)}, "images": {stagetest.Items(nil, images...)},
		"targets": {stagetest.Items(nil, targets...)}}
	r := stagetest.Run(t, RandomClass, nil, in)
	counts := make([]int, 10)
	for _, b := range r.Payloads["targets"] {
		v, err := stages.DecodeTensor(b)
		if err != nil {
			t.Fatal(err)
		}
		counts[v.Int64s()[0]]++
	}
	for class, drawn := range counts {
		if class == 3 && drawn > 0 || class != 3 && math.Abs(float64(drawn)-n/9) > 5*math.Sqrt(n/9) {
			t.Errorf("class %d is drawn %d times of %d, class 3 is the target: %v", class, drawn, n, counts)
		}
	}
}

// TestChange checks the changes of a net by its own outputs: none for an equal image, and by hand for the
// input of an image that is altered at one value.
func TestChange(t *testing.T) {
	image := make([]float32, 3*32*32)
	for k := range image {
		image[k] = float32(k%7) / 8
	}
	other := append([]float32(nil), image...)
	other[1] = 0.5 // of 0.125
	other[7] = 0.5 // of 0, which counts as 0.25
	encode := func(v []float32) []byte { return stages.NewTensor(v, 3, 32, 32).Encode() }
	in := map[string][]stages.Data{"model": {smallcnn(t)},
		"images": {stagetest.Items(nil, encode(image), encode(image), encode(image))},
		"other":  {stagetest.Items(nil, encode(image), encode(other), encode(image))}}
	r := stagetest.Run(t, Change, &ChangeParams{Layer: "final", Epsilon: 0.25}, in)
	var got [][]float64
	for _, b := range r.Payloads["changes"] {
		v, err := stages.DecodeTensor(b)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v.Float64s())
	}
	for _, i := range []int{0, 2} {
		if got[i][0] != 0 || got[i][1] != 0 || got[i][2] != 0 || got[i][3] != 1 {
			t.Errorf("an equal image changes %v", got[i])
		}
	}
	if want := math.Sqrt(3*3 + 2*2); math.Abs(got[1][0]-want) > 1e-12 || got[1][1] <= 0 || got[1][2] <= 0 {
		t.Errorf("changes %v, want %v first", got[1], want)
	}
}
