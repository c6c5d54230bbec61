package main

import (
	"context"
	"fmt"
	"path/filepath"
)

func getVerb(f *flags) *verb {
	var out string
	f.text(&out, "o", "DIR", "the folder, made if needed")
	narrow, engine := f.narrow(), f.engine()
	return &verb{
		name: "get", args: "FILE CELL -o DIR [FLAGS]", short: "a cell's outputs as .npy, .csv, .png",
		takes: arity{2, 2, "an experiment file and a cell"}, drains: true,
		example: "get experiments/quickstart.yaml 'maps[method=rise,model=vgg]' -o out",
		about: `Writes the outputs of a cell to a folder, each named by its port: tensors as .npy,
stacked in the order of the items if all have one shape; ids, and what is one
number an item, as .csv; tables as .csv; figures, texts and models as they are.
Computes the cell if it must.
`,
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
			if err := s.place.realNamed(out); err != nil {
				return err
			}
			part := p.UpTo(fitting[0])
			result, err := s.complete(ctx, u, part)
			if err != nil {
				return err
			}
			defer result.Close()
			to, err := openOut(s.place, out)
			if err != nil {
				return err
			}
			defer to.Close()
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
