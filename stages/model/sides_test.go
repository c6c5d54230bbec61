package model_test

import (
	"maps"
	"math"
	"os"
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
	"github.com/runexp/runexp/stages/internal/picture"
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
	t    *testing.T
	slot stages.Slot // keeps the model's programs
	in   map[string]stages.Data
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
	return stagetest.TryOn(a.slot, *s, params, in)
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
func ask(t *testing.T, a answerer, images, labels stages.Data, target string) answers {
	a = answerer{t, a.slot, map[string]stages.Data{"model": a.in["model"], "images": images,
		"labels": labels}}
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
					v := d.Float64s()
					if len(d.Shape) == 2 && d.Shape[0] == 3 && strings.HasPrefix(name, "perturb/") {
						n := d.Shape[1] // a curve's probabilities, logits and correct predictions
						out.numbers[key+" logit"] = append(out.numbers[key+" logit"], v[n:2*n])
						v = append(v[:n:n], v[2*n:]...)
					}
					out.numbers[key] = append(out.numbers[key], v)
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
		if stage == "top-1" && strings.Contains(target, "-") {
			continue // a difference of classes is no prediction
		}
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

// differ returns by how much numbers times a factor are apart from others, relative to the largest of an
// item; those in only one of the two count as apart.
func differ(a, b [][]float64, by float64) (most float64) {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	for k := range a {
		if len(a[k]) != len(b[k]) {
			return math.Inf(1)
		}
		apart, largest := 0.0, 1e-12
		for i, x := range a[k] {
			y := b[k][i]
			switch {
			case math.IsNaN(x) && math.IsNaN(y) || x == y && by == 1:
			case math.IsNaN(x) || math.IsNaN(y):
				return math.Inf(1)
			}
			if !math.IsNaN(x) && !math.IsInf(x, 0) {
				apart = math.Max(apart, math.Abs(by*x-y))
				largest = math.Max(largest, math.Abs(y))
			}
		}
		most = math.Max(most, apart/largest)
	}
	return most
}

// TestTwoSides holds that a model with one output is the same as one that states both classes: for every
// method and metric of the registry, the predicted class and the labelled one, images of both classes. The
// other model has a row of weights for each class, as an exporter writes it.
//
// A model with the Softmax of half the logit and its negative has the same probabilities, curves of them and
// scores of those. Its logits are half of ours, and its maps and impacts are ours times a power of ½.
func TestTwoSides(t *testing.T) {
	modeltest.Runtime(t)
	shapes := dataset.Shapes.NewParams().(*dataset.ShapesParams)
	shapes.Count = 2
	r := stagetest.Run(t, dataset.Shapes, shapes, nil)
	images := items(r, "images")
	for _, tt := range []struct {
		name    string
		targets []string
	}{{"vgg", []string{"predicted", "label", "0 - 1"}}, {"vit", []string{"predicted", "label"}}} {
		offset, labels := middle(t, tt.name, images)
		on := func(end endOp, rows ...float32) answerer {
			net := binary(t, tt.name, offset, ends(end), rows...)
			a := answerer{t, stagetest.NewSlot(), map[string]stages.Data{"model": net}}
			t.Cleanup(func() { stagetest.Release(a.slot) })
			return a
		}
		one, two := on(op("Sigmoid"), 1), on(op("Sigmoid"), -1, 1)
		half := on(op("Softmax", onnx.Attr{Name: "axis", Value: 1}), -0.5, 0.5)
		for _, target := range tt.targets {
			t.Run(tt.name+"/"+strings.ReplaceAll(target, " ", ""), func(t *testing.T) {
				got, want := ask(t, one, images, labels, target), ask(t, two, images, labels, target)
				if !maps.Equal(got.errors, want.errors) {
					t.Errorf("one output: %v\ntwo outputs: %v", got.errors, want.errors)
				}
				for key, w := range want.numbers {
					if d := differ(got.numbers[key], w, 1); !(d <= 1e-6) {
						t.Errorf("%s: apart by %.2g", key, d)
					}
				}
				if len(want.numbers) < 90 {
					t.Errorf("only %d ports were compared", len(want.numbers))
				}
				if target != "predicted" || tt.name == "vit" {
					return
				}
				if seen := got.numbers["model/predict targets"]; seen[0][0] == seen[1][0] {
					t.Errorf("both images are of class %v", seen[0])
				}
				for key, w := range ask(t, half, images, labels, target).numbers {
					powers := []float64{1, 0.5, 0.25}
					switch {
					case strings.HasPrefix(key, "attribute/grad-cam-plus-plus") ||
						strings.HasPrefix(key, "attribute/refine-cam") || // by default a product of these
						strings.HasPrefix(key, "attribute/score-cam"):
						continue // exponentials of logits
					case !strings.HasPrefix(key, "attribute/") && !strings.Contains(key, "logit") &&
						key != "perturb/gradient-masking outputs" &&
						!strings.HasPrefix(key, "perturb/gradient-masking impact"):
						powers = powers[:1]
					}
					least := math.Inf(1)
					for _, by := range powers {
						least = math.Min(least, differ(got.numbers[key], w, by))
					}
					if !(least <= 1e-4) { // stabilisers don't shrink with the logits
						t.Errorf("%s of a Softmax: apart by %.2g", key, least)
					}
				}
			})
		}
	}
}

// middle returns an offset of the logit between the logits of two images, so that they are of different
// classes, and labels, one of them wrong.
func middle(t *testing.T, name string, images stages.Data) (offset float32, labels stages.Data) {
	t.Helper()
	a := answerer{t, stagetest.NewSlot(), map[string]stages.Data{"images": images,
		"model": binary(t, name, 0, nil, -1, 1)}}
	sum := 0.0
	for _, b := range a.must("model/predict", func(p any) { p.(*model.PredictParams).Target = "1" },
		nil).Payloads["probability"] {
		p, err := stages.ScalarOf(b)
		if err != nil {
			t.Fatal(err)
		}
		sum += math.Log(p/(1-p)) / 2 // of the softmax of −z and z
	}
	zero := stages.NewTensor([]int64{0}, 1).Encode()
	return float32(sum / 2), stagetest.Items(nil, zero, zero)
}

// TestNamesOfTwoSides checks the names of a model with one output: of both classes, or of the positive one.
func TestNamesOfTwoSides(t *testing.T) {
	modeltest.Runtime(t)
	m := tiny{channels: 3, filters: 4, classes: 1, height: 6, width: 9, gain: 6}.model(onnx.Free)
	for names, want := range map[string]string{
		"dog\n":            "not dog\ndog",
		"cat\ndog\n":       "cat\ndog",
		"cat\ndog\nmouse":  "",
		"cat\n\ndog\n":     "",
		"no finding\nfind": "no finding\nfind",
	} {
		p := *model.ONNX.NewParams().(*model.ONNXParams)
		p.Path, p.Labels = modeltest.File(t, m), filepath.Join(t.TempDir(), "names.txt")
		if err := os.WriteFile(p.Labels, []byte(names), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := stagetest.Try(model.ONNX, &p, nil)
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), "one output has two classes") {
				t.Errorf("%q: error %v", names, err)
			}
			continue
		}
		f := r.Facts["model"]
		if err != nil || f["labels"] != want || f["classes"] != "2" || f["outputs"] != "1" {
			t.Errorf("%q: %v, %v", names, f, err)
		}
	}
}

// TestRewrittenSides holds the same of what is made of the models for grids of images. A model with random
// weights keeps one output: the probabilities of its classes sum to 1.
func TestRewrittenSides(t *testing.T) {
	modeltest.Runtime(t)
	shapes := dataset.Shapes.NewParams().(*dataset.ShapesParams)
	shapes.Count, shapes.Size = 1, 128
	r := stagetest.Run(t, dataset.Shapes, shapes, nil)
	grid := items(r, "images")
	on := func(s stages.Stage, base stages.Data, images stages.Data, target ...int64) answerer {
		a := answerer{t, stagetest.NewSlot(), map[string]stages.Data{"model": modeltest.Rewritten(t, s, base),
			"images": images, "targets": stagetest.Items(nil, stages.NewTensor(target,
				len(target)).Encode())}}
		t.Cleanup(func() { stagetest.Release(a.slot) })
		return a
	}
	for _, name := range []string{"vgg", "resnet"} {
		for _, end := range []string{"Sigmoid", "Identity"} {
			one, two := binary(t, name, 0, ends(op(end)), 1), binary(t, name, 0, ends(op("Sigmoid")), -1, 1)
			for stage, target := range map[*stages.Stage][]int64{
				&model.GridPG: {0}, &model.DiFull: {0, -1, 2}, &model.DiPart: {1, -1, 3},
			} {
				for _, method := range []string{"saliency", "lrp-alpha-beta", "occlusion"} {
					numbers := func(base stages.Data) [][]float64 {
						r := on(*stage, base, grid, target...).must("attribute/"+method, func(p any) {
							if p, ok := p.(*attribute.OcclusionParams); ok {
								p.Window, p.Stride = picture.Size{H: 64, W: 64}, picture.Size{H: 64, W: 64}
							}
						}, nil)
						d, err := stages.DecodeTensor(r.Payloads["maps"][0])
						if err != nil {
							t.Fatal(err)
						}
						return [][]float64{doubles(d.Float32s())}
					}
					if d := differ(numbers(one), numbers(two), 1); !(d <= 1e-6) {
						t.Errorf("%s of %s, %s: %s is apart by %.2g", stage.Name, name, end, method, d)
					}
				}
			}
			shapes.Size = 64
			images := items(stagetest.Run(t, dataset.Shapes, shapes, nil), "images")
			a := on(model.Randomise, one, images, 0)
			if sum := a.probability(0)[0] + a.probability(1)[0]; math.Abs(sum-1) > 1e-12 {
				t.Errorf("%s at random, %s: probabilities sum to %v", name, end, sum)
			}
		}
	}
}

// TestSidesKeepDigits checks that the probability of the less probable class has all its digits where that of
// the other is 1 in float32.
func TestSidesKeepDigits(t *testing.T) {
	modeltest.Runtime(t)
	for _, gain := range []float64{-3000, -400, 400, 3000} {
		net := tiny{channels: 3, filters: 4, classes: 1, height: 6, width: 9, gain: gain}
		m := net.model(onnx.Free)
		ends(op("Sigmoid"))(m)
		image, x := make([]byte, 3*6*9), make([]float32, 3*6*9)
		for i := range image {
			image[i] = byte(i*i*7 + i)
			x[i] = float32(image[i]) / 255
		}
		a := answerer{t, stagetest.NewSlot(), map[string]stages.Data{
			"model":  modeltest.Model(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit"}),
			"images": stagetest.Items(nil, stages.NewTensor(image, 3, 6, 9).Encode())}}
		z, _ := net.reference(x, 0)
		less := int64(0)
		if z[0] < 0 {
			less = 1
		}
		want := 1 / (1 + math.Exp(math.Abs(z[0])))
		if got := a.probability(less)[0]; !(math.Abs(got-want) <= 1e-4*want) || want > 1e-3 {
			t.Errorf("the logit is %v: class %d has the probability %v, want %v", z[0], less, got, want)
		}
		stagetest.Release(a.slot)
	}
}
