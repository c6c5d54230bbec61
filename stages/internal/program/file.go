package program

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// A File is a net as an ONNX file for other programs. Its input is a batch of normalised images
// [batch,C,H,W], as [modelfile.Spec.Normalise] makes them, and its output the answers [batch, classes]; both
// are float32, whatever layout, order of channels and precision the model has itself.
type File struct {
	ONNX     []byte
	Batch    int      // how many images it takes at once, 0 for any number
	Disabled []string // optimisers of ONNX Runtime that would change what it computes
}

// File returns the net as a file. That of a rewritten net is written for one image.
func (n *Net) File(ctx context.Context) (File, error) {
	r, batch := classification, n.Batch
	if n.rewrite != nil {
		r.Kind, r.AnswerOnly, batch = lower.Forward, true, max(1, batch)
	} else {
		r.Kind = lower.Verbatim
		if batch == 0 {
			r.Inputs = func(s lower.Shapes) []lower.IO {
				return []lower.IO{lower.In("images", s.ImageShape(onnx.Free)...)}
			}
		}
	}
	p, err := lower.Program(ctx, n.uncached(ctx), max(1, batch), r)
	if err != nil {
		return File{}, err
	}
	b, err := p.Model.Encode()
	return File{b, batch, p.Disabled}, err
}

// The functions below return programs that aren't run here but become part of a file: see package standalone.

// standard lowers a program that other libraries run.
func (n *Net) standard(ctx context.Context, slot stages.Slot, batch int,
	r lower.Request) (*lower.Lowered, error) {
	r.Standard = true
	return n.compile(ctx, slot, batch, r)
}

// LowerAnswer returns the program that classifies a batch of images.
func (n *Net) LowerAnswer(ctx context.Context, slot stages.Slot, batch int) (*lower.Lowered, error) {
	r := classification
	r.Kind, r.AnswerOnly = lower.Forward, true
	return n.standard(ctx, slot, batch, r)
}

// LowerGradient returns the program of [Net.Gradient].
func (n *Net) LowerGradient(ctx context.Context, slot stages.Slot, batch int, q lower.Question,
	also ...lower.Question) (*lower.Lowered, error) {
	return n.standard(ctx, slot, batch, n.gradient(q, also...))
}

// LowerValues returns the program of [Net.Activated].
func (n *Net) LowerValues(ctx context.Context, slot stages.Slot, batch int, layer string) (*lower.Lowered,
	error) {
	return n.standard(ctx, slot, batch, activated(layer))
}

// LowerMaskedLayer returns the program of [Net.MaskedLayer] for a batch of images, each with its own value,
// under one mask, which the input masks has.
func (n *Net) LowerMaskedLayer(ctx context.Context, slot stages.Slot, batch int, layer string,
	mask func(value []int) []int) (*lower.Lowered, error) {
	r := maskedLayer(layer, mask)
	r.Inputs = func(s lower.Shapes) []lower.IO {
		return []lower.IO{lower.In("value", s.LayerShape(s.Batch)...),
			lower.In("baseline", s.LayerShape(1)...),
			lower.In("masks", append([]int{1}, mask(s.Layer)...)...),
			lower.In("image", s.ImageShape(s.Batch)...)}
	}
	return n.standard(ctx, slot, batch, r)
}

// LowerAttention returns the program of [Net.Attention], and the attention that it finds.
func (n *Net) LowerAttention(ctx context.Context, slot stages.Slot, batch int, what lower.Glance,
	q lower.Question) (_ relevance.Attention, l *lower.Lowered, err error) {
	defer onnx.Sound(&err)
	g, err := n.Graph(ctx, slot, n.Fit(2, 2))
	if err != nil {
		return relevance.Attention{}, nil, err
	}
	found, err := relevance.Attend(g)
	if err != nil {
		return found, nil, err
	}
	if found.Merged && batch > 1 {
		return found, nil, fmt.Errorf("%w: the heads and images of attention %q share an axis", ErrOneImage,
			found.Blocks[0])
	}
	l, err = n.standard(ctx, slot, batch, n.glances([]lower.Glance{what}, q))
	return found, l, err
}

// ErrOneImage is the error of a program that can explain a single image at a time.
var ErrOneImage = fmt.Errorf("one image at a time")

// LowerComparison returns the program of [Net.DeepLIFT], which computes what depends on the reference itself.
func (n *Net) LowerComparison(ctx context.Context, slot stages.Slot, batch int, q lower.Question,
	official bool) (*lower.Lowered, error) {
	return n.standard(ctx, slot, batch, n.comparison(q, official, false))
}

// LowerFile returns the graph of the net's file for a batch, with all of the file's outputs.
func (n *Net) LowerFile(ctx context.Context, batch int) (*onnx.Graph, error) {
	if n.rewrite != nil {
		return nil, fmt.Errorf("the model is a rewrite of another one, and has no file")
	}
	s := n.source(nil)
	s.AllOutputs = true
	g, _, err := lower.Graph(ctx, s, batch)
	return g, err
}

// Original returns the net's ONNX file, or that of the model that it is a rewrite of.
func (n *Net) Original() (*onnx.Model, error) {
	b, err := n.onnx()
	if err != nil {
		return nil, err
	}
	return onnx.Parse(b)
}
