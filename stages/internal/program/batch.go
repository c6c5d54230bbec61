package program

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// Fit returns the batch to compile for when so many rows are wanted and at most limit fit: the one that takes
// the least time, if a run takes as long as its rows, those of the last one that are unused too, and one
// more. It is two at least where the model takes as many: some of ONNX Runtime's kernels add up in another
// order where a dimension is 1, so that a single row would have other bits.
func (n *Net) Fit(rows, limit int) int {
	if n.Batch > 0 {
		return n.Batch
	}
	rows = max(2, rows)
	best := min(rows, max(2, limit))
	cost := func(batch int) int { return (rows + batch - 1) / batch * (batch + 1) }
	for batch := best - 1; batch >= 2; batch-- {
		if cost(batch) < cost(best) {
			best = batch
		}
	}
	return best
}

// How many numbers the images have whose activations a processor's cache about holds: images that go
// backwards too, for which all are kept, and such that only go forwards.
const (
	backwards = 2 * 3 * 224 * 224
	forwards  = 2 * backwards
)

// AtOnce returns how many of so many images go backwards at once.
//
// Element-wise operators take as long as their operands take to come from memory; so a processor has no more
// images than fit its cache, but one for each thread. Of a fully connected layer it's the weights that come
// from memory, once for all of the images; so there are at least so many that their activations outweigh
// those. That changes no bits.
func (n *Net) AtOnce(ctx context.Context, slot stages.Slot, rows int) int {
	return n.atOnce(ctx, slot, backwards, rows, rows)
}

// atOnce returns the same where a cache holds images of so many numbers, at most limit.
func (n *Net) atOnce(ctx context.Context, slot stages.Slot, cached, rows, limit int) int {
	d := slot.Device()
	if d.Class != "cpu" || n.Batch > 0 {
		return n.Fit(rows, limit)
	}
	few := max(2, d.Threads, cached/n.Size())
	if few < limit {
		few = max(few, n.outweighing(ctx, slot))
	}
	return n.Fit(rows, min(limit, few))
}

// outweighing returns how many images have as many activations as the net has weights in fully connected
// layers; 0 where these are small, or aren't known for want of a graph, which whoever needs one says.
func (n *Net) outweighing(ctx context.Context, slot stages.Slot) int {
	if n.size < 4*lower.LargeDense {
		return 0
	}
	c, err := slot.Share(fmt.Sprintf("rows that outweigh %s", n.digest), 0, func() (_ io.Closer, err error) {
		defer onnx.Sound(&err)
		if s, err := n.survey(slot); err != nil || !s.Dense {
			return balance(0), err
		}
		batch := n.Fit(2, 2)
		g, err := n.graph(ctx, batch) // which is large, and nobody else's
		switch {
		case ctx.Err() != nil || errors.Is(err, stages.ErrOutOfMemory):
			return nil, err
		case err != nil:
			return balance(0), nil
		}
		return balanceOf(g.Graph, batch), nil
	})
	if err != nil {
		return 0
	}
	return int(c.(balance))
}

// balance is how many images have as many activations as a net has weights that multiply a single vector of
// each.
type balance int

func (balance) Close() error { return nil }

// balanceOf returns the balance of a graph for a batch.
func balanceOf(g *onnx.Graph, batch int) balance {
	weights, activations := 0, 0
	for _, proto := range g.Proto.Graph.Node {
		n := onnx.Node{NodeProto: proto}
		for _, v := range n.Output {
			activations += onnx.Size(g.Shape(v))
		}
		if w := g.Weight(n.In(1)); (n.OpType == "MatMul" || n.OpType == "Gemm") && w != nil &&
			len(w.Dims) == 2 &&
			onnx.Size(g.Shape(n.In(0))) == batch*int(w.Dims[n.ContractedAxis()]) {
			weights += onnx.Size(g.Shape(n.In(1)))
		}
	}
	return balance(weights * batch / max(1, activations))
}
