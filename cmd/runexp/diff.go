package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/runexp/runexp/pipeline/publish"
)

func diffVerb(f *flags) *verb {
	var md bool
	f.toggle(&md, "md", "as Markdown, for a pull request")
	return &verb{
		name: "diff", args: "A B", short: "how two review folders differ",
		takes:   arity{2, 2, "two review folders"},
		example: "diff artifacts/quickstart .runexp/out/quickstart/seed=8",
		about: `Compares two review folders: parameters, scores with 95 % intervals of the paired
differences, changes of rank. Exit code 6 if a score of one isn't within the
tolerance of the other's, or they don't make the same claims.
`,
		run: func(_ context.Context, u *ui, args []string) error {
			d, err := publish.Diff(args[0], args[1])
			if err != nil {
				return environment(err)
			}
			text := d.String()
			if md {
				text = d.Markdown()
			}
			fmt.Fprintln(u.out, strings.TrimSuffix(text, "\n"))
			return differs(!d.Within())
		},
	}
}
