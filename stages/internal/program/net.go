package program

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/target"
	"github.com/runexp/runexp/stages/internal/variant"
)

// A Net is a model that programs are made of.
type Net struct {
	modelfile.Spec
	digest  stages.Digest
	size    int64                  // of its ONNX file, or of that of the model that it is a rewrite of
	onnx    func() ([]byte, error) // the same file
	rewrite *modelfile.Rewrite     // nil for the model of a file
	base    *Net                   // that is rewritten
	whole   *Net                   // for the longest texts, nil unless this one is for shorter ones

	// Head is the explained expression, nil if classes are explained. A row of answers is what it reads.
	Head *target.Head

	warn func(format string, args ...any) // the user, nil if there is none to

	precision string // in which programs are run; "" means float32
}

// Load returns the model on the port called model. Once its specification is cached on the slot, its bytes
// are loaded only to compile another program.
func Load(e *stages.Env) (*Net, error) {
	n, err := LoadAny(e)
	if err == nil {
		err = n.needsClasses()
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

// LoadClasses does the same for a stage about classes, of which an expression has none.
func LoadClasses(e *stages.Env) (*Net, error) {
	n, err := Load(e)
	if err == nil && n.Head != nil {
		return nil, fmt.Errorf("%s is about classes, and the model's answer is the expression %s",
			e.Stage.Name, n.Head.Text)
	}
	return n, err
}

// LoadAny does the same for a model that needn't have classes.
func LoadAny(e *stages.Env) (*Net, error) {
	if !e.Wired("model") {
		return nil, fmt.Errorf("port model isn't wired")
	}
	n, err := LoadNet(e.Slot, e.Ports["model"][0])
	if err != nil {
		return nil, fmt.Errorf("port model: %w", err)
	}
	n.warn = e.Warn
	if e.Precision != stages.Float32 {
		n.precision = e.Precision
	}
	if n.Text != nil && e.Stage.Input("images") != nil && e.Wired("images") {
		return n.ofTexts(e)
	}
	return n, nil
}

// needsClasses returns an error for a model without classes: what is explained has to be an expression.
func (n *Net) needsClasses() error {
	if n.Classes > 0 {
		return nil
	}
	var list []string
	for _, o := range n.Outputs {
		list = append(list, target.Described(o))
	}
	such := ""
	if s := target.Suggest(n.Outputs); len(s) > 0 {
		such = ", such as " + s[0]
	}
	return fmt.Errorf("the model has no classes: its outputs are %s; give target: an expression%s",
		strings.Join(list, ", "), such)
}

// LoadNet does the same for the model in d.
func LoadNet(slot stages.Slot, d stages.Data) (*Net, error) {
	item, err := d.Items.At(0)
	if err != nil {
		return nil, err
	}
	payload := sync.OnceValues(func() (modelfile.Model, error) {
		b, err := d.Load(0)
		if err != nil {
			return modelfile.Model{}, err
		}
		return modelfile.Decode(b)
	})
	c, err := slot.Share("model "+item.Digest.String(), 0, func() (io.Closer, error) {
		m, err := payload()
		return &seen{m.Spec, int64(len(m.ONNX)), m.Rewrite}, err
	})
	if err != nil {
		return nil, err
	}
	s := c.(*seen)
	n := &Net{Spec: s.Spec, digest: item.Digest, size: s.size, rewrite: s.rewrite,
		onnx: func() ([]byte, error) {
			m, err := payload()
			return m.ONNX, err
		}}
	if s.rewrite == nil {
		return n, nil
	}
	if d.Base == nil {
		return nil, fmt.Errorf("a rewritten model without the model that it was made of")
	}
	if n.base, err = LoadNet(slot, *d.Base); err != nil {
		return nil, err
	}
	if n.base.digest != s.rewrite.Base {
		return nil, fmt.Errorf("a model that was made of %s, and not of %s", s.rewrite.Base.Short(),
			n.base.digest.Short())
	}
	if s.rewrite.Name == TargetStage {
		made, err := n.base.ofRewrite(slot, *s.rewrite)
		if err != nil {
			return nil, err
		}
		made.digest = item.Digest
		return made, nil
	}
	n.size, n.onnx = n.base.size, n.base.onnx
	return n, nil
}

// seen is what slots cache of a model: all but its bytes.
type seen struct {
	modelfile.Spec
	size    int64
	rewrite *modelfile.Rewrite
}

func (*seen) Close() error { return nil }

// Rewritten returns what a rewrite makes of the net.
func (n *Net) Rewritten(ctx context.Context, r variant.Rewriter) (modelfile.Model, error) {
	if n.Head != nil {
		return modelfile.Model{}, fmt.Errorf("the model's answer is the expression %s: rewrite the model of "+
			"classes, and make the expression of the result", n.Head.Text)
	}
	with, err := json.Marshal(r)
	if err != nil {
		return modelfile.Model{}, err
	}
	m := modelfile.Model{Rewrite: &modelfile.Rewrite{Base: n.digest, Name: r.Name(), With: with}}
	m.Spec, err = r.Spec(ctx, n.uncached(ctx))
	return m, err
}

// Digest returns the digest of the model.
func (n *Net) Digest() stages.Digest { return n.digest }

// Graph returns the net's graph for a batch: see [lower.Graph]. The caller may change it; the weights are
// shared.
//
// Slots share the graph, so that the programs of a net derive it once.
func (n *Net) Graph(ctx context.Context, slot stages.Slot, batch int) (*onnx.Graph, error) {
	k, err := n.preparedGraph(ctx, slot, batch)
	if err != nil {
		return nil, err
	}
	return k.Clone(), nil
}

// preparedGraph returns the graph of a batch that slots share, not to be changed.
func (n *Net) preparedGraph(ctx context.Context, slot stages.Slot, batch int) (preparedGraph, error) {
	if n.Batch > 0 && batch != n.Batch {
		return preparedGraph{}, fmt.Errorf("the model takes %d images at once, not %d", n.Batch, batch)
	}
	key := fmt.Sprintf("graph batch %d of %s", batch, n.digest)
	c, err := slot.Share(key, n.size, func() (io.Closer, error) { return n.graph(ctx, batch) })
	if err != nil {
		return preparedGraph{}, err
	}
	return c.(preparedGraph), nil
}

// graph lowers the net's file to a graph that no slot shares.
func (n *Net) graph(ctx context.Context, batch int) (preparedGraph, error) {
	g, measured, err := n.lowered(ctx, batch)
	return preparedGraph{g, measured}, err
}

func (n *Net) lowered(ctx context.Context, batch int) (g *onnx.Graph, measured bool, err error) {
	if n.rewrite == nil {
		return lower.Graph(ctx, n.source(nil), batch)
	}
	r, err := variant.Read(*n.rewrite)
	if err != nil {
		return nil, false, err
	}
	g, err = r.Graph(ctx, n.base.uncached(ctx), batch)
	return g, false, err
}

// uncached returns the net's source, whose graphs no slot shares.
func (n *Net) uncached(ctx context.Context) lower.Source {
	return n.source(func(batch int) (*onnx.Graph, error) {
		g, _, err := n.lowered(ctx, batch)
		return g, err
	})
}

// A preparedGraph is shared by slots. Its shapes are inferred from the file, or measured on an image, and may
// depend on that image.
type preparedGraph struct {
	*onnx.Graph
	measured bool
}

func (preparedGraph) Close() error { return nil }

// source returns what programs of the net are lowered from.
func (n *Net) source(graph func(batch int) (*onnx.Graph, error)) lower.Source {
	return lower.Source{Spec: n.Spec, File: n.onnx, Graph: graph, Head: n.Head}
}
