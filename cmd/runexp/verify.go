package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
)

const verifyHelp = `usage: runexp verify FILE [DIR]

Are the claims of a review folder, artifacts/<name> unless DIR is given,
reproduced? Computes what is missing, compares row by row, and leaves the folder
alone. Exit code 6 if something differs.
` + engineHelp + `
example:
  runexp verify experiments/quickstart.yaml
`

func verifyVerb() *verb {
	f := newFlags("verify")
	engine := newEngineFlags(f)
	return &verb{
		name: "verify", short: "are a review folder's claims reproduced?", help: verifyHelp, flags: f, drains: true,
		run: func(ctx context.Context, u *ui, args []string) (err error) {
			if len(args) == 0 || len(args) > 2 {
				return misuse("verify", "verify needs an experiment file, and perhaps a review folder")
			}
			plan, err := load(args[0], &plan.Overrides{})
			if err != nil {
				return err
			}
			s, err := engine.open(u, false)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.store.Close()) }()
			result, err := s.complete(ctx, u, plan)
			if err != nil {
				return err
			}
			defer result.Close()
			dir := s.place.review(plan.Name)
			if len(args) == 2 {
				dir = args[1]
			}
			verdict, err := result.Verify(ctx, dir)
			if err != nil {
				return err
			}
			fmt.Fprintf(u.out, "%s: %s\n", s.place.short(dir), verdict)
			if !verdict.Current() {
				return &exitError{code: exitDiffers}
			}
			return nil
		},
	}
}

// complete executes what is missing of plan, and tells only what went wrong. A
// failed cell is an error.
func (s *session) complete(ctx context.Context, u *ui, plan *plan.Plan) (*pipeline.Result, error) {
	display := progress.Quiet(u.err)
	result, err := s.run(ctx, plan, display.Show)
	display.Close()
	switch {
	case errors.Is(err, pipeline.ErrDrained):
		result.Close()
		return nil, stoppedBy(ctx)
	case err != nil:
		if result != nil {
			result.Close()
		}
		return nil, err
	case result.Summary.Failed > 0:
		result.Close()
		return nil, &exitError{exitFailed, fmt.Errorf("%s failed", cells(result.Summary.Failed))}
	}
	return result, nil
}
