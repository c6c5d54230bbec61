package program_test

import (
	"fmt"
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestRecurrent holds that recurrent layers, in every direction, with and without biases and states to start
// from, have the answers of ONNX Runtime's own kernels in programs, and the derivatives that differences of
// these show.
func TestRecurrent(t *testing.T) {
	modeltest.Runtime(t)
	const width, size = 27, 4
	for _, layer := range []struct {
		op     string
		gates  int
		states int
		attrs  []onnx.Attr
		texts  []string
	}{
		{"LSTM", 4, 2, nil, nil},
		{"GRU", 3, 1, nil, nil},
		{"GRU", 3, 1, []onnx.Attr{{Name: "linear_before_reset", Value: 1}}, nil},
		{"RNN", 1, 1, nil, nil},
		{"RNN", 1, 1, nil, []string{"Sigmoid"}},
	} {
		for _, direction := range []string{"forward", "reverse", "bidirectional"} {
			for some := range 4 { // with biases, with states
				last := some == 0 || some == 3 // the last state, or all
				ways := 1
				if direction == "bidirectional" {
					ways = 2
				}
				all := layer.gates * size
				weights := []*onnxpb.TensorProto{
					modeltest.Noise("w", 0.37, ways, all, width), modeltest.Noise("r", 0.73, ways, all, size),
					modeltest.Noise("b", 0.21, ways, 2*all), modeltest.Noise("h0", 0.5, ways, 2, size),
					modeltest.Noise("c0", 0.6, ways, 2, size), modeltest.Noise("v", 0.9, ways*size, 3),
					onnx.IntTensor("long", []int64{8, 2, width}, 3),
					onnx.IntTensor("high", []int64{2, 3, 1, 1}, 4),
					onnx.IntTensor("flat", []int64{2, int64(ways * size)}, 2),
					onnx.IntTensor("axis", []int64{0}, 1)}
				in := []string{"rows", "w", "r", "", "", "", ""}[:5+layer.states]
				if some&1 != 0 {
					in[3] = "b"
				}
				if some&2 != 0 {
					in[5] = "h0"
					if layer.states > 1 {
						in[6] = "c0"
					}
				}
				attrs := append([]onnx.Attr{{Name: "direction", Value: direction},
					{Name: "hidden_size", Value: size}}, layer.attrs...)
				node := onnx.NewNode("layer", layer.op, in, []string{"all", "end"}, attrs...)
				if layer.texts != nil {
					a := &onnxpb.AttributeProto{Name: "activations", Type: onnxpb.AttributeProto_STRINGS}
					for range ways {
						a.Strings = append(a.Strings, []byte(layer.texts[0]))
					}
					node.Attribute = append(node.Attribute, a)
				}
				read := []*onnxpb.NodeProto{onnx.NewNode("turn", "Transpose", []string{"end"}, []string{"e"},
					onnx.Attr{Name: "perm", Value: []int64{1, 0, 2}})}
				if !last {
					read = []*onnxpb.NodeProto{
						onnx.NewNode("mean over steps", "ReduceMean", []string{"all"}, []string{"most"},
							onnx.Attr{Name: "axes", Value: []int64{0}}, onnx.Attr{Name: "keepdims",
								Value: 0}),
						onnx.NewNode("turn", "Transpose", []string{"most"}, []string{"e"},
							onnx.Attr{Name: "perm", Value: []int64{1, 0, 2}})}
				}
				nodes := append([]*onnxpb.NodeProto{
					onnx.NewNode("columns", "Transpose", []string{"input"}, []string{"t"},
						onnx.Attr{Name: "perm", Value: []int64{2, 0, 1, 3}}),
					onnx.NewNode("sequence", "Reshape", []string{"t", "long"}, []string{"rows"}), node},
					read...)
				nodes = append(nodes, onnx.NewNode("flatten", "Reshape", []string{"e", "flat"},
					[]string{"g"}),
					onnx.NewNode("linear", "MatMul", []string{"g", "v"}, []string{"s"}),
					onnx.NewNode("back", "Reshape", []string{"s", "high"}, []string{"c"}))
				n := pair3(t, 17, weights, nodes...)
				slot := threaded{1, stagetest.NewSlot()}
				y, d := differentiate(t, n, slot, lower.Question{Rules: relevance.Derivative()}, 2, 2)
				name := fmt.Sprint(layer.op, attrs, layer.texts, some, last)
				if e := deviation(y, classify(t, n, slot, 2, 2)); e > 2e-6 {
					t.Errorf("%s: answers deviate by %.1e from ONNX Runtime's", name, e)
				}
				if e := slopeError(t, n, slot, d); e > 2e-2 {
					t.Errorf("%s: derivatives deviate by %.1e from differences", name, e)
				}
			}
		}
	}
}

// pair3 is small3 for a batch of two alone.
func pair3(t *testing.T, opset int64, weights []*onnxpb.TensorProto,
	nodes ...*onnxpb.NodeProto) *program.Net {
	t.Helper()
	n, _ := small3of(t, 2, opset, weights, nodes...)
	return n
}

// slopeError returns how far the derivatives d, of two images' own classes, are from those along directions
// of noise that the file's own answers show.
func slopeError(t *testing.T, n *program.Net, slot threaded, d []float32) float64 {
	t.Helper()
	f, err := n.Forward(t.Context(), slot, 2)
	if err != nil {
		t.Fatal(err)
	}
	const step = 2e-3
	var got, want []float32
	for trial := range 4 {
		at := [2][2]float64{}
		slope := [2]float64{}
		for side, sign := range []float64{1, -1} {
			for i := range 2 {
				image := f.Image(i)
				wave(i, image)
				noise := make([]float32, len(image))
				wave(7+3*trial+i, noise)
				if side == 0 {
					for p, v := range noise {
						slope[i] += float64(v) * float64(d[i*len(image)+p])
					}
				}
				for p, v := range noise {
					image[p] += float32(sign*step) * v
				}
			}
			if err := f.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				at[i][side] = float64(f.Row(i)[i])
			}
		}
		for i := range 2 {
			got = append(got, float32(slope[i]))
			want = append(want, float32((at[i][0]-at[i][1])/(2*step)))
		}
	}
	return deviation(got, want)
}
