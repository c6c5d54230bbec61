package variant_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

const cell = 6 // pixels along a side of the images of nets here

// waves returns images of side×side pixels that differ everywhere.
func waves(count, side int) [][]float32 {
	out := make([][]float32, count)
	for i := range out {
		out[i] = make([]float32, 3*side*side)
		for k := range out[i] {
			out[i][k] = float32(math.Sin(float64(k+1)*0.37*float64(i+1)) + math.Sin(float64(k)*0.011))
		}
	}
	return out
}

// answers returns a net's answers to images, asked for two at a time.
func answers(t *testing.T, d stages.Data, images [][]float32) (rows [][]float32) {
	t.Helper()
	n := modeltest.Net(t, d)
	f, err := n.Forward(t.Context(), stagetest.NewSlot(), n.Fit(2, 2))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range images {
		for i := range f.Batch {
			copy(f.Image(i), x)
		}
		if err := f.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, append([]float32(nil), f.Row(0)...))
	}
	return rows
}

// cut returns cell k of a grid of n×n cells.
func cut(grid []float32, n, k int) []float32 {
	side := n * cell
	var out []float32
	for c := range 3 {
		for y := range cell {
			from := (c*side+k/n*cell+y)*side + k%n*cell
			out = append(out, grid[from:from+cell]...)
		}
	}
	return out
}

// net writes a net: a convolution and a ReLU, and then what head emits of maps [B,4,side,side], five classes
// called logits. With last, the image has its channels last.
func net(t *testing.T, side int, last bool, head func(f *onnx.Fragment, maps string)) stages.Data {
	t.Helper()
	shape := []int{onnx.Free, 3, side, side}
	if last {
		shape = []int{onnx.Free, side, side, 3}
	}
	m := &onnx.Model{Proto: &onnxpb.ModelProto{IrVersion: 8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 13}}, Graph: &onnxpb.GraphProto{Name: "net"}}}
	m.SetInputs(onnx.Value{Name: "image", Elem: onnxpb.TensorProto_FLOAT, Shape: shape, Known: true})
	f := m.Fragment()
	x := "image"
	if last {
		x = f.Op("Transpose", []string{x}, onnx.Attr{Name: "perm", Value: []int64{0, 3, 1, 2}})
	}
	x = f.Op("Conv", []string{x, weight(f, 0.9, 4, 3, 3, 3)},
		onnx.Attr{Name: "pads", Value: []int64{1, 1, 1, 1}})
	head(f, f.Op("Relu", []string{x}))
	m.After(f)
	m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT})
	return modeltest.Model(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit", Kind: "logits"})
}

// weight adds a weight of uneven numbers.
func weight(f *onnx.Fragment, seed float64, shape ...int64) string {
	v := make([]float32, 1)
	for _, d := range shape {
		v = append(v, make([]float32, len(v)*int(d-1))...)
	}
	for i := range v {
		v[i] = float32(math.Sin(seed * float64(i+1)))
	}
	return f.Floats("weight", v, shape...)
}

// dense emits two dense layers, flattened with channels first or last.
func dense(last bool) func(f *onnx.Fragment, maps string) {
	return func(f *onnx.Fragment, maps string) {
		if last {
			maps = f.Op("Transpose", []string{maps}, onnx.Attr{Name: "perm", Value: []int64{0, 2, 3, 1}})
		}
		v := f.Op("Flatten", []string{maps})
		v = f.Op("Relu", []string{f.Op("Gemm", []string{v, weight(f, 0.7, 7, 4*cell*cell), weight(f, 0.4, 7)},
			onnx.Attr{Name: "transB", Value: 1})})
		v = f.Op("MatMul", []string{v, weight(f, 0.3, 7, 5)})
		f.OpTo("logits", "Add", []string{v, weight(f, 0.2, 5)})
	}
}

func pooled(f *onnx.Fragment, maps string) {
	v := f.Op("Flatten", []string{f.Op("GlobalAveragePool", []string{maps})})
	f.OpTo("logits", "Gemm", []string{v, weight(f, 0.3, 4, 5), weight(f, 0.2, 5)})
}

func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	largest := 1.0
	for _, v := range want {
		largest = math.Max(largest, math.Abs(float64(v)))
	}
	for i := range want {
		if len(got) != len(want) || !(math.Abs(float64(got[i]-want[i])) <= 1e-5*largest) {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
	}
}

// TestDiFullIsItsCells: head k of a grid answers what the base answers to cell k, to the last bits but few,
// and nothing outside the cell changes a bit of that.
func TestDiFullIsItsCells(t *testing.T) {
	for name, base := range map[string]stages.Data{
		"dense": net(t, cell, false, dense(false)), "pooled": net(t, cell, false, pooled),
		"channels last": net(t, cell, true, dense(true)),
	} {
		for _, n := range []int{2, 3} {
			r := stagetest.Run(t, model.DiFull, &model.DiFullParams{N: n},
				map[string][]stages.Data{"model": {base}})
			d := stagetest.Value(r.Facts["model"], r.Payloads["model"][0])
			d.Base = &base
			if s := modeltest.Spec(t, d); s.Classes != 5*n*n || s.Heads != n*n || s.Height != n*cell {
				t.Fatalf("%s: %+v", name, s)
			}
			grids := waves(2, n*cell)
			for i, row := range answers(t, d, grids) {
				for k := range n * n {
					near(t, name, row[5*k:5*k+5], answers(t, base, [][]float32{cut(grids[i], n, k)})[0])
				}
			}
		}
	}
}

// TestDiFullStitchesFurtherLayers: features stitched at further layers leave the answers as they are, and a
// layer is a value with places.
func TestDiFullStitchesFurtherLayers(t *testing.T) {
	base := modeltest.Model(t, model.ONNXParams{Path: "../../../experiments/quickstart/vgg.onnx",
		Preset: "half"})
	rewritten := func(layers ...string) stages.Data {
		r := stagetest.Run(t, model.DiFull, &model.DiFullParams{N: 2, Layers: layers},
			map[string][]stages.Data{"model": {base}})
		d := stagetest.Value(r.Facts["model"], r.Payloads["model"][0])
		d.Base = &base
		return d
	}
	grids := waves(1, 128)
	plain, stitched := rewritten(), rewritten("/1/Relu_output_0", "/8/Relu_output_0")
	near(t, "stitched", answers(t, stitched, grids)[0], answers(t, plain, grids)[0])
	for _, layer := range []string{"input", "logits", "/9/Relu_output_0"} {
		_, err := stagetest.Try(model.DiFull, &model.DiFullParams{N: 2, Layers: []string{layer}},
			map[string][]stages.Data{"model": {base}})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("layers: %q isn't a value", layer)) {
			t.Errorf("the layer %s: %v", layer, err)
		}
	}
}

// TestGridPGIsAMeanOverWindows: the answer of a dense net to a grid is the mean of what its dense layers
// answer to the grid's features in all windows of an image's size.
func TestGridPGIsAMeanOverWindows(t *testing.T) {
	for _, last := range []bool{false, true} {
		d := modeltest.Rewritten(t, model.GridPG, net(t, cell, last, dense(last)))
		if s := modeltest.Spec(t, d); s.Classes != 5 || s.Heads != 0 || s.Height != 2*cell {
			t.Fatalf("%+v", s)
		}
		grids := waves(2, 2*cell)
		want := make([][]float32, len(grids))
		for y := range int64(cell + 1) {
			for x := range int64(cell + 1) {
				window := net(t, 2*cell, last, func(f *onnx.Fragment, maps string) {
					from, to := f.Ints("from", []int64{y, x}, 2), f.Ints("to", []int64{y + cell, x + cell}, 2)
					dense(last)(f, f.Op("Slice", []string{maps, from, to, f.Ints("axes", []int64{2, 3}, 2)}))
				})
				for i, row := range answers(t, window, grids) {
					want[i] = append(want[i], make([]float32, 5-min(5, len(want[i])))...)
					for c, v := range row {
						want[i][c] += v / ((cell + 1) * (cell + 1))
					}
				}
			}
		}
		for i, row := range answers(t, d, grids) {
			near(t, "grid", row, want[i])
		}
	}
}

// TestDiPartCutsFeatures: a head answers to its cell of the whole grid's features, which at inner edges
// aren't those of the cell alone.
func TestDiPartCutsFeatures(t *testing.T) {
	for _, last := range []bool{false, true} {
		base := net(t, cell, last, dense(last))
		d := modeltest.Rewritten(t, model.DiPart, base)
		grids := waves(2, 2*cell)
		rows := answers(t, d, grids)
		for k := range int64(4) {
			y, x := k/2*cell, k%2*cell
			window := net(t, 2*cell, last, func(f *onnx.Fragment, maps string) {
				from, to := f.Ints("from", []int64{y, x}, 2), f.Ints("to", []int64{y + cell, x + cell}, 2)
				dense(last)(f, f.Op("Slice", []string{maps, from, to, f.Ints("axes", []int64{2, 3}, 2)}))
			})
			for i, want := range answers(t, window, grids) {
				near(t, "head", rows[i][5*k:5*k+5], want)
			}
		}
	}
}

// TestGlobalPoolingNeedsNoHead: a model with global pooling is resized, and answers as its file does at that
// size.
func TestGlobalPoolingNeedsNoHead(t *testing.T) {
	base, large := net(t, cell, false, pooled), net(t, 2*cell, false, pooled)
	d := modeltest.Rewritten(t, model.GridPG, base)
	grids := waves(2, 2*cell)
	for i, want := range answers(t, large, grids) {
		near(t, "grid", answers(t, d, grids)[i], want)
	}
}

// TestRewritesAreRefused: what has no meaning for a model is an error that says why.
func TestRewritesAreRefused(t *testing.T) {
	branched := net(t, cell, false, func(f *onnx.Fragment, maps string) {
		v := f.Op("Flatten", []string{maps})
		v = f.Op("MatMul", []string{v, weight(f, 0.7, 4*cell*cell, 5)})
		f.OpTo("logits", "Mul", []string{v, f.Op("Sigmoid", []string{v})})
	})
	positions := net(t, cell, false, func(f *onnx.Fragment, maps string) {
		v := f.Op("Relu", []string{f.Op("Add", []string{maps, weight(f, 0.1, 1, 4, cell, cell)})})
		dense(false)(f, v)
	})
	for _, tt := range []struct {
		stage stages.Stage
		base  stages.Data
		want  string
	}{
		{model.GridPG, branched, "2 nodes read"},
		{model.GridPG, positions, "GridPG has no meaning for"},
		{model.DiPart, positions, "position embeddings"},
	} {
		_, err := stagetest.Try(tt.stage, nil, map[string][]stages.Data{"model": {tt.base}})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.stage.Name, err, tt.want)
		}
	}
}

// TestRewrittenModelsKeepNoWeights: the payload has the digest of the base, and the bytes of none of its
// weights; and a model without its base, or with another, isn't loaded.
func TestRewrittenModelsKeepNoWeights(t *testing.T) {
	base, other := net(t, cell, false, dense(false)), net(t, cell, false, pooled)
	d := modeltest.Rewritten(t, model.GridPG, base)
	b, err := d.Load(0)
	if err != nil || len(b) > 1000 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	for _, wrong := range []*stages.Data{nil, &other} {
		d.Base = wrong
		if _, err := program.LoadNet(stagetest.NewSlot(), d); err == nil {
			t.Error("a rewritten model is loaded without what it was made of")
		}
	}
}

// TestRewrittenModelsAreInvariant: results have the same bits in all batches and on all threads.
func TestRewrittenModelsAreInvariant(t *testing.T) {
	base := net(t, cell, false, dense(false))
	for _, s := range []stages.Stage{model.GridPG, model.DiFull, model.DiPart} {
		modeltest.Invariant(t, modeltest.Rewritten(t, s, base))
	}
}

// TestProbabilitiesAreOfAHead: the probabilities of a head's classes sum to 1, and targets, labels and rivals
// are of one head.
func TestProbabilitiesAreOfAHead(t *testing.T) {
	base := net(t, cell, false, dense(false))
	d := modeltest.Rewritten(t, model.DiFull, base)
	n := modeltest.Net(t, d)
	row := answers(t, d, waves(1, 2*cell))[0]
	for head := range 4 {
		sum := 0.0
		for c := range 5 {
			sum += n.Probability(row, program.Target{Class: 5*head + c, Minus: -1})
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("head %d: %g", head, sum)
		}
	}
	// Labels are predicted head by head, and what competes with a class is in its head.
	for class := range 20 {
		label := n.Label(row, program.Target{Class: class})
		if label/5 != class/5 || row[label] < row[class] {
			t.Errorf("class %d: label %d of %v", class, label, row)
		}
	}
	ones := slices.Repeat([]float32{1}, 20)
	part, at := n.Rivals(ones, program.Target{Class: 13, Minus: 11})
	part[0] = 2
	if at.Class != 3 || at.Minus != 1 || !slices.Equal(ones, slices.Concat(make([]float32, 10),
		[]float32{2, 1, 1, 1, 1}, make([]float32, 5))) {
		t.Errorf("%v of %v", at, ones)
	}
	for _, tt := range []struct {
		target []int64
		class  int
	}{{[]int64{3, -1, 2}, 13}, {[]int64{3, -1, 4}, -1}, {[]int64{5, -1, 0}, -1}, {[]int64{3}, -1}} {
		got, err := n.Target(stages.NewTensor(tt.target, len(tt.target)).Encode())
		if (err != nil) != (tt.class < 0) || err == nil && got.Class != tt.class {
			t.Errorf("%v: %v, %v", tt.target, got, err)
		}
	}
}
