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
column. What check accepts, run doesn't refuse. Models whose files are there are
looked into: methods that don't fit them are complaints too, and classes, layers,
blocks and sizes that they don't have. A method that fits and is another one on
such a model, or an unsteady one, is a warning.

  --set A.with.P=V     also check this override; may be repeated
  --only AXIS=ID,…     keep only these ids of an axis; may be repeated
  --onnxruntime PATH   the library, or a folder that has it

example:
  runexp check experiments/*.yaml
`

func checkVerb() *verb {
	f := newFlags("check")
	var o pipeline.Overrides
	f.list(&o.Set, "set", "")
	f.list(&o.Only, "only", "")
	runtime := f.String("onnxruntime", "", "")
	return &verb{
		name: "check", short: "every complaint about experiments, at once", help: checkHelp, flags: f,
		run: func(ctx context.Context, u *ui, args []string) error {
			if len(args) == 0 {
				return misuse("check", "check needs an experiment file")
			}
			registry.UseRuntime(*runtime)
			var models registry.Models
			o.Fits = func(c *pipeline.Cell) error { return models.Unfit(ctx, used(c)) }
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
			if models.NoRuntime != nil {
				u.warn("no method was tried on its model: " + models.NoRuntime.Error())
			}
			for _, r := range models.Remarks {
				u.warn(r)
			}
			if len(all) > 0 {
				return all
			}
			return nil
		},
	}
}

// used returns what a cell is for.
func used(c *pipeline.Cell) registry.Use {
	return registry.Use{
		Name: c.String(), Stage: c.Stage, Params: c.Params,
		Wired: func(port string) (wires []registry.Wire) {
			for k, in := range c.Inputs {
				for _, e := range in.Edges {
					if c.Stage.Inputs[k].Name == port && e.Port >= 0 {
						wires = append(wires, registry.Wire{From: used(e.From), Port: e.From.Stage.Outputs[e.Port].Name})
					}
				}
			}
			return wires
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
