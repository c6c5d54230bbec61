package main

import (
	"context"

	"github.com/runexp/runexp/registry"
)

func schemaVerb(flags) *verb {
	return &verb{
		name: "schema",
		run: func(_ context.Context, u *ui, _ []string) error {
			_, err := u.out.Write(registry.Builtin().Schema())
			return err
		},
	}
}
