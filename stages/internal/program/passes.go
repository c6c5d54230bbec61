package program

import (
	"context"
	"sync/atomic"
)

type passesKey struct{}

// CountPasses returns a context in which perturbed images that are classified add to n: a test of how many
// forward passes an experiment needs runs it in this context.
func CountPasses(ctx context.Context, n *atomic.Int64) context.Context {
	return context.WithValue(ctx, passesKey{}, n)
}

// Passed counts forward passes of perturbed images, without those that fill up a batch. Those of a rehearsal
// aren't any.
func (p *Program) Passed(ctx context.Context, images int) {
	if n, ok := ctx.Value(passesKey{}).(*atomic.Int64); ok && p.rehearsal == nil {
		n.Add(int64(images))
	}
}
