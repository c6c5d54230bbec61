package model

import (
	"context"
	"errors"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/program"
)

// A Trial is a model that stages are tried on: all that they do before the model
// answers is done, and no answer is computed.
type Trial struct {
	Spec modelfile.Spec

	payload []byte
	net     *program.Net
	slot    program.Rehearsal
}

// NewTrial returns a trial of the model that [ONNX] with these parameters reads. The
// error is what that stage would say.
func NewTrial(ctx context.Context, p ONNXParams) (*Trial, error) {
	m, err := onnx.ReadFile(p.Path)
	if err != nil {
		return nil, err
	}
	out, err := read(ctx, m, p)
	if err != nil {
		return nil, err
	}
	if _, err := readLabels(p.Labels, out.Spec.Classes); err != nil {
		return nil, stages.BadField("labels", "labels: %w", err)
	}
	return trialOf(out)
}

func trialOf(m modelfile.Model) (*Trial, error) {
	payload, err := m.Encode()
	if err != nil {
		return nil, err
	}
	if m, err = modelfile.Decode(payload); err != nil { // which shares its memory
		return nil, err
	}
	net, err := program.NewNet(m)
	return &Trial{Spec: m.Spec, payload: payload, net: net}, err
}

// tried is how many items a stage is tried with, all of them in a batch: graphs of two
// are those whose shapes tell which axis the batch is.
const tried = 2

// Unfit says why a stage with these parameters can't work on the model, nil if it can or
// has no port for models. Its items are blank: images of the model's size, ranks of
// their pixels, and any class. wired reports which of its optional ports are connected.
func (t *Trial) Unfit(ctx context.Context, s *stages.Stage, params any, wired func(port string) bool) (err error) {
	e := &stages.Env{Stage: s, Slot: &t.slot, Batch: tried, Calls: make([]stages.Call, tried), Ports: map[string][]stages.Data{}}
	for i := range e.Calls {
		e.Calls[i].ID = fmt.Sprintf("blank %d", i)
	}
	asked := false
	for _, port := range s.Inputs {
		var members []stages.Member
		if wired(port.Name) || !port.Optional || port.Else != "" {
			payload, ok := t.blank(port.Type)
			if !ok {
				return nil // it's of no model
			}
			asked = asked || port.Type == stages.Model
			item := stages.Item{ID: "blank", Origin: "blank", Digest: t.net.Digest()}
			members = []stages.Member{{Item: item, Data: payload}}
			e.Ports[port.Name] = []stages.Data{{Items: stages.ItemSlice{item}, Load: func(int) ([]byte, error) { return payload, nil }}}
		}
		for i := range e.Calls {
			e.Calls[i].Members = append(e.Calls[i].Members, members)
		}
	}
	if !asked {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("this is a bug in %s: %v", s.Name, p)
		}
	}()
	t.slot.Begin()
	err = s.Run(ctx, params, e)
	if errors.Is(err, program.ErrRehearsed) || errors.Is(err, program.ErrSameClass) {
		return nil
	}
	return err
}

// blank returns a payload that says nothing.
func (t *Trial) blank(of stages.Type) ([]byte, bool) {
	h, w := t.Spec.Height, t.Spec.Width
	switch of {
	case stages.Model:
		return t.payload, true
	case stages.Images:
		return stages.NewTensor(make([]uint8, 3*h*w), 3, h, w).Encode(), true
	case stages.Ranks:
		return stages.NewTensor(make([]uint32, h*w), h, w).Encode(), true
	case stages.Targets:
		return stages.NewTensor([]int64{0}, 1).Encode(), true
	case stages.Labels:
		return stages.NewTensor([]int64{int64(t.Spec.Classes - 1)}, 1).Encode(), true
	}
	return nil, false
}

// Remark says what there is to know of a stage with these parameters on the model, "" if
// nothing.
func (t *Trial) Remark(ctx context.Context, params any) (string, error) {
	r, ok := params.(program.Remarker)
	if !ok {
		return "", nil
	}
	g, err := t.graph(ctx)
	if err != nil {
		return "", err
	}
	return r.Remark(g), nil
}

// graph returns the model's graph, which the caller may change.
func (t *Trial) graph(ctx context.Context) (*onnx.Graph, error) {
	return t.net.Graph(ctx, &t.slot, t.net.Fit(tried, tried))
}

// Close lets go of the model.
func (t *Trial) Close() error { return t.slot.Close() }
