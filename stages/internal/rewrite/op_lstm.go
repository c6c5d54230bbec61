package rewrite

import (
	"fmt"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// LSTM is long short-term memory (Hochreiter & Schmidhuber 1997, with the gate that forgets of Gers et al.
// 2000), written as a step for each element of a sequence:
//
//	i, o, f = σ(x·Wᵀ + h·Rᵀ + b + P∘c), g = tanh(x·Wᵀ + h·Rᵀ + b)
//	c ← f∘c + i∘g, h ← o∘tanh(c)
//
// where o's P sees the new c. What x adds is one product for all steps. Both ways along a sequence go side by
// side, the second on the reversed one.
var lstm = []converter{{"LSTM", Oldest, Newest, func(e *edit, n onnx.Node) error {
	if n.Int("input_forget", 0) != 0 {
		return fmt.Errorf("its attribute input_forget isn't supported")
	}
	m, err := e.memory(n, recurrent{gates: 4, states: 2, activations: []string{"Sigmoid", "Tanh", "Tanh"}})
	if err != nil {
		return err
	}
	peepholes, err := e.peepholes(n, m)
	if err != nil {
		return err
	}
	e.remember(n, m, func(z string, states []string) []string {
		return e.lstmStep(m, peepholes, z, states[0], states[1])
	})
	return nil
}}}

// peepholes returns the weights of the cells in i, o and f; nil for none.
func (e *edit) peepholes(n onnx.Node, m *memory) (out []string, err error) {
	p, err := e.floats(n.In(7))
	if err != nil {
		return nil, err
	}
	if p != nil && len(p) != 3*m.ways*m.size {
		return nil, fmt.Errorf("peepholes of %d numbers don't fit", len(p))
	}
	for gate := range len(p) / (m.ways * m.size) {
		var some []float32
		for way := range m.ways {
			some = append(some, p[(3*way+gate)*m.size:][:m.size]...)
		}
		out = append(out, e.weight(onnx.FloatTensor(e.m.Fresh(m.hint+"/peephole"), some, 1, m.ways, 1,
			m.size)))
	}
	return out, nil
}

// lstmStep writes a step from z, the input's part of the gates, and the states before it, and returns the
// states after it.
func (e *edit) lstmStep(m *memory, peepholes []string, z, h, c string) []string {
	op := func(op string, in ...string) string { return e.op(m.hint, op, in) }
	if h != "" {
		z = op("Add", z, op("MatMul", h, m.recurrence))
	}
	var i, o, f, g string
	if peepholes == nil {
		parts := e.split(m.hint, z, 3, 3*m.size, m.size)
		gates := e.split(m.hint, op("Sigmoid", parts[0]), 3, m.size, m.size, m.size)
		i, o, f, g = gates[0], gates[1], gates[2], op("Tanh", parts[1])
	} else {
		parts := e.split(m.hint, z, 3, m.size, m.size, m.size, m.size)
		i, o, f, g = parts[0], parts[1], parts[2], op("Tanh", parts[3])
		if c != "" {
			i, f = op("Add", i, op("Mul", c, peepholes[0])), op("Add", f, op("Mul", c, peepholes[2]))
		}
		i, f = op("Sigmoid", i), op("Sigmoid", f)
	}
	cell := op("Mul", i, g)
	if c != "" {
		cell = op("Add", op("Mul", f, c), cell)
	}
	if peepholes != nil {
		o = op("Sigmoid", op("Add", o, op("Mul", cell, peepholes[1])))
	}
	return []string{op("Mul", o, op("Tanh", cell)), cell}
}
