package program

import (
	"context"
	"errors"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/ort"
)

// need returns what a program of the net needs. Where a file that runs verbatim doesn't tell the sizes of its
// values, they are those of the net's graph for few images.
func (n *Net) need(ctx context.Context, slot stages.Slot, p *lower.Lowered) (lower.Need, error) {
	need, err := p.Need()
	if err == nil && !need.Hidden || p.Graph != nil {
		return need, err
	}
	few := n.Fit(2, 2)
	g, err := n.preparedGraph(ctx, slot, few)
	switch {
	case ctx.Err() != nil || errors.Is(err, stages.ErrOutOfMemory):
		return need, err
	case err != nil: // a file without a graph runs all the same
		return lower.Need{Hidden: true}, nil
	}
	need = lower.NeedOf(g.Graph)
	need.Run = need.Run * int64(p.Batch) / int64(few)
	return need, nil
}

// short names the batch for which memory was short, and a smaller one that may fit.
func (n *Net) short(err error, batch int) error {
	if !errors.Is(err, stages.ErrOutOfMemory) || errors.As(err, new(*stages.BatchError)) {
		return err
	}
	smaller := batch / 2
	var s *ort.Short
	if errors.As(err, &s) {
		for smaller > 2 && float64(s.Need)*float64(smaller)/float64(batch) > float64(s.Free) {
			smaller /= 2
		}
	}
	if smaller = max(2, smaller); n.Batch > 0 || batch <= 2 {
		smaller = 0 // there is none: see [Net.Fit]
	}
	return &stages.BatchError{Err: err, Rows: batch, Smaller: smaller}
}
