package rewrite

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// The operators that ONNX Runtime's optimiser makes from a product and its neighbours: FusedConv adds a
// value and applies a function, FusedGemm applies one, and FusedMatMul transposes and scales.
var fused = []converter{
	{"com.microsoft.FusedConv", Oldest, Newest, func(e *edit, n onnx.Node) error {
		out, z, activation, params := n.Output[0], n.In(3), n.Text("activation",
			""), n.Floats("activation_params")
		if z != "" {
			n.Input = n.Input[:3]
			if n.In(2) == "" {
				n.Input = n.Input[:2]
			}
		}
		drop(n, "activation")
		drop(n, "activation_params")
		e.product(n, "Conv")
		return e.activate(out, e.sum(out, n.Output[0], z), activation, params)
	}},
	{"com.microsoft.FusedGemm", Oldest, Newest, func(e *edit, n onnx.Node) error {
		out, activation := n.Output[0], n.Text("activation", "")
		var params []float32
		for _, name := range []string{"activation_alpha", "activation_beta", "activation_gamma"} {
			if n.Has(name) {
				params = append(params, n.Float(name, 0))
			}
			drop(n, name)
		}
		drop(n, "activation")
		e.product(n, "Gemm")
		return e.activate(out, n.Output[0], activation, params)
	}},
	{"com.microsoft.FusedMatMul", Oldest, Newest, scaledMatMul},
	{"com.microsoft.TransposeMatMul", Oldest, Newest, scaledMatMul},
}

// product turns n into an operator of ONNX with a new output.
func (e *edit) product(n onnx.Node, op string) {
	n.Domain, n.OpType, n.Output = "", op, []string{e.value(n.Output[0], op)}
	e.keep(n)
}

// activate writes an elementwise function whose output is called out.
func (e *edit) activate(out, x, op string, params []float32) error {
	names := map[string][]string{
		"Relu": {}, "Sigmoid": {}, "Softplus": {}, "Softsign": {}, "Tanh": {},
		"Elu": {"alpha"}, "LeakyRelu": {"alpha"}, "ThresholdedRelu": {"alpha"}, "HardSigmoid": {"alpha",
			"beta"}, "Clip": {"min", "max"},
	}
	stated, ok := names[op]
	if !ok || len(params) > len(stated) || op == "Clip" && len(params) < 2 {
		return fmt.Errorf("its activation %q with the parameters %v isn't known", op, params)
	}
	if op == "Clip" {
		e.to(out, op, []string{x, e.scalar(out+"/min", params[0]), e.scalar(out+"/max", params[1])})
		return nil
	}
	var attrs []onnx.Attr
	for i, v := range params {
		attrs = append(attrs, onnx.Attr{Name: stated[i], Value: v})
	}
	e.to(out, op, []string{x}, attrs...)
	return nil
}

// scaledMatMul writes α·A·B, where the first axis of A or B may have to move before the last, after the
// axes of the batch, and the last two may be exchanged after that.
func scaledMatMul(e *edit, n onnx.Node) error {
	hint := n.Output[0]
	factors := []string{n.In(0), n.In(1)}
	for i, side := range []string{"A", "B"} {
		rank, err := e.rank(factors[i])
		if err != nil {
			return err
		}
		perm := make([]int, rank)
		for k := range perm {
			perm[k] = k
		}
		batch, swap := n.Int("transBatch"+side, 0) != 0 && rank > 2, n.Int("trans"+side, 0) != 0 && rank > 1
		if batch {
			copy(perm, perm[1:rank-1])
			perm[rank-2] = 0
		}
		if swap {
			perm[rank-2], perm[rank-1] = perm[rank-1], perm[rank-2]
		}
		if batch || swap {
			factors[i] = e.transpose(hint, factors[i], perm...)
		}
	}
	alpha := n.Float("alpha", 1)
	if alpha == 1 {
		e.to(hint, "MatMul", factors)
		return nil
	}
	e.to(hint, "Mul", []string{e.op(hint, "MatMul", factors), e.scalar(hint+"/alpha", alpha)})
	return nil
}
