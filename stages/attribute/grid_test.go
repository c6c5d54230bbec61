package attribute

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/golden"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
)

const (
	gridSide = 64
	cellSide = 32
)

// gridNet writes the net of one head of a grid setting to a file: the official small nets, altered the way
// that the setting's definition says, so that they take a 2×2 grid of images.
//
//   - GridPG: the whole grid goes through the net; smallcnn's classifier becomes
//     convolutions whose answers are averaged over the places.
//   - DiFull: the head sees its cell of the input and nothing else.
//   - DiPart: the features are those of the whole grid; the head sees its cell
//     of the last ones.
func gridNet(t *testing.T, net, setting string, head int) stages.Data {
	t.Helper()
	source := net
	if net == "gapcnn" {
		source = "gapcnn_dyn"
	}
	m, err := onnx.ReadFile(filepath.Join(golden.Dir(t), "models", source+".onnx"))
	if err != nil {
		t.Fatal(err)
	}
	row, column := int64(head/2), int64(head%2)
	switch setting {
	case "DiFull":
		f := m.Fragment()
		slice(m, f, "grid", "input", row, column, cellSide)
		m.Before(f)
		m.SetInputs(onnx.Value{Name: "grid", Elem: onnxpb.TensorProto_FLOAT,
			Shape: []int{onnx.Free, 3, gridSide, gridSide}, Known: true})
	case "DiPart":
		f := m.Fragment()
		last := "/relu3/Relu_output_0"
		slice(m, f, last, "cell", row, column, 8)
		nodes := m.Proto.Graph.Node
		for i, n := range nodes {
			if n.Input[0] == last {
				n.Input[0] = "cell"
				rest := append([]*onnxpb.NodeProto(nil), nodes[i:]...)
				m.Proto.Graph.Node = nodes[:i]
				m.After(f)
				m.Proto.Graph.Node = append(m.Proto.Graph.Node, rest...)
				break
			}
		}
	case "GridPG":
		if net == "smallcnn" {
			convolve(t, m)
		}
	}
	if setting != "DiFull" {
		m.SetInputs(onnx.Value{Name: "input", Elem: onnxpb.TensorProto_FLOAT,
			Shape: []int{onnx.Free, 3, gridSide, gridSide}, Known: true})
	}
	return modeltest.Model(t, model.ONNXParams{Path: modeltest.File(t, m), Preset: "unit"})
}

// slice adds a node that cuts the cell of the given side out of a value.
func slice(m *onnx.Model, f *onnx.Fragment, from, to string, row, column, side int64) {
	starts := f.Ints("starts", []int64{row * side, column * side}, 2)
	ends := f.Ints("ends", []int64{(row + 1) * side, (column + 1) * side}, 2)
	axes := f.Ints("axes", []int64{2, 3}, 2)
	f.OpTo(to, "Slice", []string{from, starts, ends, axes})
}

// convolve turns smallcnn's two linear layers into convolutions of 8×8 and 1×1, and averages what they answer
// at every place.
func convolve(t *testing.T, m *onnx.Model) {
	t.Helper()
	shapes := map[string][]int64{"fc1.weight": {32, 16, 8, 8}, "fc2.weight": {10, 32, 1, 1}}
	for _, w := range m.Proto.Graph.Initializer {
		if s := shapes[w.Name]; s != nil {
			w.Dims = s
		}
	}
	for _, n := range m.Proto.Graph.Node {
		switch n.OpType {
		case "Flatten":
			n.OpType, n.Attribute = "Identity", nil
		case "Gemm":
			n.OpType, n.Attribute = "Conv", nil
		}
		if n.Output[0] == "logits" {
			n.Output[0] = "places"
		}
	}
	f := m.Fragment()
	f.OpTo("logits", "GlobalAveragePool", []string{"places"})
	m.After(f)
	m.SetOutputs(onnx.Value{Name: "logits", Elem: onnxpb.TensorProto_FLOAT})
}

// TestOfficialGrids holds RISE at the input against the code of Rao et al. in its three settings.
func TestOfficialGrids(t *testing.T) {
	masks := read(t, "gridpg_difull_dipart", "rise_masks40_64.npz")["masks"].Float32s()
	for _, net := range []string{"gapcnn", "smallcnn"} {
		for _, setting := range []string{"GridPG", "DiFull", "DiPart"} {
			a := read(t, "gridpg_difull_dipart", net+"_"+setting+".npz")
			grids, labels := a["grids"], a["labels"].Int64s()
			heads := []int{0, 3}
			if setting == "GridPG" {
				heads = []int{0, 1, 2, 3}
			}
			for k, head := range heads {
				net := gridNet(t, net, setting, head)
				for n := range grids.Shape[0] {
					x := grids
					x.Raw = grids.Raw[n*4*3*gridSide*gridSide:][:4*3*gridSide*gridSide]
					x.Shape = []int{3, gridSide, gridSide}
					class := labels[4*n+head]
					what := fmt.Sprintf("%s, head %d of grid %d", setting, head, n)
					official := func(method string) []float32 {
						all := a[method]
						size := gridSide * gridSide
						return all.Float32s()[(n*all.Shape[1]+k)*size:][:size]
					}
					near(t, what+" RISE", riseWith(t, net, x, masks, 0.1, int(class)),
						official("attr_RISE_Input"), official32)
				}
			}
		}
	}
}
