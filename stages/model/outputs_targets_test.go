package model_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/target"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// noise adds a weight of uneven values.
func (g graph) noise(shape ...int) string {
	t := modeltest.Noise("", float64(len(g.Initializer)+1), shape...)
	t.Name = "noise_" + string(rune('a'+len(g.Initializer)))
	g.Initializer = append(g.Initializer, t)
	return t.Name
}

// features adds a rectified convolution of the images, of n channels.
func (g graph) features(n int) string {
	conv := g.op("Conv", []string{"image", g.noise(n, 3, 3, 3)},
		onnx.Attr{Name: "pads", Value: []int64{1, 1, 1, 1}})
	return g.op("Relu", []string{conv})
}

// linear adds a linear layer of n numbers behind pooled features.
func (g graph) linear(features string, n int) string {
	pooled := g.op("Flatten", []string{g.op("GlobalAveragePool", []string{features})})
	return g.op("MatMul", []string{pooled, g.noise(4, n)})
}

// named gives a value another name, and makes it an output.
func (g graph) named(v, name string) {
	g.Node = append(g.Node, onnx.NewNode("", "Identity", []string{v}, []string{name}))
	g.Output = append(g.Output, &onnxpb.ValueInfoProto{Name: name, Type: value(name, float).Type})
	g.Output[len(g.Output)-1].GetType().GetTensorType().Shape = nil
}

// file writes the graph, of images 8×8, or of another input, to a file.
func (g graph) file(t *testing.T, batch int, inputs ...*onnxpb.ValueInfoProto) string {
	t.Helper()
	if g.Input = inputs; inputs == nil {
		g.Input = []*onnxpb.ValueInfoProto{value("image", float, batch, 3, 8, 8)}
	}
	return modeltest.File(t, &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}}, Graph: g.GraphProto}})
}

func newGraph() graph { return graph{&onnxpb.GraphProto{Name: "g"}} }

// rows adds a detector's rows of k numbers, one for each of the 64 places.
func (g graph) rows(features string, k int) string {
	maps := g.op("Conv", []string{features, g.noise(k, 4, 1, 1)})
	flat := g.op("Reshape", []string{maps, g.ints(0, int64(k), 64)})
	return g.op("Transpose", []string{flat}, onnx.Attr{Name: "perm", Value: []int64{0, 2, 1}})
}

// kept adds the rows whose first number is positive: as many as the image has.
func (g graph) kept(rows string) string {
	first := g.op("Gather", []string{g.op("Reshape", []string{rows, g.ints(64, -1)}), g.ints(0)},
		onnx.Attr{Name: "axis", Value: 1})
	positive := g.op("Greater", []string{g.op("Reshape", []string{first, g.ints(64)}), g.number(0)})
	return g.op("Compress", []string{rows, positive}, onnx.Attr{Name: "axis", Value: 1})
}

// TestWithoutClasses holds that models of other outputs than a number per image and class are read with these
// outputs, and how they take batches.
func TestWithoutClasses(t *testing.T) {
	modeltest.Runtime(t)
	outputs := func(pairs ...any) (out []modelfile.Output) {
		for k := 0; k < len(pairs); k += 2 {
			out = append(out, modelfile.Output{Name: pairs[k].(string), Shape: pairs[k+1].([]int)})
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		params model.ONNXParams
		batch  int // that the file states
		build  func(g graph)
		want   []modelfile.Output
		alone  int
		note   string
	}{
		{"segmentation", model.ONNXParams{}, -1, func(g graph) {
			g.named(g.op("Conv", []string{g.features(4), g.noise(5, 4, 1, 1)}), "logits")
		}, outputs("logits", []int{5, 8, 8}), 0, ""},
		{"detector", model.ONNXParams{}, -1, func(g graph) {
			f := g.features(4)
			g.named(g.rows(f, 4), "boxes")
			g.named(g.rows(f, 3), "scores")
		}, outputs("boxes", []int{64, 4}, "scores", []int{64, 3}), 0, ""},
		{"one of two outputs", model.ONNXParams{Output: "scores"}, -1, func(g graph) {
			f := g.features(4)
			g.named(g.rows(f, 4), "boxes")
			g.named(g.rows(f, 3), "scores")
		}, outputs("scores", []int{64, 3}), 0, ""},
		{"embedding", model.ONNXParams{Kind: "none"}, -1, func(g graph) {
			g.named(g.linear(g.features(4), 16), "embedding")
		}, outputs("embedding", []int{16}), 0, ""},
		{"normalised embedding", model.ONNXParams{Kind: "none"}, -1, func(g graph) {
			z := g.linear(g.features(4), 16)
			g.named(g.op("LpNormalization", []string{z}), "embedding")
		}, outputs("embedding", []int{16}), 0, ""},
		{"a number", model.ONNXParams{Kind: "none"}, -1, func(g graph) {
			z := g.linear(g.features(4), 1)
			g.named(g.op("Reshape", []string{z, g.ints(-1)}), "age")
		}, outputs("age", []int{}), 0, ""},
		{"embedding of one image", model.ONNXParams{Kind: "none"}, 1, func(g graph) {
			g.named(g.linear(g.features(4), 16), "embedding")
		}, outputs("embedding", []int{16}), 1, ""},
		{"a reshape of one image", model.ONNXParams{}, -1, func(g graph) {
			maps := g.op("Conv", []string{g.features(4), g.noise(6, 4, 1, 1)})
			g.named(g.op("Reshape", []string{maps, g.ints(1, -1, 6)}), "rows")
		}, outputs("rows", []int{64, 6}), 1, ""},
		{"anchors", model.ONNXParams{}, -1, func(g graph) {
			f := g.features(4)
			g.named(g.rows(f, 4), "boxes")
			g.named(g.op("ReduceMean", []string{f}, onnx.Attr{Name: "axes", Value: []int64{0}}), "mean")
		}, outputs("boxes", []int{64, 4}), 0, "output mean is left out: its first axis isn't that"},
		{"suppressed", model.ONNXParams{}, 1, func(g graph) {
			rows := g.rows(g.features(4), 6)
			g.named(g.kept(rows), "detections")
			g.named(rows, "all")
		}, outputs("all", []int{64, 6}), 1, "output detections is left out: the output has shape"},
	} {
		g := newGraph()
		tt.build(g)
		p := tt.params
		p.Path = g.file(t, tt.batch)
		d := modeltest.Model(t, p)
		s := modeltest.Spec(t, d)
		if diff := cmp.Diff(tt.want, s.Outputs); diff != "" || s.Classes != 0 || s.Output != "" ||
			s.Batch != tt.alone {
			t.Errorf("%s: %d classes, output %q, batch %d, %s", tt.name, s.Classes, s.Output, s.Batch, diff)
		}
		lines := strings.Split(d.Facts["returns"], "\n")
		if _, has := d.Facts["classes"]; has || lines[0] != tt.want[0].String() ||
			len(lines) != len(tt.want) {
			t.Errorf("%s: facts %v", tt.name, d.Facts)
		}
		trial, err := model.NewTrial(t.Context(), defaults(p))
		if err != nil {
			t.Fatal(err)
		}
		if has := slices.ContainsFunc(trial.Notes, func(n string) bool {
			return strings.HasPrefix(n, tt.note)
		}); has != (tt.note != "") || len(trial.Notes) > 1 {
			t.Errorf("%s: notes %q", tt.name, trial.Notes)
		}
		trial.Close()
	}
}

// defaults returns parameters whose choices have their defaults.
func defaults(p model.ONNXParams) model.ONNXParams {
	p.Preset, p.Layout, p.Order = "imagenet", "auto", "auto"
	if p.Kind == "" {
		p.Kind = "auto"
	}
	return p
}

// TestWithClasses holds that models with classes have no outputs besides these, and that two outputs with
// classes are still a question.
func TestWithClasses(t *testing.T) {
	modeltest.Runtime(t)
	g := newGraph()
	f := g.features(4)
	g.named(f, "features")
	g.named(g.linear(f, 5), "logits")
	path := g.file(t, -1)
	for output, classes := range map[string]int{"": 5, "logits": 5, "features": 0} {
		s := modeltest.Spec(t, modeltest.Model(t, model.ONNXParams{Path: path, Output: output}))
		if s.Classes != classes || (classes > 0) != (s.Outputs == nil) {
			t.Errorf("output %q: %d classes, outputs %v", output, s.Classes, s.Outputs)
		}
	}
	g = newGraph()
	f = g.features(4)
	g.named(g.linear(f, 5), "a")
	g.named(g.linear(f, 7), "b")
	p := defaults(model.ONNXParams{Path: g.file(t, -1)})
	if _, err := stagetest.Try(model.ONNX, &p, nil); err == nil ||
		!strings.Contains(err.Error(), "which output has the classes?") {
		t.Errorf("two outputs with classes: %v", err)
	}
}

// TestWithoutClassesRefused holds the errors about outputs that are no targets, and of stages that need
// classes.
func TestWithoutClassesRefused(t *testing.T) {
	modeltest.Runtime(t)
	for _, tt := range []struct {
		name, want string
		batch      int
		build      func(g graph)
	}{
		{"suppressed", "as after non-maximum suppression: export the model before that", 1, func(g graph) {
			g.named(g.kept(g.rows(g.features(4), 6)), "detections")
		}},
		{"nothing left", "no numbers for the images tried", 1, func(g graph) {
			rows := g.rows(g.features(4), 6)
			g.named(g.op("Slice", []string{rows, g.ints(0), g.ints(0), g.ints(1)}), "detections")
		}},
		{"a number for all", "its first axis isn't that of the images", -1, func(g graph) {
			f := g.op("ReduceMean", []string{g.features(4)}, onnx.Attr{Name: "axes", Value: []int64{0}})
			g.named(f, "mean")
		}},
		{"a constant", "ignores its image", -1, func(g graph) {
			f := g.features(4)
			g.named(g.op("Mul", []string{f, g.number(0)}), "nothing")
		}},
		{"not a number", "NaN", -1, func(g graph) {
			g.named(g.op("Add", []string{g.features(4), g.number(float32(math.NaN()))}), "nothing")
		}},
	} {
		g := newGraph()
		tt.build(g)
		p := defaults(model.ONNXParams{Path: g.file(t, tt.batch)})
		if _, err := stagetest.Try(model.ONNX, &p, nil); err == nil ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
	g := newGraph()
	g.named(g.op("Conv", []string{g.features(4), g.noise(5, 4, 1, 1)}), "logits")
	d := modeltest.Model(t, model.ONNXParams{Path: g.file(t, -1)})
	_, err := stagetest.Try(model.Predict, nil, map[string][]stages.Data{"model": {d},
		"images": {stagetest.Items(stages.Facts{}, nil)}})
	const want = "the model has no classes: its outputs are logits [5, 8, 8]; give target: an expression, " +
		"such as segmentation(3, logits)"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a prediction: %v", err)
	}
}

// TestSuggestedTargets holds that suggested targets fit the outputs, and which layer everything passes
// through.
func TestSuggestedTargets(t *testing.T) {
	modeltest.Runtime(t)
	for _, tt := range []struct {
		name  string
		kind  string
		want  []string
		final string
		build func(g graph)
	}{
		{"segmentation", "auto", []string{"segmentation(3, logits)", "mean(logits[3])"}, "Relu_1",
			func(g graph) {
				g.named(g.op("Conv", []string{g.features(4), g.noise(5, 4, 1, 1)}), "logits")
			}},
		{"detector", "auto",
			[]string{"detection(boxes, scores)", "boxes[3, 3]", "max(boxes[:, 3])"}, "Relu_1",
			func(g graph) {
				f := g.features(4)
				g.named(g.rows(f, 4), "boxes")
				g.named(g.rows(f, 3), "scores")
			}},
		{"embedding", "none", []string{`"out:0"[3]`, `contrast("out:0", 3)`,
			`cosine("out:0", other("out:0"))`}, "Relu_1",
			func(g graph) { g.named(g.linear(g.features(4), 16), "out:0") }},
		{"mask", "auto", []string{`segmentation(0, "mask")`, `mean("mask"[0])`}, "Relu_1", func(g graph) {
			g.named(g.op("Conv", []string{g.features(4), g.noise(1, 4, 1, 1)}), "mask")
		}},
		{"regression", "none", []string{"only(age)"}, "Relu_1", func(g graph) {
			g.named(g.op("Reshape", []string{g.linear(g.features(4), 1), g.ints(-1)}), "age")
		}},
		{"two branches", "auto",
			[]string{"segmentation(3, a)", "mean(a[3])", "segmentation(1, b)"}, "", func(g graph) {
				g.named(g.op("Relu", []string{g.op("Conv", []string{"image", g.noise(5, 3, 1, 1)})}), "a")
				g.named(g.op("Relu", []string{g.op("Conv", []string{"image", g.noise(2, 3, 1, 1)})}), "b")
			}},
	} {
		g := newGraph()
		tt.build(g)
		p := defaults(model.ONNXParams{Path: g.file(t, -1), Kind: tt.kind})
		x, err := model.Inspect(t.Context(), p)
		if err != nil || x.Problem != "" {
			t.Fatalf("%s: %v, %q", tt.name, err, x.Problem)
		}
		if diff := cmp.Diff(tt.want, x.Targets); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		m := target.Model{Outputs: x.Feed.Outputs, Height: 8, Width: 8}
		for _, text := range x.Targets {
			e, err := target.Parse(text)
			if err == nil {
				_, err = e.Bind(m)
			}
			if err != nil {
				t.Errorf("%s: %s: %v", tt.name, text, err)
			}
		}
		final := ""
		if x.Final != nil {
			final = x.Final.Name
		}
		if final != tt.final || x.Gradient != "" {
			t.Errorf("%s: final layer %q, want %q; gradient %q", tt.name, final, tt.final, x.Gradient)
		}
		x.Trial.Close()
	}
}
