package registry

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestNoStagePanicsOnTexts runs every stage on texts of two lengths in the place of images, whether it takes
// them or not, with what else belongs to texts: it works, or has an error.
func TestNoStagePanicsOnTexts(t *testing.T) {
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
	p := model.ONNX.NewParams().(*model.ONNXParams)
	p.Path = "../experiments/text/reviews.onnx"
	r := stagetest.Run(t, model.ONNX, p, nil)
	net := stagetest.Value(r.Facts["model"], r.Payloads["model"][0])
	each := func(payload func(n int) stages.Tensor) stages.Data {
		var list [][]byte
		for _, n := range []int{9, 3} {
			list = append(list, payload(n).Encode())
		}
		return stagetest.Items(stages.Facts{"pad": "0", "mask": "4"}, list...)
	}
	of := map[stages.Type]stages.Data{
		stages.Model: net,
		stages.Images: each(func(n int) stages.Tensor {
			v := make([]int64, 3*n)
			for i := range n {
				v[i] = int64(10 + 7*i)
			}
			v[2*n], v[3*n-1] = 1, 1
			return stages.NewTensor(v, 3, n)
		}),
		stages.Maps: each(func(n int) stages.Tensor {
			v := make([]float32, n)
			for i := range v {
				v[i] = float32(i*i%7) - 3
			}
			return stages.NewTensor(v, 1, n)
		}),
		stages.Masks: each(func(n int) stages.Tensor {
			v := make([]uint8, n)
			v[0], v[1], v[n-1] = stages.Ignored, 1, stages.Ignored
			return stages.NewTensor(v, 1, n)
		}),
		stages.Ranks: each(func(n int) stages.Tensor {
			v := make([]uint32, n)
			for i := range v {
				v[i] = uint32(i - 1)
			}
			v[n-1] = 1<<32 - 1
			return stages.NewTensor(v, 1, n)
		}),
		stages.Segments: each(func(n int) stages.Tensor {
			return stages.NewTensor(make([]uint32, n), 1, n)
		}),
		stages.Targets: each(func(int) stages.Tensor { return stages.NewTensor([]int64{1}, 1) }),
		stages.Labels:  each(func(int) stages.Tensor { return stages.NewTensor([]int64{0}, 1) }),
	}
	of[stages.Tokens] = of[stages.Images]
	tried := 0
	for _, s := range Builtin().Family("") {
		in := map[string][]stages.Data{}
		lacks := s.Sources != nil
		for _, port := range s.Inputs {
			d, ok := of[port.Type]
			if lacks = lacks || !ok && !port.Optional; ok && port.Name != "baselines" {
				in[port.Name] = []stages.Data{d}
			}
		}
		if lacks || len(in) == 0 {
			continue
		}
		tried++
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("%s panics: %v", s.Name, p)
				}
			}()
			_, err := stagetest.Try(*s, s.NewParams(), in)
			if err != nil && strings.Contains(err.Error(), "bug") {
				t.Errorf("%s: %v", s.Name, err)
			}
		}()
	}
	if tried < 60 {
		t.Errorf("%d stages are tried", tried)
	}
}
