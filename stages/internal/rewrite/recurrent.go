package rewrite

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages/internal/onnx"
)

// mostSteps bounds the nodes of a recurrent layer.
const mostSteps = 4096

// A recurrent describes a kind of recurrent layer: how many gates and states it has, and its supported
// activations, in ONNX's order.
type recurrent struct {
	gates, states int
	activations   []string
	// inner means that the state's part of the last gate has a bias of its own, separate from the input's.
	inner bool
}

// A memory is a recurrent layer's input of the shape [steps, batch, width], and its weights in the form for
// products. States have the shape [1, ways, batch, size].
type memory struct {
	recurrent
	hint, x                         string
	steps, batch, width, ways, size int
	backwards                       []bool // by direction
	input, recurrence, bias         string
	innerBias                       string
	start                           []string // the initial states; "" for zeros
}

// memory reads a recurrent layer.
func (e *edit) memory(n onnx.Node, of recurrent) (*memory, error) {
	directions := map[string][]bool{"forward": {false}, "reverse": {true}, "bidirectional": {false, true}}
	m := &memory{recurrent: of, x: n.In(0), backwards: directions[n.Text("direction", "forward")]}
	m.ways = len(m.backwards)
	written := slices.Repeat(of.activations, m.ways)
	switch {
	case m.ways == 0:
		return nil, fmt.Errorf("it runs in the direction %q, which isn't known", n.Text("direction", ""))
	case n.Has("activations") && !slices.Equal(n.Texts("activations"), written):
		return nil, fmt.Errorf("it has the activations %v, and only %v are supported", n.Texts("activations"),
			written)
	case n.Has("clip") || n.Int("layout", 0) != 0:
		return nil, fmt.Errorf("its attributes clip and layout aren't supported")
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
	if err := e.memorised(n, m); err != nil {
		return nil, err
	}
	for i := range m.states {
		m.start = append(m.start, "")
		if start := n.In(5 + i); start != "" && !e.zero(start) {
			m.start[i] = e.reshape(m.hint, start, 1, m.ways, m.batch, m.size)
		}
	}
	return m, nil
}

// memorised reads the weights of a recurrent layer, all of them constant, and the size of its states.
func (e *edit) memorised(n onnx.Node, m *memory) error {
	var read [3][]float32
	for i := range read {
		var err error
		if read[i], err = e.floats(n.In(1 + i)); err != nil {
			return err
		}
	}
	w, r, b := read[0], read[1], read[2]
	m.size = len(w) / (m.gates * m.ways * m.width)
	all := m.gates * m.size
	if m.size < 1 || len(w) != m.ways*all*m.width || len(r) != m.ways*all*m.size ||
		b != nil && len(b) != 2*m.ways*all {
		return fmt.Errorf("weights of %d, %d and %d numbers don't fit", len(w), len(r), len(b))
	}
	input, recurrence := make([]float32, len(w)), make([]float32, len(r))
	bias, inner := make([]float32, m.ways*all), make([]float32, m.ways*m.size)
	for way := range m.ways {
		for k := range all {
			for i := range m.width {
				input[(i*m.ways+way)*all+k] = w[(way*all+k)*m.width+i]
			}
			for i := range m.size {
				recurrence[(way*m.size+i)*all+k] = r[(way*all+k)*m.size+i]
			}
			if b == nil {
				continue
			}
			bias[way*all+k] = b[2*way*all+k]
			if last := k - (all - m.size); m.inner && last >= 0 {
				inner[way*m.size+last] = b[(2*way+1)*all+k]
			} else {
				bias[way*all+k] += b[(2*way+1)*all+k]
			}
		}
	}
	add := func(name string, v []float32, shape ...int) string {
		return e.weight(onnx.FloatTensor(e.m.Fresh(m.hint+"/"+name), v, shape...))
	}
	m.input = add("input", input, m.width, m.ways*all)
	if m.ways == 1 {
		m.recurrence = add("recurrent", recurrence, m.size, all)
	} else {
		m.recurrence = add("recurrent", recurrence, 1, m.ways, m.size, all)
	}
	if b != nil {
		m.bias = add("bias", bias, m.ways*all)
	}
	if b != nil && m.inner {
		m.innerBias = add("inner", inner, 1, m.ways, 1, m.size)
	}
	return nil
}

// floats returns the numbers of a constant, nil for no name.
func (e *edit) floats(name string) ([]float32, error) {
	if name == "" {
		return nil, nil
	}
	t := e.constant(name)
	if t == nil {
		return nil, fmt.Errorf("%q isn't constant", name)
	}
	return onnx.Float32s(t)
}

// remember writes all steps of a recurrent layer and its outputs. step writes one, from the input's part of
// the gates and the states before it, and returns the states after it.
func (e *edit) remember(n onnx.Node, m *memory, step func(z string, states []string) []string) {
	var hidden []string
	states := m.start
	for _, z := range e.drive(m) {
		states = step(z, states)
		hidden = append(hidden, states[0])
	}
	if n.Output[0] != "" {
		ways := []string{e.op(m.hint, "Concat", hidden, onnx.Attr{Name: "axis", Value: 0})}
		if m.ways > 1 {
			ways = e.split(m.hint, ways[0], 1, slices.Repeat([]int{1}, m.ways)...)
		}
		e.to(n.Output[0], "Concat", e.ways(m, ways), onnx.Attr{Name: "axis", Value: 1})
	}
	for i, last := range states {
		if i+1 < len(n.Output) && n.Output[i+1] != "" {
			e.reshapeTo(n.Output[i+1], last, m.ways, m.batch, m.size)
		}
	}
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

// drive writes the input's part of the gates, and returns it by steps, of the shape [1, ways, batch,
// gates·size] each.
func (e *edit) drive(m *memory) []string {
	factors := []string{e.reshape(m.hint, m.x, m.steps*m.batch, m.width), m.input}
	if m.bias != "" {
		factors = append(factors, m.bias)
	}
	z := e.op(m.hint, "Gemm", factors)
	ways := []string{z}
	if m.ways > 1 {
		ways = e.split(m.hint, z, 1, slices.Repeat([]int{m.gates * m.size}, m.ways)...)
	}
	for i, way := range ways {
		ways[i] = e.reshape(m.hint, way, m.steps, 1, m.batch, m.gates*m.size)
	}
	ways = e.ways(m, ways)
	z = ways[0]
	if m.ways > 1 {
		z = e.op(m.hint, "Concat", ways, onnx.Attr{Name: "axis", Value: 1})
	}
	return e.split(m.hint, z, 0, slices.Repeat([]int{1}, m.steps)...)
}

// ways reverses the sequences of the directions that run backward, between the order of the input and that
// of the steps.
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
