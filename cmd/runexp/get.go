package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

func getVerb(f flags) *verb {
	var out string
	f["-o"] = &out
	table, narrow, engine := f.printedTable(), f.narrow(), f.engine()
	return &verb{
		name: "get", takes: arity{2, 2, "an experiment file and a cell"}, drains: true,
		run: func(ctx context.Context, u *ui, args []string) error {
			if err := table.misused(out); err != nil {
				return err
			}
			p, fitting, err := loadCells(ctx, args, narrow)
			if err != nil {
				return err
			}
			if len(fitting) > 1 {
				return misuse("%q fits %d cells: name one, such as %q", args[1], len(fitting), fitting[0])
			}
			part := p.UpTo(fitting[0])
			cell := part.Cells[len(part.Cells)-1]
			port := 0
			if table.as != "" {
				if port, err = table.portOf(cell); err != nil {
					return err
				}
			}
			s, err := engine.openFor(ctx, u, part, false)
			if err != nil {
				return err
			}
			var to *os.Root
			if out != "" { // before anything is computed
				if to, err = openOut(s.place, out); err != nil {
					return err
				}
				defer to.Close()
			}
			result, err := s.complete(ctx, u, part)
			if err != nil {
				return err
			}
			defer result.Close()
			if to == nil {
				d, err := result.Data(ctx, cell, port)
				if err != nil {
					return err
				}
				return table.print(u.out, d, p.Labels)
			}
			for i := range cell.Stage.Outputs {
				port := &cell.Stage.Outputs[i]
				d, err := result.Data(ctx, cell, i)
				if err != nil {
					return err
				}
				files, err := exportPort(to, port, d)
				if err != nil {
					return fmt.Errorf("port %q: %w", port.Name, err)
				}
				for _, f := range files {
					fmt.Fprintln(u.out, filepath.Join(to.Name(), f))
				}
			}
			return nil
		},
	}
}
