package perturb

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// descending returns the order of pixels from the largest value, ties by index.
func descending(values []float64) []int64 {
	order := make([]int64, len(values))
	for i := range order {
		order[i] = int64(i)
	}
	slices.SortStableFunc(order, func(a, b int64) int {
		switch {
		case values[a] > values[b]:
			return -1
		case values[a] < values[b]:
			return 1
		}
		return 0
	})
	return order
}

// officialInput returns two images of an official net with ranks and targets.
func officialInput(t *testing.T, net string) map[string][]stages.Data {
	t.Helper()
	x := read(t, "models", map[bool]string{true: net, false: "smallcnn"}[net == "gapcnn"]+"_io.npz")["x"]
	return input(modeltest.Official(t, net, 0), x)
}

// shapesInput returns an image of smallcnn under a preset.
func shapesInput(t *testing.T, preset string) map[string][]stages.Data {
	t.Helper()
	m := modeltest.Model(t,
		model.ONNXParams{Path: filepath.Join(golden.Dir(t), "models", "smallcnn.onnx"), Preset: preset})
	return input(m, read(t, "models", "smallcnn_io.npz")["x"])
}

func input(m stages.Data, x npy.Array) map[string][]stages.Data {
	const n = 3 * 32 * 32
	var images, ranks, targets [][]byte
	for k := range 2 {
		v := x.Float32s()[k*n : (k+1)*n]
		images = append(images, stages.NewTensor(v, 3, 32, 32).Encode())
		place := make([]uint32, 1024)
		for i := range place {
			place[i] = uint32((i*37 + 11*k) % 1024) // a permutation: 37 and 1024 are coprime
		}
		ranks = append(ranks, stages.NewTensor(place, 32, 32).Encode())
		targets = append(targets, stages.NewTensor([]int64{int64(3 * k)}, 1).Encode())
	}
	return map[string][]stages.Data{
		"model": {m}, "images": {stagetest.Items(nil, images...)},
		"maps": {stagetest.Items(nil, ranks...)}, "targets": {stagetest.Items(nil, targets...)},
	}
}

// fillOf returns the substrate of the first image.
func fillOf(t *testing.T, kind string, in map[string][]stages.Data) []float32 {
	t.Helper()
	e, err := stagetest.Env(&Insertion, in)
	if err != nil {
		t.Fatal(err)
	}
	n, err := program.Load(e)
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]float32, n.Size())
	if err := newSubstrate(defaults(kind), n).fill(e, 0, make([]float32, n.Size()), dst); err != nil {
		t.Fatal(err)
	}
	return dst
}

// curveWith returns the probabilities of a curve over a constant substrate.
func curveWith(t *testing.T, m stages.Data, x npy.Array, order []int64, d direction,
	value float32) []float64 {
	t.Helper()
	ranks := make([]float32, len(order))
	for place, pixel := range order {
		ranks[pixel] = float32(place)
	}
	image := stages.NewTensor(x.Float32s(), 3, 32, 32)
	e, err := stagetest.Env(&Insertion, map[string][]stages.Data{
		"model": {m}, "images": {stagetest.Items(nil, image.Encode())}, "targets": {predicted(t, m, image)},
	})
	if err != nil {
		t.Fatal(err)
	}
	n, err := program.Load(e)
	if err != nil {
		t.Fatal(err)
	}
	points := Params{Step: 32}.points(1024, 32)
	c, err := n.Curve(t.Context(), e.Slot, 8)
	if err != nil {
		t.Fatal(err)
	}
	other := make([]float32, n.Size())
	for i := range other {
		other[i] = value
	}
	if d.insert {
		c.Set(other, x.Float32s(), ranks)
	} else {
		c.Set(x.Float32s(), other, ranks)
	}
	by, err := responderOf(e, 0, n)
	if err != nil {
		t.Fatal(err)
	}
	var curve []float64
	err = runPoints(t.Context(), c, points, func(_ int, row []float32) {
		curve = append(curve, by.response(row).probability)
	})
	if err != nil {
		t.Fatal(err)
	}
	return curve
}
