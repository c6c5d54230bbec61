package model

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/perturb"
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

// TestChangeOfOutputs compares the change of the outputs with that of every class's logit, of a layer with
// that of the same outputs, and whether the prediction stays.
func TestChangeOfOutputs(t *testing.T) {
	net := smallcnn(t)
	x := golden.Arrays(t, filepath.Join(golden.Dir(t), "models", "smallcnn_io.npz"))["x"].Float32s()
	const classes, size = 10, 3 * 32 * 32
	encode := func(v []float32) []byte { return stages.NewTensor(v, 3, 32, 32).Encode() }
	near := slices.Clone(x[:size])
	for k := range near {
		near[k] *= 0.99
	}
	images := [][]byte{encode(x[:size]), encode(x[size : 2*size]), encode(near)}
	var logits [][]float64
	for _, image := range images {
		var targets [][]byte
		for c := range classes {
			targets = append(targets, stages.NewTensor([]int64{int64(c)}, 1).Encode())
		}
		r := stagetest.Run(t, perturb.Response, nil, map[string][]stages.Data{"model": {net},
			"images":  {stagetest.Items(nil, slices.Repeat([][]byte{image}, classes)...)},
			"targets": {stagetest.Items(nil, targets...)}})
		var of []float64
		for _, b := range r.Payloads["curves"] {
			v, err := stages.DecodeTensor(b)
			if err != nil {
				t.Fatal(err)
			}
			of = append(of, v.Float64s()[1])
		}
		logits = append(logits, of)
	}
	r := stagetest.Run(t, Change, &ChangeParams{Layer: "logits", Epsilon: 1e-6}, map[string][]stages.Data{
		"model": {net}, "images": {stagetest.Items(nil, images[0], images[1], images[2])},
		"other": {stagetest.Items(nil, images[1], images[2], images[0])}})
	changed := 0
	for i, b := range r.Payloads["changes"] {
		got, err := stages.DecodeTensor(b)
		if err != nil {
			t.Fatal(err)
		}
		var outputs, relative float64
		h, other := logits[i], logits[(i+1)%3]
		for c := range h {
			outputs += (h[c] - other[c]) * (h[c] - other[c])
			relative += (h[c] - other[c]) * (h[c] - other[c]) / (h[c] * h[c])
		}
		same := 0.0
		if slices.Index(h, slices.Max(h)) == slices.Index(other, slices.Max(other)) {
			same = 1
		} else {
			changed++
		}
		v := got.Float64s()
		want := []float64{math.Sqrt(outputs), math.Sqrt(relative), same}
		if !(math.Abs(v[1]-want[0]) <= 1e-4*want[0]) || !(math.Abs(v[2]-want[1]) <= 1e-4*want[1]) ||
			v[3] != same {
			t.Errorf("pair %d changes %v, want %v", i, v[1:], want)
		}
	}
	if changed != 2 {
		t.Errorf("%d of three predictions change", changed)
	}
}
