package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/runexp/runexp/pipeline/publish"
)

const diffHelp = `usage: runexp diff A B

Compares two review folders: parameters, scores with 95 % intervals of the paired
differences, changes of rank. Exit code 6 if a score of one isn't within the
tolerance of the other's, or they don't make the same claims.

  --md                 as Markdown, for a pull request

example:
  runexp diff artifacts/quickstart .runexp/out/quickstart/seed=8
`

func diffVerb() *verb {
	f := newFlags("diff")
	md := f.Bool("md", false, "")
	return &verb{
		name: "diff", short: "how two review folders differ", help: diffHelp, flags: f,
		run: func(_ context.Context, u *ui, args []string) error {
			if len(args) != 2 {
				return misuse("diff", "diff needs two review folders")
			}
			d, err := publish.Diff(args[0], args[1])
			if err != nil {
				return environment(err)
			}
			text := d.String()
			if *md {
				text = d.Markdown()
			}
			fmt.Fprintln(u.out, strings.TrimSuffix(text, "\n"))
			if !d.Within() {
				return &exitError{code: exitDiffers}
			}
			return nil
		},
	}
}
