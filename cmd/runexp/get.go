package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
)

const getHelp = `usage: runexp get FILE CELL -o DIR [FLAGS]

Writes the outputs of a cell to a folder, each named by its port: tensors as .npy,
stacked in the order of the items if all have one shape; ids, and what is one
number an item, as .csv; tables as .csv; figures, texts and models as they are.
Computes the cell if it must.

  -o DIR               the folder, made if needed
` + narrowHelp + engineHelp + `
example:
  runexp get experiments/quickstart.yaml 'maps[method=rise,model=vgg]' -o out
`

func getVerb() *verb {
	f := newFlags("get")
	narrow, engine := narrowFlags(f), newEngineFlags(f)
	out := f.String("o", "", "")
	return &verb{
		name: "get", short: "a cell's outputs as .npy, .csv, .png", help: getHelp, flags: f, drains: true,
		run: func(ctx context.Context, u *ui, args []string) (err error) {
			if *out == "" {
				return misuse("get", "get needs a folder: -o DIR")
			}
			plan, fitting, err := loadCells("get", args, narrow)
			if err != nil {
				return err
			}
			cell := fitting[0]
			if len(fitting) > 1 {
				return misuse("get", "%q fits %s: name one, such as %q", args[1], cells(len(fitting)), cell)
			}
			s, err := engine.open(u, false)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.store.Close()) }()
			if err := s.place.realNamed(*out); err != nil {
				return err
			}
			part := plan.UpTo(cell)
			result, err := s.complete(ctx, u, part)
			if err != nil {
				return err
			}
			defer result.Close()
			to, err := openOut(s.place, *out)
			if err != nil {
				return err
			}
			defer to.Close()
			return export(ctx, u, result, part.Cells[len(part.Cells)-1], to)
		},
	}
}

func export(ctx context.Context, u *ui, r *pipeline.Result, c *plan.Cell, to *os.Root) error {
	for i := range c.Stage.Outputs {
		port := &c.Stage.Outputs[i]
		d, err := r.Data(ctx, c, i)
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
}
