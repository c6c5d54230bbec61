package main

import (
	"context"

	"github.com/runexp/runexp/registry"
)

const schemaHelp = `usage: runexp schema

Prints the JSON schema (draft 2020-12) of the experiment language. An editor that
knows JSON schema completes and checks experiments that begin with the line
  # yaml-language-server: $schema=schema.json

example:
  runexp schema > experiments/schema.json
`

func schemaVerb() *verb {
	return &verb{
		name: "schema", short: "the JSON schema of the experiment language", help: schemaHelp, flags: newFlags("schema"),
		run: func(_ context.Context, u *ui, args []string) error {
			if err := none("schema", args); err != nil {
				return err
			}
			_, err := u.out.Write(registry.Builtin().Schema())
			return err
		},
	}
}
