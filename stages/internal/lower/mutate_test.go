package lower_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
)

// A whole net is one that models which aren't whole are made from.
type whole struct {
	spec  modelfile.Spec
	model *onnxpb.ModelProto
}

// wholes returns the small nets of all kinds that there are.
func wholes(t testing.TB) []whole {
	t.Helper()
	var out []whole
	for _, pattern := range []string{"../program/testdata/nets/*.onnx",
		"../../../experiments/quickstart/resnet.onnx", "../../../experiments/quickstart/vit.onnx"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			m := new(onnxpb.ModelProto)
			if err := proto.Unmarshal(b, m); err != nil {
				t.Fatal(err)
			}
			out = append(out,
				whole{modeltest.Source(t, model.ONNXParams{Path: file, Preset: "unit"}).Spec, m})
		}
	}
	if len(out) < 7 {
		t.Fatalf("there are %d nets to start from", len(out))
	}
	return out
}

// numbers are those that programs are wrong about.
var numbers = []int64{
	4, 5, 7, 8, 9, 16, 17, 31, 64, 100, 255, 256, 1000, 1 << 15, 1<<16 +
		1, 1 << 20, 1 << 24, 1<<31 - 1, 1 << 31, 1 << 32, 1 << 40, 1 << 62, math.MaxInt64,
	math.MinInt64, -1 << 62, -1 << 32, math.MinInt32, -1 << 16, -1000, -100, -16, -9, -8, -7, -6, -5,
}

// number makes a byte a number: mostly a small one.
func number(b byte) int64 {
	if n := int64(int8(b)); n >= -4 && n < 4 {
		return n
	}
	return numbers[int(b)%len(numbers)]
}

// attributes are the names that ONNX's operators have for theirs.
var attributes = []string{
	"axis", "axes", "group", "strides", "pads", "dilations", "kernel_shape", "perm", "to", "keepdims",
	"epsilon", "split", "alpha", "beta", "transA", "transB",
	"auto_pad", "ceil_mode", "count_include_pad", "storage_order", "output_padding", "output_shape",
	"allowzero", "noop_with_empty_axes", "mode", "blocksize",
	"equation", "training_mode", "num_outputs", "value", "start", "end", "largest", "sorted", "batch_dims",
	"p", "size", "bias", "gamma", "momentum", "upper",
	"coordinate_transformation_mode", "nearest_mode", "approximate", "stash_type", "reduction", "fmod",
	"exclusive", "reverse", "select_last_index", "k",
}

// texts are what attributes of that kind may hold.
var texts = []string{"", "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "constant", "reflect", "edge", "wrap",
	"linear", "nearest", "cubic",
	"align_corners", "pytorch_half_pixel", "asymmetric", "tf_crop_and_resize", "DCR", "CRD", "add", "mul",
	"max", "tanh", "ij,jk->ik", "ii->i", "...i,i...->...", "->", "bij,bjk->bik", "i"}

// operators returns those that the compiler knows and some that it doesn't.
func operators() []string {
	out := []string{
		"If", "Loop", "Scan", "Attention", "GroupNormalization", "DequantizeLinear", "QuantizeLinear", "RNN",
		"LSTM", "GRU", "NonMaxSuppression", "RoiAlign", "GridSample",
		"Upsample", "Mish", "Gelu", "RMSNormalization", "Scatter", "Bernoulli", "RandomNormal",
		"RandomUniformLike", "Multinomial", "Hardmax", "MeanVarianceNormalization",
		"Det", "DFT", "STFT", "MelWeightMatrix", "Unique", "Compress", "ReverseSequence", "SequenceEmpty",
		"SequenceAt", "SplitToSequence", "ConcatFromSequence", "Optional",
		"MaxUnpool", "MaxRoiPool", "GlobalLpPool", "LpPool", "Shrink", "BitShift", "Mod", "MatMulInteger",
		"ConvInteger", "QLinearConv", "QLinearMatMul", "CastLike", "NoSuch",
		"Acos", "Tan", "ReduceProd", "ReduceLogSum", "SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss",
		"HannWindow", "StringNormalizer", "TfIdfVectorizer", "SwapAxes", "",
	}
	for _, o := range relevance.All() {
		out = append(out, o.Type)
	}
	return out
}

var allOperators = operators()

// mutate changes a model. Every four bytes are a change: of what, which, which of its parts, and to what.
// Most of what comes out can still be read as a model.
func mutate(m *onnxpb.ModelProto, edits []byte) {
	for ; len(edits) >= 4 && len(m.Graph.Node) > 0; edits = edits[4:] {
		mutateOnce(m, edits[0], int(edits[1]), int(edits[2]), edits[3])
	}
}

func mutateOnce(m *onnxpb.ModelProto, what byte, which, part int, to byte) {
	g := m.Graph
	n := g.Node[which%len(g.Node)]
	other := g.Node[int(to)%len(g.Node)]
	var w *onnxpb.TensorProto
	if len(g.Initializer) > 0 {
		w = g.Initializer[which%len(g.Initializer)]
	}
	var a *onnxpb.AttributeProto
	if len(n.Attribute) > 0 {
		a = n.Attribute[part%len(n.Attribute)]
	}
	nodes := func(what byte) {
		switch what {
		case 0: // another operator
			n.OpType = g.Node[(which+part+1)%len(g.Node)].OpType
		case 1: // an operator of any kind
			n.OpType = allOperators[(part+256*int(to%2))%len(allOperators)]
		case 2: // another input, which may be made of the node's own output
			if len(n.Input) > 0 {
				n.Input[part%len(n.Input)] = valueOf(g, int(to))
			}
		case 3: // an input less
			if len(n.Input) > 0 {
				k := part % len(n.Input)
				n.Input = slices.Delete(n.Input, k, k+1)
			}
		case 4: // an input absent
			if len(n.Input) > 0 {
				n.Input[part%len(n.Input)] = ""
			}
		case 5: // an input more
			n.Input = append(n.Input, valueOf(g, int(to)))
		case 6: // an output more, less, absent, or one that's made already
			switch part % 4 {
			case 0:
				n.Output = append(n.Output, "more"+n.GetName())
			case 1:
				n.Output = n.Output[:len(n.Output)/2]
			case 2:
				if len(n.Output) > 0 {
					n.Output[int(to)%len(n.Output)] = ""
				}
			case 3:
				if len(n.Output) > 0 && len(other.Output) > 0 {
					n.Output[0] = other.Output[0]
				}
			}
		case 7: // two nodes exchange their places, or their operators and attributes
			if part%2 == 0 {
				i, j := which%len(g.Node), int(to)%len(g.Node)
				g.Node[i], g.Node[j] = g.Node[j], g.Node[i]
			} else {
				n.OpType, other.OpType, n.Attribute, other.Attribute =
					other.OpType, n.OpType, other.Attribute, n.Attribute
			}
		case 8: // a node more, which reads what another makes and is read in its place
			if len(other.Output) > 0 && other.Output[0] != "" {
				v := other.Output[0] + "/" + string(rune('a'+part%26))
				for _, reader := range g.Node {
					for i, in := range reader.Input {
						if in == other.Output[0] {
							reader.Input[i] = v
						}
					}
				}
				g.Node = append(g.Node, onnx.NewNode("", allOperators[part%len(allOperators)],
					[]string{other.Output[0]}, []string{v}))
			}
		case 9: // a node less
			if len(g.Node) > 1 && len(n.Input) > 0 && len(n.Output) > 0 {
				for _, reader := range g.Node {
					for i, in := range reader.Input {
						if in == n.Output[0] {
							reader.Input[i] = n.Input[0]
						}
					}
				}
				k := which % len(g.Node)
				g.Node = slices.Delete(g.Node, k, k+1)
			}
		case 10: // a name that others may have
			name := []string{"", "runexp_images", "runexp_answer", "grad/const", "runexp_targets",
				"a\x1b[31m", valueOf(g, int(to))}[part%7]
			if len(n.Output) > 0 {
				for _, reader := range g.Node {
					for i, in := range reader.Input {
						if in == n.Output[0] {
							reader.Input[i] = name
						}
					}
				}
				n.Output[0] = name
			}
		case 11: // the operators of somebody else
			n.Domain = []string{"com.microsoft", "ai.onnx", "ai.onnx.ml", "none"}[part%4]
		}
	}
	switch what := what % 32; what {
	default:
		nodes(what)
	case 12, 28: // another number in an attribute
		if a != nil {
			if len(a.Ints) > 0 {
				a.Ints[part/len(n.Attribute)%len(a.Ints)] = number(to)
			} else if a.F != nil {
				a.F = proto.Float32([]float32{0, -1, 1e30, -1e-30, float32(math.NaN()), float32(math.Inf(1)),
					2}[int(to)%7])
			} else if a.S != nil {
				a.S = []byte(texts[int(to)%len(texts)])
			} else {
				a.I = proto.Int64(number(to))
			}
		}
	case 13: // an attribute less
		if a != nil {
			k := part % len(n.Attribute)
			n.Attribute = slices.Delete(n.Attribute, k, k+1)
		}
	case 14, 29: // an attribute more, of a number, of several, of a text
		name := attributes[part%len(attributes)]
		n.Attribute = slices.DeleteFunc(n.Attribute,
			func(a *onnxpb.AttributeProto) bool { return a.Name == name })
		n.Attribute = append(n.Attribute, attributeOf(name, to))
	case 15: // an attribute longer or shorter
		if a != nil && len(a.Ints) > 0 {
			if to%2 == 0 {
				a.Ints = append(a.Ints, number(to/2))
			} else {
				a.Ints = a.Ints[:len(a.Ints)-1]
			}
		}
	case 16: // a weight whose shape isn't that of its numbers
		if w != nil && len(w.Dims) > 0 {
			w.Dims[part%len(w.Dims)] = number(to)
		}
	case 17, 30: // a weight of another size, with the numbers for it
		if w != nil && len(w.Dims) > 0 {
			w.Dims[part%len(w.Dims)] = max(0, number(to))
			fill(w)
		}
	case 18: // a weight of another rank
		if w != nil {
			switch {
			case part%3 == 0:
				w.Dims = slices.Insert(w.Dims, int(to)%(len(w.Dims)+1), 1)
			case len(w.Dims) > 0 && part%3 == 1:
				k := int(to) % len(w.Dims)
				w.Dims = slices.Delete(w.Dims, k, k+1)
			default:
				w.Dims = nil
			}
			fill(w)
		}
	case 19, 31: // other numbers in a weight
		if w != nil {
			scribble(w, part, to)
		}
	case 20: // a weight of another type
		if w != nil {
			w.DataType = int32(part % 24)
			fill(w)
		}
	case 21: // another name, which may be another weight's
		if w != nil {
			w.Name = []string{"", valueOf(g, int(to)), "grad/const"}[part%3]
		}
	case 22: // images of another shape
		if t := g.Input[0].GetType().GetTensorType(); t != nil && len(t.GetShape().GetDim()) > 0 {
			d := t.Shape.Dim[part%len(t.Shape.Dim)]
			d.Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: number(to)}
		}
	case 23: // of another type
		if t := g.Input[0].GetType().GetTensorType(); t != nil {
			t.ElemType = int32(part % 24)
		}
	case 24: // another answer
		g.Output[0].Name = valueOf(g, int(to))
	case 25: // another version of the operators
		m.OpsetImport[0].Version = []int64{7, 8, 9, 11, 13, 17, 18, 21, 23, 5, 99, -1}[part%12]
	case 26: // a node inside a node
		if len(n.Output) > 0 {
			inner := &onnxpb.GraphProto{Name: "inner",
				Node:   []*onnxpb.NodeProto{proto.Clone(n).(*onnxpb.NodeProto)},
				Output: []*onnxpb.ValueInfoProto{{Name: n.Output[0] + "/inner"}}}
			inner.Node[0].Output[0] += "/inner"
			n.OpType = []string{"If", "Loop", "Scan"}[part%3]
			n.Input = []string{valueOf(g, int(to))}
			n.Attribute = nil
			for _, name := range []string{"then_branch", "else_branch"} {
				n.Attribute = append(n.Attribute,
					&onnxpb.AttributeProto{Name: name, Type: onnxpb.AttributeProto_GRAPH, G: inner})
			}
			if part%3 > 0 {
				n.Attribute = []*onnxpb.AttributeProto{{Name: "body", Type: onnxpb.AttributeProto_GRAPH,
					G: inner}}
			}
		}
	case 27: // the declared type of an attribute
		if a != nil {
			a.Type = onnxpb.AttributeProto_AttributeType(part % 13)
		}
	}
}

// valueOf returns one of the values of a graph.
func valueOf(g *onnxpb.GraphProto, k int) string {
	if k%4 == 3 && len(g.Initializer) > 0 {
		return g.Initializer[k/4%len(g.Initializer)].Name
	}
	if n := g.Node[k%len(g.Node)]; len(n.Output) > 0 && k%16 > 0 {
		return n.Output[0]
	}
	return g.Input[0].Name
}

// attributeOf returns an attribute that a byte stands for.
func attributeOf(name string, to byte) *onnxpb.AttributeProto {
	a := onnx.Attr{Name: name}
	long := []int64{number(to), 1, 2, 1}
	switch to % 5 {
	case 0, 1:
		a.Value = int(number(to / 5))
	case 2:
		a.Value = long[:int(to/5)%5]
	case 3:
		a.Value = texts[int(to/5)%len(texts)]
	case 4:
		a.Value = float32(number(to / 5))
	}
	return onnx.NewNode("", "", nil, nil, a).Attribute[0]
}

// fill makes the bytes of a weight as many as its shape needs, unless that's many.
func fill(w *onnxpb.TensorProto) {
	n := int64([]int{0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 8, 16, 2}[int(w.DataType)%17])
	for _, d := range w.Dims {
		if d < 0 || d > 1<<16 || n*d > 1<<16 {
			return
		}
		n *= d
	}
	raw := slices.Clone(w.RawData)
	for i := 0; int64(len(raw)) < n; i++ {
		raw = append(raw, []byte{1, 0, 0, 0, 0, 0, 0, 0}[i%8])
	}
	w.RawData = raw[:n:n]
	w.FloatData, w.Int32Data, w.Int64Data, w.DoubleData, w.Uint64Data = nil, nil, nil, nil, nil
}

// scribble writes a number into a weight.
func scribble(w *onnxpb.TensorProto, part int, to byte) {
	w.RawData = slices.Clone(w.RawData)
	switch n := len(w.RawData); {
	case w.DataType == int32(onnxpb.TensorProto_INT64) && n >= 8:
		binary.LittleEndian.PutUint64(w.RawData[part%(n/8)*8:], uint64(number(to)))
	case w.DataType == int32(onnxpb.TensorProto_INT64) && len(w.Int64Data) > 0:
		w.Int64Data[part%len(w.Int64Data)] = number(to)
	case w.DataType == int32(onnxpb.TensorProto_INT32) && n >= 4:
		binary.LittleEndian.PutUint32(w.RawData[part%(n/4)*4:], uint32(number(to)))
	case n >= 4:
		v := []float32{0, -1, 1e38, 1e-42, float32(math.NaN()), float32(math.Inf(-1)), 1e9, -1e9}[int(to)%8]
		binary.LittleEndian.PutUint32(w.RawData[part%(n/4)*4:], math.Float32bits(v))
	}
}
