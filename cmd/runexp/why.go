package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
)

const whyHelp = `usage: runexp why FILE CELL [FLAGS]

Explains one cell: whether it is cached, and if not, the first ingredient that
differs from the last time it was executed; where that is an input, why that
input is different, down to the root cause. Quote the cell, for the shell. Axes may
be left out of its name: of the cells that it fits, the first is explained.
` + narrowHelp + engineHelp + `
example:
  runexp why experiments/quickstart.yaml 'maps[method=rise,model=vgg]'
`

func whyVerb() *verb {
	f := newFlags("why")
	narrow, engine := narrowFlags(f), newEngineFlags(f)
	return &verb{
		name: "why", short: "why a cell runs, or doesn't", help: whyHelp, flags: f,
		run: func(ctx context.Context, u *ui, args []string) (err error) {
			plan, fitting, err := loadCells("why", args, narrow)
			if err != nil {
				return err
			}
			cell := fitting[0]
			if n := len(fitting); n > 1 {
				u.say("%q fits %s; of the first, %s:", args[1], cells(n), cell)
			}
			s, err := engine.open(u, true)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.store.Close()) }()
			outlook, err := s.outlook(ctx, u, plan)
			if err != nil {
				return err
			}
			var b strings.Builder
			writeWhy(&b, outlook.Why(cell), "")
			_, err = io.WriteString(u.out, b.String())
			return err
		},
	}
}

// loadCells takes an experiment file and a name that fits some of its cells.
func loadCells(verb string, args []string, narrow *plan.Overrides) (*plan.Plan, []*plan.Cell, error) {
	if len(args) != 2 {
		return nil, nil, misuse(verb, "%s needs an experiment file and a cell", verb)
	}
	plan, err := load(args[0], narrow)
	if err != nil {
		return nil, nil, err
	}
	fitting, err := plan.Fitting(args[1])
	if err != nil {
		return nil, nil, &usageError{verb: verb, err: err}
	}
	return plan, fitting, nil
}

// listedChanges is how many changes of one cell are told one by one.
const listedChanges = 8

func writeWhy(b *strings.Builder, w *pipeline.Why, indent string) {
	fmt.Fprintf(b, "%s%s: %s\n", indent, w.Cell, w.State)
	for i, c := range w.Changes {
		if i == listedChanges {
			fmt.Fprintf(b, "%s  and %d more\n", indent, len(w.Changes)-i)
			break
		}
		if c.Name == "program" && c.Was != "" {
			fmt.Fprintf(b, "%s  the compiler changed this program: %s, was %s", indent, c.Is, c.Was)
			if w.MadeBy != w.Now {
				fmt.Fprintf(b, " (with %s, then with %s)", w.Now, w.MadeBy)
			}
			b.WriteByte('\n')
			continue
		}
		fmt.Fprintf(b, "%s  %s: %s", indent, c.Name, c.Is)
		if c.Was != "" {
			fmt.Fprintf(b, ", was %s", c.Was)
		}
		b.WriteByte('\n')
	}
	if w.Cause != nil {
		writeWhy(b, w.Cause, indent+"  ")
	}
	if w.Others > 0 {
		fmt.Fprintf(b, "%s  and %d more of the cells it reads\n", indent, w.Others)
	}
}
