package variant_test

import (
	"slices"
	"testing"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modeltest"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/model"
	"github.com/runexp/runexp/stages/stagetest"
)

// randomised returns a model made of base, and its weights: those that nodes read, by the order of the nodes.
func randomised(t *testing.T, base stages.Data, p model.RandomiseParams) (stages.Data, [][]float32) {
	t.Helper()
	r := stagetest.Run(t, model.Randomise, &p, map[string][]stages.Data{"model": {base}})
	d := stagetest.Value(r.Facts["model"], r.Payloads["model"][0])
	d.Base = &base
	g, err := modeltest.Net(t, d).Graph(t.Context(), stagetest.NewSlot(), 2)
	if err != nil {
		t.Fatal(err)
	}
	return d, weightsOf(g)
}

func weightsOf(g *onnx.Graph) (weights [][]float32) {
	for _, n := range g.Proto.Graph.Node {
		for _, in := range n.Input {
			if v, ok := g.Float32s(in); ok && len(v) > 1 && g.Weight(in).DataType ==
				int32(onnxpb.TensorProto_FLOAT) {
				weights = append(weights, v)
			}
		}
	}
	return weights
}

// TestRandomise holds which layers of a net of a convolution and two dense layers are random, that others
// are the base's bit for bit, and what random weights are.
func TestRandomise(t *testing.T) {
	modeltest.Runtime(t)
	base := net(t, cell, false, dense(false)) // Conv, Gemm and its bias, MatMul, Add
	_, trained := randomised(t, base, model.RandomiseParams{Share: 0})
	images := waves(3, cell)
	if !slices.EqualFunc(answers(t, base, images), answers(t, func() stages.Data {
		d, _ := randomised(t, base, model.RandomiseParams{Share: 0})
		return d
	}(), images), slices.Equal) {
		t.Error("a share of 0 changes answers")
	}
	if len(trained) != 5 {
		t.Fatalf("the net has %d weights", len(trained))
	}
	_, all := randomised(t, base, model.RandomiseParams{Share: 1, Weights: "initial"})
	for _, c := range []struct {
		p      model.RandomiseParams
		random []bool
	}{
		{model.RandomiseParams{Share: 0.01}, []bool{false, false, false, true, true}},
		{model.RandomiseParams{Share: 1. / 3}, []bool{false, false, false, true, true}},
		{model.RandomiseParams{Share: 2. / 3}, []bool{false, true, true, true, true}},
		{model.RandomiseParams{Share: 1}, []bool{true, true, true, true, true}},
		{model.RandomiseParams{Share: 2. / 3, Order: "independent"}, []bool{false, true, true, false, false}},
		{model.RandomiseParams{Share: 0, Order: "independent"}, []bool{false, false, false, false, false}},
	} {
		for _, how := range []string{"initial", "permuted"} {
			c.p.Weights = how
			_, got := randomised(t, base, c.p)
			for k, random := range c.random {
				switch same := slices.Equal(got[k], trained[k]); {
				case same == random:
					t.Errorf("%+v: weight %d: the trained one: %t", c.p, k, same)
				case random && how == "initial" && !slices.Equal(got[k], all[k]):
					t.Errorf("%+v: weight %d depends on the share", c.p, k)
				case how == "permuted" && !slices.Equal(slices.Sorted(slices.Values(got[k])),
					slices.Sorted(slices.Values(trained[k]))):
					t.Errorf("%+v: weight %d has other numbers", c.p, k)
				}
			}
		}
	}
	if largest := slices.Max(all[0]); largest > 0.19245+1e-5 || largest < 0.18 { // 1/√27
		t.Errorf("the largest of 108 weights is %v", largest)
	}
	_, other := randomised(t, base, model.RandomiseParams{Share: 1, Weights: "initial", Seed: 1})
	if slices.Equal(other[0], all[0]) {
		t.Error("two seeds draw the same weights")
	}
}
