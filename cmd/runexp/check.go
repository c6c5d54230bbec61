package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
)

const checkHelp = `usage: runexp check FILE…

Finds everything in experiments that run would complain about, without running
anything: all complaints at once, each with its file, line and column. What check
accepts, run doesn't refuse. Files and folders that don't exist are errors.
Models are looked into: methods that don't fit them are complaints too, and
classes, layers, blocks and sizes that they don't have. A method that fits and is
another one on such a model, or an unsteady one, is a warning.

  --set A.with.P=V     also check this override; may be repeated
  --only AXIS=ID,…     keep only these ids of an axis; may be repeated
  --json               errors and warnings as lines of JSON on stdout
  --onnxruntime PATH   the library, or a folder that has it

example:
  runexp check experiments/*.yaml
`

func checkVerb() *verb {
	f := newFlags("check")
	var o plan.Overrides
	f.list(&o.Set, "set", "")
	f.list(&o.Only, "only", "")
	runtime := f.String("onnxruntime", "", "")
	asJSON := f.Bool("json", false, "")
	return &verb{
		name: "check", short: "every complaint about experiments, at once", help: checkHelp, flags: f,
		run: func(ctx context.Context, u *ui, args []string) error {
			if len(args) == 0 {
				return misuse("check", "check needs an experiment file")
			}
			registry.UseRuntime(*runtime)
			var show reporter = &plainReport{ui: u}
			if *asJSON {
				e := json.NewEncoder(u.out)
				e.SetEscapeHTML(false)
				show = &jsonReport{w: e}
			}
			var models registry.Models
			o.Fits = func(c *plan.Cell) error {
				if err := models.Unfit(ctx, used(c)); err != nil {
					return err
				}
				return c.Unreadable()
			}
			good := true
			for _, file := range args {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				p, err := plan.Load(file, registry.Builtin(), o)
				var diags plan.Diags
				if err != nil && !errors.As(err, &diags) {
					return environment(err)
				}
				if p != nil {
					diags = append(diags, p.Missing()...)
					diags.Sort()
				}
				if len(diags) > 0 {
					good = false
					show.errors(diags)
					continue
				}
				show.warnings(p.Warnings)
				show.good(p)
			}
			if models.NoRuntime != nil {
				show.remark("no method was tried on its model: " + models.NoRuntime.Error())
			}
			for _, r := range models.Remarks {
				show.remark(r)
			}
			if err := show.end(); err != nil {
				return environment(err)
			}
			if !good {
				return &exitError{code: exitUsage}
			}
			return nil
		},
	}
}

// used returns what a cell is for.
func used(c *plan.Cell) registry.Use {
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
func declared(p *plan.Plan) int {
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
