package model

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/target"
)

// freeze puts what the model's expression freezes of every image, and its value.
func (p PredictParams) freeze(ctx context.Context, e *stages.Env, n *program.Net) error {
	if p.Target != program.PredictedClass && p.Target != n.Head.Text {
		return stages.BadField("target", "target is %s, but the model's answer is the expression %s",
			p.Target, n.Head.Text)
	}
	for _, port := range n.Head.Needs.Ports() {
		if !e.Wired(port) {
			return fmt.Errorf("the target %s reads what is on the port %s, which isn't wired: write a stage "+
				"model/predict with it, and wire its targets", n.Head.Text, port)
		}
	}
	warnOfTokeniser(e)
	others := make([][]float32, e.Len())
	if n.Head.Needs.Other {
		err := answers(ctx, e, n, "other", func(_ *program.Net, i int, row []float32) error {
			others[i] = slices.Clone(row)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return answers(ctx, e, n, "images", func(n *program.Net, i int, row []float32) error {
		of, err := originalOf(e, i, n)
		if err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
		of.Row, of.Other = row, others[i]
		params, err := n.Head.Freeze(of)
		if err != nil {
			return fmt.Errorf("item %q: target: %w", e.Calls[i].ID, err)
		}
		t := program.Target{Class: -1, Minus: -1, Frozen: params}
		value := n.Logit(row, t)
		if math.IsNaN(value) {
			e.WarnItem(i, "the value of the target is undefined")
		}
		e.Put("targets", i, t.Payload())
		e.Put("probability", i, stages.Scalar(value))
		return nil
	})
}

// originalOf returns what the ports have of item i that an expression needs.
func originalOf(e *stages.Env, i int, n *program.Net) (of target.Original, err error) {
	of.Label = -1
	if b := e.In("labels", i); b != nil {
		label, err := stages.ScalarOf(b)
		if err != nil {
			return of, fmt.Errorf("port labels: %w", err)
		}
		of.Label = int64(label)
	}
	if b := e.In("masks", i); b != nil && n.Head.Needs.Mask {
		t, err := stages.DecodeTensor(b)
		if err == nil && !slices.Equal(t.Shape, []int{n.Height, n.Width}) {
			err = fmt.Errorf("a mask of shape %v doesn't match the model's %d×%d", t.Shape, n.Height, n.Width)
		}
		if err != nil {
			return of, fmt.Errorf("port masks: %w", err)
		}
		of.Mask = make([]float64, len(t.Raw))
		for k, v := range t.Raw {
			if v == 1 { // neither the background nor what doesn't count
				of.Mask[k] = 1
			}
		}
	}
	return of, nil
}
