package program

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/onnx"
)

// Fit returns the batch to compile for that many rows, limit at most: it minimises runs × (batch + 1),
// padding waste plus a fixed cost per run. It is at least two where the model accepts that: some of ONNX
// Runtime's kernels add up in another order where a dimension is 1, so that a single row would have other
// bits.
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

// Input elements per batch whose activations roughly fit the CPU cache: with a backward pass, for which all
// are kept, and without.
const (
	backwards = 2 * 3 * 224 * 224
	forwards  = 2 * backwards
)

// AtOnce returns the batch of a program with a backward pass for that many images.
//
// Element-wise operators are bound by memory; so on a CPU a batch has no more images than fit the cache, but
// at least one for each thread. A fully connected layer reads its weights from memory once for all images; so
// the batch is large enough for activations to outweigh them. The batch changes no bits.
func (n *Net) AtOnce(ctx context.Context, slot stages.Slot, rows int) int {
	return n.atOnce(ctx, slot, backwards, rows, rows)
}

// atOnce returns the same for a cache that holds images of that many elements, limit at most.
func (n *Net) atOnce(ctx context.Context, slot stages.Slot, cached, rows, limit int) int {
	d := slot.Device()
	if d.Class != "cpu" || n.Batch > 0 {
		return n.Fit(rows, limit)
	}
	few := max(2, d.Threads, cached/n.elements())
	if few < limit {
		few = max(few, n.outweighing(ctx, slot))
	}
	return n.Fit(rows, min(limit, few))
}

// elements returns the size of an image, or of a text's embedding.
func (n *Net) elements() int {
	if n.Text != nil {
		return n.Width * max(modelfile.TextChannels, n.Text.Dimension)
	}
	return n.Size()
}

// outweighing returns how many images have as many activations as the net has weights in fully connected
// layers; 0 where these are small, or where the net has no graph, which the program reports that needs one.
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
		g, err := n.graph(ctx, batch) // which is large, and isn't shared
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

// A balance is how many images have as many activations as a net has weights that multiply a single vector of
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
