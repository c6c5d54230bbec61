package program

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
)

// A DeepLIFT returns the multipliers of a layer's value for a batch of images, each compared with one
// reference: by how much the explained number changes for each unit by which an element of the value differs
// from what it is for the reference.
type DeepLIFT struct{ *comparison }

// DeepLIFT returns the program that compares up to batch images at once with a reference image, or fewer as
// [Net.AtOnce] says. The rules of q are those of [relevance.Rescale], official or not.
func (n *Net) DeepLIFT(ctx context.Context, slot stages.Slot, q Question, official bool,
	batch int) (DeepLIFT, error) {
	d := slot.Device()
	c, err := n.keepComparison(ctx, slot, q, official, n.AtOnce(ctx, slot, batch), d.Class == "cpu")
	return DeepLIFT{c}, err
}

// Reference takes the normalised image that the others are compared with.
func (d DeepLIFT) Reference(image []float32) {
	mine := d.reference.inputs[0].Data
	d.ready = d.ready && slices.Equal(mine, image)
	copy(mine, image)
}

// Explain says what is explained of row i.
func (d DeepLIFT) Explain(i int, t Target) { t.write(d.row(0, i)) }

// Image returns where row i's normalised image goes.
func (d DeepLIFT) Image(i int) []float32 { return d.row(1, i) }

// Run compares what stands in the rows with the reference.
func (d DeepLIFT) Run(ctx context.Context) error {
	if !d.ready {
		if err := d.reference.run(ctx); err != nil {
			return err
		}
		d.ready = true
	}
	return d.run(ctx)
}

// Multipliers returns row i's multipliers, of the layer's shape. They are overwritten by the next run.
func (d DeepLIFT) Multipliers(i int) []float32 { return d.part(d.outputs[0], i) }

// Value returns the layer's value for row i.
func (d DeepLIFT) Value(i int) []float32 { return d.part(d.outputs[1], i) }

// ReferenceValue returns the layer's value for the reference, once there was a run.
func (d DeepLIFT) ReferenceValue() []float32 {
	p := d.reference
	if !d.inner {
		return p.inputs[0].Data
	}
	return p.part(p.outputs[len(p.outputs)-1], 0)
}

// ReferenceAnswer returns the model's answer to the reference, once there was a run.
func (d DeepLIFT) ReferenceAnswer() []float32 { return d.reference.Row(0) }
