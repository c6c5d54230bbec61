package program

import (
	"context"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
)

// An Audit accounts for the relevance of one image at every node of the backward pass.
type Audit struct{ Gradient }

// Audit returns the program that answers q for one image, with accounts. Its other rows, if the model takes
// more than one image at once, must have no target.
func (n *Net) Audit(ctx context.Context, slot stages.Slot, q lower.Question) (Audit, error) {
	p, err := n.questioned(ctx, slot, "audit", max(1, n.Batch), lower.Request{
		Kind:     lower.Backward,
		Question: q,
		Inputs:   n.targetsAndImages,
		Images:   lower.Images,
		Audit:    true,
	})
	return Audit{Gradient{p}}, err
}

// An Account is the relevance that arrives at a node, and what the node makes of it.
type Account struct {
	Node, Op  string
	Arrives   float64 // at its outputs
	Leaves    float64 // for its inputs
	Constants float64 // what biases and other constants took of it
	Size      float64 // the sum of magnitudes of what leaves
}

// Accounts returns the accounts of the last run, from the answer on.
func (a Audit) Accounts() []Account {
	v := a.outputs[len(a.outputs)-1].Data
	out := make([]Account, len(a.signature.Entries))
	for i, e := range a.signature.Entries {
		out[i] = Account{e.Node, e.Op, float64(v[4*i]), float64(v[4*i+1]), float64(v[4*i+2]),
			float64(v[4*i+3])}
	}
	return out
}
