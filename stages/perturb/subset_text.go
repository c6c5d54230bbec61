package perturb

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/program"
)

// runTexts draws subsets of the tokens of texts, and puts the responses.
func (p SubsetParams) runTexts(ctx context.Context, e *stages.Env, n *program.Net) error {
	if err := checkUnits(p.Substrate, p.Unit, true); err != nil {
		return err
	}
	rows := p.rows(textSteps)
	v, err := newVersions(e, n, p.Substrate, (rows+2)*e.Len())
	if err != nil {
		return err
	}
	put := make([]func(), e.Len())
	for i := range put {
		if put[i], err = p.addText(ctx, v, i); err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
	}
	if err := v.flush(ctx); err != nil {
		return err
	}
	for _, f := range put {
		f()
		e.Done(1)
	}
	return nil
}

// addText has the versions of text i classified, and returns what puts the outputs when they are.
func (p SubsetParams) addText(ctx context.Context, v *versions, i int) (put func(), err error) {
	e := v.env
	text, err := program.TokensOf(e, i)
	if err != nil {
		return nil, err
	}
	by, err := responderOf(e, i, v.net)
	if err != nil {
		return nil, err
	}
	u, sets := metric.Tokens(text.Special), metric.Subsets{}
	if u.Count > 0 { // nothing can be drawn of none
		if err := p.fits(u.Count); err != nil {
			return nil, err
		}
		sets = p.subsets(e.Rand("subsets", i), u.Count)
	}
	responses := make([]response, sets.Count+2)
	for column := range responses {
		responses[column] = undefined
		gone := func(token int) bool {
			k := int(u.Of[token])
			switch {
			case k < 0 || column == 0:
				return false
			case column == sets.Count+1:
				return true
			}
			return sets.Has(column-1, k)
		}
		err := v.add(ctx, i, text, gone, func(row []float32) { responses[column] = by.response(row) })
		if err != nil {
			return nil, err
		}
	}
	return func() {
		units := make([]float32, text.Len())
		for token, k := range u.Of {
			if k >= 0 {
				units[token] = 1
			}
		}
		e.Put("segments", i, stages.NewTensor(u.Numbers(), 1, text.Len()).Encode())
		e.Put("subsets", i, sets.Encode())
		e.Put("differences", i, stages.NewTensor(units, 1, 1, text.Len()).Encode())
		e.Put("responses", i, encodeCurve(e, responses))
		by.warn(e, i)
	}, nil
}
