package program

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/ort"
)

// AnswerShape runs a model of which nothing is known yet, as it is written, on a batch
// of zeros, and returns the shape of its answer.
func AnswerShape(m modelfile.Model, batch int) ([]int, error) {
	n := netOf(m)
	n.Classes = 0
	program, err := n.compile(n.written(batch, classifying))
	if err != nil {
		return nil, err
	}
	b, err := program.Encode()
	if err != nil {
		return nil, err
	}
	runtime, err := ort.Default()
	if err != nil {
		return nil, err
	}
	s, err := runtime.NewPlainSession(b, []string{"runexp_images"}, []string{answer})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	t, err := ort.NewTensor[float32](runtime, batch, m.Spec.Channels, m.Spec.Height, m.Spec.Width)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	shapes, err := s.Shapes([]ort.Value{t})
	if err != nil {
		return nil, err
	}
	return shapes[0], nil
}

// Answer runs a model on a batch of normalised images and returns its answers,
// one row after the other.
func Answer(ctx context.Context, m modelfile.Model, images []float32, batch int, d stages.Device) ([]float32, error) {
	n := netOf(m)
	r := n.written(batch, classifying)
	program, err := n.compile(r)
	if err != nil {
		return nil, err
	}
	l, err := load(program, batch, n.Classes, r, d)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	p, err := allocate(l)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	copy(p.feeds[0].Data, images)
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	return append([]float32(nil), p.answer.Data...), nil
}
