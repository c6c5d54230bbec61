package attribute

import (
	"math"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// behind returns an official net whose logits go through what end emits, which returns the output.
func behind(t *testing.T, name string,
	end func(f *onnx.Fragment, m *onnx.Model, logits string) string) stages.Data {
	t.Helper()
	m, err := onnx.ReadFile(modeltest.OfficialPath(t, name))
	if err != nil {
		t.Fatal(err)
	}
	f := m.Fragment()
	out := end(f, m, m.Outputs()[0].Name)
	m.After(f)
	m.SetOutputs(onnx.Value{Name: out, Elem: onnxpb.TensorProto_FLOAT})
	return modeltest.Model(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit"})
}

// TestHeads checks that a method explains the same logit whatever makes probabilities of it: LRP and DeepLIFT
// too, which have no backward pass through a logarithm of a softmax.
func TestHeads(t *testing.T) {
	a := read(t, "abslrp", "smallcnn.npz")
	x := a["x"].Float32s()[:3*32*32]
	axis := onnx.Attr{Name: "axis", Value: 1}
	for name, end := range map[string]func(f *onnx.Fragment, m *onnx.Model, z string) string{
		"LogSoftmax": func(f *onnx.Fragment, _ *onnx.Model, z string) string {
			return f.Op("LogSoftmax", []string{z}, axis)
		},
		"Softmax, Log": func(f *onnx.Fragment, _ *onnx.Model, z string) string {
			return f.Op("Log", []string{f.Op("Softmax", []string{z}, axis)})
		},
		"Sigmoid": func(f *onnx.Fragment, _ *onnx.Model, z string) string {
			return f.Op("Sigmoid", []string{z})
		},
		"Softmax, quantised": func(f *onnx.Fragment, m *onnx.Model, z string) string {
			m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer, &onnxpb.TensorProto{Name: "zero",
				DataType: int32(onnxpb.TensorProto_UINT8), RawData: []byte{0}})
			step := f.Floats("step", []float32{1. / 255})
			return f.Op("DequantizeLinear", []string{f.Op("QuantizeLinear",
				[]string{f.Op("Softmax", []string{z}, axis), step, "zero"}), step, "zero"})
		},
	} {
		bare, found := modeltest.Official(t, "smallcnn", 0), behind(t, "smallcnn", end)
		for _, m := range []struct {
			name   string
			stage  stages.Stage
			params any
		}{
			{"saliency", Saliency, Saliency.NewParams()},
			{"deeplift", DeepLIFT, DeepLIFT.NewParams()},
			{"lrp-epsilon", LRPEpsilon, LRPEpsilon.NewParams()},
			{"lrp-composite", LRPComposite, LRPComposite.NewParams()},
			{"abslrp", AbsLRP, AbsLRP.NewParams()},
		} {
			of := func(net stages.Data) []float32 {
				return tensor(t, stagetest.Run(t, m.stage, m.params,
					officialImage(net, x, 3)).Payloads["maps"][0])
			}
			apart(t, name+": "+m.name, of(found), of(bare), 1e-5)
		}
	}
}

// TestOneOutput checks that a single Sigmoid is explained by its logit: where its probability is 1 in
// float32, and where it is below ½, relevance too; and that the probability's derivative is p(1 − p) of the
// logit's.
func TestOneOutput(t *testing.T) {
	a := read(t, "abslrp", "smallcnn.npz")
	x := a["x"].Float32s()[:3*32*32]
	of := func(gain float32, stage stages.Stage, params any, port string) []float32 {
		net := behind(t, "smallcnn", func(f *onnx.Fragment, _ *onnx.Model, z string) string {
			first := f.Op("Gather", []string{z, f.Ints("first", []int64{0}, 1)},
				onnx.Attr{Name: "axis", Value: 1})
			return f.Op("Sigmoid", []string{f.Op("Mul", []string{first, f.Floats("gain", []float32{gain})})})
		})
		in := officialImage(net, x, 0)
		if port != "maps" {
			delete(in, "targets")
		}
		return tensor(t, stagetest.Run(t, stage, params, in).Payloads[port][0])
	}
	scaled := func(m []float32, by float64) []float32 {
		out := make([]float32, len(m))
		for i, v := range m {
			out[i] = float32(float64(v) * by)
		}
		return out
	}
	one := of(1, Saliency, Saliency.NewParams(), "maps")
	for _, gain := range []float32{-1000, -1, 10, 1000} {
		apart(t, "saliency", of(gain, Saliency, Saliency.NewParams(), "maps"),
			scaled(one, math.Abs(float64(gain))), 1e-5)
		sum := 0.0
		for _, v := range of(gain, AbsLRP, AbsLRP.NewParams(), "maps") {
			sum += math.Abs(float64(v))
		}
		if !(math.Abs(sum-1) <= 1e-4) {
			t.Errorf("gain %v: magnitudes of absLRP sum to %v", gain, sum)
		}
	}
	probability := Saliency.NewParams().(*SaliencyParams)
	probability.Output = "probability"
	for _, gain := range []float32{-1, 1, 10} {
		p := float64(of(gain, modeltest.Predict, nil, "probability")[0])
		apart(t, "the probability's slope", of(gain, Saliency, probability, "maps"),
			scaled(one, math.Abs(float64(gain))*p*(1-p)), 1e-4)
	}
}
