package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/runexp/runexp/pipeline/publish"
)

func diffVerb(f flags) *verb {
	var md bool
	f["--md"] = &md
	return &verb{
		name: "diff", takes: arity{2, 2, "two review folders"},
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
