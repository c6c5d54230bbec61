package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// sidesYAML asks the same function, written with one output and with two, about images of both classes.
const sidesYAML = `name: sides
axes:
  model:
    sigmoid: {path: sigmoid.onnx}
    logit: {path: logit.onnx}
    pair: {path: pair.onnx}
  method:
    saliency: {uses: attribute/saliency, with: {target: TARGET}}
    lrp: {uses: attribute/lrp-alpha-beta, with: {target: TARGET}}
    grad-cam: {uses: attribute/grad-cam, with: {target: TARGET}}
    rise: {uses: attribute/rise, with: {masks: 32, target: TARGET}}
stages:
  images: {uses: dataset/folder, with: {path: photos, size: 16}}
  model: {uses: model/onnx, matrix: [model], with: {path: "${model.path}", preset: unit}}
  accuracy: {uses: score/top-1, in: {model: model, images: images, labels: images.labels}}
  class: {uses: model/predict, in: {model: model, images: images, labels: images.labels}, with: {target: TARGET}}
  maps: {uses: "${method}", matrix: [method], in: {model: model, images: images, labels: images.labels}}
  insertion:
    {uses: perturb/insertion, in: {model: model, images: images, maps: maps, targets: class}, with: {steps: 4}}
  deletion:
    {uses: perturb/deletion, in: {model: model, images: images, maps: maps, targets: class}, with: {steps: 4}}
  rise-score: {uses: score/rise, in: {insertion: insertion, deletion: deletion}}
publish: [accuracy, rise-score]
`

// reddish returns an ONNX file: the more red than blue an image is, the more it is of class 1. Its last layer
// has a row of weights for each class.
func reddish(sigmoid bool, rows ...float32) []byte {
	var w, c []float32
	for _, by := range rows {
		w, c = append(w, 9*by, -7*by), append(c, 0.1*by)
	}
	transposed := message(field{1, "transB"}, field{20, 2}, field{3, 1})
	last, end := "logits", []field{}
	if sigmoid {
		last, end = "p", []field{onnxNode("Sigmoid", []string{"logits"}, "p")}
	}
	graph := append([]field{
		onnxNode("Conv", []string{"x", "k"}, "h"), onnxNode("Relu", []string{"h"}, "r"),
		onnxNode("GlobalAveragePool", []string{"r"}, "m"), onnxNode("Flatten", []string{"m"}, "f"),
		onnxNode("Gemm", []string{"f", "w", "c"}, "logits", transposed),
	}, end...)
	graph = append(graph, field{2, "reddish"}, onnxWeight("k", []float32{1, 0.2, -1, -1, 0.1, 1}, 2, 3, 1, 1),
		onnxWeight("w", w, len(rows), 2), onnxWeight("c", c, len(rows)),
		field{11, onnxValue("x", 0, 3, 16, 16)}, field{12, onnxValue(last, 0, len(rows))})
	return message(field{1, 8}, field{7, message(graph...)}, field{8, message(field{2, 13})})
}

// TestOneOutputHasTwoSides runs an experiment on cats and dogs: a net with one output is told apart from one
// with two by nothing, on the images of either class, for the predicted class and for the label.
func TestOneOutputHasTwoSides(t *testing.T) {
	runtimeOrSkip(t)
	for _, target := range []string{"predicted", "label"} {
		w := newWorld(t, map[string]string{"sides.yaml": strings.ReplaceAll(sidesYAML, "TARGET", target)})
		w.write("sigmoid.onnx", reddish(true, 1))
		w.write("logit.onnx", reddish(false, 1))
		w.write("pair.onnx", reddish(true, -1, 1))
		r := rand.New(rand.NewPCG(33, 0))
		for i := range 6 {
			m := image.NewNRGBA(image.Rect(0, 0, 16, 16))
			for p := range 16 * 16 {
				dark, light := uint8(r.IntN(120)), uint8(100+r.IntN(156))
				if i%2 == 0 { // a cat is blue
					dark, light = light, dark
				}
				m.Set(p%16, p/16, color.NRGBA{light, uint8(r.IntN(256)), dark, 255})
			}
			var b bytes.Buffer
			if err := png.Encode(&b, m); err != nil {
				t.Fatal(err)
			}
			class := []string{"cats", "dogs", "cats", "dogs", "cats", "cats"}[i] // the last is a dog
			w.write(fmt.Sprintf("photos/%s/%d.png", class, i), b.Bytes())
		}
		w.run(0, "check", "sides.yaml")
		w.run(0, "run", "sides.yaml", "--store", "store", "--out", "folder")
		all := map[string]float64{} // by cell and item
		for name, text := range w.files("folder") {
			if !strings.HasPrefix(name, "items/") {
				continue
			}
			rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows[1:] {
				for k, v := range row[1:] {
					x, err := strconv.ParseFloat(v, 64)
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					all[name+" "+row[0]+" "+rows[0][k+1]] = x
					if right := rows[0][k+1] != "cats/5.png"; strings.Contains(row[0], "accuracy") &&
						(x == 1) != right {
						t.Errorf("%s of %s is %v", row[0], rows[0][k+1], x)
					}
				}
			}
		}
		compared := 0
		for key, want := range all {
			if !strings.Contains(key, "model=pair") {
				continue
			}
			for _, other := range []string{"model=sigmoid", "model=logit"} {
				got, ok := all[strings.Replace(key, "model=pair", other, 1)]
				if compared++; !ok || !(math.Abs(got-want) <= 1e-6) {
					t.Errorf("%s: %v, and with %s %v", key, want, other, got)
				}
			}
		}
		if compared < 2*6*4 {
			t.Errorf("%d numbers were compared: %v", compared, all)
		}
	}
}
