package rewrite

import "github.com/runexp/runexp/stages/internal/onnx"

// GRU is the gated recurrent unit (Cho et al. 2014), written as a step for each element of a sequence:
//
//	z, r = σ(x·Wᵀ + h·Rᵀ + b), n = tanh(x·Wᵀ + (r∘h)·Rᵀ + b)
//	h ← (1 − z)∘n + z∘h
//
// or, with linear_before_reset, as cuDNN and PyTorch have it, n = tanh(x·Wᵀ + b + r∘(h·Rᵀ + c)).
var gru = []converter{{"GRU", Oldest, Newest, func(e *edit, n onnx.Node) error {
	after := n.Int("linear_before_reset", 0) != 0
	m, err := e.memory(n,
		recurrent{gates: 3, states: 1, activations: []string{"Sigmoid", "Tanh"}, inner: after})
	if err != nil {
		return err
	}
	recurrence := []string{m.recurrence}
	if !after {
		axis := 1
		if m.ways > 1 {
			axis = 3
		}
		recurrence = e.split(m.hint, m.recurrence, axis, 2*m.size, m.size)
	}
	e.remember(n, m, func(z string, states []string) []string {
		return []string{e.gruStep(m, recurrence, z, states[0])}
	})
	return nil
}}}

// gruStep writes a step from x, the input's part of the gates, and the state before it, and returns the
// state after it. recurrence has the weights of the state for all gates, or for the gates and the
// candidate.
func (e *edit) gruStep(m *memory, recurrence []string, x, h string) string {
	op := func(op string, in ...string) string { return e.op(m.hint, op, in) }
	parts := e.split(m.hint, x, 3, 2*m.size, m.size)
	gates, candidate := parts[0], parts[1]
	linear := m.innerBias // the state's part of the candidate before the reset
	if h != "" {
		back := op("MatMul", h, recurrence[0])
		if len(recurrence) == 1 {
			of := e.split(m.hint, back, 3, 2*m.size, m.size)
			if back = of[0]; linear == "" {
				linear = of[1]
			} else {
				linear = op("Add", of[1], linear)
			}
		}
		gates = op("Add", gates, back)
	}
	both := e.split(m.hint, op("Sigmoid", gates), 3, m.size, m.size)
	keep, reset := both[0], both[1]
	switch {
	case linear != "":
		candidate = op("Add", candidate, op("Mul", reset, linear))
	case h != "":
		candidate = op("Add", candidate, op("MatMul", op("Mul", reset, h), recurrence[1]))
	}
	next := op("Mul", op("Sub", e.scalar(m.hint+"/one", 1), keep), op("Tanh", candidate))
	if h != "" {
		next = op("Add", next, op("Mul", keep, h))
	}
	return next
}
