package perturb

import (
	"context"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// A collector classifies the images of items in batches that may have images of several, and puts their
// curves in order.
type collector struct {
	program.Forward
	env    *stages.Env
	points int
	put    func(i int, curve []response) error
	rows   []collected // of the batch
	items  []collecting
	next   int // the first item whose curve isn't put
}

// A collected row is a point of an item's curve.
type collected struct{ item, point int }

// The curve of an item that is being collected: some points are missing; nil before the item is added.
type collecting struct {
	responder
	curve   []response
	missing int
}

func newCollector(e *stages.Env, f program.Forward, points int) *collector {
	put := func(i int, curve []response) error {
		e.Put("curves", i, encodeCurve(e, curve))
		return nil
	}
	return &collector{Forward: f, env: e, points: points, put: put, items: make([]collecting, e.Len())}
}

// add takes the images of the points of item i, none for a curve that is undefined.
func (c *collector) add(ctx context.Context, i int, by responder, images [][]float32) error {
	c.items[i] = collecting{by, slices.Repeat([]response{undefined}, c.points), len(images)}
	for k, image := range images {
		copy(c.Image(len(c.rows)), image)
		if c.rows = append(c.rows, collected{i, k}); len(c.rows) == c.Batch {
			if err := c.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush classifies the images of the batch, and puts the curves that are complete.
func (c *collector) flush(ctx context.Context) error {
	if len(c.rows) > 0 {
		if err := c.Run(ctx); err != nil {
			return err
		}
	}
	for row, r := range c.rows {
		item := &c.items[r.item]
		item.curve[r.point] = item.response(c.Row(row))
		item.missing--
	}
	c.rows = c.rows[:0]
	for ; c.next < len(c.items); c.next++ {
		item := &c.items[c.next]
		if item.curve == nil || item.missing > 0 {
			break
		}
		if err := c.put(c.next, item.curve); err != nil {
			return err
		}
		item.curve = nil
		c.env.Done(1)
	}
	return nil
}
