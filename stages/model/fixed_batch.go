package model

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages/internal/modelfile"
)

const (
	// largeBatch is the largest fixed batch that is kept even if the model takes others: every image costs
	// the memory and time of a whole batch.
	largeBatch = 64
	// maxBatch is the largest fixed batch that is supported.
	maxBatch = 1024
)

// probeOpenBatch runs [probe] on a model whose file fixes a large batch, as if the batch were open. ok is
// false if the model doesn't run that way, or an image's answer depends on the rest of its batch.
func probeOpenBatch(ctx context.Context, m *modelfile.Model) (answers []float32, ok bool, err error) {
	free := *m
	free.Spec.Batch = 0
	answers, err = probe(ctx, &free)
	switch {
	case ctx.Err() != nil:
		return nil, false, context.Cause(ctx)
	case err == nil && free.Spec.Batch == 0:
		*m = free
		return answers, true, nil
	case m.Spec.Batch > maxBatch:
		return nil, false, fmt.Errorf("the model only runs with its fixed batch of %d images, and the "+
			"maximum "+
			"is %d: export it with a dynamic batch dimension", m.Spec.Batch, maxBatch)
	}
	return nil, false, nil
}
