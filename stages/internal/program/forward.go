package program

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// A Forward classifies images.
type Forward struct{ *Program }

// Forward returns the program that classifies up to batch images at once. The model runs
// as it is written: where it has [unsteady] operators, last bits may depend on the row, the
// batch and the threads, which programs that go backwards mend.
func (n *Net) Forward(slot stages.Slot, batch int) (Forward, error) {
	batch = n.Fit(batch, batch)
	p, err := n.keep(slot, batch, n.forward(batch))
	return Forward{p}, err
}

func (n *Net) forward(batch int) recipe {
	return recipe{
		name:  "forward",
		feeds: []feed{{"images", []int{batch, n.Channels, n.Height, n.Width}}},
		emit:  func(*onnx.Fragment) string { return "runexp_images" },
	}
}

// Image returns where row i's normalised image goes.
func (f Forward) Image(i int) []float32 { return f.row(0, i) }

// Run classifies what stands in the rows.
func (f Forward) Run(ctx context.Context) error { return f.run(ctx) }
