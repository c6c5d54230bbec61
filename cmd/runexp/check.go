package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/registry"
)

const checkHelp = `usage: runexp check FILE…

Finds everything in experiments that run would complain about, without data and
without running anything: all complaints at once, each with its file, line and
column. What check accepts, run doesn't refuse.

  --set A.with.P=V     also check this override; may be repeated
  --only AXIS=ID,…     keep only these ids of an axis; may be repeated

example:
  runexp check experiments/*.yaml
`

func checkVerb() *verb {
	f := newFlags("check")
	var o pipeline.Overrides
	f.list(&o.Set, "set", "")
	f.list(&o.Only, "only", "")
	return &verb{
		name: "check", short: "every complaint about experiments, at once", help: checkHelp, flags: f,
		run: func(_ context.Context, u *ui, args []string) error {
			if len(args) == 0 {
				return misuse("check", "check needs an experiment file")
			}
			var all pipeline.Diags
			for _, file := range args {
				plan, err := pipeline.Load(file, registry.Builtin(), o)
				var diags pipeline.Diags
				switch {
				case errors.As(err, &diags):
					all = append(all, diags...)
				case err != nil:
					return environment(err)
				default:
					u.warnings(plan.Warnings)
					fmt.Fprintf(u.out, "%s: %s in %d stages\n", file, cells(len(plan.Cells)), declared(plan))
				}
			}
			if len(all) > 0 {
				return all
			}
			return nil
		},
	}
}

// declared counts the stages that stand in the experiment.
func declared(p *pipeline.Plan) int {
	n := 0
	for _, s := range p.Steps {
		if !s.Implied {
			n++
		}
	}
	return n
}

func cells(n int) string {
	if n == 1 {
		return "1 cell"
	}
	return fmt.Sprintf("%d cells", n)
}
