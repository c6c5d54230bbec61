package model

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/program"
)

// batchTolerance is the largest allowed difference between the answers to an image alone and in a batch,
// relative to the largest answer. Kernels may depend on the batch size, in the last bits.
const batchTolerance = 1e-3

var errNoClasses = errors.New("one number per image and class is needed")

// noClasses returns the error for an output that isn't a number per image and class.
func noClasses(shape []int) error {
	return fmt.Errorf("the output has shape %v: %w; output_kind: none reads it without classes, for a "+
		"target that is an expression", shape, errNoClasses)
}

// probe runs the model and completes its Spec: the number of classes, and whether the model really takes any
// batch size, as its file declares. It returns the model's answers.
func probe(ctx context.Context, m *modelfile.Model) ([]float32, error) {
	if m.Spec.Batch > largeBatch {
		if answers, ok, err := probeOpenBatch(ctx, m); ok || err != nil {
			return answers, err
		}
	}
	free := m.Spec.Batch == 0
	rows := max(1, m.Spec.Batch)
	images := probeImages(m.Spec)
	answers, shape, err := answer(ctx, *m, images, rows)
	if err != nil {
		return nil, fmt.Errorf("the model fails on a batch of %d: %w", rows, err)
	}
	n := 1
	for _, v := range shape {
		n *= v
	}
	if n == 0 || n%rows != 0 || slices.Max(append([]int{1}, shape...)) != max(n/rows, rows) {
		return nil, noClasses(shape)
	}
	m.Spec.Classes = n / rows
	if free {
		both, _, err := answer(ctx, *m, images, 2)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, stages.ErrOutOfMemory):
			// The result must not depend on the machine's memory, and no smaller batch would help.
			return nil, fmt.Errorf("the model accepts batch 1 but not batch 2: %v", err)
		case err != nil || len(both) != len(answers) || !near(answers[:n], both[:n]) ||
			!near(answers[n:], both[n:]):
			m.Spec.Batch = 1
		}
	}
	return answers, nil
}

// probeImages returns the images that a model is probed with: at least two if it takes any batch size.
func probeImages(s modelfile.Spec) []float32 {
	rows := s.Batch
	if rows == 0 {
		rows = 2
	}
	if s.Text != nil {
		return sampleTexts(s, rows, 0)
	}
	return waves(s.Size() * rows)
}

// waves returns normalised values around 0. Any that aren't constant will do.
func waves(count int) []float32 {
	images := make([]float32, count)
	for i := range images {
		images[i] = float32(math.Sin(float64(i)*0.7) + math.Sin(float64(i)*0.013))
	}
	return images
}

// probabilityTolerance is how far outside [0,1] a probability may be.
const probabilityTolerance = 1e-3

// answer runs the model on images, batch by batch, and returns all answers and the shape of one batch's.
func answer(ctx context.Context, m modelfile.Model, images []float32,
	batch int) (answers []float32, shape []int, err error) {
	p, err := program.NewProbe(m, batch)
	if err != nil {
		return nil, nil, err
	}
	defer p.Close()
	for some := range slices.Chunk(images, m.Spec.Size()*batch) {
		a, err := p.Answer(ctx, some)
		if err != nil {
			return nil, nil, err
		}
		if answers != nil && !slices.Equal(a.Shape, shape) {
			return nil, nil, fmt.Errorf("the output has shape %v for one image and %v for another", shape,
				a.Shape)
		}
		answers, shape = append(answers, a.Data...), a.Shape
	}
	return answers, shape, nil
}

func near(a, b []float32) bool {
	largest, apart := 0.0, 0.0
	for i := range a {
		if a[i] == b[i] && math.IsInf(float64(a[i]), 0) {
			continue
		}
		largest = math.Max(largest, math.Abs(float64(a[i])))
		apart = math.Max(apart, math.Abs(float64(a[i])-float64(b[i])))
	}
	return apart <= batchTolerance*largest
}

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
		return nil, false, tooLarge(m.Spec.Batch)
	}
	return nil, false, nil
}

// tooLarge is the error of a model that only runs with a large batch.
func tooLarge(batch int) error {
	return fmt.Errorf("the model only runs with its fixed batch of %d images, and the maximum is %d: export "+
		"it with a dynamic batch dimension", batch, maxBatch)
}
