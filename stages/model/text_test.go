package model

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/texttest"
	"github.com/runexp/runexp/stages/ort"
	"github.com/runexp/runexp/stages/stagetest"
)

func needsRuntime(t *testing.T) {
	t.Helper()
	if _, err := ort.Default(); err != nil {
		stagetest.Lacks(t, err.Error())
	}
}

// A textNet writes a small model of texts: a table of 20 rows with 4 numbers, and classes of what its mean
// is.
type textNet struct {
	m *onnx.Model
	f *onnx.Fragment
}

func newTextNet(inputs ...onnx.Value) textNet {
	m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}}, Graph: &onnxpb.GraphProto{Name: "text"}}}
	m.SetInputs(inputs...)
	return textNet{m, m.Fragment()}
}

// numbers returns a constant of a shape.
func (n textNet) numbers(name string, shape ...int64) string {
	size := 1
	for _, d := range shape {
		size *= int(d)
	}
	v := make([]float32, size)
	for i := range v {
		v[i] = float32(math.Sin(float64(i)*1.3 + float64(len(name))))
	}
	return n.f.Floats(name, v, shape...)
}

func (n textNet) table(rows int64) string { return n.numbers("table", rows, 4) }

// classes ends the net with three classes of the mean of x [N, n, width].
func (n textNet) classes(x string, width int64) {
	mean := n.f.Op("ReduceMean", []string{n.f.Op("Tanh", []string{x})},
		onnx.Attr{Name: "axes", Value: []int64{1}},
		onnx.Attr{Name: "keepdims", Value: 0})
	n.f.OpTo("logits", "MatMul", []string{mean, n.numbers("head", width, 3)})
	n.end(3)
}

func (n textNet) end(shape ...int) {
	n.m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT,
		Shape: append([]int{onnx.Free}, shape...), Known: true})
	n.m.After(n.f)
}

func (n textNet) write(t *testing.T) ONNXParams {
	t.Helper()
	b, err := n.m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	p := *ONNX.NewParams().(*ONNXParams)
	p.Path = filepath.Join(t.TempDir(), "net.onnx")
	if err := os.WriteFile(p.Path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

func (n textNet) read(t *testing.T) (reading, error) {
	t.Helper()
	p := n.write(t)
	m, _, err := readFile(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	return read(t.Context(), m, p)
}

func ids(name string) onnx.Value { return tokensOf(name, onnxpb.TensorProto_INT64) }

func tokensOf(name string, elem onnxpb.TensorProto_DataType) onnx.Value {
	return onnx.Value{Name: name, Elem: elem, Shape: []int{onnx.Free, onnx.Free}, Known: true}
}

// TestEmbedding finds the value with a vector for each token, and how many ids there are.
func TestEmbedding(t *testing.T) {
	needsRuntime(t)
	axis := func(a int) onnx.Attr { return onnx.Attr{Name: "axis", Value: a} }
	to := func(e onnxpb.TensorProto_DataType) onnx.Attr { return onnx.Attr{Name: "to", Value: int(e)} }
	for name, c := range map[string]struct {
		write      func(n textNet) (x, embedding string, width int64)
		vocabulary int
	}{
		"rows of a table": {func(n textNet) (string, string, int64) {
			x := n.f.Op("Gather", []string{n.table(20), "ids"})
			return x, x, 4
		}, 20},
		"of a table in half precision": {func(n textNet) (string, string, int64) {
			half := n.f.Op("Cast", []string{n.table(20)}, to(onnxpb.TensorProto_FLOAT16))
			x := n.f.Op("Gather", []string{n.f.Op("Cast", []string{half},
				to(onnxpb.TensorProto_FLOAT)), "ids"})
			return x, x, 4
		}, 20},
		"columns of a table": {func(n textNet) (string, string, int64) {
			columns := n.f.Op("Gather", []string{n.numbers("columns", 4, 20), "ids"}, axis(1))
			x := n.f.Op("Transpose", []string{columns}, onnx.Attr{Name: "perm", Value: []int64{1, 2, 0}})
			return x, x, 4
		}, 20},
		"two tables, one next to the other": {func(n textNet) (string, string, int64) {
			x := n.f.Op("Concat", []string{n.f.Op("Gather", []string{n.table(20), "ids"}),
				n.f.Op("Gather", []string{n.numbers("other", 18, 4), "ids"})}, axis(-1))
			return x, x, 8
		}, 18},
		"two tables that meet behind other operators": {func(n textNet) (string, string, int64) {
			x := n.f.Op("Mul", []string{n.f.Op("Tanh",
				[]string{n.f.Op("Gather", []string{n.table(20), "ids"})}),
				n.f.Op("Gather", []string{n.numbers("other", 20, 4), "ids"})})
			return x, x, 4
		}, 20},
		"two tables that never meet": {func(n textNet) (string, string, int64) {
			mean := func(v string) string {
				return n.f.Op("ReduceMean", []string{v}, onnx.Attr{Name: "axes", Value: []int64{1}})
			}
			a := n.f.Op("Gather", []string{n.table(20), "ids"})
			b := n.f.Op("Gather", []string{n.numbers("other", 20, 4), "ids"})
			return n.f.Op("Mul", []string{a, mean(b)}), "", 4
		}, 20},
		"a table behind a bound": {func(n textNet) (string, string, int64) {
			few := n.f.Op("Min", []string{"ids", n.f.Ints("last", []int64{9}, 1)})
			x := n.f.Op("Gather", []string{n.table(10), few})
			return x, x, 4
		}, 0},
		"a one-hot code times a table": {func(n textNet) (string, string, int64) {
			column := n.f.Op("Unsqueeze", []string{"ids", n.f.Ints("last", []int64{-1}, 1)})
			all := make([]int64, 20)
			for i := range all {
				all[i] = int64(i)
			}
			hot := n.f.Op("Cast", []string{n.f.Op("Equal", []string{column, n.f.Ints("all", all, 20)})},
				to(onnxpb.TensorProto_FLOAT))
			x := n.f.Op("Add", []string{n.f.Op("MatMul", []string{hot, n.table(20)}), n.numbers("bias", 4)})
			return x, x, 4
		}, 20},
		"tokens before texts": {func(n textNet) (string, string, int64) {
			turned := n.f.Op("Transpose", []string{"ids"}, onnx.Attr{Name: "perm", Value: []int64{1, 0}})
			rows := n.f.Op("Gather", []string{n.table(20), turned})
			return n.f.Op("Transpose", []string{n.f.Op("Tanh", []string{rows})},
				onnx.Attr{Name: "perm", Value: []int64{1, 0, 2}}), rows + ".texts_first", 4
		}, 20},
		"positions added": {func(n textNet) (string, string, int64) {
			x := n.f.Op("Gather", []string{n.table(20), "ids"})
			seen := n.f.Op("Cast", []string{n.f.Op("Not", []string{n.f.Op("Equal", []string{"ids",
				n.f.Ints("pad", []int64{1}, 1)})})}, to(onnxpb.TensorProto_INT64))
			at := n.f.Op("CumSum", []string{seen, n.f.Ints("axis", []int64{1})})
			places := n.f.Op("Gather", []string{n.numbers("places", 600, 4), at})
			return n.f.Op("Add", []string{x, places}), x, 4
		}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTextNet(ids("ids"))
			x, embedding, width := c.write(n)
			n.classes(x, width)
			got, err := n.read(t)
			if err != nil {
				t.Fatal(err)
			}
			text := got.Spec.Text
			if text.Embedding != embedding || embedding != "" && text.Dimension != int(width) ||
				text.Vocabulary != c.vocabulary {
				t.Errorf("%q of %d numbers and %d ids, want %q of %d and %d", text.Embedding, text.Dimension,
					text.Vocabulary, embedding, width, c.vocabulary)
			}
		})
	}
}

// TestNoTexts refuses what isn't a classifier of texts, with the reason.
func TestNoTexts(t *testing.T) {
	needsRuntime(t)
	plain := func(n textNet) { n.classes(n.f.Op("Gather", []string{n.table(20), "input_ids"}), 4) }
	float := func(name string, shape ...int) onnx.Value {
		return onnx.Value{Name: name, Elem: onnxpb.TensorProto_FLOAT, Shape: shape, Known: true}
	}
	for name, c := range map[string]struct {
		inputs []onnx.Value
		write  func(n textNet)
		want   string
	}{
		"positions": {[]onnx.Value{ids("input_ids"), ids("position_ids")}, plain, "positions follow from " +
			"these"},
		"decoder": {[]onnx.Value{ids("input_ids"), ids("decoder_input_ids")}, plain, "a model from " +
			"texts to texts"},
		"cache": {[]onnx.Value{ids("input_ids"), float("past_key_values.0.key", 1, 2, onnx.Free, 4)}, plain,
			"the cache of a language model"},
		"images": {[]onnx.Value{ids("input_ids"), float("pixel_values", 1, 3, 8, 8)}, plain, "takes " +
			"images and texts"},
		"vectors": {[]onnx.Value{float("inputs_embeds", onnx.Free, onnx.Free, 4)},
			func(n textNet) { n.classes("inputs_embeds", 4) }, "export the model with input_ids"},
		"two texts": {[]onnx.Value{ids("input_ids"), ids("tokens")}, plain, "may both be the text's ids"},
		"numbers": {[]onnx.Value{{Name: "features", Elem: onnxpb.TensorProto_INT64,
			Shape: []int{onnx.Free, 4},
			Known: true}}, func(n textNet) {
			x := n.f.Op("Cast", []string{"features"},
				onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)})
			n.f.OpTo("logits", "MatMul", []string{x, n.numbers("head", 4, 3)})
			n.end(3)
		}, "no table is looked up by them"},
		"classes of tokens": {[]onnx.Value{ids("input_ids")}, func(n textNet) {
			x := n.f.Op("Gather", []string{n.table(20), "input_ids"})
			n.f.OpTo("logits", "MatMul", []string{x, n.numbers("head", 4, 3)})
			n.end(onnx.Free, 3)
		}, "a classifier of tokens"},
		"a language model": {[]onnx.Value{ids("input_ids")}, func(n textNet) {
			x := n.f.Op("Gather", []string{n.table(20), "input_ids"})
			n.f.OpTo("logits", "MatMul", []string{x, n.numbers("head", 4, 20)})
			n.end(onnx.Free, 20)
		}, "a language model"},
		"a number for each token": {[]onnx.Value{ids("input_ids")}, func(n textNet) {
			x := n.f.Op("Gather", []string{n.table(20), "input_ids"})
			n.f.OpTo("logits", "ReduceMean", []string{x}, onnx.Attr{Name: "axes", Value: []int64{2}},
				onnx.Attr{Name: "keepdims", Value: 0})
			n.end(onnx.Free)
		}, "numbers for each token"},
		"a mask of padding": {[]onnx.Value{ids("input_ids"), ids("padding_mask")}, func(n textNet) {
			real := n.f.Op("Sub", []string{n.f.Ints("one", []int64{1}, 1), "padding_mask"})
			weight := n.f.Op("Unsqueeze", []string{n.f.Op("Cast", []string{real},
				onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)}),
				n.f.Ints("last", []int64{-1}, 1)})
			x := n.f.Op("Gather", []string{n.table(20), "input_ids"})
			n.classes(n.f.Op("Mul", []string{x, weight}), 4)
		}, "its mask is 1 where tokens are to be ignored"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTextNet(c.inputs...)
			c.write(n)
			if _, err := n.read(t); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestHides runs texts at their own lengths where padding behind the attention mask changes the answers.
func TestHides(t *testing.T) {
	needsRuntime(t)
	for _, leaks := range []bool{false, true} {
		n := newTextNet(ids("input_ids"), tokensOf("attention_mask", onnxpb.TensorProto_FLOAT))
		x := n.f.Op("Gather", []string{n.table(20), "input_ids"})
		weight := n.f.Op("Unsqueeze", []string{"attention_mask", n.f.Ints("last", []int64{-1}, 1)})
		shown := n.f.Op("Mul", []string{n.f.Op("Tanh", []string{x}), weight})
		axes := onnx.Attr{Name: "keepdims", Value: 0}
		sum := n.f.Op("ReduceSum", []string{shown, n.f.Ints("axis", []int64{1}, 1)}, axes)
		if leaks { // the mean of all tokens
			sum = n.f.Op("Div", []string{sum, n.f.Op("Cast", []string{n.f.Op("Gather",
				[]string{n.f.Op("Shape", []string{"input_ids"}), n.f.Ints("second", []int64{1}, 1)})},
				onnx.Attr{Name: "to", Value: int(onnxpb.TensorProto_FLOAT)})})
		}
		n.f.OpTo("logits", "MatMul", []string{sum, n.numbers("head", 4, 3)})
		n.end(3)
		got, err := n.read(t)
		if err != nil {
			t.Fatal(err)
		}
		if got.Spec.Text.Attention == leaks || got.texts.Padded == leaks {
			t.Errorf("leaks: %v, padded: %+v", leaks, got.texts)
		}
	}
}

// TestSoftmaxOfJAX explains the logits before a softmax that subtracts the larger of their maximum and −∞:
// what is left of the predicted class's logit is always 0, and has no gradient.
func TestSoftmaxOfJAX(t *testing.T) {
	needsRuntime(t)
	n := newTextNet(ids("ids"))
	mean := n.f.Op("ReduceMean", []string{n.f.Op("Gather", []string{n.table(20), "ids"})},
		onnx.Attr{Name: "axes", Value: []int64{1}}, onnx.Attr{Name: "keepdims", Value: 0})
	logits := n.f.Op("Add", []string{n.f.Op("MatMul", []string{mean, n.numbers("head", 4, 3)}),
		n.numbers("bias", 3)})
	last := onnx.Attr{Name: "axes", Value: []int64{1}}
	most := n.f.Op("Max", []string{n.f.Floats("least", []float32{float32(math.Inf(-1))}, 1),
		n.f.Op("ReduceMax", []string{logits}, last)})
	powers := n.f.Op("Exp", []string{n.f.Op("Sub", []string{logits, most})})
	n.f.OpTo("logits", "Div", []string{powers, n.f.Op("ReduceSum", []string{powers,
		n.f.Ints("axis", []int64{1}, 1)})})
	n.end(3)
	got, err := n.read(t)
	if err != nil {
		t.Fatal(err)
	}
	if got.Spec.Output != logits || got.Spec.Probabilities {
		t.Errorf("%s is explained, want %s", got.Spec.Output, logits)
	}
}

// TestLongest finds the largest number of tokens by the table of positions, and refuses a larger one.
func TestLongest(t *testing.T) {
	needsRuntime(t)
	for _, name := range []string{"bert.trace", "roberta.dynamo", "bag.own", "fixed.own"} {
		p := *ONNX.NewParams().(*ONNXParams)
		p.Path = texttest.Path(t, name)
		m, _, err := readFile(p.Path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(t.Context(), m, p)
		if err != nil {
			t.Fatal(err)
		}
		spec := got.Spec
		runs := func(length int) bool {
			at := got.Model
			at.Spec.Width = length
			_, _, err := answer(t.Context(), at, sampleTexts(at.Spec, 1, 0), 1)
			return err == nil
		}
		if !runs(spec.Width) || spec.Width < longestText && runs(spec.Width+1) && !spec.Text.Fixed {
			t.Errorf("%s: %d tokens aren't the most", name, spec.Width)
		}
		if spec.Width == longestText {
			continue
		}
		p.Length = spec.Width + 1
		if m, _, err = readFile(p.Path); err != nil {
			t.Fatal(err)
		}
		if _, err = read(t.Context(), m, p); err == nil || !strings.Contains(err.Error(), "the model "+
			"takes texts of") {
			t.Errorf("%s: length %d: %v", name, p.Length, err)
		}
	}
}

// TestTextAnswers compares the probabilities of texts of mixed lengths with those of ONNX Runtime's own
// session, of each text alone and without padding.
func TestTextAnswers(t *testing.T) {
	needsRuntime(t)
	for _, name := range stagetest.Sample(t, 3, texttest.Files(t)) {
		t.Run(name, func(t *testing.T) {
			tolerance, edges := 5e-6, 0
			switch {
			case strings.HasSuffix(name, ".half"): // which programs compute in float32
				tolerance = 3e-3
			case strings.HasSuffix(name, ".int8"): // a sum on the edge of two roundings, of one text
				edges = 1
			}
			p := ONNX.NewParams().(*ONNXParams)
			p.Path = texttest.Path(t, name)
			r := stagetest.Run(t, ONNX, p, nil)
			m, err := modelfile.Decode(r.Payloads["model"][0])
			if err != nil {
				t.Fatal(err)
			}
			var items [][]byte
			var want [][]float32
			for _, text := range texttest.Texts(t, texttest.Network(name)) {
				n := len(text.IDs)
				v := append(append(append([]int64{}, text.IDs...), text.Types...), text.Special...)
				items = append(items, stages.NewTensor(v, 3, n).Encode())
				alone := m
				if !m.Spec.Text.Fixed {
					alone.Spec.Width = n
				}
				x := make([]float32, alone.Spec.Size())
				if err := alone.Spec.Normalise(stages.NewTensor(v, 3, n), x); err != nil {
					t.Fatal(err)
				}
				rows := max(1, m.Spec.Batch)
				var batch []float32
				for range rows {
					batch = append(batch, x...)
				}
				logits, _, err := answer(t.Context(), alone, batch, rows)
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, logits[:m.Spec.Classes])
			}
			facts := stages.Facts{"pad": "0", "mask": "4"}
			out := stagetest.Run(t, Predict, nil, map[string][]stages.Data{
				"model":  {stagetest.Value(r.Facts["model"], r.Payloads["model"][0])},
				"images": {stagetest.Items(facts, items...)}})
			for i, row := range want {
				best := 0
				sum := 0.0
				for c, v := range row {
					if v > row[best] {
						best = c
					}
					sum += math.Exp(float64(v))
				}
				probability, err := stages.DecodeTensor(out.Payloads["probability"][i])
				if err != nil {
					t.Fatal(err)
				}
				got, ref := probability.Float64s()[0], math.Exp(float64(row[best]))/sum
				if math.Abs(got-ref) > tolerance {
					if edges--; edges >= 0 {
						continue
					}
					t.Errorf("text %d: %.8f, want %.8f", i, got, ref)
				}
			}
		})
	}
}
