package program

import (
	"slices"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/ort"
)

// Row returns the model's answer to row i of the last run. The next overwrites it.
func (p *Program) Row(i int) []float32 { return p.answer.Data[i*p.classes : (i+1)*p.classes] }

// write marks the first rows as written for the next run. The rest of its batch, with what earlier runs left
// there, are no passes that were asked for. A run whose rows aren't written again has those of the last.
func (p *Program) write(rows int) {
	if p.over {
		p.rows, p.over = 0, false
	}
	p.rows = max(p.rows, min(rows, p.Batch))
}

// row returns row i of input number f, to be written before the next run: see [ort.Tensor.Write].
func (p *Program) row(f, i int) []float32 {
	p.write(i + 1)
	d := p.inputs[f].Write()
	size := len(d) / p.Batch
	return d[i*size : (i+1)*size]
}

// output returns the number of the output with a name, -1 if there is none.
func (p *Program) output(name string) int {
	return slices.IndexFunc(p.signature.Outputs, func(v lower.IO) bool { return v.Name == name })
}

// input returns the number of the input with a name, -1 if there is none.
func (p *Program) input(name string) int {
	return slices.IndexFunc(p.signature.Inputs, func(v lower.IO) bool { return v.Name == name })
}

// named returns row i of the output with a name; nil if there is none.
func (p *Program) named(name string, i int) []float32 {
	k := p.output(name)
	if k < 0 {
		return nil
	}
	return p.part(p.outputs[k], i)
}

// buffer returns the buffer of the output with a name, or of the input; nil if there is neither.
func (p *Program) buffer(name string) *ort.Tensor[float32] {
	if p == nil {
		return nil
	}
	if k := p.output(name); k >= 0 {
		return p.outputs[k]
	}
	if k := p.input(name); k >= 0 {
		return p.inputs[k]
	}
	return nil
}

// part returns row i of an output.
func (p *Program) part(t *ort.Tensor[float32], i int) []float32 {
	size := len(t.Data) / p.Batch
	return t.Data[i*size : (i+1)*size]
}

// Shape returns the shape of the layer's value for one image.
func (p *Program) Shape() []int { return slices.Clone(p.signature.Outputs[0].Shape[1:]) }
