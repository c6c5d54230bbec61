package model_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
)

// headed changes a net of 5 classes so that it has more values, and names its outputs.
func headed(add func(f *onnx.Fragment, m *onnx.Model), outputs ...string) func(m *onnx.Model) {
	return func(m *onnx.Model) {
		f := m.Fragment()
		add(f, m)
		m.After(f)
		var values []onnx.Value
		for _, name := range outputs {
			values = append(values, onnx.Value{Name: name, Elem: onnxpb.TensorProto_FLOAT})
		}
		m.SetOutputs(values...)
	}
}

// linear adds another linear layer behind the pooled features.
func linear(f *onnx.Fragment, out string, classes int) {
	v := make([]float32, 4*classes)
	for i := range v {
		v[i] = float32(i%7) - 3
	}
	f.OpTo(out, "MatMul", []string{"f", f.Floats("v", v, 4, int64(classes))})
}

// mapped puts a ZipMap behind a value and makes it the output, a sequence of maps.
func mapped(m *onnx.Model, value string, names ...string) {
	n := onnx.NewNode("", "ZipMap", []string{value}, []string{"zipped"})
	n.Domain = "ai.onnx.ml"
	a := &onnxpb.AttributeProto{Name: "classlabels_strings", Type: onnxpb.AttributeProto_STRINGS}
	for _, name := range names {
		a.Strings = append(a.Strings, []byte(name))
	}
	n.Attribute = append(n.Attribute, a)
	m.Proto.Graph.Node = append(m.Proto.Graph.Node, n)
	m.Import(n.Domain, 1)
	// A map from text to float32, a type of ONNX-ML.
	entry := &onnxpb.TypeProto{}
	entry.ProtoReflect().SetUnknown([]byte{0x2a, 0x08, 0x08, 0x08, 0x12, 0x04, 0x0a, 0x02, 0x08, 0x01})
	m.Proto.Graph.Output = []*onnxpb.ValueInfoProto{{Name: "zipped", Type: &onnxpb.TypeProto{
		Value: &onnxpb.TypeProto_SequenceType{SequenceType: &onnxpb.TypeProto_Sequence{ElemType: entry}}}}}
}

// TestOutputs holds which output has the classes, and that two that may have them are a question.
func TestOutputs(t *testing.T) {
	modeltest.Runtime(t)
	net := tiny{channels: 3, filters: 4, classes: 5, height: 6, width: 9, gain: 6}
	length := func(f *onnx.Fragment, of string) string {
		return f.Op("ReduceL2", []string{of}, onnx.Attr{Name: "axes", Value: []int64{1}})
	}
	for _, tt := range []struct {
		name   string
		change func(m *onnx.Model)
		output string // asked for
		want   string // the value explained
		asked  []string
	}{
		{"features first", headed(func(f *onnx.Fragment, _ *onnx.Model) {
			f.OpTo("a", "Identity", []string{"f"})
		}, "a", "logits"), "", "logits", nil},
		{"features last", headed(func(f *onnx.Fragment, _ *onnx.Model) {
			f.OpTo("a", "Identity", []string{"f"})
		}, "logits", "a"), "", "logits", nil},
		{"a feature map first", headed(func(*onnx.Fragment, *onnx.Model) {}, "r", "logits"), "", "logits",
			nil},
		{"features of length 1", headed(func(f *onnx.Fragment, _ *onnx.Model) {
			linear(f, "e", 3)
			f.OpTo("a", "Div", []string{"e", length(f, "e")})
		}, "a", "logits"), "", "logits", nil},
		{"logits and probabilities", headed(func(f *onnx.Fragment, _ *onnx.Model) {
			f.OpTo("a", "Softmax", []string{"logits"}, last)
		}, "logits", "a"), "", "logits", nil},
		{"probabilities and logits", headed(func(f *onnx.Fragment, _ *onnx.Model) {
			f.OpTo("a", "Softmax", []string{"logits"}, last)
		}, "a", "logits"), "", "logits", nil},
		{"two heads", headed(func(f *onnx.Fragment, _ *onnx.Model) { linear(f, "a", 3) }, "a", "logits"),
			"", "",
			[]string{"a [N, 3]", "logits [N, 5]"}},
		{"two heads, one chosen",
			headed(func(f *onnx.Fragment, _ *onnx.Model) { linear(f, "a", 3) }, "logits", "a"), "a", "a",
			nil},
		{"an auxiliary head", headed(func(f *onnx.Fragment, _ *onnx.Model) { linear(f, "a", 5) },
			"logits", "a"),
			"", "", []string{"a [N, 5]", "logits [N, 5]"}},
		{"the largest probability, and all", headed(func(f *onnx.Fragment, _ *onnx.Model) {
			f.OpTo("all", "Softmax", []string{"logits"}, last)
			f.OpTo("a", "ReduceMax", []string{"all"}, onnx.Attr{Name: "axes", Value: []int64{1}})
		}, "a", "all"), "", "logits", nil},
		{"ZipMap", func(m *onnx.Model) {
			headed(func(f *onnx.Fragment, _ *onnx.Model) {
				f.OpTo("p", "Softmax", []string{"logits"}, last)
			}, "p")(m)
			mapped(m, "p", "v", "w", "x", "y", "z")
		}, "", "logits", nil},
	} {
		m := net.model(onnx.Free)
		tt.change(m)
		p := *model.ONNX.NewParams().(*model.ONNXParams)
		p.Path, p.Output = modeltest.File(t, m), tt.output
		x, err := model.Inspect(t.Context(), p)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if x.Trial != nil {
			x.Trial.Close()
		}
		if tt.asked == nil {
			if x.Problem != "" || x.Feed.Output != tt.want || len(x.Candidates) != 1 {
				t.Errorf("%s: %q, explains %q, %d candidates", tt.name, x.Problem, x.Feed.Output,
					len(x.Candidates))
			}
			continue
		}
		for _, c := range tt.asked {
			if !strings.Contains(x.Problem, c) || !strings.Contains(x.Problem, "--output") ||
				!slices.ContainsFunc(x.Candidates, func(d model.Candidate) bool { return d.String() == c }) {
				t.Errorf("%s: %q doesn't ask for %s", tt.name, x.Problem, c)
			}
		}
	}
}

// TestAnswersRefused holds that what no map can explain is told from the answers, by inspect as by a run.
func TestAnswersRefused(t *testing.T) {
	modeltest.Runtime(t)
	net := tiny{channels: 3, filters: 4, classes: 5, height: 6, width: 9, gain: 6}
	first := onnx.Attr{Name: "axis", Value: 0}
	for _, tt := range []struct {
		name, want string
		batch      int
		change     func(m *onnx.Model)
	}{
		{"NaN in a weight", "are NaN", onnx.Free, func(m *onnx.Model) {
			for _, t := range m.Proto.Graph.Initializer {
				if t.Name == "c" {
					t.RawData = slices.Repeat([]byte{0, 0, 0xc0, 0x7f}, 5)
				}
			}
		}},
		{"no image", "the same for images that differ", onnx.Free, func(m *onnx.Model) {
			ends(op("Mul"))(m)
			n := m.Proto.Graph.Node[len(m.Proto.Graph.Node)-1]
			m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer,
				onnx.FloatTensor("nothing", []float32{0}, 1))
			n.Input = append(n.Input, "nothing")
		}},
		{"a Softmax of one number", "the same for images that differ", onnx.Free,
			ends(shaped("Reshape", -1, 5, 1), op("Softmax", last), op("Flatten"))},
		{"a Softmax over the batch", "the same for images that differ", onnx.Free, ends(op("Softmax",
			first))},
		{"a Softmax over a fixed batch", "depends on the other images of its batch of 3", 3,
			ends(op("Softmax", first))},
		{"noise", "other numbers at every call", onnx.Free, func(m *onnx.Model) {
			headed(func(f *onnx.Fragment, _ *onnx.Model) {
				f.OpTo("noisy", "Add", []string{"logits", f.Op("RandomNormalLike", []string{"logits"})})
			}, "noisy")(m)
		}},
		{"a sequence", "is a sequence of float32 tensors, made by SplitToSequence", onnx.Free,
			func(m *onnx.Model) {
				ends(op("SplitToSequence", onnx.Attr{Name: "axis", Value: 1}))(m)
				one := &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
					TensorType: &onnxpb.TypeProto_Tensor{
						ElemType: int32(onnxpb.TensorProto_FLOAT)}}}
				m.Proto.Graph.Output[0].Type = &onnxpb.TypeProto{Value: &onnxpb.TypeProto_SequenceType{
					SequenceType: &onnxpb.TypeProto_Sequence{ElemType: proto.Clone(one).(*onnxpb.TypeProto)}}}
			}},
		{"a class", "chooses a class", onnx.Free, func(m *onnx.Model) {
			ends(op("ArgMax", onnx.Attr{Name: "axis", Value: 1}),
				op("Cast", onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)}))(m)
		}},
		{"the largest logit", "keeps one number of all classes", onnx.Free,
			ends(op("ReduceMax", onnx.Attr{Name: "axes", Value: []int64{1}}))},
	} {
		m := net.model(tt.batch)
		tt.change(m)
		p := *model.ONNX.NewParams().(*model.ONNXParams)
		p.Path = modeltest.File(t, m)
		x, err := model.Inspect(t.Context(), p)
		if err != nil || !strings.Contains(x.Problem, tt.want) {
			t.Errorf("%s: %v, %q, want %q", tt.name, err, x.Problem, tt.want)
		}
		if _, err := model.NewTrial(t.Context(), p); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: a trial says %v, want %q", tt.name, err, tt.want)
		}
	}
}
