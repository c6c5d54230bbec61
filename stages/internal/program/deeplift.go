package program

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/onnx/onnxpb"
)

// A DeepLIFT returns the multipliers of a layer's value for a batch of images, each
// compared with one reference: by how much the explained number changes for each unit
// by which an element of the value differs from what it is for the reference.
type DeepLIFT struct{ *comparison }

// DeepLIFT returns the program that compares up to batch images at once with a
// reference image, or fewer as [Net.AtOnce] says. The rules of q are those of
// [relevance.Rescale], official or not.
func (n *Net) DeepLIFT(ctx context.Context, slot stages.Slot, q Question, official bool, batch int) (DeepLIFT, error) {
	d := slot.Device()
	c, err := n.keepComparison(ctx, slot, q, official, n.AtOnce(ctx, slot, batch), d.Class == "cpu")
	return DeepLIFT{c}, err
}

// explained emits the answer [batch, classes], and behind it what makes the explained
// numbers of it, for rules that look at what relevance flows through, as derivatives
// of them needn't. It returns the value that has these numbers.
func (n *Net) explained(g *onnx.Graph, batch int, probability bool) string {
	shape := []int{batch, n.Classes}
	f := g.Fragment()
	f.OpTo(answer, "Reshape", []string{n.Output, f.Ints("rows", []int64{int64(batch), int64(n.Classes)}, 2)})
	out := answer
	add := func(name string) {
		g.Types[name] = onnx.Type{Elem: onnxpb.TensorProto_FLOAT, Shape: shape}
		out = name
	}
	add(answer)
	switch {
	case probability && !n.Probabilities && n.Independent:
		add(f.Op("Sigmoid", []string{answer}))
	case probability && !n.Probabilities:
		add(f.Op("Softmax", []string{answer}, onnx.Attr{Name: "axis", Value: -1}))
	case !probability && n.Probabilities:
		least := g.Fresh("runexp_smallest")
		g.AddWeight(onnx.FloatTensor(least, []float32{smallest}))
		add(f.Op("Max", []string{answer, least}))
		add(f.Op("Log", []string{out}))
	}
	g.After(f)
	return out
}

// Reference takes the normalised image that the others are compared with.
func (d DeepLIFT) Reference(image []float32) {
	mine := d.reference.feeds[0].Data
	d.ready = d.ready && slices.Equal(mine, image)
	copy(mine, image)
}

// Explain says what is explained of row i.
func (d DeepLIFT) Explain(i int, t Target) { t.weigh(d.row(0, i)) }

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

// Multipliers returns row i's multipliers, of the layer's shape. They are overwritten
// by the next run.
func (d DeepLIFT) Multipliers(i int) []float32 { return d.part(d.returned[0], i) }

// Value returns the layer's value for row i.
func (d DeepLIFT) Value(i int) []float32 { return d.part(d.returned[1], i) }

// ReferenceValue returns the layer's value for the reference, once there was a run.
func (d DeepLIFT) ReferenceValue() []float32 {
	p := d.reference
	if !d.inner {
		return p.feeds[0].Data
	}
	return p.part(p.returned[len(p.returned)-1], 0)
}

// ReferenceAnswer returns the model's answer to the reference, once there was a run.
func (d DeepLIFT) ReferenceAnswer() []float32 { return d.reference.Row(0) }
