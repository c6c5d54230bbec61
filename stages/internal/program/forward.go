package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/ort"
)

// A Forward classifies images.
type Forward struct{ *Program }

// Forward returns the program that classifies up to batch images at once; its Batch may be smaller, as with
// [Net.AtOnce].
func (n *Net) Forward(ctx context.Context, slot stages.Slot, batch int) (Forward, error) {
	p, err := n.classifier(ctx, slot, "forward", batch, classification)
	return Forward{p}, err
}

// classification classifies images.
var classification = lower.Request{Inputs: lower.ImagesInput, Images: lower.Images}

// Image returns the input of row i's normalised image.
func (f Forward) Image(i int) []float32 { return f.row(0, i) }

// Run classifies the images in the rows.
func (f Forward) Run(ctx context.Context) error { return f.run(ctx) }

// sameShapes returns an error if shapes within the model may depend on the image.
func (n *Net) sameShapes(ctx context.Context, slot stages.Slot) error {
	g, err := n.preparedGraph(ctx, slot, n.Fit(2, 2))
	if err == nil && g.measured {
		return stages.BadField("precision",
			"shapes within the model may depend on the image, so that it isn't computed in %s", n.precision)
	}
	return err
}

// classifier returns the program that classifies up to batch images at once. The file runs verbatim, with all
// of ONNX Runtime's optimisations, unless its bits would then depend on the row, the batch, the threads or
// the release.
func (n *Net) classifier(ctx context.Context, slot stages.Slot, name string, batch int,
	r lower.Request) (*Program, error) {
	batch = n.atOnce(ctx, slot, forwards, batch, batch)
	dependent, err := n.batchDependent(ctx, slot)
	if n.kernels(slot).Half && err == nil { // a file can't be rewritten to float16
		dependent, err = true, n.sameShapes(ctx, slot)
	}
	switch {
	case err != nil:
		return nil, err
	case dependent:
		r.Kind, r.AnswerOnly = lower.Forward, true
		return n.questioned(ctx, slot, name, batch, r)
	}
	r.Kind = lower.Verbatim
	return n.cached(ctx, slot, name, batch, 2*n.size, r) // the weights twice, as ONNX Runtime packs them
}

// Halved says of each node of the program that classifies images in float16, on GPUs, whether it computes in
// float16 or float32.
func (n *Net) Halved(ctx context.Context, slot stages.Slot) ([]lower.Halved, error) {
	r := classification
	r.Kind, r.AnswerOnly = lower.Forward, true
	r.Kernels = ort.ProviderOf("webgpu").KernelsIn(stages.Float16)
	graph := func(batch int) (*onnx.Graph, error) { return n.Graph(ctx, slot, batch) }
	p, err := lower.Program(ctx, n.source(graph), n.Fit(2, 2), r)
	if err != nil {
		return nil, err
	}
	return p.Halved, nil
}

// questioned returns the program of a request with questions.
func (n *Net) questioned(ctx context.Context, slot stages.Slot, name string, batch int,
	r lower.Request) (*Program, error) {
	key := fmt.Sprintf("%s of %v", name, r.Question)
	for _, q := range r.Also {
		key += ", and of " + q.String()
	}
	if rehearsal, ok := slot.(*Rehearsal); ok {
		r.Unrun = !rehearsal.exact
	}
	// The weights twice, and transposed for each backward pass.
	return n.cached(ctx, slot, key, batch, int64(4+2*len(r.Also))*n.size, r)
}

// batchDependent reports whether the model's file has batch- or release-dependent operators, or such that
// the device's provider computes wrongly, and a graph in which others replace them, the same for every
// image and, for batch-dependent ones alone, of the file's own precision. A file that has no such graph
// runs verbatim; programs with a backward pass report why. Operators within the body of a Loop, or of an
// If that depends on the image, stay as they are.
//
// A rewritten model has no file of its own: it always runs from its graph.
func (n *Net) batchDependent(ctx context.Context, slot stages.Slot) (bool, error) {
	if n.rewrite != nil {
		return true, nil
	}
	if r, ok := slot.(*Rehearsal); ok && !r.exact {
		return false, nil // no bits
	}
	kernels, class := n.kernels(slot), strings.TrimSpace(slot.Device().Class+" "+n.precision)
	c, err := slot.Share(fmt.Sprintf("batch-dependent operators of %s, on %s", n.digest, class), 0,
		func() (_ io.Closer, err error) {
			defer onnx.Sound(&err)
			s, err := n.survey(slot)
			wrong := s.ProviderForms && len(kernels.Wrong) > 0
			if err != nil || !s.BatchDependent && !s.ReleaseDependent && !wrong {
				return dependence(false), err
			}
			if !s.ReleaseDependent && !wrong {
				if other, err := lower.OtherPrecision(n.onnx); other || err != nil {
					return dependence(false), err
				}
			}
			batch := n.Fit(2, 2)
			g, err := n.preparedGraph(ctx, slot, batch)
			switch {
			case ctx.Err() != nil || errors.Is(err, stages.ErrOutOfMemory):
				return nil, err
			case err != nil || g.measured:
				return dependence(false), nil
			}
			return dependence(s.ReleaseDependent || lower.BatchInvariant(g.Clone(), batch) ||
				lower.ProviderForms(g.Clone(), batch, kernels)), nil
		})
	if err != nil {
		return false, err
	}
	return bool(c.(dependence)), nil
}

// A dependence says whether a model's results depend on batch, threads, alignment or release.
type dependence bool

func (dependence) Close() error { return nil }

// survey returns the survey of the net's file, which slots share.
func (n *Net) survey(slot stages.Slot) (lower.Survey, error) {
	c, err := slot.Share(fmt.Sprintf("survey of %s", n.digest), 0, func() (io.Closer, error) {
		s, err := lower.SurveyOf(n.onnx)
		return surveyed{s}, err
	})
	if err != nil {
		return lower.Survey{}, err
	}
	return c.(surveyed).Survey, nil
}

type surveyed struct{ lower.Survey }

func (surveyed) Close() error { return nil }
