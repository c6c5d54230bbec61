package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
	"github.com/runexp/runexp/stages/internal/rewrite"
)

// A Forward classifies images.
type Forward struct{ *Program }

// Forward returns the program that classifies up to batch images at once; its Batch may
// be smaller, as with [Net.AtOnce].
func (n *Net) Forward(ctx context.Context, slot stages.Slot, batch int) (Forward, error) {
	p, err := n.keepForward(ctx, slot, n.atOnce(ctx, slot, forwards, batch, batch), classifying)
	return Forward{p}, err
}

var classifying = walk{
	name:   "forward",
	feeds:  func(b bounds) []feed { return []feed{{"images", b.images(b.batch)}} },
	images: func(*onnx.Fragment) string { return "runexp_images" },
}

// Image returns where row i's normalised image goes.
func (f Forward) Image(i int) []float32 { return f.row(0, i) }

// Run classifies what stands in the rows.
func (f Forward) Run(ctx context.Context) error { return f.run(ctx) }

// keepForward returns the program of a walk that ends at the answer. The file runs as it
// is written, with all that ONNX Runtime makes of it, unless its bits would hang then on
// the row, the batch, the threads or the release: see [Net.wavers].
func (n *Net) keepForward(ctx context.Context, slot stages.Slot, batch int, w walk) (*Program, error) {
	wavers, err := n.wavers(ctx, slot)
	if err != nil {
		return nil, err
	}
	if wavers {
		w.forward, w.alone = true, true
		return n.keepWalk(ctx, slot, batch, w)
	}
	// The weights twice, as ONNX Runtime packs them.
	return n.keep(slot, w.name, batch, 2*n.size, func() (*onnx.Model, recipe, error) {
		r := n.written(batch, w)
		m, err := n.compile(r)
		return m, r, err
	})
}

// written is the recipe of a walk through the file as it is written.
func (n *Net) written(batch int, w walk) recipe {
	return recipe{feeds: w.feeds(bounds{batch: batch, image: []int{n.Channels, n.Height, n.Width}}), emit: w.images}
}

// wavers reports whether the model has [unsteady] or [disputed] operators and a graph in
// which others stand for them, the same for every image and, for unsteady ones alone, of the
// file's own precision. A file that has no such graph runs as it is; programs that go
// backwards say why. Operators within the bodies of a Loop, or of an If that the image
// decides, stay as they are.
func (n *Net) wavers(ctx context.Context, slot stages.Slot) (bool, error) {
	if r, ok := slot.(*Rehearsal); ok && !r.exact {
		return false, nil // no bits
	}
	c, err := slot.Share(fmt.Sprintf("unsteady operators of %s", n.digest), 0, func() (_ io.Closer, err error) {
		defer onnx.Sound(&err)
		s, err := n.survey(slot)
		if err != nil || !s.suspicious && !s.disputed {
			return wavering(false), err
		}
		if !s.disputed {
			m, err := n.parse()
			if err != nil {
				return nil, err
			}
			if single, err := rewrite.Single(m); single || err != nil {
				return wavering(false), nil
			}
			if weights, err := rewrite.Dequantise(m); weights > 0 || err != nil {
				return wavering(false), nil
			}
		}
		batch := n.Fit(2, 2)
		g, err := n.keptGraph(ctx, slot, batch)
		switch {
		case ctx.Err() != nil || errors.Is(err, stages.ErrOutOfMemory):
			return nil, err
		case err != nil || g.measured:
			return wavering(false), nil
		}
		return wavering(s.disputed || steady(g.Clone(), batch)), nil
	})
	if err != nil {
		return false, err
	}
	return bool(c.(wavering)), nil
}

// wavering is what slots keep of a model: whether its bits hang on more than images.
type wavering bool

func (wavering) Close() error { return nil }

// A survey is what a net's file tells without its shapes.
type survey struct {
	suspicious bool // it names an operator that is [unsteady], or one that is written with such
	disputed   bool // it has a node that is [disputed]
	connected  bool // it has a matrix that may be the weights of a large fully connected layer
}

func (survey) Close() error { return nil }

func (n *Net) survey(slot stages.Slot) (survey, error) {
	c, err := slot.Share(fmt.Sprintf("survey of %s", n.digest), 0, func() (io.Closer, error) {
		m, err := n.parse()
		if err != nil {
			return nil, err
		}
		return survey{anyNode(m.Proto, suspicious), anyNode(m.Proto, disputed), slices.ContainsFunc(m.Proto.Graph.Initializer, func(t *onnxpb.TensorProto) bool {
			return len(t.Dims) == 2 && size(onnx.ShapeOf(t)) >= connection
		})}, nil
	})
	if err != nil {
		return survey{}, err
	}
	return c.(survey), nil
}

// suspicious reports whether a node is [unsteady], or written with nodes that are.
func suspicious(n *onnxpb.NodeProto) bool {
	return unsteady[n.OpType] != nil || slices.Contains([]string{"GroupNormalization", "Mish", "ReduceLogSum"}, n.OpType)
}
