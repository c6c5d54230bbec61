package model

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages/internal/modelfile"
)

const (
	// mostFixed is the largest batch that is run because a file says so, if others can be: each image would
	// take the memory and the time of all.
	mostFixed = 64
	// largestFixed is the largest that is run at all.
	largestFixed = 1024
)

// opened is [probe] of a model whose file fixes a large batch, as if it left it open. It isn't ok where the
// model doesn't run so, or answers an image among others differently.
func opened(ctx context.Context, m *modelfile.Model) (answers []float32, ok bool, err error) {
	free := *m
	free.Spec.Batch = 0
	answers, err = probe(ctx, &free)
	switch {
	case ctx.Err() != nil:
		return nil, false, context.Cause(ctx)
	case err == nil && free.Spec.Batch == 0:
		*m = free
		return answers, true, nil
	case m.Spec.Batch > largestFixed:
		return nil, false, fmt.Errorf("the file fixes a batch of %d images, and the model takes no other: "+
			"each image would take the memory and the time of %d, and %d are the most: export it with an "+
			"open batch", m.Spec.Batch, m.Spec.Batch, largestFixed)
	}
	return nil, false, nil
}
