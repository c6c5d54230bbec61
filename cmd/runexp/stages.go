package main

import (
	"context"
	"fmt"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
)

func stagesVerb(f flags) *verb {
	var variants bool
	f["--variants"] = &variants
	return &verb{
		name: "stages", takes: arity{0, 1, "a name"},
		words: func() []string { return registry.Builtin().Names() },
		run: func(_ context.Context, u *ui, args []string) error {
			name := append(args, "")[0]
			set := registry.Builtin()
			list := set.Family(name)
			s, ok := set.Lookup(name)
			if ok {
				list = append(list, s)
			}
			switch {
			case len(list) == 0:
				return usage(fmt.Errorf("unknown stage %q", name), plan.SuggestStage(name, set))
			case variants:
				return registry.Variants(u.out, list)
			case ok:
				return registry.Describe(u.out, s)
			}
			return registry.List(u.out, list)
		},
	}
}
