package attribute

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// compiledCases are methods with parameters that take other paths through the nodes that make maps.
var compiledCases = []struct {
	name   string
	method stages.Stage
	set    func(params any)
}{
	{"saliency", Saliency, nil},
	{"saliency of a probability", Saliency, func(p any) {
		s := p.(*SaliencyParams)
		s.Output, s.Abs, s.Reduce = "probability", false, "sum-abs"
	}},
	{"saliency of channels", Saliency, func(p any) { p.(*SaliencyParams).Reduce = "none" }},
	{"input-x-gradient", InputXGradient, nil},
	{"input-x-gradient at the final layer", InputXGradient,
		func(p any) { p.(*InputXGradientParams).Layer = "final" }},
	{"guided-backprop", GuidedBackprop, nil},
	{"deconvolution", Deconvolution, nil},
	{"integrated-gradients", IntegratedGradients, func(p any) { p.(*IntegratedGradientsParams).Steps = 7 }},
	{"integrated-gradients from black", IntegratedGradients, func(p any) {
		q := p.(*IntegratedGradientsParams)
		q.Steps, q.Rule, q.Baseline, q.Reduce = 5, "trapezoid", "black", "abs-sum"
	}},
	{"grad-cam", GradCAM, nil},
	{"grad-cam at the layer's size", GradCAM, func(p any) {
		q := p.(*GradCAMParams)
		q.Size, q.ReLU, q.Reduce = "layer", false, "none"
	}},
	{"grad-cam-plus-plus", GradCAMPlusPlus, nil},
	{"grad-cam-plus-plus of Rao", GradCAMPlusPlus,
		func(p any) { p.(*GradCAMPlusPlusParams).Variant = "official-rao" }},
	{"grad-cam-plus-plus of Gildenblat", GradCAMPlusPlus,
		func(p any) { p.(*GradCAMPlusPlusParams).Variant = "official-gildenblat" }},
	{"hires-cam", HiResCAM, nil},
	{"layer-cam", LayerCAM, func(p any) { p.(*LayerCAMParams).Upsample = "nearest" }},
	{"grad-cam-elementwise", GradCAMElementwise, nil},
	{"xgrad-cam", XGradCAM, nil},
	{"xgrad-cam of Gildenblat", XGradCAM,
		func(p any) { p.(*XGradCAMParams).Variant = "official-gildenblat" }},
	{"grad-cam of two layers", GradCAM, func(p any) { p.(*GradCAMParams).Layer = "[middle, final]" }},
	{"grad-cam of two layers, signed maxima", GradCAM, func(p any) {
		q := p.(*GradCAMParams)
		q.Layer, q.Join, q.Scale, q.ReLU = "[middle, final]", "max", "range", false
	}},
	{"recipro-cam", ReciproCAM, nil},
	{"recipro-cam of two layers", ReciproCAM, func(p any) {
		q := p.(*ReciproCAMParams)
		q.Layer, q.Mask = "[middle, final]", "gaussian"
	}},
	{"refine-cam", RefineCAM, nil},
	{"refine-cam of Gildenblat", RefineCAM, func(p any) {
		q := p.(*RefineCAMParams)
		q.Variant, q.Base = "official-gildenblat", "layer-cam"
	}},
	{"full-grad", FullGrad, nil},
	{"full-grad of Srinivas", FullGrad,
		func(p any) { p.(*FullGradParams).Variant = "official-srinivas" }},
	{"guided-grad-cam", GuidedGradCAM, nil},
	{"lrp-epsilon", LRPEpsilon, nil},
	{"lrp-gamma", LRPGamma, nil},
	{"lrp-alpha-beta", LRPAlphaBeta, nil},
	{"lrp-z-plus", LRPZPlus, func(p any) { p.(*LRPZPlusParams).Start = "one-hot" }},
	{"lrp-composite", LRPComposite, func(p any) { p.(*LRPCompositeParams).Preset = "epsilon-gamma-box" }},
	{"clrp", CLRP, func(p any) { p.(*CLRPParams).Positive = true }},
	{"rap", RAP, nil},
	{"crap", CRAP, nil},
	{"abslrp", AbsLRP, nil},
	{"abslrp in one pass", AbsLRP, func(p any) { p.(*AbsLRPParams).Contrast = "single-pass" }},
	{"deeplift", DeepLIFT, nil},
	{"deeplift at the final layer", DeepLIFT, func(p any) { p.(*DeepLIFTParams).Layer = "final" }},
	{"raw-attention", RawAttention, nil},
	{"raw-attention of a head", RawAttention, func(p any) {
		q := p.(*RawAttentionParams)
		q.Block, q.Head = 0, 1
	}},
	{"attention-rollout", AttentionRollout, nil},
	{"tibav", TIBAV, nil},
	{"generic-attention", GenericAttention, func(p any) { p.(*GenericAttentionParams).Start = 1 }},
	{"generic-attention of a probability", GenericAttention, func(p any) {
		q := p.(*GenericAttentionParams)
		q.Output, q.Backward = "probability", relevance.Balanced()
	}},
	{"grad-eclip", GradECLIP, nil},
	{"grad-eclip, balanced", GradECLIP, func(p any) { p.(*GradECLIPParams).Backward = relevance.Balanced() }},
	{"legrad", LeGrad, func(p any) { p.(*LeGradParams).Start = -2 }},
	{"tibav, full", TIBAV, func(p any) { p.(*TIBAVParams).Form = "full" }},
	{"tibav, last layer", TIBAV, func(p any) { p.(*TIBAVParams).Form = "last-layer" }},
	{"transition-attention", TransitionAttention, func(p any) { p.(*TransitionAttentionParams).Steps = 4 }},
}

// compiledImages returns photographs of a size: bytes, and the same as numbers in [0,1].
func compiledImages(count, height, width int) (bytes []stages.Tensor, unit []float32) {
	for k := range count {
		v := make([]uint8, 3*height*width)
		for i := range v {
			c, y, x := i/(height*width), i/width%height, i%width
			v[i] = uint8(128 + 100*math.Sin(float64((k+2)*x+3*c)/7)*math.Cos(float64(y*(k+1)+c)/9) +
				float64((i*7919+k*31)%23))
			unit = append(unit, float32(v[i])/255)
		}
		bytes = append(bytes, stages.NewTensor(v, 3, height, width))
	}
	return bytes, unit
}

// fileRun is the result of a compiled file under ONNX Runtime, with the library's default optimisations.
type fileRun map[string]ort.Result[float32]

func runFile(t *testing.T, c Compiled, inputs map[string]ort.Value) fileRun {
	t.Helper()
	r := modeltest.Runtime(t)
	var in, out []string
	var values []ort.Value
	for _, v := range c.Inputs {
		in, values = append(in, v.Name), append(values, inputs[v.Name])
	}
	for _, v := range c.Outputs {
		if v.Type == "float" {
			out = append(out, v.Name)
		}
	}
	s, err := r.NewCanonicalSession(c.ONNX, in, out, stages.Device{Class: "cpu", Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	results, err := ort.Fetch[float32](context.Background(), s, values)
	if err != nil {
		t.Fatal(err)
	}
	run := fileRun{}
	for i, name := range out {
		run[name] = results[i]
	}
	return run
}

func tensorOf[T ort.Element](t *testing.T, v []T, shape ...int) ort.Value {
	t.Helper()
	x, err := ort.NewTensor[T](modeltest.Runtime(t), shape...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	x.Set(v)
	return x
}

// compiledAs compiles a method with a net and holds the file's maps of some images against those of the
// method.
func compiledAs(t *testing.T, data stages.Data, s stages.Stage, params any, rows, fixed int) {
	t.Helper()
	spec := modeltest.Spec(t, data)
	bytes, unit := compiledImages(rows, spec.Height, spec.Width)
	var images, targets [][]byte
	classes := make([]int64, rows)
	for k := range rows {
		classes[k] = int64((3*k + 1) % spec.Classes)
		images = append(images, bytes[k].Encode())
		targets = append(targets, stages.NewTensor(classes[k:k+1], 1).Encode())
	}
	in := map[string][]stages.Data{"model": {data}, "images": {stagetest.Items(nil, images...)},
		"targets": {stagetest.Items(nil, targets...)}}
	want, err := stagetest.Try(s, params, in)
	c, failed := Compile(t.Context(), Compilation{Stage: &s, Params: params, Model: data,
		Slot: stagetest.NewSlot(), Fixed: fixed, Prepares: true, Prepared: true,
		TargetInput: !ClassFree(&s)})
	if err != nil || failed != nil {
		if (err == nil) != (failed == nil) {
			t.Errorf("the method: %v; the file: %v", err, failed)
		}
		t.Skipf("skipped: the net is refused: %v", err)
	}
	if c.Batch != fixed {
		t.Fatalf("the file's batch is %d, %q", c.Batch, c.Fixed)
	}
	worst := 0.0
	step := rows
	if c.Batch > 0 {
		step = c.Batch
	}
	for from := 0; from < rows; from += step {
		pixels := unit[from*len(unit)/rows:][:step*len(unit)/rows]
		run := runFile(t, c, map[string]ort.Value{
			"image":  tensorOf(t, pixels, step, 3, spec.Height, spec.Width),
			"target": tensorOf(t, classes[from:from+step], step)})
		got := run[c.Map].Data
		size := len(got) / step
		for k := range step {
			m, err := stages.DecodeTensor(want.Payloads["maps"][from+k])
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(run[c.Map].Shape[1:], m.Shape) {
				t.Fatalf("a map of shape %v, want %v", run[c.Map].Shape[1:], m.Shape)
			}
			worst = max(worst, deviates(got[k*size:(k+1)*size], m.Float32s()))
		}
	}
	tolerance := 1e-7
	if fixed == 0 {
		tolerance = openBatch(s)
	}
	if s.Name == TransitionAttention.Name {
		tolerance = 1e-6 // the slopes' steps are optimised without the weights, which other steps read too
	}
	if p, ok := params.(*ReciproCAMParams); ok && p.several() {
		tolerance = 2e-5 // and so are a layer's, without those that the other's read too
	}
	if !(worst <= tolerance) {
		t.Errorf("the file's maps deviate by %.2g of the largest value", worst)
	}
	t.Logf("deviation %.2g, %d nodes, %d bytes", worst, c.Nodes, len(c.ONNX))
}

func quickstart(net string) string {
	return filepath.Join("..", "..", "experiments", "quickstart", net+".onnx")
}

// TestCompiled holds files of all methods that are one program against the methods, for nets of the
// quickstart, for any batch and for a fixed one.
func TestCompiled(t *testing.T) {
	for _, net := range []string{"vgg-bn", "resnet", "vit"} {
		data := modeltest.Model(t, model.ONNXParams{Preset: "half", Path: quickstart(net)})
		for _, c := range stagetest.Sample(t, 4, compiledCases) {
			t.Run(strings.ReplaceAll(fmt.Sprintf("%s of %s", c.name, net), " ", "-"), func(t *testing.T) {
				params := c.method.NewParams()
				if c.set != nil {
					c.set(params)
				}
				for _, fixed := range []int{0, 2} {
					compiledAs(t, data, c.method, params, 4, fixed)
				}
			})
		}
	}
}
