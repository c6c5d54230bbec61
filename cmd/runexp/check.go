package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
	"github.com/runexp/runexp/registry"
	"github.com/runexp/runexp/stages/ort"
)

func checkVerb(f flags) *verb {
	var o plan.Overrides
	var asJSON bool
	var runtime string
	f["--set"], f["--only"], f["--limit"], f["--json"] = &o.Set, &o.Only, &o.Limit, &asJSON
	f["--precision"] = &o.Precision
	f["--onnxruntime"], f["--allow-python"] = &runtime, &o.Python
	return &verb{
		name: "check", takes: arity{1, anyNumber, "an experiment file"},
		run: func(ctx context.Context, u *ui, args []string) error {
			ort.Use(runtime)
			report := u.findings(asJSON)
			var models registry.Models
			o.Fits = func(c *plan.Cell) error {
				if err := models.Unfit(ctx, used(c)); err != nil {
					return err
				}
				return c.Unreadable()
			}
			var errs plan.Diags // for people errors come last, close to the prompt
			for _, file := range args {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				p, err := plan.Load(file, registry.Builtin(), withRemotes(ctx, file, o))
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				var diags plan.Diags
				if err != nil && !errors.As(err, &diags) {
					return environment(err)
				}
				if p != nil {
					diags = append(diags, p.Missing()...)
					diags.Sort()
				}
				report("error", diags...)
				if len(diags) > 0 {
					errs = append(errs, diags...)
					continue
				}
				report("warning", p.Warnings...)
				report("warning", p.TooFew()...)
				report("warning", p.Remarks()...)
				report("warning", unseen(p)...)
				report("warning", unpinned(p)...)
				implied := func(s *plan.Step) bool { return s.Implied }
				n := len(slices.DeleteFunc(slices.Clone(p.Steps), implied))
				if asJSON {
					u.json().Encode(finding{"checked", plan.Diag{File: file}, len(p.Cells), n})
				} else {
					fmt.Fprintf(u.out, "%s: %s in %d stages\n", p.File, progress.Cells(len(p.Cells)), n)
					for _, s := range p.Powers() {
						if !s.Nothing && !s.Enough { // the rest is a warning, or no news
							fmt.Fprintln(u.out, s)
						}
					}
				}
			}
			if models.NoRuntime != nil {
				untried := "no method was tried on its model: " + models.NoRuntime.Error()
				report("warning", plan.Diag{Msg: untried})
			}
			for _, r := range models.Remarks {
				report("warning", plan.Diag{Msg: r})
			}
			switch {
			case len(errs) == 0 || u.out.failure() != nil:
				return nil
			case asJSON:
				return &exitError{code: exitUsage}
			}
			return errs
		},
	}
}

// A finding is a line of JSON. An event leaves out the fields that don't apply to it.
type finding struct {
	Event string `json:"event"` // error, warning or checked
	plan.Diag
	Cells  int `json:"cells,omitempty"`
	Stages int `json:"stages,omitempty"`
}

// findings returns a function that writes errors and warnings as lines of JSON, or warnings for people.
func (u *ui) findings(asJSON bool) func(event string, list ...plan.Diag) {
	return func(event string, list ...plan.Diag) {
		for _, d := range list {
			switch {
			case asJSON:
				u.json().Encode(finding{Event: event, Diag: d})
			case event == "warning" && d.File == "":
				u.warn(d.Msg)
			case event == "warning":
				u.warn(d.String())
			}
		}
	}
}

// used describes how a cell uses its stage.
func used(c *plan.Cell) registry.Use {
	return registry.Use{
		Name: c.String(), Stage: c.Stage, Params: c.Params,
		Wired: func(port string) (wires []registry.Wire) {
			for k, in := range c.Inputs {
				for _, e := range in.Edges {
					if c.Stage.Inputs[k].Name == port && e.Port >= 0 {
						port := e.From.Stage.Outputs[e.Port].Name
						wires = append(wires, registry.Wire{From: used(e.From), Port: port})
					}
				}
			}
			return wires
		},
	}
}
