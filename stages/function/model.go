package function

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// A classifier is what a process gets of a model: a head, as JSON, and the ONNX file.
type classifier struct {
	id   string // of another model, or one with other labels, it is another
	net  *program.Net
	head modelHead
	onnx []byte
}

// A modelHead says how the ONNX file is called and read.
type modelHead struct {
	Bytes         int       `json:"bytes"` // of the file
	Height        int       `json:"height"`
	Width         int       `json:"width"`
	Channels      int       `json:"channels"`
	Classes       int       `json:"classes"`
	Heads         int       `json:"heads"`
	Batch         int       `json:"batch"`
	Scale         float64   `json:"scale"`
	Mean          []float64 `json:"mean"`
	Std           []float64 `json:"std"`
	Probabilities bool      `json:"probabilities"`
	Independent   bool      `json:"independent"`
	Labels        []string  `json:"labels"`
	Disabled      []string  `json:"disabled"`
}

// netOf returns the net on the port model, which classifies images.
func netOf(e *stages.Env) (*program.Net, error) {
	net, err := program.LoadAny(e)
	switch {
	case err != nil:
		return nil, err
	case net.Text != nil:
		return nil, errors.New("functions in Python take no models of texts")
	case net.Head != nil:
		return nil, fmt.Errorf("functions in Python take models of classes, and the answer of this one is "+
			"the expression %s", net.Head.Text)
	case net.Classes == 0:
		return nil, errors.New("functions in Python take models of classes, and this one has none")
	}
	return net, nil
}

// classifierOf returns what processes get of the net on the port model.
func classifierOf(ctx context.Context, e *stages.Env, net *program.Net) (*classifier, error) {
	kept, err := e.Slot.Share("ONNX file of "+net.Digest().String(), 0, func() (io.Closer, error) {
		f, err := net.File(ctx)
		return file{f}, err
	})
	if err != nil {
		return nil, err
	}
	f, s, labels := kept.(file), net.Spec, e.Facts("model")["labels"]
	m := &classifier{id: net.Digest().String() + labels, net: net, onnx: f.ONNX, head: modelHead{
		Bytes: len(f.ONNX), Height: s.Height, Width: s.Width, Channels: s.Channels, Classes: s.Classes,
		Heads: s.Heads, Batch: f.Batch, Scale: s.Scale, Mean: s.Mean, Std: s.Std,
		Probabilities: s.Probabilities, Independent: s.Independent, Labels: []string{}, Disabled: []string{},
	}}
	if labels != "" {
		m.head.Labels = strings.Split(labels, "\n")
	}
	m.head.Disabled = append(m.head.Disabled, f.Disabled...)
	return m, nil
}

// A file is an ONNX file that slots share.
type file struct{ program.File }

func (file) Close() error { return nil }

// Weight returns the size of the file in bytes.
func (f file) Weight() int64 { return int64(len(f.ONNX)) }

// target returns the explained class, or the class and the one that is subtracted, among those of all heads.
func (m *classifier) target(payload []byte) (stages.Tensor, error) {
	t, err := m.net.Target(payload)
	if err != nil {
		return stages.Tensor{}, err
	}
	if t.Minus < 0 {
		return stages.NewTensor([]int64{int64(t.Class)}, 1), nil
	}
	return stages.NewTensor([]int64{int64(t.Class), int64(t.Minus)}, 2), nil
}
