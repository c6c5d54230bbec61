package rewrite

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// either returns an If whose branches make the value called own.
func either(condition, out string, then, otherwise []*onnxpb.NodeProto) *onnxpb.NodeProto {
	n := onnx.NewNode(out, "If", []string{condition}, []string{out})
	for i, nodes := range [][]*onnxpb.NodeProto{then, otherwise} {
		g := &onnxpb.GraphProto{Node: nodes, Initializer: []*onnxpb.TensorProto{onnx.IntTensor("weight",
			[]int64{int64(i)})}, Output: []*onnxpb.ValueInfoProto{{Name: "own"}}}
		n.Attribute = append(n.Attribute, &onnxpb.AttributeProto{Name: []string{"then_branch",
			"else_branch"}[i], Type: onnxpb.AttributeProto_GRAPH, G: g})
	}
	return n
}

// TestInlineBranches holds that the branch that is taken stands where its If was, with values of its own that
// have new names; that an If inside comes out as it is; and that Ifs of which nothing is known stay.
func TestInlineBranches(t *testing.T) {
	inside := either("inner", "own", chain("own=outer"), chain("own=before"))
	first := either("yes", "first", append(chain("before=x,weight"), inside), chain("own=x"))
	m := model(17, append(chain("outer=x"), first,
		either("no", "second", chain("own=x"), chain("own=first,weight")), either("open", "third",
			chain("own=x"), chain("own=second")), either("second", "fourth", chain("own=x"), chain("own=x"))))
	if d := cmp.Diff([]string{"yes", "no", "open"}, Conditions(m)); d != "" {
		t.Error(d)
	}
	if !InlineBranches(m, map[string]bool{"yes": true, "no": false}) {
		t.Error("nothing was decided")
	}
	want := []string{
		"outer = Relu(x)",
		"before_1 = Relu(x, [0])", "own_1 = If(inner) then_branch else_branch", "first = Identity(own_1)",
		"own_2 = Relu(first, [1])", "second = Identity(own_2)",
		"third = If(open) then_branch else_branch", "fourth = If(second) then_branch else_branch",
	}
	if d := cmp.Diff(want, text(t, m)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"outer", "before_1"}, []string{
		inside.Attribute[0].G.Node[0].Input[0], inside.Attribute[1].G.Node[0].Input[0],
	}); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"inner", "open"}, Conditions(m)); d != "" {
		t.Error(d)
	}
	if InlineBranches(m, nil) {
		t.Error("something was decided of which nothing is known")
	}
}
