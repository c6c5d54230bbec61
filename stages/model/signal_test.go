package model_test

import (
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/model"
)

// convolved adds a net of signals [N, c, time], and names its output.
func (g graph) convolved(from string, c int) {
	conv := g.op("Conv", []string{from, g.noise(4, c, 5)}, onnx.Attr{Name: "pads", Value: []int64{2, 2}})
	g.named(g.linear(g.op("Relu", []string{conv}), 3), "logits")
}

// TestSignalInputs holds how the axes of signals are read, and the layers of their nets.
func TestSignalInputs(t *testing.T) {
	modeltest.Runtime(t)
	turned := func(g graph) string {
		return g.op("Transpose", []string{"signal"}, onnx.Attr{Name: "perm", Value: []int64{0, 2, 1}})
	}
	for _, tt := range []struct {
		name   string
		shape  []int
		params model.ONNXParams
		build  func(g graph)
		layout string
		width  int
		chans  int
		want   string // the problem, or the shape of the final layer
	}{
		{"one channel", []int{-1, 1, 40}, model.ONNXParams{},
			func(g graph) { g.convolved("signal", 1) }, modelfile.NCT, 40, 1, "N 4 1 40"},
		{"three channels", []int{1, 3, 40}, model.ONNXParams{},
			func(g graph) { g.convolved("signal", 3) }, modelfile.NCT, 40, 3, "N 4 1 40"},
		{"channels last", []int{-1, 40, 3}, model.ONNXParams{},
			func(g graph) { g.convolved(turned(g), 3) }, modelfile.NTC, 40, 3, "N 4 1 40"},
		{"no channel", []int{-1, 40}, model.ONNXParams{}, func(g graph) {
			g.convolved(g.op("Unsqueeze", []string{"signal", g.ints(1)}), 1)
		}, modelfile.NT, 40, 1, "N 4 1 40"},
		{"open length", []int{-1, 1, -1}, model.ONNXParams{},
			func(g graph) { g.convolved("signal", 1) }, modelfile.NCT, 1000, 1, "N 4 1 1000"},
		{"a length of the user's", []int{-1, 1, -1}, model.ONNXParams{Size: picture.Size{H: 64, W: 64}},
			func(g graph) { g.convolved("signal", 1) }, modelfile.NCT, 64, 1, "N 4 1 64"},
		{"another length", []int{-1, 1, 40}, model.ONNXParams{Size: picture.Size{H: 1, W: 64}},
			func(g graph) { g.convolved("signal", 1) }, modelfile.NCT, 64, 1, "N 4 1 64"},
		{"all axes open", []int{-1, -1, -1}, model.ONNXParams{Layout: "ntc"},
			func(g graph) { g.convolved(turned(g), 1) }, modelfile.NTC, 1000, 1, "N 4 1 1000"},
		{"twelve leads", []int{-1, 12, 40}, model.ONNXParams{},
			func(g graph) { g.convolved("signal", 12) }, "", 0, 0,
			"neither 1 nor 3 channels: wrap the model so that it takes images [N, 1, channels, time]"},
	} {
		g := newGraph()
		tt.build(g)
		p := defaults(tt.params)
		if tt.params.Layout != "" {
			p.Layout = tt.params.Layout
		}
		p.Path = g.file(t, 0, value("signal", float, tt.shape...))
		x, err := model.Inspect(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if tt.layout == "" {
			if !strings.Contains(x.Problem, tt.want) {
				t.Errorf("%s: problem %q, want one with %q", tt.name, x.Problem, tt.want)
			}
			continue
		}
		f := x.Feed
		if x.Problem != "" || f.Layout != tt.layout || f.Height != 1 || f.Width != tt.width ||
			f.Channels != tt.chans || f.Classes != 3 || x.OtherSize != 0 || x.OpenHeight {
			t.Fatalf("%s: problem %q, fed as %+v", tt.name, x.Problem, f)
		}
		if got := strings.Join(x.Final.Shape, " "); got != tt.want || x.Gradient != "" {
			t.Errorf("%s: final layer %s, want %s; gradient %q", tt.name, got, tt.want, x.Gradient)
		}
		x.Trial.Close()
	}
}

// TestSignalsRefused holds the errors of inputs that are no signals as the parameters state them.
func TestSignalsRefused(t *testing.T) {
	modeltest.Runtime(t)
	for _, tt := range []struct {
		name, want string
		params     model.ONNXParams
		elem       onnxpb.TensorProto_DataType
	}{
		{"layout", "layout is nchw, and input \"signal\" of shape [-1 1 40] has another: nct or ntc",
			model.ONNXParams{Layout: "nchw"}, float},
		{"size", "size is 2x40, and the model takes signals, which have one row",
			model.ONNXParams{Size: picture.Size{H: 2, W: 40}}, float},
		{"input", "images have 4 dimensions, and signals 3 or 2, of floating point",
			model.ONNXParams{Input: "signal"}, onnxpb.TensorProto_INT32},
	} {
		g := newGraph()
		g.convolved("signal", 1)
		p := defaults(tt.params)
		if tt.params.Layout != "" {
			p.Layout = tt.params.Layout
		}
		p.Path = g.file(t, 0, value("signal", tt.elem, -1, 1, 40))
		if _, err := model.Inspect(t.Context(), p); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}
