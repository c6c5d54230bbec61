package main

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
)

const stagesHelp = `usage: runexp stages [NAME]

Without a name, lists all stages; with the name of a family, its stages; with the
name of a stage, what it takes and gives, and its parameters with their defaults.

  --variants   a table of the places where papers and official code differ:
               item, what is taken by default, the data that pins it down,
               what differs

example:
  runexp stages attribute/rise
`

func stagesVerb() *verb {
	f := newFlags("stages")
	variants := f.Bool("variants", false, "")
	return &verb{
		name: "stages", short: "the reference: what stages there are, what they take", help: stagesHelp, flags: f,
		run: func(_ context.Context, u *ui, args []string) error {
			name := ""
			if len(args) > 0 {
				var err error
				if name, err = one("stages", "a name", args); err != nil {
					return err
				}
			}
			set := registry.Builtin()
			list := set.Family(name)
			s, ok := set.Lookup(name)
			if ok {
				list = append(list, s)
			}
			switch {
			case len(list) == 0:
				return &usageError{verb: "stages", err: fmt.Errorf("unknown stage %q", name), hint: plan.SuggestStage(name, set.Names())}
			case *variants:
				return registry.Variants(u.out, list)
			case ok:
				return registry.Describe(u.out, s)
			}
			return registry.List(u.out, list)
		},
	}
}
