package program

import (
	"context"

	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
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
