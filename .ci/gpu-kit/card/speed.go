package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/attribute"
	"github.com/runexp/runexp/stages/perturb"
	"github.com/runexp/runexp/stages/stagetest"
)

// A task is a stage whose speed is measured, and how many rows of batches an image takes.
type task struct {
	stage  *stages.Stage
	params any
	rows   int
}

// Numbers of evaluations are what torch_times.py has too.
const (
	igSteps    = 50
	curveSteps = 224
	riseMasks  = 1000
)

func taskOf(name string) (task, error) {
	switch name {
	case "gradient":
		return task{&attribute.Saliency, attribute.Saliency.NewParams(), 1}, nil
	case "lrp":
		return task{&attribute.LRPEpsilon, attribute.LRPEpsilon.NewParams(), 1}, nil
	case "ig-50":
		p := attribute.IntegratedGradients.NewParams().(*attribute.IntegratedGradientsParams)
		p.Steps = igSteps
		return task{&attribute.IntegratedGradients, p, igSteps}, nil
	case "deletion":
		p := perturb.Deletion.NewParams().(*perturb.DeletionParams)
		p.Steps = curveSteps
		return task{&perturb.Deletion, p, curveSteps + 1}, nil
	case "rise":
		p := attribute.RISE.NewParams().(*attribute.RISEParams)
		p.Masks = riseMasks
		return task{&attribute.RISE, p, riseMasks}, nil
	}
	return task{}, fmt.Errorf("no task is called %s", name)
}

const (
	leastSeconds = 1.5  // of a measurement: nvidia-smi averages over up to a second
	mostImages   = 4096 // of one
)

// speed measures images a second of a task, batch by batch, from encoded images to encoded results, with its
// programs loaded. Batches are of one image's rows where it has several: of those that hold all of them,
// one is measured. No batch begins after the time given.
func speed(ctx context.Context, w io.Writer, class, name, what string, limit time.Duration,
	batches []int) error {
	t, err := taskOf(what)
	if err != nil {
		return err
	}
	in, err := newInputs(name)
	if err != nil {
		return err
	}
	start := time.Now()
	var last error
	whole := false
	for i, batch := range batches {
		if whole && batch >= t.rows {
			continue
		}
		whole = whole || t.rows > 1 && batch >= t.rows
		if i > 0 && time.Since(start) > limit {
			fmt.Fprintf(w, "note its time was over before batch %d\n", batch)
			break
		}
		if err := in.measure(ctx, w, class, t, batch, start.Add(limit)); err != nil {
			failed(w, batch, plainly(class, err))
			if last != nil && last.Error() == err.Error() {
				break // another batch fails at the same, too
			}
			last = err
		}
	}
	return ctx.Err()
}

// measure prints the images a second of one batch. The first run loads programs and isn't timed; then as many
// images as fill a measurement are.
func (in inputs) measure(ctx context.Context, w io.Writer, class string, t task, batch int,
	end time.Time) error {
	slot := on(class)
	defer stagetest.Release(slot)
	count := (batch + t.rows - 1) / t.rows
	some, err := in.images(count)
	if err != nil {
		return err
	}
	if _, err := some.compute(ctx, slot, t.stage, t.params, batch); err != nil {
		return err
	}
	for {
		fmt.Fprintf(w, "start %d\n", batch)
		start := time.Now()
		if _, err := some.compute(ctx, slot, t.stage, t.params, batch); err != nil {
			return err
		}
		took := time.Since(start).Seconds()
		grow := int(math.Ceil(1.2 * leastSeconds / took))
		if took >= leastSeconds || count >= mostImages || time.Now().After(end) {
			fmt.Fprintf(w, "rate %d %.4g\n", batch, float64(count)/took)
			return nil
		}
		count = min(grow*count, max(mostImages, count))
		if some, err = in.images(count); err != nil {
			return err
		}
	}
}
