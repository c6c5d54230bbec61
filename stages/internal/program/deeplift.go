package program

import (
	"context"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
)

// A DeepLIFT returns the multipliers of a layer's value for a batch of images, each compared with one
// reference: by how much the explained number changes for each unit by which an element of the value differs
// from that for the reference.
type DeepLIFT struct{ *Program }

// DeepLIFT returns the program that compares up to batch images at once with a reference image, or fewer as
// [Net.AtOnce] says. The rules of q are those of [relevance.Rescale], official or not.
//
// On a processor a program of its own computes what is read of the reference, once for all images; a device
// would take longer to transfer that than to compute it in every run.
func (n *Net) DeepLIFT(ctx context.Context, slot stages.Slot, q lower.Question, official bool,
	batch int) (DeepLIFT, error) {
	return n.deepLIFT(ctx, slot, q, official, n.AtOnce(ctx, slot, batch), slot.Device().Class == "cpu")
}

func (n *Net) deepLIFT(ctx context.Context, slot stages.Slot, q lower.Question, official bool, batch int,
	once bool) (DeepLIFT, error) {
	if n.Head != nil && !n.Head.Linear {
		return DeepLIFT{}, stages.BadField("target", "target: %s isn't a linear function of the model's "+
			"outputs, and rules of comparisons are for these alone: integrated gradients explain the "+
			"difference of any", n.Head.Text)
	}
	key := fmt.Sprintf("deeplift of %q, official %t, probability %t, once %t", q.Layer, official,
		q.Probability, once)
	// The weights twice, and transposed for the backward pass, and twice for the reference.
	p, err := n.cached(ctx, slot, key, batch, 6*n.size, n.comparison(q, official, once))
	return DeepLIFT{p}, err
}

func (n *Net) comparison(q lower.Question, official, once bool) lower.Request {
	return lower.Request{
		Kind:     lower.Comparison,
		Question: q,
		Inputs:   n.targetsAndImages,
		Images:   lower.Images,
		Official: official,
		Once:     once,
	}
}

// Reference takes the normalised image that the others are compared with.
func (d DeepLIFT) Reference(image []float32) {
	current := d.reference.inputs[0]
	d.ready = d.ready && slices.Equal(current.Data, image)
	current.Set(image)
	d.reference.write(1)
}

// Explain sets the target of row i.
func (d DeepLIFT) Explain(i int, t Target) { t.write(d.row(0, i)) }

// Image returns the input of row i's normalised image.
func (d DeepLIFT) Image(i int) []float32 { return d.row(1, i) }

// Run compares the images in the rows with the reference.
func (d DeepLIFT) Run(ctx context.Context) error {
	if !d.ready {
		if err := d.reference.run(ctx); err != nil {
			return err
		}
		d.ready = true
	}
	return d.run(ctx)
}

// Multipliers returns row i's multipliers, of the layer's shape. The next run overwrites them.
func (d DeepLIFT) Multipliers(i int) []float32 { return d.part(d.outputs[0], i) }

// Value returns the layer's value for row i.
func (d DeepLIFT) Value(i int) []float32 { return d.part(d.outputs[1], i) }

// ReferenceValue returns the layer's value for the reference, after a run.
func (d DeepLIFT) ReferenceValue() []float32 {
	if v := d.reference.named("reference_value", 0); v != nil {
		return v
	}
	return d.reference.inputs[0].Data
}

// ReferenceAnswer returns the model's answer to the reference, after a run.
func (d DeepLIFT) ReferenceAnswer() []float32 { return d.reference.Row(0) }
