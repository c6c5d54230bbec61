package main

import (
	"context"
	"fmt"
)

func fetchVerb(f flags) *verb {
	o := f.narrow()
	return &verb{
		name: "fetch", takes: arity{1, anyNumber, "an experiment file"},
		run: func(ctx context.Context, u *ui, args []string) error {
			for _, file := range args {
				p, err := load(ctx, file, o)
				if err != nil {
					return err
				}
				if err := u.fetch(ctx, p, false); err != nil {
					return err
				}
				for _, r := range p.Remotes() {
					fmt.Fprintf(u.out, "%s\t%s\n", r.File, r.Address)
				}
			}
			return nil
		},
	}
}
