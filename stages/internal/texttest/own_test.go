package texttest

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

var update = flag.Bool("update", false, "write the networks of our own anew")

// Sizes of the networks.
const (
	vocabulary = 119
	width      = 32
	heads      = 4
	inner      = 37
	length     = 32 // of fixed
	size       = 64 // of bytes
)

// TestOwn holds the files of our own networks to the code that writes them.
func TestOwn(t *testing.T) {
	for name, write := range map[string]func() *writer{"fixed": fixed, "bag": bag, "bytes": byteNet} {
		b, err := write().m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			var z bytes.Buffer
			w, _ := gzip.NewWriterLevel(&z, gzip.BestCompression)
			w.Write(b)
			w.Close()
			path := filepath.Join(Folder(t), name+".own.onnx.gz")
			if err := os.WriteFile(path, z.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(ONNX(t, name+".own"), b) {
			t.Errorf("%s.own isn't what is written: go test ./stages/internal/texttest -run Own -update",
				name)
		}
	}
}

// A writer makes a network; its weights are multiples of 1/256.
type writer struct {
	m *onnx.Model
	r *rand.Rand
}

func newWriter(opset int64, seed uint64) *writer {
	return &writer{m: &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 7, ProducerName: "runexp",
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: opset}},
		Graph:       &onnxpb.GraphProto{Name: "text"}}},
		r: rand.New(rand.NewPCG(seed, 0))}
}

// weight adds a normal weight of a scale around a mean.
func (w *writer) weight(name string, mean, scale float64, shape ...int) string {
	n := 1
	for _, d := range shape {
		n *= d
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(math.Round(256*(mean+scale*w.r.NormFloat64())) / 256)
	}
	return w.add(onnx.FloatTensor(name, v, shape...))
}

func (w *writer) floats(name string, v ...float32) string {
	return w.add(onnx.FloatTensor(name, v, len(v)))
}

func (w *writer) ints(name string, v ...int64) string {
	return w.add(onnx.IntTensor(name, v, len(v)))
}

func (w *writer) add(t *onnxpb.TensorProto) string {
	w.m.Proto.Graph.Initializer = append(w.m.Proto.Graph.Initializer, t)
	return t.Name
}

// op adds a node and returns its output, which is called name.
func (w *writer) op(name, op string, in []string, attrs ...onnx.Attr) string {
	w.m.Proto.Graph.Node = append(w.m.Proto.Graph.Node, onnx.NewNode(name, op, in, []string{name}, attrs...))
	return name
}

// linear multiplies rows of n values and adds a bias.
func (w *writer) linear(name, x string, n, out int) string {
	y := w.op(name+".product", "MatMul",
		[]string{x, w.weight(name+".weight", 0, 1.6/math.Sqrt(float64(n)), n, out)})
	return w.op(name, "Add", []string{y, w.weight(name+".bias", 0, 0.2, out)})
}

// norm is layer normalisation in the operators that older exporters write.
func (w *writer) norm(name, x string) string {
	last := onnx.Attr{Name: "axes", Value: []int64{-1}}
	d := w.op(name+".centred", "Sub", []string{x, w.op(name+".mean", "ReduceMean", []string{x}, last)})
	v := w.op(name+".variance", "ReduceMean", []string{w.op(name+".square", "Mul", []string{d, d})}, last)
	s := w.op(name+".deviation", "Sqrt",
		[]string{w.op(name+".sum", "Add", []string{v, w.floats(name+".epsilon", 1e-12)})})
	n := w.op(name+".normal", "Div", []string{d, s})
	scaled := w.op(name+".scaled", "Mul", []string{n, w.weight(name+".weight", 1, 0.2, width)})
	return w.op(name, "Add", []string{scaled, w.weight(name+".bias", 0, 0.2, width)})
}

// gelu is its form with tanh.
func (w *writer) gelu(name, x string) string {
	cube := w.op(name+".cube", "Mul", []string{x, w.op(name+".square", "Mul", []string{x, x})})
	sum := w.op(name+".sum", "Add",
		[]string{x, w.op(name+".part", "Mul", []string{cube, w.floats(name+".coefficient", 0.044715)})})
	inner := w.op(name+".inner", "Mul", []string{sum, w.floats(name+".root", float32(math.Sqrt(2/math.Pi)))})
	t := w.op(name+".gate", "Add",
		[]string{w.op(name+".tanh", "Tanh", []string{inner}), w.floats(name+".one", 1)})
	double := w.op(name+".double", "Mul", []string{x, t})
	return w.op(name, "Mul", []string{double, w.floats(name+".half", 0.5)})
}

// finish sets the inputs, integers of a type and a length, and the logits.
func (w *writer) finish(elem onnxpb.TensorProto_DataType, n, classes int, inputs ...string) *writer {
	var values []onnx.Value
	for _, name := range inputs {
		values = append(values, onnx.Value{Name: name, Elem: elem, Known: true, Shape: []int{onnx.Free, n}})
	}
	w.m.SetInputs(values...)
	w.m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT, Known: true,
		Shape: []int{onnx.Free, classes}})
	return w
}

// fixed is a BERT of one length that averages the tokens of the mask.
func fixed() *writer {
	w := newWriter(12, 1)
	x := w.op("words", "Gather", []string{w.weight("words.weight", 0, 1, vocabulary, width), "input_ids"})
	types := w.op("types", "Gather", []string{w.weight("types.weight", 0, 0.5, 2, width), "token_type_ids"})
	x = w.op("typed", "Add", []string{x, types})
	x = w.op("placed", "Add", []string{x, w.weight("positions", 0, 0.5, 1, length, width)})
	x = w.norm("embeddings", x)
	// −10000 at pads, in the form of TensorFlow's models.
	zero := w.add(&onnxpb.TensorProto{Name: "zero", DataType: int32(onnxpb.TensorProto_INT32),
		RawData: make([]byte, 4)})
	pads := w.op("pads", "Equal", []string{"attention_mask", zero})
	mask := w.op("mask", "Where", []string{pads, w.floats("hidden", -10000), w.floats("shown", 0)})
	mask = w.op("mask4", "Unsqueeze", []string{mask}, onnx.Attr{Name: "axes", Value: []int64{1, 2}})
	for i := range 2 {
		name := fmt.Sprint("block", i)
		x = w.norm(name+".norm1", w.op(name+".residual1", "Add", []string{x, w.attention(name, x, mask)}))
		h := w.gelu(name+".gelu", w.linear(name+".up", x, width, inner))
		x = w.norm(name+".norm2",
			w.op(name+".residual2", "Add", []string{x, w.linear(name+".down", h, inner, width)}))
	}
	shown := w.op("float", "Cast", []string{"attention_mask"},
		onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)})
	count := w.op("count", "ReduceSum", []string{shown}, onnx.Attr{Name: "axes", Value: []int64{1}})
	column := w.op("column", "Unsqueeze", []string{shown}, onnx.Attr{Name: "axes", Value: []int64{2}})
	sum := w.op("sum", "ReduceSum", []string{w.op("kept", "Mul", []string{x, column})},
		onnx.Attr{Name: "axes", Value: []int64{1}}, onnx.Attr{Name: "keepdims", Value: 0})
	mean := w.op("pooled", "Div", []string{sum, count})
	w.linear("logits", w.op("tanh", "Tanh", []string{w.linear("pooler", mean, width, width)}), width, 3)
	return w.finish(onnxpb.TensorProto_INT32, length, 3, "input_ids", "attention_mask", "token_type_ids")
}

func (w *writer) attention(name, x, mask string) string {
	split := w.ints(name+".split", 0, length, heads, width/heads)
	part := func(of string, perm ...int64) string {
		y := w.op(name+of+".heads", "Reshape", []string{w.linear(name+of, x, width, width), split})
		return w.op(name+of+".turned", "Transpose", []string{y}, onnx.Attr{Name: "perm", Value: perm})
	}
	scores := w.op(name+".scores", "MatMul", []string{part(".query", 0, 2, 1, 3), part(".key", 0, 2, 3, 1)})
	scores = w.op(name+".scaled", "Mul",
		[]string{scores, w.floats(name+".scale", float32(1/math.Sqrt(width/heads)))})
	masked := w.op(name+".masked", "Add", []string{scores, mask})
	weights := w.op(name+".attention", "Softmax", []string{masked},
		onnx.Attr{Name: "axis", Value: 3})
	y := w.op(name+".mixed", "MatMul", []string{weights, part(".value", 0, 2, 1, 3)})
	y = w.op(name+".back", "Transpose", []string{y}, onnx.Attr{Name: "perm", Value: []int64{0, 2, 1, 3}})
	y = w.op(name+".joined", "Reshape", []string{y, w.ints(name+".join", 0, length, width)})
	return w.linear(name+".output", y, width, width)
}

// bag averages what a convolution finds, over all tokens: it has no mask.
func bag() *writer {
	w := newWriter(13, 2)
	x := w.op("words", "Gather", []string{w.weight("words.weight", 0, 1, vocabulary, 16), "ids"})
	x = w.op("channels", "Transpose", []string{x}, onnx.Attr{Name: "perm", Value: []int64{0, 2, 1}})
	x = w.op("conv", "Conv",
		[]string{x, w.weight("conv.weight", 0, 0.3, 24, 16, 3), w.weight("conv.bias", 0, 0.2, 24)},
		onnx.Attr{Name: "pads", Value: []int64{1, 1}})
	x = w.op("pooled", "ReduceMean", []string{w.op("relu", "Relu", []string{x})},
		onnx.Attr{Name: "axes", Value: []int64{2}}, onnx.Attr{Name: "keepdims", Value: 0})
	w.op("logits", "Gemm",
		[]string{x, w.weight("logits.weight", 0, 0.5, 24, 3), w.weight("logits.bias", 0, 0.2, 3)})
	return w.finish(onnxpb.TensorProto_INT64, onnx.Free, 3, "ids")
}

// byteNet reads bytes, and 256 after the end, as one of 257 columns, and keeps each channel's largest value.
func byteNet() *writer {
	w := newWriter(15, 3)
	numbers := &onnxpb.TensorProto{Name: "numbers", Dims: []int64{1, 1, 257},
		DataType: int32(onnxpb.TensorProto_INT32)}
	for i := range 257 {
		numbers.RawData = append(numbers.RawData, byte(i), byte(i>>8), 0, 0)
	}
	column := w.op("column", "Unsqueeze", []string{"bytes", w.ints("last", 2)})
	one := w.op("one", "Cast", []string{w.op("equal", "Equal", []string{column, w.add(numbers)})},
		onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)})
	x := w.op("embedded", "MatMul", []string{one, w.weight("table", 0, 1, 257, 12)})
	x = w.gelu("gelu1", w.op("biased", "Add", []string{x, w.weight("table.bias", 0, 0.2, 12)}))
	x = w.op("channels", "Transpose", []string{x}, onnx.Attr{Name: "perm", Value: []int64{0, 2, 1}})
	x = w.op("conv", "Conv",
		[]string{x, w.weight("conv.weight", 0, 0.3, 24, 12, 5), w.weight("conv.bias", 0, 0.2, 24)})
	x = w.op("pooled", "GlobalMaxPool", []string{w.gelu("gelu2", x)})
	x = w.op("flat", "Flatten", []string{x})
	w.op("logits", "Gemm",
		[]string{x, w.weight("logits.weight", 0, 0.15, 24, 4), w.weight("logits.bias", 0, 0.2, 4)})
	return w.finish(onnxpb.TensorProto_INT32, size, 4, "bytes")
}
