package rewrite

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// RNN is the simple recurrent layer (Elman 1990), written as a step for each element of a sequence: h ←
// f(x·Wᵀ + h·Rᵀ + b), where f is tanh, σ or the rectifier.
var rnn = []converter{{"RNN", Oldest, Newest, func(e *edit, n onnx.Node) error {
	f := "Tanh"
	if stated := n.Texts("activations"); len(stated) > 0 &&
		slices.Contains([]string{"Relu", "Sigmoid"}, stated[0]) {
		f = stated[0]
	}
	m, err := e.memory(n, recurrent{gates: 1, states: 1, activations: []string{f}})
	if err != nil {
		return err
	}
	e.remember(n, m, func(z string, states []string) []string {
		if h := states[0]; h != "" {
			z = e.op(m.hint, "Add", []string{z, e.op(m.hint, "MatMul", []string{h, m.recurrence})})
		}
		return []string{e.op(m.hint, f, []string{z})}
	})
	return nil
}}}
