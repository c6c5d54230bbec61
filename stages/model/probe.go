package model

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/program"
)

// rebatched is how far the answers to an image alone and among others may lie
// apart, relative to the largest answer. Kernels differ by the batch's shape, in
// the last bits.
const rebatched = 1e-3

// probe runs the model and completes its specification: the number of classes,
// whether the model, though its file says so, really takes any batch, and
// whether it returns probabilities.
func probe(ctx context.Context, m *modelfile.Model, p ONNXParams) error {
	// Wherever the model will run: what is learnt here must not depend on it.
	d := stages.Device{Class: "cpu", Threads: 1}
	free := m.Spec.Batch == 0
	rows := max(1, m.Spec.Batch)
	shape, err := program.AnswerShape(*m, rows)
	if err != nil {
		return fmt.Errorf("the model doesn't run on a batch of %d: %w", rows, err)
	}
	n := 1
	for _, v := range shape {
		n *= v
	}
	if n == 0 || n%rows != 0 || slices.Max(append([]int{1}, shape...)) != max(n/rows, rows) {
		return fmt.Errorf("the output has the shape %v: one number for every image and class is needed", shape)
	}
	m.Spec.Classes = n / rows
	if free {
		rows = 2
	}
	image := make([]float32, m.Spec.Size()*rows)
	for i := range image {
		// Anything uneven will do: a wave of normalised values around 0.
		image[i] = float32(math.Sin(float64(i)*0.7) + math.Sin(float64(i)*0.013))
	}
	answer, err := program.Answer(ctx, *m, image, rows, d)
	if err != nil && !free {
		return err
	}
	if free {
		fits := err == nil
		for i := range rows {
			size := m.Spec.Size()
			alone, errAlone := program.Answer(ctx, *m, image[i*size:(i+1)*size], 1, d)
			if errAlone != nil {
				return errAlone
			}
			fits = fits && near(alone, answer[i*m.Spec.Classes:(i+1)*m.Spec.Classes])
			if !fits {
				answer = alone
				break
			}
		}
		if !fits {
			m.Spec.Batch = 1
		}
	}
	if p.Kind == "auto" {
		m.Spec.Probabilities = distributions(answer, m.Spec.Classes)
	}
	return nil
}

func near(a, b []float32) bool {
	largest, apart := 0.0, 0.0
	for i := range a {
		largest = math.Max(largest, math.Abs(float64(a[i])))
		apart = math.Max(apart, math.Abs(float64(a[i])-float64(b[i])))
	}
	return apart <= rebatched*largest
}

// distributions reports whether every row is one of probabilities.
func distributions(answer []float32, classes int) bool {
	if classes < 2 {
		return false
	}
	for row := range slices.Chunk(answer, classes) {
		sum := 0.0
		for _, v := range row {
			if !(v >= 0) {
				return false
			}
			sum += float64(v)
		}
		if math.Abs(sum-1) > 1e-4 {
			return false
		}
	}
	return true
}
