package main

import (
	"context"

	"github.com/runexp/runexp/registry"
)

func schemaVerb(*flags) *verb {
	return &verb{
		name: "schema", short: "the JSON schema of the experiment language",
		example: "schema > experiments/schema.json",
		about: `Prints the JSON schema (draft 2020-12) of the experiment language. An editor that
knows JSON schema completes and checks experiments that begin with the line
  # yaml-language-server: $schema=schema.json
`,
		run: func(_ context.Context, u *ui, _ []string) error {
			_, err := u.out.Write(registry.Builtin().Schema())
			return err
		},
	}
}
