package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
)

func whyVerb(f flags) *verb {
	narrow, engine := f.narrow(), f.engine()
	return &verb{
		name: "why", takes: arity{2, 2, "an experiment file and a cell"},
		run: func(ctx context.Context, u *ui, args []string) error {
			p, fitting, err := loadCells(ctx, args, narrow)
			if err != nil {
				return err
			}
			if n := len(fitting); n > 1 {
				u.say("%q fits %s; of the first, %s:", args[1], progress.Cells(n), fitting[0])
			}
			s, err := engine.open(u, true)
			if err != nil {
				return err
			}
			outlook, err := s.outlook(ctx, u, p)
			if err != nil {
				return err
			}
			writeWhy(u.out, outlook.Why(fitting[0]), "")
			return nil
		},
	}
}

// loadCells loads an experiment and finds the cells that a name fits.
func loadCells(ctx context.Context, args []string, o *plan.Overrides) (*plan.Plan, []*plan.Cell, error) {
	p, err := load(ctx, args[0], o)
	if err != nil {
		return nil, nil, err
	}
	fitting, err := p.Fitting(args[1])
	if err != nil {
		return nil, nil, usage(err, "")
	}
	return p, fitting, nil
}

// listedChanges is how many changes of one cell are listed.
const listedChanges = 8

func writeWhy(w io.Writer, y *pipeline.Why, indent string) {
	fmt.Fprintf(w, "%s%s: %s\n", indent, y.Cell, y.State)
	for i, c := range y.Changes {
		if i == listedChanges {
			fmt.Fprintf(w, "%s  and %d more\n", indent, len(y.Changes)-i)
			break
		}
		name, builds := c.Name, ""
		if c.Name == "program" && c.Was != "" {
			name = "the compiler changed this program"
			if y.MadeBy != y.Now {
				builds = fmt.Sprintf(" (with %s, then with %s)", y.Now, y.MadeBy)
			}
		}
		was := strings.TrimSuffix(", was "+c.Was, ", was ")
		fmt.Fprintf(w, "%s  %s: %s%s%s\n", indent, name, c.Is, was, builds)
	}
	if y.Cause != nil {
		writeWhy(w, y.Cause, indent+"  ")
	}
	if y.Others > 0 {
		fmt.Fprintf(w, "%s  and %d more of the cells it reads\n", indent, y.Others)
	}
}
