package program_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

// through writes a net with a node behind a convolution, [N,33,size,size]; the node's other inputs are given.
// Its answers are sums of the squares of the node's output, that many an image.
func through(t *testing.T, opset, size, columns int, n *onnxpb.NodeProto,
	others ...*onnxpb.TensorProto) model.ONNXParams {
	t.Helper()
	n.Input, n.Output = []string{"conv"}, []string{"y"}
	switch n.OpType {
	case "Log", "Sqrt", "Pow", "Reciprocal", "ReduceLogSum":
		n.Input[0] = "positive"
	case "Asin", "Acos":
		n.Input[0] = "below one"
	}
	for _, o := range others {
		n.Input = append(n.Input, o.Name)
	}
	return throughAll(t, opset, size, columns, []*onnxpb.NodeProto{n}, others...)
}

// throughAll does so with several nodes, from conv to y.
func throughAll(t *testing.T, opset, size, columns int, between []*onnxpb.NodeProto,
	others ...*onnxpb.TensorProto) model.ONNXParams {
	t.Helper()
	node := func(op, out string,
		in ...string) *onnxpb.NodeProto {
		return onnx.NewNode("", op, in, []string{out})
	}
	others = slices.DeleteFunc(slices.Clone(others),
		func(o *onnxpb.TensorProto) bool { return o.Name == "" }) // one left out
	nodes := slices.Concat([]*onnxpb.NodeProto{node("Conv", "conv", "input", "w"),
		node("Exp", "positive", "conv"), node("Tanh", "below one", "conv")}, between,
		[]*onnxpb.NodeProto{node("Flatten", "flat", "y"), node("Mul", "square", "flat", "flat"),
			node("MatMul", "logits", "square", "v")})
	m := &onnx.Model{Proto: &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: int64(opset)}},
		Graph: &onnxpb.GraphProto{Name: "g", Node: nodes, Initializer: append(others,
			modeltest.Noise("w", 0.7, 33, 3, 1, 1), modeltest.Noise("v", 0.9, columns, 3))},
	}}
	float := onnxpb.TensorProto_FLOAT
	for _, n := range between {
		if n.Domain != "" {
			m.Import(n.Domain, 1)
		}
	}
	m.SetInputs(onnx.Value{Name: "input", Elem: float, Shape: []int{-1, 3, size, size}, Known: true})
	m.SetOutputs(onnx.Value{Name: "logits", Elem: float, Shape: []int{-1, 3}, Known: true})
	return model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit", Size: picture.Size{H: size, W: size}}
}

// TestBatchInvariant checks that the answers to an image and their derivatives have the same bits at every
// position of batches of every size and on any number of threads, for each operator whose own kernels'
// results don't; and that they are those of the file.
func TestBatchInvariant(t *testing.T) {
	modeltest.Runtime(t)
	float := func(name string, v float32) onnx.Attr { return onnx.Attr{Name: name, Value: v} }
	axes, flat := onnx.Attr{Name: "axes", Value: []int64{1}}, onnx.Attr{Name: "keepdims", Value: 0}
	for _, tt := range stagetest.Sample(t, 4, []struct {
		name  string
		opset int
		op    string
		attrs []onnx.Attr
	}{
		{"Elu", 17, "Elu", []onnx.Attr{float("alpha", 0.7)}},
		{"Selu", 17, "Selu", nil},
		{"Selu, other", 17, "Selu", []onnx.Attr{float("alpha", 1.2), float("gamma", 0.9)}},
		{"Celu", 17, "Celu", []onnx.Attr{float("alpha", 1.3)}},
		{"Softplus", 17, "Softplus", nil},
		{"Mish", 18, "Mish", nil},
		{"Log", 17, "Log", nil},
		{"Sin", 17, "Sin", nil},
		{"Cos", 17, "Cos", nil},
		{"Asin", 17, "Asin", nil},
		{"Acos", 17, "Acos", nil},
		{"Atan", 17, "Atan", nil},
		{"LRN", 17, "LRN",
			[]onnx.Attr{{Name: "size", Value: 5}, float("alpha", 0.5), float("beta", 0.6), float("bias", 2)}},
		{"ReduceMean", 17, "ReduceMean", []onnx.Attr{axes}},
		{"ReduceMean, from the end", 17, "ReduceMean", []onnx.Attr{{Name: "axes", Value: []int64{-3}}, flat}},
		{"ReduceSum", 11, "ReduceSum", []onnx.Attr{axes}},
	}) {
		for _, side := range []int{7, 20, 51} {
			t.Run(fmt.Sprint(tt.name, "/", side), func(t *testing.T) {
				columns := 33 * side * side
				if strings.HasPrefix(tt.op, "Reduce") { // over channels
					columns /= 33
				}
				p := through(t, tt.opset, side, columns, onnx.NewNode("", tt.op, nil, nil, tt.attrs...))
				plain := asWritten(t, p.Path, 5, side)
				n, q := net(t, p), lower.Question{Rules: relevance.Derivative()}
				checkBatchInvariant(t, n, q, plain, manySettings...)
			})
		}
	}
}

// A setting is what bits may not depend on.
type setting struct{ threads, batch int }

var fewSettings, manySettings = []setting{{1, 5}, {3, 2}, {5, 3}}, []setting{{1, 5}, {1, 2}, {2, 3}, {3, 2},
	{5, 3}, {3, 5}}

// checkBatchInvariant fails the test unless a net's answers to five images, with derivatives and without, and
// the derivatives have the same bits in each of several settings, and the answers are near the given ones.
func checkBatchInvariant(t *testing.T, n *program.Net, q lower.Question, near []float32,
	settings ...setting) {
	t.Helper()
	var answers, derivatives, alone []float32
	for _, r := range settings {
		got, back := differentiate(t, n, threaded{r.threads, stagetest.NewSlot()}, q, r.batch, 5)
		class := classify(t, n, threaded{r.threads, stagetest.NewSlot()}, r.batch, 5)
		if answers == nil {
			answers, derivatives, alone = got, back, class
			if d := max(deviation(got, near), deviation(class, near)); d > 1e-5 {
				t.Errorf("answers deviate by %.2g from those of the file itself", d)
			}
		}
		if !sameBits(got, answers) {
			t.Errorf("batch %d on %d threads gives other answers", r.batch, r.threads)
		}
		if !sameBits(class, alone) {
			t.Errorf("batch %d on %d threads gives other answers without derivatives", r.batch, r.threads)
		}
		if !sameBits(back, derivatives) {
			t.Errorf("batch %d on %d threads gives other derivatives", r.batch, r.threads)
		}
	}
}

// TestBatchInvariantKernels checks the same for operators that aren't rewritten, for those rewritten only for
// some shapes, and for ONNX Runtime's own.
func TestBatchInvariantKernels(t *testing.T) {
	modeltest.Runtime(t)
	ints := func(name string, v ...int64) onnx.Attr { return onnx.Attr{Name: name, Value: v} }
	one := func(name string, v float32) *onnxpb.TensorProto { return onnx.FloatTensor(name, []float32{v}) }
	some := func(name string, by, add float32, shape ...int) *onnxpb.TensorProto {
		n := 1
		for _, d := range shape {
			n *= d
		}
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(math.Sin(float64(i)))*by + add
		}
		return onnx.FloatTensor(name, v, shape...)
	}
	same := func(side int) int { return 33 * side * side }
	pixels := func(side int) int { return side * side }
	channels := func(int) int { return 33 }
	pooled := func(side int) int { return 33 * (side / 2) * (side / 2) }
	type kernel struct {
		op      string
		opset   int
		columns func(side int) int
		attrs   []onnx.Attr
		others  func(side int) []*onnxpb.TensorProto
	}
	with := func(others ...*onnxpb.TensorProto) func(int) []*onnxpb.TensorProto {
		return func(int) []*onnxpb.TensorProto { return others }
	}
	kernels := []kernel{
		{"Clip", 17, same, nil, with(one("low", 0), one("high", 1))},
		{"Pow", 17, same, nil, with(one("power", 1.7))},
		{"PRelu", 17, same, nil, with(some("slope", 1, 0, 33, 1, 1))},
		{"Add", 17, same, nil, with(one("b", 0.3))},
		{"Softmax", 17, same, []onnx.Attr{{Name: "axis", Value: 1}}, nil},
		{"Softmax", 17, same, []onnx.Attr{{Name: "axis", Value: -1}}, nil},
		{"LogSoftmax", 17, same, []onnx.Attr{{Name: "axis", Value: 1}}, nil},
		{"BatchNormalization", 17, same, nil, with(some("scale", 0.5, 1, 33), some("bias", 0.2, 0, 33),
			some("mean", 0.2, 0, 33), some("var", 0.4, 1, 33))},
		{"InstanceNormalization", 17, same, nil, with(some("scale", 0.5, 1, 33), some("bias", 0.2, 0, 33))},
		{"LpNormalization", 17, same, []onnx.Attr{{Name: "axis", Value: 1}, {Name: "p", Value: 2}}, nil},
		{"GlobalAveragePool", 17, channels, nil, nil},
		{"GlobalMaxPool", 17, channels, nil, nil},
		{"AveragePool", 17, pooled, []onnx.Attr{ints("kernel_shape", 2, 2), ints("strides", 2, 2)}, nil},
		{"MaxPool", 17, pooled, []onnx.Attr{ints("kernel_shape", 2, 2), ints("strides", 2, 2)}, nil},
		{"LayerNormalization", 17, same, []onnx.Attr{{Name: "axis", Value: 1},
			{Name: "epsilon", Value: float32(0.1)}}, func(side int) []*onnxpb.TensorProto {
			return []*onnxpb.TensorProto{some("scale", 0.5, 1, 33, side, side)}
		}},
		{"Conv", 17, same, []onnx.Attr{ints("pads", 1, 1, 1, 1)}, with(some("kernel", 0.1, 0, 33, 33, 3, 3))},
		{"Conv", 17, same, []onnx.Attr{ints("pads", 1, 1, 1, 1), {Name: "group", Value: 33}},
			with(some("kernel", 0.3, 0, 33, 1, 3, 3))},
		{"Conv", 17, same, []onnx.Attr{ints("pads", 1, 1, 1, 1), {Name: "group", Value: 3}},
			with(some("kernel", 0.2, 0, 33, 11, 3, 3))},
		{"Conv", 17, func(side int) int { return 65 * (side + 1) / 2 * (side + 1) / 2 },
			[]onnx.Attr{ints("strides", 2, 2)}, with(some("kernel", 0.2, 0, 65, 33, 1, 1))},
		{"ConvTranspose", 17, func(side int) int { return 5 * 4 * side * side },
			[]onnx.Attr{ints("strides", 2, 2)}, with(some("kernel", 0.2, 0, 33, 5, 2, 2))},
		{"Resize", 17, func(side int) int { return 33 * 4 * side * side },
			[]onnx.Attr{{Name: "mode", Value: "linear"}}, with(&onnxpb.TensorProto{},
				onnx.FloatTensor("scales", []float32{1, 1, 2, 2}, 4))},
		{"Gelu", 20, same, nil, nil},
		{"com.microsoft.Gelu", 17, same, nil, nil},
		{"com.microsoft.QuickGelu", 17, same, nil, nil},
		{"com.microsoft.FastGelu", 17, same, nil, nil},
		{"com.microsoft.BiasGelu", 17, same, nil,
			func(side int) []*onnxpb.TensorProto {
				return []*onnxpb.TensorProto{some("bias", 0.2, 0,
					side)}
			}},
		{"CumSum", 17, same, nil, with(onnx.IntTensor("axis", []int64{1}))},
		{"ReduceProd", 17, pixels, []onnx.Attr{ints("axes", 1)}, nil},
	}
	for _, op := range []string{
		"Abs", "Asinh", "Cosh", "Erf", "Exp", "HardSigmoid", "HardSwish", "LeakyRelu", "Neg", "Reciprocal",
		"Relu", "Sigmoid", "Sinh", "Softsign", "Sqrt", "Tanh", "ThresholdedRelu",
	} {
		kernels = append(kernels, kernel{op, 17, same, nil, nil})
	}
	for _, op := range []string{"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
		"ReduceMean", "ReduceMin", "ReduceSumSquare"} {
		kernels = append(kernels,
			kernel{op, 17, pixels, []onnx.Attr{ints("axes", 1)}, nil},
			kernel{op, 17, channels, []onnx.Attr{ints("axes", 2, 3)}, nil},
			kernel{op, 17, func(side int) int { return 33 * side }, []onnx.Attr{ints("axes", 2)}, nil})
	}
	for _, k := range stagetest.Sample(t, 4, kernels) {
		for _, side := range []int{7, 51} {
			t.Run(fmt.Sprint(k.op, k.attrs, "/", side), func(t *testing.T) {
				var others []*onnxpb.TensorProto
				if k.others != nil {
					others = k.others(side)
				}
				n := onnx.NewNode("", k.op, nil, nil, k.attrs...)
				if i := strings.LastIndex(k.op, "."); i >= 0 {
					n.Domain, n.OpType = k.op[:i], k.op[i+1:]
				}
				p := through(t, k.opset, side, k.columns(side), n, others...)
				checkBatchInvariant(t, net(t, p), lower.Question{Rules: relevance.Derivative()},
					asWritten(t, p.Path, 5, side), fewSettings...)
			})
		}
	}
}

// TestSoftplusFarBelow checks that Softplus keeps its digits where it is tiny, by its logarithm.
func TestSoftplusFarBelow(t *testing.T) {
	modeltest.Runtime(t)
	const side = 9
	p := throughAll(t, 17, side, 33*side*side, []*onnxpb.NodeProto{
		onnx.NewNode("", "Sub", []string{"conv", "far"}, []string{"low"}),
		onnx.NewNode("", "Softplus", []string{"low"}, []string{"next to nothing"}),
		onnx.NewNode("", "Log", []string{"next to nothing"}, []string{"y"}),
	}, onnx.FloatTensor("far", []float32{12}))
	checkBatchInvariant(t, net(t, p), lower.Question{Rules: relevance.Derivative()},
		asWritten(t, p.Path, 5, side),
		manySettings...)
}

// A failing slot has no memory for graphs.
type failing struct{ stages.Slot }

func (failing) Device() stages.Device { return stages.Device{Class: "cpu", Threads: 1} }

func (s failing) Share(key string, weight int64, make func() (io.Closer, error)) (io.Closer, error) {
	if strings.HasPrefix(key, "graph") {
		return nil, fmt.Errorf("a graph: %w", stages.ErrOutOfMemory)
	}
	return s.Slot.Share(key, weight, make)
}

// TestBatchDependentWithoutMemory checks that a lack of memory isn't taken for batch invariance.
func TestBatchDependentWithoutMemory(t *testing.T) {
	n, slot := net(t, small(t, "means")), stagetest.NewSlot()
	if _, err := n.Forward(t.Context(), failing{slot}, 2); !errors.Is(err, stages.ErrOutOfMemory) {
		t.Errorf("the error is %v", err)
	}
	if dependent, err := program.BatchDependent(t.Context(), n, slot); !dependent || err != nil {
		t.Errorf("with memory %t, %v", dependent, err)
	}
}

// TestBatchDependent checks which files run verbatim.
func TestBatchDependent(t *testing.T) {
	modeltest.Runtime(t)
	node := func(op string, in, out string, attrs ...onnx.Attr) *onnxpb.NodeProto {
		return onnx.NewNode("", op, []string{in}, []string{out}, attrs...)
	}
	for _, tt := range []struct {
		name  string
		nodes []*onnxpb.NodeProto // from input to y
		want  bool
	}{
		{"batch-invariant", []*onnxpb.NodeProto{node("Relu", "input", "y")}, false},
		{"batch-dependent", []*onnxpb.NodeProto{node("Softplus", "input", "y")}, true},
		{"written with one", []*onnxpb.NodeProto{node("Mish", "input", "y")}, true},
		{"a channel's mean", []*onnxpb.NodeProto{onnx.NewNode("", "ReduceMean", []string{"input", "last"},
			[]string{"y"})}, false},
		{"the channels' mean", []*onnxpb.NodeProto{onnx.NewNode("", "ReduceMean",
			[]string{"input", "channels"}, []string{"y"})}, true},
		{"as many as the image has", []*onnxpb.NodeProto{
			onnx.NewNode("", "GreaterOrEqual", []string{"input", "zero"},
				[]string{"some are"}), node("NonZero", "some are", "places"),
			node("Transpose", "places", "rows"),
			onnx.NewNode("", "GatherND", []string{"input", "rows"}, []string{"some"}), node("Softplus",
				"some", "s"),
			onnx.NewNode("", "ReduceSum", []string{"s"}, []string{"all"}), onnx.NewNode("", "Mul",
				[]string{"all", "input"}, []string{"y"}),
		}, false},
		{"in an If that the shape decides", []*onnxpb.NodeProto{
			node("Shape", "input", "shape"), node("Size", "shape", "rank"), onnx.NewNode("", "Equal",
				[]string{"rank", "four"}, []string{"is four"}),
			either("is four", "y", making([]*onnxpb.NodeProto{node("Elu", "input", "value")}, "value"),
				making([]*onnxpb.NodeProto{node("Relu", "input", "value")}, "value")),
		}, true},
		{"half precision", []*onnxpb.NodeProto{
			node("Cast", "input", "h", onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT16)}),
			node("Softplus", "h", "s"),
			node("Cast", "s", "y", onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)}),
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nodes := append(tt.nodes, node("GlobalAveragePool", "y", "pooled"),
				node("Flatten", "pooled", "logits"))
			m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8,
				OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 18}}, Graph: &onnxpb.GraphProto{
					Name: "g", Node: nodes, Initializer: []*onnxpb.TensorProto{onnx.FloatTensor("zero",
						[]float32{0}), onnx.IntTensor("four", []int64{4}), onnx.IntTensor("last", []int64{2,
						3}, 2), onnx.IntTensor("channels", []int64{1}, 1)},
				}}}
			m.SetInputs(onnx.Value{Name: "input", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{-1, 3, 8, 8},
				Known: true})
			m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT, Shape: []int{-1, 3},
				Known: true})
			n := net(t,
				model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit", Size: picture.Size{H: 8, W: 8}})
			got, err := program.BatchDependent(t.Context(), n, stagetest.NewSlot())
			if err != nil || got != tt.want {
				t.Errorf("%t, %v; want %t", got, err, tt.want)
			}
		})
	}
}

// asWritten returns a file's answers to images of 3 channels from ONNX Runtime alone, without a program.
func asWritten(t *testing.T, path string, images, size int) []float32 {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := modeltest.Runtime(t)
	s, err := r.NewPlainSession(file, []string{"input"}, []string{"logits"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, err := ort.NewTensor[float32](r, images, 3, size, size)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := ort.NewTensor[float32](r, images, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for i := range images {
		wave(i, in.Data[i*3*size*size:(i+1)*3*size*size])
	}
	if err := s.Run(t.Context(), []ort.Value{in}, []ort.Value{out}); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(out.Data)
}
