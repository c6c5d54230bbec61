package rewrite

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// TestHalf holds every number of half precision against IEEE 754's definition.
func TestHalf(t *testing.T) {
	for v := range 1 << 16 {
		sign, exponent, fraction := 1.0, v>>10&31, float64(v&1023)/1024
		if v>>15 == 1 {
			sign = -1
		}
		var want float64
		switch {
		case exponent == 31 && fraction != 0:
			want = math.NaN()
		case exponent == 31:
			want = math.Inf(int(sign))
		case exponent == 0:
			want = sign * math.Ldexp(fraction, -14)
		default:
			want = sign * math.Ldexp(1+fraction, exponent-15)
		}
		got := float64(onnx.FromFloat16(uint16(v)))
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) || math.Signbit(got) != math.Signbit(want) &&
			!math.IsNaN(want) {
			t.Fatalf("%#04x is %g, want %g", v, got, want)
		}
	}
}

func TestSingle(t *testing.T) {
	raw := func(dataType onnxpb.TensorProto_DataType, v ...uint16) *onnxpb.TensorProto {
		w := &onnxpb.TensorProto{Name: dataType.String(), DataType: int32(dataType),
			Dims: []int64{int64(len(v))}}
		for _, x := range v {
			w.RawData = binary.LittleEndian.AppendUint16(w.RawData, x)
		}
		return w
	}
	listed := &onnxpb.TensorProto{Name: "listed", DataType: int32(onnxpb.TensorProto_FLOAT16),
		Dims: []int64{2}, Int32Data: []int32{0x3c00, 0xc000}}
	double := &onnxpb.TensorProto{Name: "double", DataType: int32(onnxpb.TensorProto_DOUBLE),
		Dims: []int64{2}, DoubleData: []float64{1, -2}}
	held := raw(onnxpb.TensorProto_FLOAT16, 0x3c00, 0xc000)
	constant := &onnxpb.NodeProto{OpType: "Constant", Output: []string{"c"},
		Attribute: []*onnxpb.AttributeProto{{Name: "value", Type: onnxpb.AttributeProto_TENSOR, T: held}}}
	cast := onnx.NewNode("cast", "Cast", []string{"x"}, []string{"y"},
		attr("to", int(onnxpb.TensorProto_FLOAT16)))
	other := onnx.NewNode("other", "Cast", []string{"x"}, []string{"z"},
		attr("to", int(onnxpb.TensorProto_INT64)))
	whole := ints("whole", 1)
	all := []*onnxpb.TensorProto{raw(onnxpb.TensorProto_FLOAT16, 0x3c00, 0xc000),
		raw(onnxpb.TensorProto_BFLOAT16, 0x3f80, 0xc000), listed, double}
	m := model(17, []*onnxpb.NodeProto{constant, cast, other}, append(all, whole)...)
	m.SetInputs(onnx.Value{Name: "x", Elem: onnxpb.TensorProto_FLOAT16, Shape: []int{2}, Known: true})
	changed, err := SinglePrecision(m)
	if err != nil || !changed {
		t.Fatalf("changed %v, error %v", changed, err)
	}
	for _, w := range append(all, held) {
		if v, err := onnx.Float32s(w); err != nil || len(v) != 2 || v[0] != 1 || v[1] != -2 {
			t.Errorf("%s: %v, %v", w.Name, v, err)
		}
	}
	if got := m.Inputs()[0].Elem; got != onnxpb.TensorProto_FLOAT {
		t.Errorf("the input is %s", got)
	}
	if to := cast.Attribute[0].GetI(); to != int64(onnxpb.TensorProto_FLOAT) {
		t.Errorf("casts to %d", to)
	}
	if to := other.Attribute[0].GetI(); to != int64(onnxpb.TensorProto_INT64) ||
		whole.DataType != int32(onnxpb.TensorProto_INT64) {
		t.Error("integers were changed")
	}
	if changed, err := SinglePrecision(m); err != nil || changed {
		t.Errorf("a second time: changed %v, error %v", changed, err)
	}
	short := raw(onnxpb.TensorProto_FLOAT16, 1)
	short.Dims = []int64{5}
	if _, err := SinglePrecision(model(17, nil, short)); err == nil {
		t.Error("a weight that is too short is taken")
	}
	short.Dims = []int64{math.MaxInt64, math.MaxInt64}
	if _, err := SinglePrecision(model(17, nil, short)); err == nil {
		t.Error("a weight of impossible shape is taken")
	}
}
