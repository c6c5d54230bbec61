package program

import (
	"context"
	"errors"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/ort"
)

// A Probe is a model of which nothing is known yet, loaded verbatim onto the CPU, in a process of its own if
// possible: the model may crash it.
type Probe struct {
	runtime *ort.Runtime
	session *ort.Session
	images  *ort.Tensor[float32]
}

// NewProbe loads a model for batches of that size. Its values that are watched are returned by [Probe.Look].
func NewProbe(m modelfile.Model, batch int, watched ...string) (*Probe, error) {
	n := &Net{Spec: m.Spec, size: int64(len(m.ONNX)), onnx: func() ([]byte, error) { return m.ONNX, nil }}
	n.Classes = 0
	r := classification
	r.Kind, r.Watched = lower.Verbatim, watched
	program, err := lower.Program(context.Background(), n.source(nil), batch, r)
	if err != nil {
		return nil, err
	}
	b, err := program.Model.Encode()
	if err != nil {
		return nil, err
	}
	runtime, err := ort.Isolated()
	if err != nil {
		return nil, err
	}
	outputs := []string{lower.Answer}
	for _, v := range program.Outputs {
		outputs = append(outputs, v.Value())
	}
	s, err := runtime.NewPlainSession(b, []string{"runexp_images"}, outputs)
	if err != nil {
		return nil, errors.Join(err, runtime.Close())
	}
	t, err := ort.NewTensor[float32](runtime, batch, m.Spec.Channels, m.Spec.Height, m.Spec.Width)
	if err != nil {
		return nil, errors.Join(err, s.Close(), runtime.Close())
	}
	return &Probe{runtime, s, t}, nil
}

// Answer runs the model on a batch of normalised images.
func (p *Probe) Answer(ctx context.Context, images []float32) (ort.Result[float32], error) {
	copy(p.images.Data, images)
	answers, err := ort.Fetch[float32](ctx, p.session, []ort.Value{p.images})
	if err != nil {
		return ort.Result[float32]{}, err
	}
	return answers[0], nil
}

// Look runs the model on a batch of normalised images and returns the values that are watched. Of a large
// value the last numbers are missing.
func (p *Probe) Look(ctx context.Context, images []float32) ([]ort.Result[float32], error) {
	copy(p.images.Data, images)
	all, err := ort.Fetch[float32](ctx, p.session, []ort.Value{p.images})
	if err != nil {
		return nil, err
	}
	var out []ort.Result[float32]
	for i := 1; i < len(all); i += 2 {
		shape := make([]int, len(all[i].Data))
		for k, v := range all[i].Data {
			shape[k] = int(v)
		}
		out = append(out, ort.Result[float32]{Data: all[i+1].Data, Shape: shape})
	}
	return out, nil
}

// Close unloads the model.
func (p *Probe) Close() {
	p.session.Close()
	p.runtime.Close()
	p.images.Close()
}

// AnswerShape returns the shape of a model's answer to a batch of zeros.
func AnswerShape(ctx context.Context, m modelfile.Model, batch int) ([]int, error) {
	p, err := NewProbe(m, batch)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	a, err := p.Answer(ctx, nil)
	return a.Shape, err
}
