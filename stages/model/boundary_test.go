package model_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// begins returns a change of a net that puts nodes between a new input "fed" and its pixels.
func begins(elem onnxpb.TensorProto_DataType, shape []int, ops ...endOp) func(m *onnx.Model) {
	return func(m *onnx.Model) {
		f := m.Fragment()
		x := "fed"
		for _, op := range ops {
			x = op(f, m, x)
		}
		f.OpTo("pixels", "Identity", []string{x})
		m.Before(f)
		m.SetInputs(onnx.Value{Name: "fed", Elem: elem, Shape: shape, Known: true})
	}
}

// dequantised converts integers to floats by a scale and a zero point.
func dequantised(scale float32, zero byte, elem onnxpb.TensorProto_DataType) endOp {
	return func(f *onnx.Fragment, m *onnx.Model, x string) string {
		m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer,
			&onnxpb.TensorProto{Name: "zero", DataType: int32(elem), RawData: []byte{zero}})
		return f.Op("DequantizeLinear", []string{x, f.Floats("scale", []float32{scale}), "zero"})
	}
}

// TestBoundaries checks the Spec derived from a net's input.
func TestBoundaries(t *testing.T) {
	modeltest.Runtime(t)
	net, grey := tiny{channels: 3, filters: 4, classes: 5, height: 6, width: 9, gain: 6}, tiny{channels: 1,
		filters: 4, classes: 5, height: 6, width: 9, gain: 6}
	const float, u8, i8 = onnxpb.TensorProto_FLOAT, onnxpb.TensorProto_UINT8, onnxpb.TensorProto_INT8
	last := op("Transpose", onnx.Attr{Name: "perm", Value: []int64{0, 3, 1, 2}})
	single := op("Cast", onnx.Attr{Name: "to", Value: int(float)})
	wider := op("Cast", onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_INT32)})
	over255 := func(f *onnx.Fragment, _ *onnx.Model, x string) string {
		return f.Op("Div", []string{x, f.Floats("white", []float32{255})})
	}
	free := onnx.Free
	size := picture.Size{H: 6, W: 9}
	fed := func(s modelfile.Spec) modelfile.Spec { s.Input = "fed"; return s }
	nhwc := fed(modelfile.Spec{Layout: modelfile.NHWC})
	for _, tt := range []struct {
		name   string
		net    tiny
		batch  int
		begin  func(m *onnx.Model)
		params model.ONNXParams
		spec   modelfile.Spec
	}{
		{"NCHW", net, free, nil, model.ONNXParams{}, modelfile.Spec{}},
		{"NHWC", net, free, begins(float, []int{free, 6, 9, 3}, last), model.ONNXParams{}, nhwc},
		{"one channel", grey, free, nil, model.ONNXParams{}, modelfile.Spec{}},
		{"one channel, last", grey, free, begins(float, []int{free, 6, 9, 1}, last), model.ONNXParams{},
			nhwc},
		{"an open size", net, free, begins(float, []int{free, 3, free, free}), model.ONNXParams{Size: size},
			fed(modelfile.Spec{})},
		{"an open size, NHWC", net, free, begins(float, []int{free, free, free, 3}, last),
			model.ONNXParams{Size: size}, nhwc},
		{"a fixed height", net, free, begins(float, []int{free, 3, 6, free}), model.ONNXParams{Size: size},
			fed(modelfile.Spec{})},
		{"a fixed height that one number leaves", net, free, begins(float, []int{free, 3, 6, free}),
			model.ONNXParams{Size: picture.Size{H: 9, W: 9}}, fed(modelfile.Spec{})},
		{"a fixed width that one number leaves", net, free, begins(float, []int{free, free, 9, 3}, last),
			model.ONNXParams{Size: picture.Size{H: 6, W: 6}}, nhwc},
		{"another size than the file's", net, free, begins(float, []int{free, 3, 7, 7}),
			model.ONNXParams{Size: size}, fed(modelfile.Spec{})},
		{"everything open", net, free, begins(float, []int{free, free, free, free}),
			model.ONNXParams{Size: size}, fed(modelfile.Spec{})},
		{"a batch of 1", net, 1, nil, model.ONNXParams{}, modelfile.Spec{Batch: 1}},
		{"a batch of 3", net, 3, nil, model.ONNXParams{}, modelfile.Spec{Batch: 3}},
		{"bytes", net, free, begins(u8, []int{free, 3, 6, 9}, single, over255),
			model.ONNXParams{Preset: "raw"}, fed(modelfile.Spec{})},
		{"bytes, NHWC", net, free, begins(u8, []int{free, 6, 9, 3}, last, single, over255),
			model.ONNXParams{Preset: "raw"}, nhwc},
		{"bytes in wider integers", net, free, begins(u8, []int{free, 6, 9, 3}, wider, last, single, over255),
			model.ONNXParams{Preset: "raw"}, nhwc},
		{"bytes with a scale", net, free, begins(u8, []int{free, 6, 9, 3}, dequantised(1./255, 0, u8), last),
			model.ONNXParams{}, nhwc},
		{"signed bytes with a scale", net, free,
			begins(i8, []int{free, 3, 6, 9}, dequantised(1./255, 128, i8)), model.ONNXParams{},
			fed(modelfile.Spec{})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := tt.net.model(tt.batch)
			if tt.begin != nil {
				tt.begin(m)
			}
			tt.net.check(t, m, tt.params, tt.spec, softmaxOf)
		})
	}
}

// recurrent reads the rows of a net's feature maps with an LSTM. ONNX Runtime runs it on rows of any height,
// reading beyond its weights.
func recurrent(m *onnx.Model) {
	f := m.Fragment()
	rows := f.Op("ReduceMean", []string{"r"}, onnx.Attr{Name: "axes", Value: []int64{1}},
		onnx.Attr{Name: "keepdims", Value: 0})
	sequence := f.Op("Transpose", []string{rows}, onnx.Attr{Name: "perm", Value: []int64{2, 0, 1}})
	weights := make([]float32, 4*5*6)
	for i := range weights {
		weights[i] = float32(i%7) / 10
	}
	state := f.Op("LSTM",
		[]string{sequence, f.Floats("w", weights, 1, 20, 6), f.Floats("r", weights[:100], 1, 20, 5)},
		onnx.Attr{Name: "hidden_size", Value: 5})
	last := f.Op("Gather", []string{state, f.Ints("last", []int64{-1}, 1)}, onnx.Attr{Name: "axis", Value: 0})
	rowed := f.Op("Reshape", []string{last, f.Ints("shape", []int64{-1, 5}, 2)})
	f.OpTo("answer", "MatMul", []string{rowed, f.Floats("v", weights[:25], 5, 5)})
	m.After(f)
	m.SetOutputs(onnx.Value{Name: "answer", Elem: onnxpb.TensorProto_FLOAT})
}

// TestBoundariesRefused checks that inputs that can't be images and outputs that can't be answers are
// rejected at their parameter before the model runs.
func TestBoundariesRefused(t *testing.T) {
	modeltest.Runtime(t)
	net := tiny{channels: 3, filters: 4, classes: 5, height: 6, width: 9, gain: 6}
	const float = onnxpb.TensorProto_FLOAT
	free := onnx.Free
	whole := onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_INT64)}
	typed := func(elem onnxpb.TensorProto_DataType, end func(m *onnx.Model)) func(m *onnx.Model) {
		return func(m *onnx.Model) {
			end(m)
			m.SetOutputs(onnx.Value{Name: m.Outputs()[0].Name, Elem: elem})
		}
	}
	for _, tt := range []struct {
		name, field, want string
		change            func(m *onnx.Model)
		params            model.ONNXParams
	}{
		{"ArgMax", "output",
			`has the type INT64, made by ArgMax "runexp_ArgMax": a floating-point number per ` +
				`class is needed`,
			typed(onnxpb.TensorProto_INT64, ends(op("ArgMax", onnx.Attr{Name: "axis", Value: 1}))),
			model.ONNXParams{}},
		{"whole labels", "output", "has the type INT64",
			typed(onnxpb.TensorProto_INT64, ends(op("Cast", whole))),
			model.ONNXParams{}},
		{"no size", "size", "the model's input has an open height and width",
			begins(float, []int{free, 3, free, free}), model.ONNXParams{}},
		{"no width", "size", "has height 6 and an open width",
			begins(float, []int{free, 3, 6, free}), model.ONNXParams{}},
		{"no height", "size", "has an open height and width 9",
			begins(float, []int{free, free, 9, 3}), model.ONNXParams{}},
		{"another height", "size", "size is 8x9, but the model's input has height 6",
			begins(float, []int{free, 3, 6, free}), model.ONNXParams{Size: picture.Size{H: 8, W: 9}}},
		{"another size for a recurrent layer", "size",
			`size is 12, but the model only takes images of 6x9: its LSTM "runexp_LSTM" reads places as a ` +
				`sequence`, recurrent, model.ONNXParams{Size: picture.Size{H: 12, W: 12}}},
	} {
		m := net.model(free)
		tt.change(m)
		p := *model.ONNX.NewParams().(*model.ONNXParams)
		p.Path, p.Size = modeltest.File(t, m), tt.params.Size
		_, err := stagetest.Try(model.ONNX, &p, nil)
		var field *stages.FieldError
		if !errors.As(err, &field) || field.Field != tt.field || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one of %s with %q", tt.name, err, tt.field, tt.want)
		}
	}
	m := net.model(free)
	recurrent(m)
	x, err := model.Inspect(t.Context(),
		model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit", Layout: "auto", Order: "auto",
			Kind: "auto"})
	if err != nil || x.Problem != "" || x.OtherSize != 0 {
		t.Errorf("a recurrent net: %v, %q, also %d", err, x.Problem, x.OtherSize)
	}
}

// TestOpenAxes checks that inspection reports which of height and width are open.
func TestOpenAxes(t *testing.T) {
	modeltest.Runtime(t)
	net := tiny{channels: 3, filters: 4, classes: 5, height: 6, width: 9, gain: 6}
	for _, tt := range []struct {
		shape         []int
		height, width bool
	}{
		{[]int{onnx.Free, 3, 6, onnx.Free}, false, true},
		{[]int{onnx.Free, 3, onnx.Free, 9}, true, false},
		{[]int{onnx.Free, 3, onnx.Free, onnx.Free}, true, true},
		{[]int{onnx.Free, 3, 6, 9}, false, false},
	} {
		m := net.model(onnx.Free)
		begins(onnxpb.TensorProto_FLOAT, tt.shape)(m)
		x, err := model.Inspect(t.Context(),
			model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit", Layout: "auto", Order: "auto",
				Kind: "auto"})
		if err != nil || x.Problem != "" || x.OpenHeight != tt.height || x.OpenWidth != tt.width {
			t.Errorf("%v: %v, %q, height open %t, width open %t", tt.shape, err, x.Problem, x.OpenHeight,
				x.OpenWidth)
		}
		if !tt.height && x.Feed.Height != 6 || !tt.width && x.Feed.Width != 9 {
			t.Errorf("%v: tried at %d×%d", tt.shape, x.Feed.Height, x.Feed.Width)
		}
	}
}
