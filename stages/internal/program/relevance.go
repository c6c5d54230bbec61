package program

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// An Audit follows the relevance of one image and tells what became of it at every
// node on the way.
type Audit struct{ Gradient }

// Audit returns the program that answers q for one image, with accounts. Its other
// rows, if the model takes more than one image at once, have to explain nothing.
func (n *Net) Audit(ctx context.Context, slot stages.Slot, q Question) (Audit, error) {
	p, err := n.keepWalk(ctx, slot, max(1, n.Batch), walk{
		Question: q,
		name:     "audit",
		feeds: func(b bounds) []feed {
			return []feed{{"targets", []int{b.batch, n.Classes}}, {"images", b.images(b.batch)}}
		},
		images: func(*onnx.Fragment) string { return "runexp_images" },
		audit:  true,
	})
	return Audit{Gradient{p}}, err
}

// An Account is what became of relevance at a node.
type Account struct {
	Node, Op  string
	Arrives   float64 // at its outputs
	Leaves    float64 // for its inputs
	Constants float64 // what biases and other constants took of it
	Size      float64 // the sum of magnitudes of what leaves
}

// Accounts returns what became of relevance in the last run, from the answer on.
func (a Audit) Accounts() []Account {
	v := a.returned[len(a.returned)-1].Data
	out := make([]Account, len(a.recipe.entries))
	for i, e := range a.recipe.entries {
		out[i] = Account{e.Node, e.Op, float64(v[4*i]), float64(v[4*i+1]), float64(v[4*i+2]), float64(v[4*i+3])}
	}
	return out
}

// account emits the sums of entries, one after the other.
func account(g *onnx.Graph, entries []relevance.Entry) feed {
	f := g.Fragment()
	zero := f.Floats("zero", []float32{0}, 1)
	var sums []string
	for _, e := range entries {
		for _, v := range []string{e.Arrives, e.Leaves, e.Constants, e.Size} {
			if v == "" {
				v = zero
			}
			sums = append(sums, v)
		}
	}
	f.OpTo("runexp_audit", "Concat", sums, onnx.Attr{Name: "axis", Value: 0})
	g.After(f)
	return feed{"audit", []int{len(sums)}}
}
