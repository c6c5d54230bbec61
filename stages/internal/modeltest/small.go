package modeltest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// smallFile returns the path of a file that stages/score/testdata/nets.py makes.
func smallFile(t testing.TB, name string) string {
	t.Helper()
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "stages", "score", "testdata", name)
}

// SmallArrays returns the arrays of nets.npz.
func SmallArrays(t testing.TB) map[string]npy.Array {
	t.Helper()
	return golden.Arrays(t, smallFile(t, "nets.npz"))
}

// Small returns the inputs of a stage that runs odd.onnx or row.onnx on its images: the model, three images
// and their targets.
func Small(t testing.TB, name string) map[string][]stages.Data {
	t.Helper()
	arrays := SmallArrays(t)
	p := model.ONNXParams{Path: smallFile(t, name+".onnx"), Preset: "unit", Mean: []float64{0.5},
		Std: []float64{0.25}}
	if name == "odd" {
		p.Mean, p.Std = []float64{0.4, 0.5, 0.6}, []float64{0.2, 0.3, 0.25}
	}
	return map[string][]stages.Data{"model": {Model(t, p)}, "images": {Rows(t, arrays[name+".x"])},
		"targets": {Rows(t, arrays[name+".targets"])}}
}

// Rows returns an item for each row of an array.
func Rows(t testing.TB, a npy.Array) stages.Data {
	t.Helper()
	all, err := a.Tensor()
	if err != nil {
		t.Fatal(err)
	}
	shape := a.Shape[1:]
	if len(shape) == 0 {
		shape = []int{1}
	}
	var rows [][]byte
	size := len(all.Raw) / a.Shape[0]
	for i := range a.Shape[0] {
		rows = append(rows, stages.Tensor{DType: all.DType, Shape: shape,
			Raw: all.Raw[i*size : (i+1)*size]}.Encode())
	}
	return stagetest.Items(nil, rows...)
}

// Drawn are subsets of perturb/subset as the scripts of goldens take them: a text an image and a subset, with
// 1 for each unit that is replaced.
type Drawn struct {
	Net       string     `json:"net"`
	Substrate string     `json:"substrate"`
	Units     [][]uint32 `json:"units"`
	Rows      [][]string `json:"rows"`
}

// Add adds an image's.
func (d *Drawn) Add(t testing.TB, units, subsets []byte) {
	t.Helper()
	u, height, width, err := metric.Numbered(units)
	if err != nil {
		t.Fatal(err)
	}
	of := make([]uint32, height*width)
	for i, k := range u.Of {
		of[i] = uint32(k)
	}
	sets, err := metric.DecodeSubsets(subsets, u.Count)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for row := range sets.Count {
		text := []byte(strings.Repeat("0", u.Count))
		for k := range text {
			if sets.Has(row, k) {
				text[k] = '1'
			}
		}
		rows = append(rows, string(text))
	}
	d.Units, d.Rows = append(d.Units, of), append(d.Rows, rows)
}
