package program_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/npy"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// attention returns what a program returns of the blocks' attention for some images, whose classes are
// explained: by image, then by what is returned.
func attention(t *testing.T, n *program.Net, what lower.Glance, images [][]float32, classes []int,
	batch int) (program.Attention, [][][]float32) {
	t.Helper()
	a, err := n.Attention(t.Context(), threaded{1, stagetest.NewSlot()}, what, lower.Question{}, batch)
	if err != nil {
		t.Fatal(err)
	}
	returned := len(a.Blocks)
	switch what {
	case lower.Slopes:
		returned = 1
	case program.Factors:
		returned *= 2
	}
	var out [][][]float32
	for from := 0; from < len(images); from += a.Batch {
		for i := range a.Batch {
			k := min(from+i, len(images)-1)
			copy(a.Image(i), images[k])
			a.Explain(i, program.Target{Class: classes[k], Minus: -1})
		}
		if err := a.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range min(a.Batch, len(images)-from) {
			var all [][]float32
			for k := range returned {
				all = append(all, slices.Clone(a.Matrices(k, i)))
			}
			out = append(out, all)
		}
	}
	return a, out
}

// TestOfficialAttention holds each block's attention, its derivative and its relevance, head by head, against
// those of the code of Chefer et al., for two classes.
func TestOfficialAttention(t *testing.T) {
	path := filepath.Join(golden.Dir(t), "models", "timm_vit_op17.onnx")
	n := net(t, model.ONNXParams{Path: path, Preset: "unit"})
	for prefix, target := range map[string]string{"t": "target", "u": "target2"} {
		var files []map[string]npy.Array
		var images [][]float32
		var classes []int
		for k := range 3 {
			a := golden.Arrays(t,
				filepath.Join(golden.Dir(t), "vit_attention", fmt.Sprintf("vit_img%d.npz", k)))
			files = append(files, a)
			images = append(images, a["x"].Float32s())
			classes = append(classes, int(a[target].Int64s()[0]))
		}
		_, factors := attention(t, n, program.Factors, images, classes, 3)
		_, heads := attention(t, n, lower.Heads, images, classes, 3)
		for k, a := range files {
			for b := range 3 {
				check := func(what string, got, want []float32, tolerance float64) {
					if d := deviation(got, want); !(d < tolerance) {
						t.Errorf("image %d, class %s, block %d: %s deviates by %g", k, prefix, b, what, d)
					}
				}
				check("relevance", factors[k][2*b], a[fmt.Sprintf("%s_attn_cam_%d", prefix, b)].Float32s(),
					5e-3)
				check("derivative", factors[k][2*b+1],
					a[fmt.Sprintf("%s_attn_grad_%d", prefix, b)].Float32s(), 5e-6)
				if prefix == "t" {
					each := a[fmt.Sprintf("t_attn_%d", b)].Float32s()
					mean := make([]float32, 17*17)
					for i, v := range each {
						mean[i%len(mean)] += v / 3
					}
					check("attention", heads[k][b], mean, 1e-6)
				}
			}
		}
	}
}

// deviation is the length of the difference over the length of what is wanted.
func deviation(got, want []float32) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	apart, norm := 0.0, 0.0
	for i := range want {
		apart += math.Pow(float64(got[i])-float64(want[i]), 2)
		norm += math.Pow(float64(want[i]), 2)
	}
	switch {
	case apart == 0:
		return 0
	case math.IsNaN(apart / norm): // of which no comparison would hold
		return math.Inf(1)
	}
	return math.Sqrt(apart / norm)
}

// TestAttend holds what is found of attention in real nets, or why nothing is.
func TestAttend(t *testing.T) {
	all := modeltest.Nets(t, true)
	for name, want := range map[string]string{
		"timm_vit_op13":                  "3 blocks, 17 tokens, 1 read, patches 1+4×4",
		"timm_vit_op17":                  "3 blocks, 17 tokens, 1 read, patches 1+4×4",
		"vit":                            "5 blocks, 65 tokens, 1 read, patches 1+8×8",
		"imagenet_vit_tiny_patch16_224":  "12 blocks, 197 tokens, 1 read, patches 1+14×14",
		"cifar10_vnncomp_vit_pgd_2_3_16": "2 blocks, 5 tokens, 5 read, patches 1+2×2",
		"cifar10_cct4_3x1":               "isn't a matrix of all tokens by all tokens",
		"resnet":                         "no attention of tokens to tokens",
	} {
		n := net(t, all[name])
		g, err := n.Graph(t.Context(), stagetest.NewSlot(), n.Fit(2, 2))
		if err != nil {
			t.Fatal(err)
		}
		a, err := relevance.Attend(g)
		got := fmt.Sprintf("%d blocks, %d tokens, %d read, patches %d+%d×%d", len(a.Blocks), a.Tokens,
			len(a.Read), a.First, a.Height, a.Width)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestMergedHeads holds that attention and its relevance are the same where heads and images share an axis,
// however many images are asked for.
func TestMergedHeads(t *testing.T) {
	images := make([][]float32, 3)
	for k := range images {
		images[k] = make([]float32, 3*8*8)
		wave(k, images[k])
	}
	classes := []int{0, 1, 2}
	apart, merged := net(t, transformer(t, false)), net(t, transformer(t, true))
	for _, what := range []lower.Glance{lower.Heads, lower.Slopes, lower.Weighted, lower.Relevances,
		lower.LastRelevance, lower.Pixels} {
		a, want := attention(t, apart, what, images, classes, 3)
		b, got := attention(t, merged, what, images, classes, 3)
		if a.Merged || !b.Merged || a.Batch != 3 || b.Batch != 1 || len(b.Read) != 4 {
			t.Errorf("%+v and %+v", a.Attention, b.Attention)
		}
		for k := range images {
			if d := deviation(got[k][0], want[k][0]); !(d < 1e-4) {
				t.Errorf("%s, image %d: relative deviation %g", what, k, d)
			}
		}
	}
}

// transformer writes a net of one block of attention, two heads for four patches that are averaged in the
// end, to a file. Its heads are an axis of their own, or one with the images.
func transformer(t *testing.T, merged bool) model.ONNXParams {
	t.Helper()
	const channels, heads, width = 6, 2, 3
	m := &onnx.Model{Proto: &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Name: "g"}, IrVersion: 8}}
	version := int64(17)
	m.Proto.OpsetImport = []*onnxpb.OperatorSetIdProto{{Version: version}}
	weight := func(name string, shape ...int) {
		size := 1
		for _, d := range shape {
			size *= d
		}
		v := make([]float32, size)
		for i := range v {
			v[i] = float32(math.Sin(float64(i*i)*0.7 + float64(len(name))))
		}
		m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer, onnx.FloatTensor(name, v, shape...))
	}
	ints := func(name string, v ...int64) {
		m.Proto.Graph.Initializer = append(m.Proto.Graph.Initializer, onnx.IntTensor(name, v, len(v)))
	}
	node := func(op, out string, in []string, attrs ...onnx.Attr) {
		m.Proto.Graph.Node = append(m.Proto.Graph.Node, onnx.NewNode(out, op, in, []string{out}, attrs...))
	}
	perm := func(p ...int64) onnx.Attr { return onnx.Attr{Name: "perm", Value: p} }
	weight("patches", channels, 3, 4, 4)
	ints("flat", 0, channels, 4)
	ints("split", 0, 4, heads, width)
	ints("together", 0, 4, channels)
	ints("merged", -1, 4, width)
	ints("unmerged", -1, heads, 4, width)
	node("Conv", "embedded", []string{"input", "patches"}, onnx.Attr{Name: "strides", Value: []int64{4, 4}})
	node("Reshape", "rows", []string{"embedded", "flat"})
	node("Transpose", "tokens", []string{"rows"}, perm(0, 2, 1))
	for _, name := range []string{"q", "kk", "vvv"} {
		weight("w_"+name, channels, channels)
		node("MatMul", name+"_flat", []string{"tokens", "w_" + name})
		node("Reshape", name+"_split", []string{name + "_flat", "split"})
		node("Transpose", name, []string{name + "_split"}, perm(0, 2, 1, 3))
	}
	swap, q, k, v := perm(0, 1, 3, 2), "q", "kk", "vvv"
	if merged {
		swap = perm(0, 2, 1)
		for _, name := range []*string{&q, &k, &v} {
			node("Reshape", *name+"_merged", []string{*name, "merged"})
			*name += "_merged"
		}
	}
	node("Transpose", "turned", []string{k}, swap)
	node("MatMul", "dots", []string{q, "turned"})
	node("Softmax", "attention", []string{"dots"}, onnx.Attr{Name: "axis", Value: -1})
	node("MatMul", "mixed", []string{"attention", v})
	mixed := "mixed"
	if merged {
		node("Reshape", "unmixed", []string{"mixed", "unmerged"})
		mixed = "unmixed"
	}
	node("Transpose", "back", []string{mixed}, perm(0, 2, 1, 3))
	node("Reshape", "joined", []string{"back", "together"})
	node("Add", "residual", []string{"tokens", "joined"})
	node("ReduceMean", "mean", []string{"residual"}, onnx.Attr{Name: "axes", Value: []int64{1}},
		onnx.Attr{Name: "keepdims", Value: 0})
	weight("head", channels, 5)
	node("MatMul", "answer", []string{"mean", "head"})
	m.Proto.Graph.Input = []*onnxpb.ValueInfoProto{value("input", 3, 8, 8)}
	m.Proto.Graph.Output = []*onnxpb.ValueInfoProto{value("answer", 5)}
	return model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit"}
}

// value describes a value of so many floats for each image.
func value(name string, shape ...int64) *onnxpb.ValueInfoProto {
	dims :=
		[]*onnxpb.TensorShapeProto_Dimension{{
			Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "N"}}}
	for _, d := range shape {
		dims = append(dims,
			&onnxpb.TensorShapeProto_Dimension{
				Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d}})
	}
	elem := int32(onnxpb.TensorProto_FLOAT)
	return &onnxpb.ValueInfoProto{Name: name, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: elem, Shape: &onnxpb.TensorShapeProto{Dim: dims}},
	}}}
}
