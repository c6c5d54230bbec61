package attribute

import (
	"math"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// signalLength is the number of steps of the nets' signals.
const signalLength = 48

// signalNet returns a net of signals in a layout, or its twin of images of one row. Both have the same
// weights: kernels [f, c, k] and [f, c, 1, k].
func signalNet(t *testing.T, layout string, channels int) stages.Data {
	t.Helper()
	rank := 1
	if layout == modelfile.NCHW {
		rank = 2
	}
	kernel := func(name string, seed float64, out, in, k int) *onnxpb.TensorProto {
		shape := []int{out, in, k}
		if rank == 2 {
			shape = []int{out, in, 1, k}
		}
		w := modeltest.Noise(name, seed, shape...)
		return w
	}
	pads := func(n int64) onnx.Attr {
		if rank == 2 {
			return onnx.Attr{Name: "pads", Value: []int64{0, n, 0, n}}
		}
		return onnx.Attr{Name: "pads", Value: []int64{n, n}}
	}
	wide := func(name string) onnx.Attr {
		if rank == 2 {
			return onnx.Attr{Name: name, Value: []int64{1, 2}}
		}
		return onnx.Attr{Name: name, Value: []int64{2}}
	}
	g := &onnxpb.GraphProto{Name: "signal", Initializer: []*onnxpb.TensorProto{
		kernel("w1", 1, 6, channels, 5), modeltest.Noise("b1", 2, 6),
		kernel("w2", 3, 8, 6, 3), modeltest.Noise("b2", 4, 8), modeltest.Noise("w3", 5, 8, 4)}}
	in := "signal"
	shape := map[string][]int{modelfile.NCHW: {onnx.Free, channels, 1, signalLength},
		modelfile.NCT: {onnx.Free, channels, signalLength},
		modelfile.NTC: {onnx.Free, signalLength, channels},
		modelfile.NT:  {onnx.Free, signalLength}}[layout]
	switch layout {
	case modelfile.NTC:
		g.Node = append(g.Node, onnx.NewNode("first", "Transpose", []string{in}, []string{"turned"},
			onnx.Attr{Name: "perm", Value: []int64{0, 2, 1}}))
		in = "turned"
	case modelfile.NT:
		g.Initializer = append(g.Initializer, onnx.IntTensor("axis", []int{1}, 1))
		g.Node = append(g.Node, onnx.NewNode("first", "Unsqueeze", []string{in, "axis"}, []string{"turned"}))
		in = "turned"
	}
	g.Node = append(g.Node,
		onnx.NewNode("c1", "Conv", []string{in, "w1", "b1"}, []string{"c1"}, pads(2)),
		onnx.NewNode("r1", "Relu", []string{"c1"}, []string{"r1"}),
		onnx.NewNode("p1", "MaxPool", []string{"r1"}, []string{"p1"}, wide("kernel_shape"), wide("strides")),
		onnx.NewNode("c2", "Conv", []string{"p1", "w2", "b2"}, []string{"c2"}, pads(1)),
		onnx.NewNode("r2", "Relu", []string{"c2"}, []string{"r2"}),
		onnx.NewNode("mean", "GlobalAveragePool", []string{"r2"}, []string{"mean"}),
		onnx.NewNode("flat", "Flatten", []string{"mean"}, []string{"flat"}),
		onnx.NewNode("logits", "MatMul", []string{"flat", "w3"}, []string{"logits"}))
	m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}}, Graph: g}}
	m.SetInputs(onnx.Value{Name: "signal", Elem: onnxpb.TensorProto_FLOAT, Shape: shape, Known: true})
	m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{onnx.Free, 4},
		Known: true})
	d := modeltest.Model(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: "half"})
	if s := modeltest.Spec(t, d); s.Layout != layout || s.Height != 1 || s.Width != signalLength ||
		s.Channels != channels || s.Batch != 0 {
		t.Fatalf("layout %s: read as %+v", layout, s)
	}
	return d
}

// TestSignals holds the maps of nets of signals against those of the same net on images of one row.
func TestSignals(t *testing.T) {
	image := make([]float32, 3*signalLength)
	for i := range image {
		image[i] = float32(0.5 + 0.5*math.Sin(float64(i*i)*0.11))
	}
	payload := stages.NewTensor(image, 3, 1, signalLength).Encode()
	maps := func(d stages.Data, s stages.Stage) ([]float32, error) {
		one := stages.NewTensor([]int64{2}, 1).Encode()
		r, err := stagetest.Try(s, nil, map[string][]stages.Data{"model": {d},
			"images":  {stagetest.Items(nil, payload, payload)},
			"targets": {stagetest.Items(nil, one, one)}})
		if err != nil {
			return nil, err
		}
		m, err := stages.DecodeTensor(r.Payloads["maps"][1])
		return m.Float32s(), err
	}
	methods := []stages.Stage{AGI, AbsLRP, AblationCAM, EigenCAM, GradCAMElementwise, ReciproCAM,
		XGradCAM, BlurIG, CLRP, CRAP, Deconvolution, DeepLIFT,
		GradCAM, GradCAMPlusPlus, GuidedBackprop, GuidedGradCAM, GuidedIG,
		HiResCAM, IDG, IDGI, InputXGradient, IntegratedGradients, LRPAlphaBeta,
		LRPComposite, LRPEpsilon, LRPGamma, LRPZPlus, LayerCAM, LeftIG, Occlusion, PartitionSHAP, RAP, RISE,
		Saliency, ScoreCAM, SmoothGrad, VarGrad, XRAI}
	for _, channels := range []int{1, 3} {
		twin := signalNet(t, modelfile.NCHW, channels)
		layouts := []string{modelfile.NCT, modelfile.NTC}
		if channels == 1 {
			layouts = append(layouts, modelfile.NT)
		}
		for _, layout := range layouts {
			net := signalNet(t, layout, channels)
			for _, s := range methods {
				want, failed := maps(twin, s)
				got, err := maps(net, s)
				if failed != nil || err != nil {
					t.Errorf("%s, %s of %d channels: %v, of images: %v", s.Name, layout, channels, err,
						failed)
					continue
				}
				if apart := farthest(got, want); !(apart <= 1e-5) {
					t.Errorf("%s, %s of %d channels: %.3g apart from the map of images", s.Name, layout,
						channels, apart)
				}
			}
		}
	}
}

// farthest returns the largest difference of two maps, relative to the largest value.
func farthest(a, b []float32) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	apart, largest := 0.0, 0.0
	for i := range a {
		apart = math.Max(apart, math.Abs(float64(a[i])-float64(b[i])))
		largest = math.Max(largest, math.Abs(float64(b[i])))
	}
	return apart / largest
}
