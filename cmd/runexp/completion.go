package main

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

//go:embed completion.bash.tmpl
var completionText string

var completionTemplate = parsed("completion", completionText, nil)

// shells are the supported shells. zsh reads bash's functions.
var shells = []string{"bash", "zsh"}

func completionVerb(flags) *verb {
	return &verb{
		name: "completion", takes: arity{1, 1, "a shell: bash or zsh"},
		words: func() []string { return shells },
		run: func(_ context.Context, u *ui, args []string) error {
			shell := args[0]
			if !slices.Contains(shells, shell) {
				return usage(fmt.Errorf("unknown shell %q", shell), plan.Guess(shell, shells))
			}
			type page struct{ Name, Flags, Valued, Words string }
			data := struct {
				Zsh            bool
				Verbs, Classes string
				Pages          []page
			}{Zsh: shell == "zsh", Verbs: strings.Join(append(verbNames(), "--help", "--version"), " "),
				Classes: strings.Join(stages.DeviceClasses, " ")}
			for _, v := range verbs() {
				list := append(slices.Sorted(maps.Keys(v.flags)), "--help")
				p := page{Name: v.name, Flags: strings.Join(list, " ")}
				var valued []string
				for name, flag := range v.flags {
					if _, toggle := flag.(*bool); !toggle {
						valued = append(valued, name)
					}
				}
				slices.Sort(valued)
				p.Valued = strings.Join(valued, "|")
				if v.words != nil {
					p.Words = strings.Join(v.words(), " ")
				}
				data.Pages = append(data.Pages, p)
			}
			return completionTemplate().Execute(u.out, data)
		},
	}
}
