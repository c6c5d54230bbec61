package rewrite

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// mostSteps keeps the nodes of a long short-term memory within bounds.
const mostSteps = 4096

// LSTM is long short-term memory (Hochreiter & Schmidhuber 1997, with the gate that forgets of Gers et al.
// 2000), written as a step for each element of a sequence:
//
//	i, o, f = σ(x·Wᵀ + h·Rᵀ + b + P∘c), g = tanh(x·Wᵀ + h·Rᵀ + b)
//	c ← f∘c + i∘g, h ← o∘tanh(c)
//
// where o's P sees the new c. What x adds is one product for all steps. Both ways along a sequence go side by
// side, the second on the reversed one.
var lstm = []converter{{"LSTM", Oldest, Newest, func(e *edit, n onnx.Node) error {
	m, err := e.memory(n)
	if err != nil {
		return err
	}
	steps := e.drive(m)
	var hidden []string
	h, c := m.hidden, m.cell
	for _, z := range steps {
		h, c = e.step(m, z, h, c)
		hidden = append(hidden, h)
	}
	if n.Output[0] != "" {
		ways := []string{e.op(m.hint, "Concat", hidden, onnx.Attr{Name: "axis", Value: 0})}
		if m.ways > 1 {
			ways = e.split(m.hint, ways[0], 1, slices.Repeat([]int{1}, m.ways)...)
		}
		e.to(n.Output[0], "Concat", e.ways(m, ways), onnx.Attr{Name: "axis", Value: 1})
	}
	for i, last := range []string{h, c} {
		if i+1 < len(n.Output) && n.Output[i+1] != "" {
			e.reshapeTo(n.Output[i+1], last, m.ways, m.batch, m.size)
		}
	}
	return nil
}}}

// A memory is an LSTM's input of the shape [steps, batch, width], and weights as products take them. States
// have the shape [1, ways, batch, size].
type memory struct {
	hint, x                         string
	steps, batch, width, ways, size int
	backwards                       []bool // by way
	input, recurrent, bias          string
	peepholes                       []string // of i, o and f; nil for none
	hidden, cell                    string   // to start from; "" for zeros
}

func (e *edit) memory(n onnx.Node) (*memory, error) {
	directions := map[string][]bool{"forward": {false}, "reverse": {true}, "bidirectional": {false, true}}
	m := &memory{x: n.In(0), backwards: directions[n.Text("direction", "forward")]}
	m.ways = len(m.backwards)
	usual := slices.Repeat([]string{"Sigmoid", "Tanh", "Tanh"}, m.ways)
	switch {
	case m.ways == 0:
		return nil, fmt.Errorf("it runs in the direction %q, which isn't known", n.Text("direction", ""))
	case n.Has("activations") && !slices.Equal(n.Texts("activations"), usual):
		return nil, fmt.Errorf("it has the activations %v, and only %v are supported", n.Texts("activations"),
			usual)
	case n.Has("clip") || n.Int("input_forget", 0) != 0 || n.Int("layout", 0) != 0:
		return nil, fmt.Errorf("its attributes clip, input_forget and layout aren't supported")
	case n.In(4) != "":
		return nil, fmt.Errorf("its sequences have lengths of their own")
	}
	for _, v := range slices.Backward(n.Output) {
		m.hint = cmp.Or(v, m.hint)
	}
	shape, err := e.fixed(m.x)
	if err != nil {
		return nil, err
	}
	if len(shape) != 3 || slices.Contains(shape, 0) {
		return nil, fmt.Errorf("its input has the shape %v", shape)
	}
	m.steps, m.batch, m.width = shape[0], shape[1], shape[2]
	if m.steps > mostSteps {
		return nil, fmt.Errorf("its sequences have %d steps: up to %d are supported", m.steps, mostSteps)
	}
	w, r, b, p, err := e.memorised(n, m)
	if err != nil {
		return nil, err
	}
	all := 4 * m.size
	add := func(name string, v []float32, shape ...int) string {
		return e.weight(onnx.FloatTensor(e.m.Fresh(m.hint+"/"+name), v, shape...))
	}
	input := make([]float32, len(w))
	recurrent := make([]float32, len(r))
	bias := make([]float32, m.ways*all)
	for way := range m.ways {
		for k := range all {
			for i := range m.width {
				input[(i*m.ways+way)*all+k] = w[(way*all+k)*m.width+i]
			}
			for i := range m.size {
				recurrent[(way*m.size+i)*all+k] = r[(way*all+k)*m.size+i]
			}
			if b != nil {
				bias[way*all+k] = b[2*way*all+k] + b[(2*way+1)*all+k]
			}
		}
	}
	m.input = add("input", input, m.width, m.ways*all)
	if m.ways == 1 {
		m.recurrent = add("recurrent", recurrent, m.size, all)
	} else {
		m.recurrent = add("recurrent", recurrent, 1, m.ways, m.size, all)
	}
	if b != nil {
		m.bias = add("bias", bias, m.ways*all)
	}
	for gate := range len(p) / (m.ways * m.size) {
		var some []float32
		for way := range m.ways {
			some = append(some, p[(3*way+gate)*m.size:][:m.size]...)
		}
		m.peepholes = append(m.peepholes, add("peephole", some, 1, m.ways, 1, m.size))
	}
	for i, state := range []*string{&m.hidden, &m.cell} {
		if start := n.In(5 + i); start != "" && !e.zero(start) {
			*state = e.reshape(m.hint, start, 1, m.ways, m.batch, m.size)
		}
	}
	return m, nil
}

// memorised returns the weights of an LSTM, all of them constant, and notes the size of its states.
func (e *edit) memorised(n onnx.Node, m *memory) (w, r, b, p []float32, err error) {
	read := func(i int) []float32 {
		name := n.In(i)
		if name == "" || err != nil {
			return nil
		}
		t := e.constant(name)
		if t == nil {
			err = fmt.Errorf("%q isn't constant", name)
			return nil
		}
		var v []float32
		v, err = onnx.Float32s(t)
		return v
	}
	w, r, b, p = read(1), read(2), read(3), read(7)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	m.size = len(w) / (4 * m.ways * m.width)
	square := m.ways * m.size * m.size
	if m.size < 1 || len(w) != 4*m.ways*m.size*m.width || len(r) != 4*square || b != nil &&
		len(b)*m.size != 8*square || p != nil && len(p)*m.size != 3*square {
		return nil, nil, nil, nil, fmt.Errorf("weights of %d, %d, %d and %d numbers don't fit", len(w),
			len(r), len(b), len(p))
	}
	return w, r, b, p, nil
}

// zero reports whether a value is a constant of zeros.
func (e *edit) zero(name string) bool {
	t := e.constant(name)
	if t == nil {
		return false
	}
	v, err := onnx.Float32s(t)
	return err == nil && !slices.ContainsFunc(v, func(x float32) bool { return x != 0 })
}

// drive writes what the input adds to the gates, and returns it by steps, of the shape [1, ways, batch,
// 4·size] each.
func (e *edit) drive(m *memory) []string {
	factors := []string{e.reshape(m.hint, m.x, m.steps*m.batch, m.width), m.input}
	if m.bias != "" {
		factors = append(factors, m.bias)
	}
	z := e.op(m.hint, "Gemm", factors)
	ways := []string{z}
	if m.ways > 1 {
		ways = e.split(m.hint, z, 1, slices.Repeat([]int{4 * m.size}, m.ways)...)
	}
	for i, way := range ways {
		ways[i] = e.reshape(m.hint, way, m.steps, 1, m.batch, 4*m.size)
	}
	ways = e.ways(m, ways)
	z = ways[0]
	if m.ways > 1 {
		z = e.op(m.hint, "Concat", ways, onnx.Attr{Name: "axis", Value: 1})
	}
	return e.split(m.hint, z, 0, slices.Repeat([]int{1}, m.steps)...)
}

// ways reverses the sequences of the ways that run backwards, between the order of the input and that of the
// steps.
func (e *edit) ways(m *memory, ways []string) []string {
	out := slices.Clone(ways)
	for i, back := range m.backwards {
		if back {
			out[i] = e.op(m.hint, "Slice", []string{ways[i], e.ints(m.hint+"/last", -1),
				e.ints(m.hint+"/before", -1<<31), e.ints(m.hint+"/time", 0), e.ints(m.hint+"/back", -1)})
		}
	}
	return out
}

// step writes a step from z, what the input adds to the gates, and the states before it, and returns the
// states after it.
func (e *edit) step(m *memory, z, h, c string) (hidden, cell string) {
	op := func(op string, in ...string) string { return e.op(m.hint, op, in) }
	if h != "" {
		z = op("Add", z, op("MatMul", h, m.recurrent))
	}
	var i, o, f, g string
	if m.peepholes == nil {
		parts := e.split(m.hint, z, 3, 3*m.size, m.size)
		gates := e.split(m.hint, op("Sigmoid", parts[0]), 3, m.size, m.size, m.size)
		i, o, f, g = gates[0], gates[1], gates[2], op("Tanh", parts[1])
	} else {
		parts := e.split(m.hint, z, 3, m.size, m.size, m.size, m.size)
		i, o, f, g = parts[0], parts[1], parts[2], op("Tanh", parts[3])
		if c != "" {
			i, f = op("Add", i, op("Mul", c, m.peepholes[0])), op("Add", f, op("Mul", c, m.peepholes[2]))
		}
		i, f = op("Sigmoid", i), op("Sigmoid", f)
	}
	cell = op("Mul", i, g)
	if c != "" {
		cell = op("Add", op("Mul", f, c), cell)
	}
	if m.peepholes != nil {
		o = op("Sigmoid", op("Add", o, op("Mul", cell, m.peepholes[1])))
	}
	return op("Mul", o, op("Tanh", cell)), cell
}
