package main

import (
	"context"
	"fmt"
	"path/filepath"
)

func getVerb(f flags) *verb {
	var out string
	f["-o"] = &out
	narrow, engine := f.narrow(), f.engine()
	return &verb{
		name: "get", takes: arity{2, 2, "an experiment file and a cell"}, drains: true,
		run: func(ctx context.Context, u *ui, args []string) error {
			if out == "" {
				return misuse("get needs a folder: -o DIR")
			}
			p, fitting, err := loadCells(args, narrow)
			if err != nil {
				return err
			}
			if len(fitting) > 1 {
				return misuse("%q fits %d cells: name one, such as %q", args[1], len(fitting), fitting[0])
			}
			s, err := engine.open(u, false)
			if err != nil {
				return err
			}
			to, err := openOut(s.place, out) // before anything is computed
			if err != nil {
				return err
			}
			defer to.Close()
			part := p.UpTo(fitting[0])
			result, err := s.complete(ctx, u, part)
			if err != nil {
				return err
			}
			defer result.Close()
			cell := part.Cells[len(part.Cells)-1]
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
