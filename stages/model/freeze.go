package model

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/target"
)

// valueMeasure returns the measure of an expression's value.
func valueMeasure(low, high float64, unit string) stages.Measure {
	return stages.Measure{Unit: unit, Direction: stages.None, Low: low, High: high, Tolerance: 1e-3}
}

// freeze puts what an expression freezes of every image, and its value.
func (p PredictParams) freeze(ctx context.Context, e *stages.Env) error {
	warnOfTokeniser(e)
	n, err := program.Load(e)
	if err != nil {
		return err
	}
	vectors, err := vectorsOf(e)
	if err != nil {
		return err
	}
	n, err = n.Explaining(e.Slot, p.Target, e.Facts("model")["labels"], vectors.Shape)
	if err != nil {
		return err
	}
	p.setFacts(e, n.Head, vectors.Shape)
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
	stored := vectors.Float64s()
	return answers(ctx, e, n, "images", func(n *program.Net, i int, row []float32) error {
		of, err := originalOf(e, i, n)
		if err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
		of.Row, of.Other, of.Vectors = row, others[i], stored
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

// setFacts sets what is known of an expression once it is bound to a model.
func (p PredictParams) setFacts(e *stages.Env, h *target.Head, vectors []int) {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	f := stages.Facts{program.TargetFact: p.Target, program.UnitFact: h.Unit(),
		program.LowFact: number(h.Low), program.HighFact: number(h.High)}
	if vectors != nil {
		f[program.VectorsFact] = strings.Trim(fmt.Sprint(vectors), "[]")
	}
	e.SetFacts("targets", f)
	e.SetFacts("probability", valueMeasure(h.Low, h.High, h.Unit()).Facts(nil))
}

// vectorsOf returns what is on the port vectors, an empty tensor without a shape if it isn't wired.
func vectorsOf(e *stages.Env) (stages.Tensor, error) {
	if !e.Wired("vectors") {
		return stages.Tensor{}, nil
	}
	b, err := e.Ports["vectors"][0].Load(0)
	if err != nil {
		return stages.Tensor{}, fmt.Errorf("port vectors: %w", err)
	}
	t, err := stages.DecodeTensor(b)
	if err != nil {
		return t, fmt.Errorf("port vectors: %w", err)
	}
	return t, nil
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
