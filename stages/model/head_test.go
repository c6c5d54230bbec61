package model_test

import (
	"math"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// A tiny net is one convolution of 3×3, a ReLU, global average pooling and a linear layer: small enough to be
// differentiated by hand.
type tiny struct {
	channels, filters, classes int
	height, width              int
	gain                       float64 // of the linear layer
}

func (n tiny) number(i int, seed float64) float64 {
	return float64(float32(math.Sin(float64(i)*1.7+seed) * 0.5))
}
func (n tiny) kernel(f, c, y, x int) float64 { return n.number(((f*n.channels+c)*3+y)*3+x, 1) }
func (n tiny) bias(f int) float64            { return n.number(f, 2) * 0.2 }
func (n tiny) weight(k, f int) float64 {
	return float64(float32(n.gain * n.number(k*n.filters+f, 3)))
}
func (n tiny) offset(k int) float64 { return n.number(k, 4) }

// model returns the net from "pixels" [batch,channels,height,width] to the value "logits" [N,classes].
func (n tiny) model(batch int) *onnx.Model {
	floats := func(name string, count int, v func(i int) float64, shape ...int) *onnxpb.TensorProto {
		out := make([]float32, count)
		for i := range out {
			out[i] = float32(v(i))
		}
		return onnx.FloatTensor(name, out, shape...)
	}
	m := &onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 13}},
		Graph: &onnxpb.GraphProto{
			Name: "tiny",
			Initializer: []*onnxpb.TensorProto{
				floats("w", n.filters*n.channels*9, func(i int) float64 { return n.number(i, 1) }, n.filters,
					n.channels, 3, 3),
				floats("b", n.filters, n.bias, n.filters),
				floats("v", n.classes*n.filters,
					func(i int) float64 { return n.weight(i/n.filters, i%n.filters) }, n.classes, n.filters),
				floats("c", n.classes, n.offset, n.classes),
			},
			Node: []*onnxpb.NodeProto{
				onnx.NewNode("conv", "Conv", []string{"pixels", "w", "b"}, []string{"h"},
					onnx.Attr{Name: "pads", Value: []int64{1, 1, 1, 1}}),
				onnx.NewNode("relu", "Relu", []string{"h"}, []string{"r"}),
				onnx.NewNode("mean", "GlobalAveragePool", []string{"r"}, []string{"m"}),
				onnx.NewNode("flat", "Flatten", []string{"m"}, []string{"f"}),
				onnx.NewNode("linear", "Gemm", []string{"f", "v", "c"}, []string{"logits"},
					onnx.Attr{Name: "transB", Value: 1}),
			},
		},
	}}
	m.SetInputs(onnx.Value{Name: "pixels", Elem: onnxpb.TensorProto_FLOAT,
		Shape: []int{batch, n.channels, n.height, n.width}, Known: true})
	m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{batch, n.classes},
		Known: true})
	return m
}

// reference computes the logits of an image [C,H,W] and the gradient of one of them, in double precision.
func (n tiny) reference(x []float32, class int) (logits, gradient []float64) {
	pixels := n.height * n.width
	gradient = make([]float64, n.channels*pixels)
	logits = make([]float64, n.classes)
	for k := range logits {
		logits[k] = n.offset(k)
	}
	tap := func(at, dy, dx int) (int, bool) {
		y, x := at/n.width+dy-1, at%n.width+dx-1
		return y*n.width + x, y >= 0 && y < n.height && x >= 0 && x < n.width
	}
	for f := range n.filters {
		for at := range pixels {
			h := n.bias(f)
			each := func(do func(c, from int, w float64)) {
				for c := range n.channels {
					for t := range 9 {
						if from, ok := tap(at, t/3, t%3); ok {
							do(c, from, n.kernel(f, c, t/3, t%3))
						}
					}
				}
			}
			each(func(c, from int, w float64) { h += w * float64(x[c*pixels+from]) })
			if h <= 0 {
				continue
			}
			for k := range logits {
				logits[k] += n.weight(k, f) * h / float64(pixels)
			}
			each(func(c, from int, w float64) {
				gradient[c*pixels+from] += n.weight(class, f) * w / float64(pixels)
			})
		}
	}
	return logits, gradient
}

// sides computes the same of both classes of a net with one output z: logits −z and z.
func (n tiny) sides(x []float32, class int) (logits, gradient []float64) {
	if n.classes > 1 {
		return n.reference(x, class)
	}
	z, gradient := n.reference(x, 0)
	if class == 0 {
		for i := range gradient {
			gradient[i] = -gradient[i]
		}
	}
	return []float64{-z[0], z[0]}, gradient
}

func softmaxOf(z []float64) []float64 {
	p, sum := make([]float64, len(z)), 0.0
	for i, v := range z {
		p[i] = math.Exp(v)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

func sigmoidOf(z []float64) []float64 {
	p := make([]float64, len(z))
	for i, v := range z {
		p[i] = 1 / (1 + math.Exp(-v))
	}
	return p
}

// check checks that the stage derives spec from a file, and that the probability of the largest logit and its
// gradient match the reference.
func (n tiny) check(t *testing.T, m *onnx.Model, p model.ONNXParams, spec modelfile.Spec,
	probabilities func([]float64) []float64) {
	t.Helper()
	p.Path = modeltest.File(t, m)
	if p.Preset == "" {
		p.Preset = "unit"
	}
	data := modeltest.Model(t, p)
	s := modeltest.Spec(t, data)
	got := modelfile.Spec{Input: s.Input, Output: s.Output, Height: s.Height, Width: s.Width,
		Channels: s.Channels, Classes: s.Classes, Batch: s.Batch, Layout: s.Layout,
		Probabilities: s.Probabilities, Independent: s.Independent}
	spec.Height, spec.Width, spec.Channels, spec.Classes = n.height, n.width, n.channels, n.classes
	if n.classes == 1 {
		spec.Classes, spec.Output = 2, "sides/Mul"
	}
	if spec.Layout == "" {
		spec.Layout = modelfile.NCHW
	}
	if spec.Input == "" {
		spec.Input = "pixels"
	}
	if spec.Output == "" {
		spec.Output = "logits"
	}
	if a, b := encoded(t, got), encoded(t, spec); a != b {
		t.Errorf("specification %s, want %s", a, b)
	}

	pixels := n.height * n.width
	image := make([]byte, 3*pixels)
	x := make([]float32, n.channels*pixels)
	for i := range image {
		image[i] = byte(i*i*7 + i)
		if n.channels == 1 {
			image[i] = image[i%pixels] // greyscale
		}
		if i < len(x) {
			x[i] = float32(image[i]) / 255
		}
	}
	payload := stages.NewTensor(image, 3, n.height, n.width).Encode()
	r := stagetest.Run(t, model.Predict, nil,
		map[string][]stages.Data{"model": {data}, "images": {stagetest.Items(nil, payload)}})
	predicted, err := stages.ScalarOf(r.Payloads["targets"][0])
	if err != nil {
		t.Fatal(err)
	}
	probability, err := stages.ScalarOf(r.Payloads["probability"][0])
	if err != nil {
		t.Fatal(err)
	}
	logits, want := n.sides(x, int(predicted))
	for _, v := range logits {
		if v > logits[int(predicted)] {
			t.Errorf("class %v is predicted of %v", predicted, logits)
		}
	}
	if p := probabilities(logits)[int(predicted)]; !(math.Abs(probability-p) <= 2e-6) {
		t.Errorf("probability %v, want %v", probability, p)
	}

	net := modeltest.Net(t, data)
	g, err := net.Gradient(t.Context(), stagetest.NewSlot(), lower.Question{}, net.Fit(2, 2))
	if err != nil {
		t.Fatal(err)
	}
	g.Explain(0, program.Target{Class: int(predicted), Minus: -1})
	for i, v := range x {
		g.Image(0)[i] = v * float32(s.Scale)
	}
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	apart, size := 0.0, 0.0
	for i, v := range g.Gradient(0) {
		d := float64(v)*s.Scale - want[i]
		apart += d * d
		size += want[i] * want[i]
	}
	if !(math.Sqrt(apart) <= 1e-5*math.Sqrt(size)) {
		t.Errorf("the gradient is off by %v of %v", math.Sqrt(apart), math.Sqrt(size))
	}
}

func encoded(t *testing.T, s modelfile.Spec) string {
	t.Helper()
	b, err := modelfile.Model{Spec: s}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// ends returns a change of a net that appends a chain of nodes, the last of which makes the output.
func ends(ops ...func(f *onnx.Fragment, m *onnx.Model, x string) string) func(m *onnx.Model) {
	return func(m *onnx.Model) {
		f := m.Fragment()
		x := "logits"
		for _, op := range ops {
			x = op(f, m, x)
		}
		m.After(f)
		m.SetOutputs(onnx.Value{Name: x, Elem: onnxpb.TensorProto_FLOAT})
	}
}

type endOp = func(f *onnx.Fragment, m *onnx.Model, x string) string

func op(name string, attrs ...onnx.Attr) endOp {
	return func(f *onnx.Fragment, _ *onnx.Model, x string) string { return f.Op(name, []string{x}, attrs...) }
}

func shaped(name string, numbers ...int64) endOp {
	return func(f *onnx.Fragment, _ *onnx.Model, x string) string {
		return f.Op(name, []string{x, f.Ints("numbers", numbers, int64(len(numbers)))})
	}
}

func clipped(low, high float32) endOp {
	return func(f *onnx.Fragment, _ *onnx.Model, x string) string {
		return f.Op("Clip", []string{x, f.Floats("low", []float32{low}), f.Floats("high", []float32{high})})
	}
}

// roundedTo quantises in 255 steps and dequantises.
func roundedTo(step float32) endOp {
	return func(f *onnx.Fragment, m *onnx.Model, x string) string {
		zero := m.Fresh("zero")
		m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer,
			&onnxpb.TensorProto{Name: zero, DataType: int32(onnxpb.TensorProto_UINT8), RawData: []byte{0}})
		s := f.Floats("step", []float32{step})
		return f.Op("DequantizeLinear", []string{f.Op("QuantizeLinear", []string{x, s, zero}), s, zero})
	}
}

// expOverSum writes a softmax without the operator.
func expOverSum(f *onnx.Fragment, _ *onnx.Model, x string) string {
	e := f.Op("Exp", []string{x})
	return f.Op("Div", []string{e, f.Op("ReduceSum", []string{e, f.Ints("axes", []int64{1}, 1)})})
}

// TestHeads checks the Spec derived from a net's head.
func TestHeads(t *testing.T) {
	modeltest.Runtime(t)
	axis := onnx.Attr{Name: "axis", Value: 1}
	single := onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)}
	half := onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT16)}
	five, one := tiny{channels: 3, filters: 4, classes: 5, height: 6, width: 9, gain: 6}, tiny{channels: 3,
		filters: 4, classes: 1, height: 6, width: 9, gain: 6}
	sure, doubtful := one, one
	sure.gain, doubtful.gain = 900, -20
	cut, own := modelfile.Spec{}, modelfile.Spec{Independent: true}
	for _, tt := range []struct {
		name          string
		net           tiny
		end           func(m *onnx.Model)
		params        model.ONNXParams
		spec          modelfile.Spec
		probabilities func([]float64) []float64
	}{
		{"logits", five, ends(), model.ONNXParams{}, cut, softmaxOf},
		{"Softmax", five, ends(op("Softmax", axis)), model.ONNXParams{}, cut, softmaxOf},
		{"Softmax, quantised", five, ends(op("Softmax", axis), roundedTo(1./255)), model.ONNXParams{}, cut,
			softmaxOf},
		{"Softmax, coarsely quantised", five, ends(op("Softmax", axis), roundedTo(1./127)),
			model.ONNXParams{}, cut, softmaxOf},
		{"Softmax, quantised twice and reshaped between", five,
			ends(op("Softmax", axis), roundedTo(1./255), shaped("Reshape", 0, -1), roundedTo(1./255)),
			model.ONNXParams{}, cut, softmaxOf},
		{"Softmax, Identity", five, ends(op("Softmax", axis), op("Identity")), model.ONNXParams{}, cut,
			softmaxOf},
		{"Softmax, Reshape", five, ends(op("Softmax", axis), shaped("Reshape", -1, 5, 1, 1), op("Flatten")),
			model.ONNXParams{}, cut, softmaxOf},
		{"Softmax, Unsqueeze, Squeeze", five,
			ends(op("Softmax", axis), shaped("Unsqueeze", 2), shaped("Squeeze", 2)), model.ONNXParams{}, cut,
			softmaxOf},
		{"Softmax, Cast", five, ends(op("Softmax", axis), op("Cast", half), op("Cast", single)),
			model.ONNXParams{}, cut, softmaxOf},
		{"Softmax, Clip", five, ends(op("Softmax", axis), clipped(1e-7, 1-1e-7)), model.ONNXParams{}, cut,
			softmaxOf},
		{"Softmax, Transpose", five,
			ends(shaped("Reshape", 0, 5, 1, 1), op("Softmax", axis),
				op("Transpose", onnx.Attr{Name: "perm", Value: []int64{0, 2, 3, 1}}), op("Flatten")),
			model.ONNXParams{},
			modelfile.Spec{Output: "runexp_Reshape"}, softmaxOf},
		{"Softmax, Log", five, ends(op("Softmax", axis), op("Log")), model.ONNXParams{}, cut, softmaxOf},
		{"Softmax, Clip, Log", five, ends(op("Softmax", axis), clipped(1e-9, 1), op("Log")),
			model.ONNXParams{}, cut, softmaxOf},
		{"LogSoftmax", five, ends(op("LogSoftmax", axis)), model.ONNXParams{}, cut, softmaxOf},
		{"LogSoftmax, Identity", five, ends(op("LogSoftmax", axis), op("Identity")), model.ONNXParams{}, cut,
			softmaxOf},
		{"LogSoftmax, Exp", five, ends(op("LogSoftmax", axis), op("Exp")), model.ONNXParams{}, cut,
			softmaxOf},
		{"Exp over its sum", five, ends(expOverSum), model.ONNXParams{}, cut, softmaxOf},
		{"several Sigmoids", five, ends(op("Sigmoid")), model.ONNXParams{}, own, sigmoidOf},
		{"several Sigmoids, quantised", five, ends(op("Sigmoid"), roundedTo(1./255)), model.ONNXParams{}, own,
			sigmoidOf},
		{"logits of several sigmoids", five, ends(), model.ONNXParams{Kind: "sigmoid-logits"}, own,
			sigmoidOf},
		{"a Sigmoid", one, ends(op("Sigmoid")), model.ONNXParams{}, own, sigmoidOf},
		{"a Sigmoid, Squeeze", one, ends(op("Sigmoid"), shaped("Squeeze", 1)), model.ONNXParams{}, own,
			sigmoidOf},
		{"a Sigmoid, quantised", one, ends(op("Sigmoid"), roundedTo(1./255)), model.ONNXParams{}, own,
			sigmoidOf},
		{"a Sigmoid that is 1 in float32", sure, ends(op("Sigmoid")), model.ONNXParams{}, own, sigmoidOf},
		{"a Sigmoid below ½", doubtful, ends(op("Sigmoid")), model.ONNXParams{}, own, sigmoidOf},
		{"one logit", one, ends(), model.ONNXParams{}, own, sigmoidOf},
		{"one logit, said so", one, ends(), model.ONNXParams{Kind: "logits"}, own, sigmoidOf},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := tt.net.model(onnx.Free)
			tt.end(m)
			tt.net.check(t, m, tt.params, tt.spec, tt.probabilities)
		})
	}
}

// TestBrokenNodes checks that nodes without inputs or outputs, which ONNX Runtime rejects, cause no panic.
func TestBrokenNodes(t *testing.T) {
	modeltest.Runtime(t)
	net := tiny{channels: 3, filters: 4, classes: 5, height: 6, width: 9, gain: 6}
	node := func(m *onnx.Model, op string, in, out []string) {
		m.Proto.Graph.Node = append(m.Proto.Graph.Node, onnx.NewNode("broken", op, in, out))
	}
	for name, change := range map[string]func(m *onnx.Model){
		"a sum of nothing": func(m *onnx.Model) {
			node(m, "Exp", []string{"logits"}, []string{"e"})
			node(m, "ReduceSum", nil, []string{"s"})
			node(m, "Div", []string{"e", "s"}, []string{"p"})
			m.SetOutputs(onnx.Value{Name: "p", Elem: onnxpb.TensorProto_FLOAT})
		},
		"an exponential of nothing": func(m *onnx.Model) {
			node(m, "Exp", nil, []string{"e"})
			node(m, "ReduceSum", []string{"e"}, []string{"s"})
			node(m, "Div", []string{"e", "s"}, []string{"p"})
			m.SetOutputs(onnx.Value{Name: "p", Elem: onnxpb.TensorProto_FLOAT})
		},
		"a view for nobody": func(m *onnx.Model) {
			node(m, "Flatten", []string{"fed"}, nil)
			begins(onnxpb.TensorProto_UINT8, []int{onnx.Free, 3, 6, 9},
				op("Cast", onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)}))(m)
		},
	} {
		m := net.model(onnx.Free)
		change(m)
		p := *model.ONNX.NewParams().(*model.ONNXParams)
		p.Path = modeltest.File(t, m)
		if _, err := stagetest.Try(model.ONNX, &p, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
