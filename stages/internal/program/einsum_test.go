package program_test

import (
	"testing"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestEinsum holds that an Einsum of any number of operands, with repeated, summed and unnamed indices, has
// the answers of ONNX Runtime's kernel in programs, and the derivatives that differences of these show.
func TestEinsum(t *testing.T) {
	modeltest.Runtime(t)
	for _, tt := range []struct {
		equation string
		operands []string // x is the image [N,3,8,9], s its part [N,3,8,8]; others are weights
		out      []int64  // shape of the result for an image
	}{
		{"nchw,hk,wl->nckl", []string{"x", "hk", "wk"}, []int64{3, 5, 5}},
		{"nchw,hk,wl,cd->ndkl", []string{"x", "hk", "wk", "cc"}, []int64{3, 5, 5}},
		{"nchw , hk -> nck", []string{"x", "hk"}, []int64{3, 5}},
		{"achw,hk,wk", []string{"x", "hk", "wk"}, []int64{3}},
		{"nchw->nc", []string{"x"}, []int64{3}},
		{"nchw->nwch", []string{"x"}, []int64{9, 3, 8}},
		{"ncii->nci", []string{"s"}, []int64{3, 8}},
		{"ncii->nc", []string{"s"}, []int64{3}},
		{"ncii,ik->nck", []string{"s", "hk"}, []int64{3, 5}},
		{"...w,wk->...k", []string{"x", "wk"}, []int64{3, 8, 5}},
		{"...hw,hk,wl", []string{"x", "hk", "wk"}, []int64{3, 5, 5}},
		{"...,...->...", []string{"x", "row"}, []int64{3, 8, 9}},
		{"nchw,nchv,wv->nc", []string{"x", "x", "ww"}, []int64{3}},
	} {
		flat := int64(1)
		for _, d := range tt.out {
			flat *= d
		}
		weights := []*onnxpb.TensorProto{modeltest.Noise("hk", 0.37, 8, 5), modeltest.Noise("wk", 0.73, 9, 5),
			modeltest.Noise("cc", 0.21, 3, 3), modeltest.Noise("row", 0.31, 1, 3, 1, 9),
			modeltest.Noise("ww", 0.51, 9, 9), modeltest.Noise("v", 0.9, int(flat), 3),
			onnx.IntTensor("flat", []int64{2, flat}, 2), onnx.IntTensor("high", []int64{2, 3, 1, 1}, 4),
			onnx.IntTensor("from", []int64{0}, 1), onnx.IntTensor("to", []int64{8}, 1),
			onnx.IntTensor("axis", []int64{3}, 1)}
		n := pair3(t, 17, weights,
			onnx.NewNode("active", "Tanh", []string{"input"}, []string{"x"}),
			onnx.NewNode("slice", "Slice", []string{"x", "from", "to", "axis"}, []string{"s"}),
			onnx.NewNode("sum", "Einsum", tt.operands, []string{"e"},
				onnx.Attr{Name: "equation", Value: tt.equation}),
			onnx.NewNode("flatten", "Reshape", []string{"e", "flat"}, []string{"g"}),
			onnx.NewNode("linear", "MatMul", []string{"g", "v"}, []string{"l"}),
			onnx.NewNode("back", "Reshape", []string{"l", "high"}, []string{"c"}))
		slot := threaded{1, stagetest.NewSlot()}
		y, d := differentiate(t, n, slot, lower.Question{Rules: relevance.Derivative()}, 2, 2)
		if e := deviation(y, classify(t, n, slot, 2, 2)); e > 2e-6 {
			t.Errorf("%s: answers deviate by %.1e from ONNX Runtime's", tt.equation, e)
		}
		if e := slopeError(t, n, slot, d); e > 2e-2 {
			t.Errorf("%s: derivatives deviate by %.1e from differences", tt.equation, e)
		}
	}
}
