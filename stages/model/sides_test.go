package model_test

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/attribute"
	"github.com/runexp/runexp/stages/dataset"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/perturb"
	"github.com/runexp/runexp/stages/score"
	"github.com/runexp/runexp/stages/stagetest"
)

// binary returns a net of the quickstart whose last layer has rows of weights instead: each is a multiple of
// class 1's weights minus class 0's, less an offset of the logit.
func binary(t *testing.T, name string, offset float32, end func(m *onnx.Model), rows ...float32) stages.Data {
	t.Helper()
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.ReadFile(filepath.Join(root, "experiments", "quickstart", name+".onnx"))
	if err != nil {
		t.Fatal(err)
	}
	g := m.Proto.Graph
	last := g.Node[len(g.Node)-1]
	for k, bias := range []bool{false, true} {
		at := slices.IndexFunc(g.Initializer,
			func(w *onnxpb.TensorProto) bool { return w.Name == last.Input[1+k] })
		w, err := onnx.Float32s(g.Initializer[at])
		if err != nil {
			t.Fatal(err)
		}
		each := len(w) / 12
		var v []float32
		for _, by := range rows {
			for i := range each {
				z := w[each+i] - w[i]
				if bias {
					z -= offset
				}
				v = append(v, by*z)
			}
		}
		shape := []int{len(rows), each}
		g.Initializer[at] = onnx.FloatTensor(last.Input[1+k], v, shape[:2-k]...)
	}
	m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT})
	if end != nil {
		end(m)
	}
	return modeltest.Model(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: "half"})
}

// An answerer runs stages on one model.
type answerer struct {
	t  *testing.T
	in map[string]stages.Data
}

// run runs a stage on what it reads of what is known, and of more. It returns its result, and the error.
func (a answerer) run(name string, set func(any), more map[string]stages.Data) (stagetest.Result, error) {
	a.t.Helper()
	s, ok := registry.Builtin().Lookup(name)
	if !ok {
		a.t.Fatalf("no stage is called %s", name)
	}
	params := s.NewParams()
	if set != nil {
		set(params)
	}
	in := map[string][]stages.Data{}
	for _, known := range []map[string]stages.Data{a.in, more} {
		for port, d := range known {
			if s.Input(port) != nil {
				in[port] = []stages.Data{d}
			}
		}
	}
	return stagetest.Try(*s, params, in)
}

// must runs a stage that can't fail.
func (a answerer) must(name string, set func(any), more map[string]stages.Data) stagetest.Result {
	a.t.Helper()
	r, err := a.run(name, set, more)
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	return r
}

func items(r stagetest.Result, port string) stages.Data {
	return stagetest.Items(r.Facts[port], r.Payloads[port]...)
}

// answers are what all methods and metrics say of a model: by stage and port the numbers of every image, and
// by stage the error.
type answers struct {
	numbers map[string][][]float64
	errors  map[string]string
}

// few makes methods that sample take few samples.
func few(params any) {
	switch p := params.(type) {
	case *attribute.AGIParams:
		p.Steps = 3
	case *attribute.IntegratedGradientsParams:
		p.Steps = 8
	case *attribute.LeftIGParams:
		p.Steps = 8
	case *attribute.GuidedIGParams:
		p.Steps = 8
	case *attribute.SmoothGradParams:
		p.Samples = 4
	case *attribute.VarGradParams:
		p.Samples = 4
	case *attribute.RISEParams:
		p.Masks = 16
	}
}

// ask runs all methods and metrics on a model for a target. Metrics are asked of the same maps.
func ask(t *testing.T, net stages.Data, images, labels stages.Data, target string) answers {
	a := answerer{t, map[string]stages.Data{"model": net, "images": images, "labels": labels}}
	out := answers{map[string][][]float64{}, map[string]string{}}
	note := func(name string, r stagetest.Result) {
		for port, payloads := range r.Payloads {
			for _, b := range payloads {
				d, err := stages.DecodeTensor(b)
				if err != nil {
					continue // a table
				}
				key := name + " " + port
				switch d.DType {
				case stages.F32:
					out.numbers[key] = append(out.numbers[key], doubles(d.Float32s()))
				case stages.F64:
					out.numbers[key] = append(out.numbers[key], d.Float64s())
				case stages.I64:
					out.numbers[key] = append(out.numbers[key], doubles(d.Int64s()))
				}
			}
		}
	}
	predicted := a.must("model/predict", func(p any) { p.(*model.PredictParams).Target = target }, nil)
	note("model/predict", predicted)
	a.in["targets"], a.in["probability"] = items(predicted, "targets"), items(predicted, "probability")
	for _, s := range registry.Builtin().Family("attribute") {
		if s.Output("maps") == nil || s.Name == "attribute/external" {
			continue
		}
		r, err := a.run(s.Name, few, nil)
		if err != nil {
			out.errors[s.Name] = err.Error()
		}
		note(s.Name, r)
	}

	random := items(a.must("attribute/random", nil, nil), "maps")
	a.in["maps"] = items(a.must("maps/rank", nil, map[string]stages.Data{"maps": random}), "ranks")
	curves := map[string]stages.Data{}
	for _, stage := range []string{"insertion", "deletion", "ablation", "region"} {
		r := a.must("perturb/"+stage, nil, nil)
		note("perturb/"+stage, r)
		curves[stage] = items(r, "curves")
	}
	for _, order := range []string{"morf", "lerf"} {
		r := a.must("perturb/road", func(p any) { p.(*perturb.RoadParams).Order = order }, nil)
		note("perturb/road "+order, r)
		curves[order] = items(r, "curves")
	}
	note("perturb/gradient-masking", a.must("perturb/gradient-masking", nil, nil))
	ends := a.must("perturb/pic-ends", nil, nil)
	note("perturb/pic-ends", ends)
	pic, err := a.run("perturb/pic", nil, map[string]stages.Data{"ends": items(ends, "ends"),
		"mask": items(ends, "mask")})
	if err != nil {
		t.Fatal(err)
	}
	note("perturb/pic", pic)
	a.in["maps"] = random
	maps.Copy(a.in, curves)
	for stage, more := range map[string]map[string]stages.Data{
		"rise": nil, "mas": nil, "road": nil, "top-1": nil,
		"auc": {"curves": curves["insertion"]}, "aopc": {"curves": curves["region"]},
		"delta": {"curves": curves["ablation"]},
		"pic":   {"curves": items(pic, "curves"), "lengths": items(pic, "lengths")},
	} {
		for _, response := range []string{"probability", "logit", "top-1"} {
			r := a.must("score/"+stage, func(p any) {
				switch p := p.(type) {
				case *score.AUCParams:
					p.Response = response
				case *score.AOPCParams:
					p.Response = response
				case *score.ROADParams:
					p.Response = response
				}
			}, more)
			note("score/"+stage+" "+response, r)
		}
	}
	return out
}

func doubles[T float32 | int64](v []T) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

// differ returns by how much numbers are apart, relative to the largest; those in only one of the two count
// as apart.
func differ(a, b []float64, by float64) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	apart, largest := 0.0, 1e-12
	for i := range a {
		if math.IsNaN(a[i]) && math.IsNaN(b[i]) || a[i] == b[i] {
			continue
		}
		if math.IsNaN(a[i]) || math.IsNaN(b[i]) {
			return math.Inf(1)
		}
		apart = math.Max(apart, math.Abs(by*a[i]-b[i]))
		largest = math.Max(largest, math.Max(math.Abs(by*a[i]), math.Abs(b[i])))
	}
	return apart / largest
}

// TestTwoSides holds that a model with one output is the same as one that states both classes: for every
// method and metric of the registry, the predicted class and the labelled one, images of both classes. The
// other model has a row of weights for each class, as an exporter writes it.
func TestTwoSides(t *testing.T) {
	modeltest.Runtime(t)
	shapes := dataset.Shapes.NewParams().(*dataset.ShapesParams)
	shapes.Count = 12
	r := stagetest.Run(t, dataset.Shapes, shapes, nil)
	images := stagetest.Items(r.Facts["images"], r.Payloads["images"][:4]...)
	labels := stagetest.Items(nil)
	_ = labels
	var is [][]byte
	for i := range 4 { // half of them contradict the prediction, whatever it is
		is = append(is, stages.NewTensor([]int64{int64(i % 2)}, 1).Encode())
	}
	labels = stagetest.Items(nil, is...)
	for _, name := range []string{"vgg", "vit"} {
		offset := middle(t, name, images)
		one := binary(t, name, offset, ends(op("Sigmoid")), 1)
		two := binary(t, name, offset, ends(op("Sigmoid")), -1, 1)
		for _, target := range []string{"predicted", "label", "0 - 1"} {
			t.Run(name+"/"+strings.ReplaceAll(target, " ", ""), func(t *testing.T) {
				got, want := ask(t, one, images, labels, target), ask(t, two, images, labels, target)
				if !maps.Equal(got.errors, want.errors) {
					t.Errorf("one output: %v\ntwo outputs: %v", got.errors, want.errors)
				}
				if target == "predicted" {
					seen := fmt.Sprint(got.numbers["model/predict targets"])
					if !strings.Contains(seen, "[0]") || !strings.Contains(seen, "[1]") {
						t.Errorf("predicted are %s, and images of both classes are needed", seen)
					}
				}
				for key, w := range want.numbers {
					for i := range w {
						if d := differ(got.numbers[key][i], w[i], 1); !(d <= 1e-6) {
							t.Errorf("%s, image %d: apart by %.2g", key, i, d)
						}
					}
				}
				if len(want.numbers) < 60 {
					t.Errorf("only %d stages and ports were compared", len(want.numbers))
				}
			})
		}
	}
}

// middle returns an offset of the logit with which half of the images are of class 0.
func middle(t *testing.T, name string, images stages.Data) float32 {
	t.Helper()
	a := answerer{t, map[string]stages.Data{"model": binary(t, name, 0, nil, -1, 1), "images": images}}
	var logits []float64
	for i, b := range a.must("model/predict", func(p any) { p.(*model.PredictParams).Target = "1" },
		nil).Payloads["probability"] {
		p, err := stages.ScalarOf(b)
		if err != nil {
			t.Fatal(i, err)
		}
		logits = append(logits, math.Log(p/(1-p))/2) // of the softmax of −z and z
	}
	slices.Sort(logits)
	return float32((logits[1] + logits[2]) / 2)
}
