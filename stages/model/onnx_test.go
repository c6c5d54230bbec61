package model_test

import (
	"cmp"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// altered writes a modified official net to a file.
func altered(t *testing.T, name string, change func(m *onnx.Model)) string {
	t.Helper()
	m, err := onnx.ReadFile(filepath.Join(golden.Dir(t), "models", name+".onnx"))
	if err != nil {
		t.Fatal(err)
	}
	change(m)
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "net.onnx", b)
}

func write(t *testing.T, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func softmax(m *onnx.Model) {
	f := m.Fragment()
	f.OpTo("probabilities", "Softmax", []string{"logits"}, onnx.Attr{Name: "axis", Value: 1})
	m.After(f)
	m.SetOutputs(onnx.Value{Name: "probabilities", Elem: onnxpb.TensorProto_FLOAT})
}

// multilabel gives every class a probability of its own.
func multilabel(m *onnx.Model) {
	f := m.Fragment()
	column := f.Op("Reshape",
		[]string{f.Op("Sigmoid", []string{"logits"}), f.Ints("column", []int64{0, -1, 1}, 3)})
	f.OpTo("each", "Squeeze", []string{f.Op("Identity", []string{column}), f.Ints("last", []int64{2}, 1)})
	m.After(f)
	m.SetOutputs(onnx.Value{Name: "each", Elem: onnxpb.TensorProto_FLOAT})
}

// channelsLast makes the net take NHWC images in BGR.
func channelsLast(m *onnx.Model) {
	f := m.Fragment()
	x := f.Op("Transpose", []string{"last"}, onnx.Attr{Name: "perm", Value: []int64{0, 3, 1, 2}})
	f.OpTo("input", "Gather", []string{x, f.Ints("order", []int64{2, 1, 0}, 3)},
		onnx.Attr{Name: "axis", Value: 1})
	m.Before(f)
	m.SetInputs(onnx.Value{Name: "last", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{onnx.Free, 32, 32, 3},
		Known: true})
}

// halved makes the net take and return half-precision numbers.
func halved(m *onnx.Model) {
	before, after := m.Fragment(), m.Fragment()
	before.OpTo("input", "Cast", []string{"half"},
		onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)})
	after.OpTo("answer", "Cast", []string{"logits"},
		onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT16)})
	m.Before(before)
	m.After(after)
	m.SetInputs(onnx.Value{Name: "half", Elem: onnxpb.TensorProto_FLOAT16, Shape: []int{onnx.Free, 3, 32, 32},
		Known: true})
	m.SetOutputs(onnx.Value{Name: "answer", Elem: onnxpb.TensorProto_FLOAT16})
}

// baked makes the net fail for any batch but 1, although its file declares otherwise.
func baked(m *onnx.Model) {
	f := m.Fragment()
	f.OpTo("one", "Reshape", []string{"logits", f.Ints("shape", []int64{1, 10}, 2)})
	m.After(f)
	m.SetOutputs(onnx.Value{Name: "one", Elem: onnxpb.TensorProto_FLOAT})
}

// mixed makes the answer to an image depend on its batch.
func mixed(m *onnx.Model) {
	f := m.Fragment()
	mean := f.Op("ReduceMean", []string{"logits"}, onnx.Attr{Name: "axes", Value: []int64{0}},
		onnx.Attr{Name: "keepdims", Value: 1})
	f.OpTo("mixed", "Add", []string{"logits", f.Op("Mul", []string{mean, f.Floats("part", []float32{0.5})})})
	m.After(f)
	m.SetOutputs(onnx.Value{Name: "mixed", Elem: onnxpb.TensorProto_FLOAT})
}

// predict returns the class and the probability of an image of smallcnn's size.
func predict(t *testing.T, m stages.Data) (class, probability float64) {
	t.Helper()
	v := make([]float32, 3*32*32)
	for i := range v {
		v[i] = float32(i*i%97) / 97
	}
	r := stagetest.Run(t, model.Predict, nil, map[string][]stages.Data{
		"model": {m}, "images": {stagetest.Items(nil, stages.NewTensor(v, 3, 32, 32).Encode())},
	})
	class, err := stages.ScalarOf(r.Payloads["targets"][0])
	if err != nil {
		t.Fatal(err)
	}
	probability, err = stages.ScalarOf(r.Payloads["probability"][0])
	if err != nil {
		t.Fatal(err)
	}
	return class, probability
}

// TestForms checks that a net gives the same answers in all equivalent forms.
func TestForms(t *testing.T) {
	plain := filepath.Join(golden.Dir(t), "models", "smallcnn.onnx")
	class, probability := predict(t, modeltest.Model(t, model.ONNXParams{Path: plain}))
	tests := []struct {
		name   string
		change func(*onnx.Model)
		params model.ONNXParams
		spec   func(modelfile.Spec) bool
	}{
		{"a Softmax is taken off", softmax, model.ONNXParams{},
			func(s modelfile.Spec) bool { return !s.Probabilities && s.Output == "logits" }},
		{"probabilities, said so", softmax, model.ONNXParams{Kind: "probabilities"},
			func(s modelfile.Spec) bool { return s.Probabilities }},
		{"NHWC and BGR", channelsLast, model.ONNXParams{Order: "bgr"},
			func(s modelfile.Spec) bool { return s.Layout == modelfile.NHWC && s.Order == modelfile.BGR }},
		{"half precision", halved, model.ONNXParams{}, func(s modelfile.Spec) bool { return s.Batch == 0 }},
		{"a hidden batch of 1", baked, model.ONNXParams{},
			func(s modelfile.Spec) bool { return s.Batch == 1 }},
		{"a batch that mixes", mixed, model.ONNXParams{},
			func(s modelfile.Spec) bool { return s.Batch == 1 }},
		{"given normalisation", func(*onnx.Model) {},
			model.ONNXParams{Preset: "raw", Scale: 1, Mean: []float64{.485, .456, .406},
				Std: []float64{.229, .224, .225}},
			func(s modelfile.Spec) bool { return s.Scale == 1 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.params.Path = altered(t, "smallcnn", tt.change)
			m := modeltest.Model(t, tt.params)
			if s := modeltest.Spec(t, m); !tt.spec(s) || s.Classes != 10 {
				t.Errorf("specification %+v", s)
			}
			c, p := predict(t, m)
			tolerance := 1e-6
			if tt.name == "half precision" {
				tolerance = 2e-3
			}
			if tt.name == "a batch that mixes" { // alone, the mean is the answer itself
				p = probability
			}
			if c != class || !(math.Abs(float64(p-probability)) <= tolerance) {
				t.Errorf("class %v with %v, want %v with %v", c, p, class, probability)
			}
		})
	}
}

// TestSigmoid checks that a net ending in a Sigmoid has the probabilities that it returns, of several classes
// and of one, and that a Softmax after it treats these as logits.
func TestSigmoid(t *testing.T) {
	for name, change := range map[string]func(*onnx.Model){
		"classes": multilabel,
		"one class": func(m *onnx.Model) {
			summed(m)
			f := m.Fragment()
			f.OpTo("yes", "Sigmoid", []string{"sum"})
			m.After(f)
			m.SetOutputs(onnx.Value{Name: "yes", Elem: onnxpb.TensorProto_FLOAT})
		},
	} {
		path := altered(t, "smallcnn", change)
		found := modeltest.Model(t, model.ONNXParams{Path: path})
		if s := modeltest.Spec(t, found); s.Probabilities || !s.Independent {
			t.Errorf("%s: specification %+v", name, s)
		}
		class, probability := predict(t, found)
		c, p := predict(t, modeltest.Model(t, model.ONNXParams{Path: path, Kind: "probabilities"}))
		if class != c || math.Abs(probability-p) > 1e-6 || p == 1 {
			t.Errorf("%s: class %v with %v, want %v with %v", name, class, probability, c, p)
		}
	}
	both := altered(t, "smallcnn", func(m *onnx.Model) {
		f := m.Fragment()
		f.OpTo("p", "Softmax", []string{f.Op("Sigmoid", []string{"logits"})},
			onnx.Attr{Name: "axis", Value: 1})
		m.After(f)
		m.SetOutputs(onnx.Value{Name: "p", Elem: onnxpb.TensorProto_FLOAT})
	})
	if s := modeltest.Spec(t, modeltest.Model(t, model.ONNXParams{Path: both})); s.Probabilities ||
		s.Output == "p" {
		t.Errorf("a Softmax behind it: specification %+v", s)
	}
}

// TestNoProbabilities checks that logits declared as probabilities are rejected at output_kind.
func TestNoProbabilities(t *testing.T) {
	modeltest.Runtime(t)
	p := model.ONNX.NewParams().(*model.ONNXParams)
	p.Path, p.Kind = filepath.Join(golden.Dir(t), "models", "smallcnn.onnx"), "probabilities"
	_, err := stagetest.Try(model.ONNX, p, nil)
	var field *stages.FieldError
	if !errors.As(err, &field) || field.Field != "output_kind" ||
		!strings.Contains(err.Error(), "values outside [0,1]") {
		t.Errorf("error %v", err)
	}
}

func TestFactsAndLabels(t *testing.T) {
	plain := filepath.Join(golden.Dir(t), "models", "gapcnn_dyn.onnx")
	labels := write(t, "labels.txt", []byte("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n"))
	m := modeltest.Model(t, model.ONNXParams{Path: plain, Size: picture.Size{H: 48, W: 48}, Labels: labels})
	for name, want := range map[string]string{
		"height": "48", "width": "48", "channels": "3", "classes": "10",
		"labels": "a\nb\nc\nd\ne\nf\ng\nh\ni\nj",
	} {
		if got := m.Facts[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	sources, err := model.ONNX.Sources(&model.ONNXParams{Path: plain, Labels: labels}, nil)
	if err != nil || len(sources) != 2 || sources[1].File != labels {
		t.Errorf("sources %v, %v", sources, err)
	}
}

// TestAnotherSize checks that a net with global pooling takes other sizes than its file fixes, with the
// answers of the same net with an open size.
func TestAnotherSize(t *testing.T) {
	fixed := filepath.Join(golden.Dir(t), "models", "gapcnn.onnx")
	open := filepath.Join(golden.Dir(t), "models", "gapcnn_dyn.onnx")
	image := make([]byte, 3*48*48)
	for i := range image {
		image[i] = byte(i * i)
	}
	var answers []string
	for _, path := range []string{fixed, open} {
		m := modeltest.Model(t, model.ONNXParams{Path: path, Size: picture.Size{H: 48, W: 48}})
		if m.Facts["height"] != "48" || m.Facts["width"] != "48" {
			t.Errorf("%s: facts %v", path, m.Facts)
		}
		r := stagetest.Run(t, model.Predict, nil, map[string][]stages.Data{
			"model": {m}, "images": {stagetest.Items(nil, stages.NewTensor(image, 3, 48, 48).Encode())},
		})
		answers = append(answers, string(r.Payloads["probability"][0]))
	}
	if answers[0] != answers[1] {
		t.Error("the answers differ")
	}
}

// first returns the first Conv of a net, and its weights.
func first(m *onnx.Model) (onnx.Node, *onnxpb.TensorProto) {
	g := m.Proto.Graph
	n := g.Node[slices.IndexFunc(g.Node, func(n *onnxpb.NodeProto) bool { return n.OpType == "Conv" })]
	return onnx.Node{NodeProto: n}, g.Initializer[slices.IndexFunc(g.Initializer,
		func(w *onnxpb.TensorProto) bool { return w.Name == n.Input[1] })]
}

// emptied removes the data from the weights of a net's first Conv, which a BatchNormalization follows. Fusing
// the two would make ONNX Runtime divide by zero and crash.
func emptied(m *onnx.Model) {
	n, w := first(m)
	w.Dims[1], w.RawData = 0, []byte{}
	filters := w.Dims[0]
	f := m.Fragment()
	var statistics []string
	for range 4 {
		statistics = append(statistics,
			f.Floats("statistic", slices.Repeat([]float32{1}, int(filters)), filters))
	}
	f.OpTo(n.Output[0]+"/normalised", "BatchNormalization", append([]string{n.Output[0]}, statistics...))
	for _, reader := range m.Proto.Graph.Node {
		for i, v := range reader.Input {
			if v == n.Output[0] {
				reader.Input[i] += "/normalised"
			}
		}
	}
	m.After(f)
}

func TestONNXRefuses(t *testing.T) {
	modeltest.Runtime(t)
	plain := filepath.Join(golden.Dir(t), "models", "smallcnn.onnx")
	b, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	free := filepath.Join(golden.Dir(t), "models", "gapcnn_dyn.onnx")
	input := func(shape ...int) func(m *onnx.Model) {
		return func(m *onnx.Model) {
			m.SetInputs(onnx.Value{Name: "input", Elem: onnxpb.TensorProto_FLOAT, Shape: shape, Known: true})
		}
	}
	tests := []struct {
		name   string
		params model.ONNXParams
		want   string
	}{
		{"no file", model.ONNXParams{Path: "none.onnx"}, "none.onnx"},
		{"a text", model.ONNXParams{Path: write(t, "a.onnx", []byte("hello, this is a text"))},
			"not an ONNX model"},
		{"cut off", model.ONNXParams{Path: write(t, "a.onnx", b[:len(b)/2])}, "cut off"},
		{"an input that isn't there", model.ONNXParams{Path: plain, Input: "pixels"},
			`no input "pixels"; it has "input"`},
		{"an output that isn't there", model.ONNXParams{Path: plain, Output: "x"},
			`no output "x"; it has "logits"`},
		{"no size", model.ONNXParams{Path: free}, "set the parameter size"},
		{"another size", model.ONNXParams{Path: plain, Size: picture.Size{H: 64, W: 64}},
			"size is 64, but the model only takes images of [3 32 32]"},
		{"two channels", model.ONNXParams{Path: altered(t, "smallcnn", input(1, 2, 32, 32))},
			"1 or 3 channels"},
		{"no image", model.ONNXParams{Path: altered(t, "smallcnn", input(1))}, "4 dimensions"},
		{"a size that doesn't run",
			model.ONNXParams{Path: altered(t, "smallcnn", input(onnx.Free, 3, 40, 40))},
			"fails on a batch of 1"},
		{"an old opset",
			model.ONNXParams{Path: altered(t, "smallcnn",
				func(m *onnx.Model) { m.Proto.OpsetImport[0].Version = 6 })}, "opset 6"},
		{"integers", model.ONNXParams{Path: altered(t, "smallcnn", func(m *onnx.Model) {
			m.SetInputs(onnx.Value{Name: "input", Elem: onnxpb.TensorProto_UINT8, Shape: []int{1, 3, 32, 32},
				Known: true})
		})}, "floating-point inputs"},
		{"two inputs", model.ONNXParams{Path: altered(t, "smallcnn", func(m *onnx.Model) {
			in := onnx.Value{Name: "input", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{1, 3, 32, 32},
				Known: true}
			age := onnx.Value{Name: "age", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{1, 1}, Known: true}
			m.SetInputs(in, age)
		})}, "hold the others constant by the parameter constants, such as constants: [\"age=0\"]"},
		{"a video", model.ONNXParams{Path: altered(t, "smallcnn", func(m *onnx.Model) {
			m.SetInputs(onnx.Value{Name: "input", Elem: onnxpb.TensorProto_FLOAT,
				Shape: []int{1, 3, 8, 32, 32}, Known: true})
		})}, "can be wrapped so that it takes one image"},
		{"an inner value as logits", model.ONNXParams{Kind: "logits",
			Path: altered(t, "smallcnn", func(m *onnx.Model) {
				m.SetOutputs(onnx.Value{Name: "/relu3/Relu_output_0", Elem: onnxpb.TensorProto_FLOAT})
			})}, "one number per image and class is needed; output_kind: none reads it without classes"},
		{"weights without numbers", model.ONNXParams{Path: altered(t, "smallcnn", emptied)}, "Conv"},
		{"a window that goes on for years",
			model.ONNXParams{Path: altered(t, "smallcnn", func(m *onnx.Model) {
				n, _ := first(m)
				for _, a := range n.Attribute {
					if a.Name == "pads" {
						a.Ints[1] = 1 << 62
					}
				}
			})}, "its pads are [1 4611686018427387904 1 1]"},
		{"images that no memory holds",
			model.ONNXParams{Path: altered(t, "smallcnn", input(1, 3, 1<<22, 32))},
			"1 images of 4194304×32 pixels at once"},
		{"batches that no memory holds",
			model.ONNXParams{Path: altered(t, "smallcnn", input(1<<17, 3, 32, 32))},
			"131072 images of 32×32 pixels at once"},
		{"an answer of one number", model.ONNXParams{Path: altered(t, "smallcnn", func(m *onnx.Model) {
			f := m.Fragment()
			f.OpTo("one", "ReduceMax", []string{"logits"}, onnx.Attr{Name: "keepdims", Value: 0})
			m.After(f)
			m.SetOutputs(onnx.Value{Name: "one", Elem: onnxpb.TensorProto_FLOAT})
		})}, "no dimensions"},
		{"labels of other classes",
			model.ONNXParams{Path: plain, Labels: write(t, "l.txt", []byte("a\nb\n"))},
			"names 2 classes, the model has 10"},
		{"labels that are no text",
			model.ONNXParams{Path: plain, Labels: write(t, "l.txt", []byte("\xff\xfe"))}, "not UTF-8 text"},
	}
	for _, tt := range tests {
		p := *model.ONNX.NewParams().(*model.ONNXParams)
		p.Path, p.Input, p.Output, p.Size, p.Labels =
			tt.params.Path, tt.params.Input, tt.params.Output, tt.params.Size, tt.params.Labels
		p.Kind = cmp.Or(tt.params.Kind, p.Kind)
		_, err := stagetest.Try(model.ONNX, &p, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}

func TestONNXParams(t *testing.T) {
	for name, p := range map[string]model.ONNXParams{
		"no path":       {},
		"two means":     {Path: "a", Mean: []float64{1, 2}},
		"four stds":     {Path: "a", Std: []float64{1, 2, 3, 4}},
		"a std of zero": {Path: "a", Std: []float64{0}},
	} {
		if p.Validate() == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if err := (model.ONNXParams{Path: "a", Mean: []float64{1},
		Std: []float64{1, 2, 3}}).Validate(); err != nil {
		t.Error(err)
	}
}
