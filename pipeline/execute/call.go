package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/stages"
)

// runStage calls a stage's Run or, for several tasks, the function that their stages share. If memory runs
// out it calls Run with a smaller batch, and the cell's later chunks begin with the batch that fitted.
func (w *Worker) runStage(cells []*resolve.Cell, envs []*stages.Env) error {
	n := cells[0]
	batch := w.executor.batch
	for _, n := range cells {
		batch = min(batch, cmp.Or(int(w.executor.of(n).batch.Load()), batch))
	}
	var tried *stages.BatchError
	trimmed := false
	for {
		warnings := make([][]stages.Warning, len(cells))
		parts := make([]stages.Part, len(cells))
		for k, n := range cells {
			e := envs[k]
			e.Seed, e.Precision = n.Seed, stages.PrecisionOf(n.Params)
			e.Slot, e.Batch, e.Outputs, e.OutFacts = w.slot, batch, nil, nil
			e.OnWarn = func(x stages.Warning) { warnings[k] = append(warnings[k], x) }
			parts[k] = stages.Part{Params: n.Params, Env: e}
		}
		err := w.call(n.Stage, parts)
		switch {
		case err != nil && w.ctx.Err() != nil:
			return context.Cause(w.ctx)
		case err != nil && w.slot.Lost(): // by another slot, whatever the library's error says here
			return fmt.Errorf("%w: %w", stages.ErrDeviceLost, err)
		case err != nil && len(cells) > 1:
			return err // each is called alone
		}
		smaller := smallerBatch(err, batch, tried)
		if smaller == 0 && n.Stage.Device && !trimmed && errors.Is(err, stages.ErrOutOfMemory) {
			// Sessions that other cells left on the device may be the only reason.
			if trimmed = true; w.slot.Trim() == nil {
				continue
			}
		}
		if smaller == 0 {
			for k, n := range cells {
				n.AddWarnings(warnings[k])
			}
			return err
		}
		errors.As(err, &tried)
		batch = smaller
		if w.executor.of(n).lower(batch) { // and no other chunk has reported it
			w.executor.warn(n.Cell, "%v; it is tried again with batches of %d", err, batch)
		}
		if err := w.slot.Trim(); err != nil {
			return err
		}
	}
}

// lower makes the cell's later chunks begin with a batch, and reports whether they began with a larger one.
func (c *work) lower(batch int) bool {
	for {
		before := c.batch.Load()
		if before != 0 && before <= int32(batch) {
			return false
		}
		if c.batch.CompareAndSwap(before, int32(batch)) {
			return true
		}
	}
}

// smallerBatch returns the batch to try after the error of a batch, given the error of the one before; 0 if
// a smaller one doesn't help.
func smallerBatch(err error, batch int, before *stages.BatchError) int {
	if !errors.Is(err, stages.ErrOutOfMemory) {
		return 0
	}
	var e *stages.BatchError
	if !errors.As(err, &e) {
		return batch / 2
	}
	if before != nil && e.Rows >= before.Rows {
		return 0 // a smaller batch hasn't fewer rows
	}
	return min(e.Smaller, batch/2)
}

func (w *Worker) call(s *stages.Stage, parts []stages.Part) (err error) {
	defer w.slot.Begin()()
	defer plan.Catch(&err)
	if len(parts) > 1 {
		return s.Shared.Run(w.ctx, parts)
	}
	return s.Run(w.ctx, parts[0].Params, parts[0].Env)
}

// collect sorts outputs by call and port, and returns an error for a stage that put more or less than its
// relation promises. A Whole stage has one call.
func collect(n *resolve.Cell, e *stages.Env) ([]callOutput, error) {
	outs, name := make([]callOutput, max(len(e.Calls), 1)), n.Stage.Name
	for i := range outs {
		outs[i] = make(callOutput, len(n.Stage.Outputs))
	}
	for _, o := range e.Outputs {
		p := slices.IndexFunc(n.Stage.Outputs, func(p stages.Port) bool { return p.Name == o.Port })
		if p < 0 || o.Call < 0 || o.Call >= len(outs) {
			return nil, plan.Bug("stage %s puts something on port %q of item %d", name, o.Port, o.Call)
		}
		outs[o.Call][p] = append(outs[o.Call][p], o)
	}
	for i := range outs {
		of := ""
		if i < len(e.Calls) {
			of = fmt.Sprintf(" of the item %q", e.Calls[i].ID)
		}
		for p, list := range outs[i] {
			port := &n.Stage.Outputs[p]
			many := n.Stage.Relation == stages.Expand || n.Stage.Relation == stages.Whole && port.Type.Items
			if !many && len(list) != 1 {
				return nil, plan.Bug("stage %s puts %d payloads on port %q%s", name, len(list), port.Name, of)
			}
			seen := make(map[string]bool, len(list))
			for _, o := range list {
				if seen[o.ID] {
					const format = "stage %s makes two items %q%s on port %q"
					return nil, plan.Bug(format, name, o.ID, of, port.Name)
				}
				seen[o.ID] = true
			}
		}
	}
	return outs, nil
}
