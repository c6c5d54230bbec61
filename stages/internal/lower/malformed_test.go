package lower_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
	"github.com/runexp/runexp/stages/stagetest"
)

// TestMalformed holds that a model whose nodes don't fit together makes the compiler return an error or
// continue, and never panic: nets whose nodes, attributes and weights' shapes were changed, which ONNX
// Runtime doesn't always see before it runs them. What ONNX Runtime doesn't run, as it is written, it isn't
// given to simplify.
func TestMalformed(t *testing.T) {
	nets := wholes(t)
	policies := []relevance.Policy{
		relevance.Derivative(), relevance.Guided(), {Name: "grouped", Grouped: true,
			Apart: true}, relevance.RAP().Policy(), relevance.TIBAV(),
		relevance.AbsLRP{Variant: relevance.AbsLRPOfficial, MaxPool: relevance.MaxPoolAuto,
			Ablation: relevance.AblationNone}.Policy(),
	}
	// Two of them once made it panic.
	changes := [][]byte{nil, {3, 9, 1, 127}, {12, 251, 245, 29}}
	for k := range byte(8) {
		changes = append(changes, []byte{k, 3 * k, 1, 2, k, 5 * k, 0, 250})
	}
	for i, chosen := range nets {
		for j, edits := range changes {
			m := proto.Clone(chosen.model).(*onnxpb.ModelProto)
			mutate(m, edits)
			b, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			changed := modelfile.Model{Spec: chosen.spec, ONNX: b}
			n, err := modeltest.NetOf(changed)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := program.AnswerShape(t.Context(), changed, n.Fit(2, 2)); err != nil {
				if j == 0 {
					t.Errorf("net %d as it is: %v", i, err)
				}
				continue
			}
			slot := stagetest.NewSlot()
			for k, p := range policies {
				if k > 2 && (i+j)%len(policies) != k {
					continue // the dear ones in turn
				}
				_, err := n.Gradient(t.Context(), slot, lower.Question{Rules: p}, n.Fit(2, 2))
				if k == 0 && j == 0 && err != nil {
					t.Errorf("net %d as it is: %v", i, err)
				}
			}
			stagetest.Release(slot)
		}
	}
}

// TestKernelOfOtherAxes holds that a convolution whose weights have more axes than what it takes is an error.
func TestKernelOfOtherAxes(t *testing.T) {
	for _, op := range []string{"Conv", "ConvTranspose"} {
		m := &onnxpb.ModelProto{
			IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 14}},
			Graph: &onnxpb.GraphProto{
				Name: "net", Input: []*onnxpb.ValueInfoProto{{Name: "x"}},
				Output: []*onnxpb.ValueInfoProto{{Name: "y"}},
				Node: []*onnxpb.NodeProto{
					onnx.NewNode("r", "Reshape", []string{"x", "s"}, []string{"r"}),
					onnx.NewNode("c", op, []string{"r", "w"}, []string{"y"}),
				},
				Initializer: []*onnxpb.TensorProto{onnx.IntTensor("s", []int64{0, 3, 64}, 3),
					onnx.FloatTensor("w", make([]float32, 36), 3, 3, 4, 1)},
			},
		}
		(&onnx.Model{Proto: m}).SetInputs(onnx.Value{Name: "x", Elem: onnxpb.TensorProto_FLOAT,
			Shape: []int{2, 3, 8, 8}, Known: true})
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		spec := modelfile.Spec{Input: "x", Output: "y", Channels: 3, Height: 8, Width: 8}
		if shape, err := program.AnswerShape(t.Context(), modelfile.Model{Spec: spec, ONNX: b},
			2); err == nil || !strings.Contains(err.Error(), op) {
			t.Errorf("%s: shape %v, error %v", op, shape, err)
		}
	}
}
