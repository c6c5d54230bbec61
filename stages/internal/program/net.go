package program

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// A Net is a model that programs are made of.
type Net struct {
	modelfile.Spec
	digest stages.Digest
	size   int64 // of its ONNX file
	onnx   func() ([]byte, error)
}

// Load returns the model on the port called model. Once its specification is cached on the slot, its bytes
// are loaded only to compile another program.
func Load(e *stages.Env) (*Net, error) {
	load := sync.OnceValues(func() (modelfile.Model, error) {
		b, err := e.Value("model")
		if err != nil {
			return modelfile.Model{}, err
		}
		m, err := modelfile.Decode(b)
		if err != nil {
			return m, fmt.Errorf("port model: %w", err)
		}
		return m, nil
	})
	digest := e.ValueDigest("model")
	c, err := e.Slot.Share("model "+digest.String(), 0, func() (io.Closer, error) {
		m, err := load()
		return &seen{m.Spec, int64(len(m.ONNX))}, err
	})
	if err != nil {
		return nil, err
	}
	s := c.(*seen)
	return &Net{s.Spec, digest, s.size, func() ([]byte, error) {
		m, err := load()
		return m.ONNX, err
	}}, nil
}

// seen is what slots cache of a model: all but its bytes.
type seen struct {
	modelfile.Spec
	size int64
}

func (*seen) Close() error { return nil }

// NewNet returns the net of a model that is not on a port.
func NewNet(m modelfile.Model) (*Net, error) {
	b, err := m.Encode()
	n := netOf(m)
	n.digest = stages.Sum(b)
	return n, err
}

// netOf returns the net of a model that no slot caches.
func netOf(m modelfile.Model) *Net {
	return &Net{Spec: m.Spec, size: int64(len(m.ONNX)), onnx: func() ([]byte, error) { return m.ONNX, nil }}
}

// Digest returns the digest of the model.
func (n *Net) Digest() stages.Digest { return n.digest }

// Graph returns the net's graph for a batch: see [lower.Graph]. The caller may change it; the weights are
// shared.
//
// Slots share the graph, so that the programs of a net derive it once.
func (n *Net) Graph(ctx context.Context, slot stages.Slot, batch int) (*onnx.Graph, error) {
	k, err := n.sharedGraph(ctx, slot, batch)
	if err != nil {
		return nil, err
	}
	return k.Clone(), nil
}

// sharedGraph returns the graph that slots share, not to be changed.
func (n *Net) sharedGraph(ctx context.Context, slot stages.Slot, batch int) (sharedGraph, error) {
	if n.Batch > 0 && batch != n.Batch {
		return sharedGraph{}, fmt.Errorf("the model takes %d images at once, not %d", n.Batch, batch)
	}
	key := fmt.Sprintf("graph batch %d of %s", batch, n.digest)
	c, err := slot.Share(key, n.size, func() (io.Closer, error) { return n.graph(ctx, batch) })
	if err != nil {
		return sharedGraph{}, err
	}
	return c.(sharedGraph), nil
}

// graph lowers the net's file to a graph that no slot shares.
func (n *Net) graph(ctx context.Context, batch int) (sharedGraph, error) {
	g, measured, err := lower.Graph(ctx, n.source(nil), batch)
	return sharedGraph{g, measured}, err
}

// A sharedGraph is shared by slots. Its shapes are inferred from the file, or measured on an image, and then
// may depend on that.
type sharedGraph struct {
	*onnx.Graph
	measured bool
}

func (sharedGraph) Close() error { return nil }

// source returns what programs of the net are lowered from.
func (n *Net) source(graph func(batch int) (*onnx.Graph, error)) lower.Source {
	return lower.Source{Spec: n.Spec, File: n.onnx, Graph: graph}
}
