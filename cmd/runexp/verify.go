package main

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/results"
)

func verifyVerb(f flags) *verb {
	engine, o := f.engine(), &plan.Overrides{}
	f["--allow-python"] = &o.Python
	return &verb{
		name: "verify", takes: arity{1, 2, "an experiment file, and perhaps a review folder"}, drains: true,
		run: func(ctx context.Context, u *ui, args []string) error {
			p, s, err := engine.loadAndOpen(ctx, u, args[0], o, false)
			if err != nil {
				return err
			}
			result, err := s.complete(ctx, u, p)
			if err != nil {
				return err
			}
			defer result.Close()
			dir := append(args, s.place.review(p.Name))[1]
			verdict, err := results.Verify(ctx, result, dir)
			if err != nil {
				return err
			}
			fmt.Fprintf(u.out, "%s: %s\n", s.place.short(dir), verdict)
			return differs(!verdict.Current())
		},
	}
}
