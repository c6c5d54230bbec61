package main

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
)

func stagesVerb(f *flags) *verb {
	var variants bool
	f.toggle(&variants, "variants", "a table of the places where papers and official code differ:\n"+
		"item, what is taken by default, the data that pins it down,\nwhat differs")
	return &verb{
		name: "stages", args: "[NAME]", short: "the reference: what stages there are, what they take",
		takes: arity{0, 1, "a name"}, example: "stages attribute/rise",
		about: `Without a name, lists all stages; with the name of a family, its stages; with the
name of a stage, what it takes and gives, and its parameters with their defaults.
`,
		run: func(_ context.Context, u *ui, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			set := registry.Builtin()
			list := set.Family(name)
			s, ok := set.Lookup(name)
			if ok {
				list = append(list, s)
			}
			switch {
			case len(list) == 0:
				return usage(fmt.Errorf("unknown stage %q", name), plan.SuggestStage(name, set.Names()))
			case variants:
				return registry.Variants(u.out, list)
			case ok:
				return registry.Describe(u.out, s)
			}
			return registry.List(u.out, list)
		},
	}
}
