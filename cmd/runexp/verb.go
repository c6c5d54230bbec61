package main

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"text/template"

	"github.com/runexp/runexp/pipeline/plan"
)

// A verb is a subcommand: a declaration in its own file, listed by [verbs], and a page of its name in
// help.tmpl.
type verb struct {
	name   string
	takes  arity
	flags  flags
	words  func() []string // possible arguments, for completion; nil: files
	run    func(ctx context.Context, u *ui, args []string) error
	drains bool // after a first signal it finishes running work; other verbs stop
}

// An arity is how many arguments a verb takes, and a description of them.
type arity struct {
	least, most int
	what        string
}

// verbs lists the verbs in the order of the help text.
func verbs() (list []*verb) {
	for _, declare := range []func(flags) *verb{
		newVerb, recommendVerb, inspectVerb, compileVerb, runVerb, submitVerb, statusVerb, planVerb, whyVerb,
		checkVerb, fetchVerb, pinVerb, graphVerb, stagesVerb, schemaVerb, getVerb, diffVerb, reviewVerb,
		appendixVerb, verifyVerb, cacheVerb, doctorVerb, completionVerb, versionVerb, helpVerb,
	} {
		f := flags{}
		v := declare(f)
		v.flags = f
		list = append(list, v)
	}
	return list
}

//go:embed help.tmpl
var helpText string

// helpPages has a page for each verb; "runexp" is the overview.
var helpPages = parsed("help", helpText, nil)

// parsed returns a function that parses a template at its first call: most commands need none.
func parsed(name, text string, funcs template.FuncMap) func() *template.Template {
	return sync.OnceValue(func() *template.Template {
		return template.Must(template.New(name).Funcs(funcs).Parse(text))
	})
}

// accepts returns an error unless the verb takes that many arguments.
func (v *verb) accepts(args []string) error {
	switch n := len(args); {
	case n >= v.takes.least && n <= v.takes.most:
		return nil
	case v.takes.most == 0:
		return misuse("%s takes no argument: %q", v.name, args[0])
	case n > 1 && v.takes.most == 1:
		return misuse("%s takes one argument, %s, not %d", v.name, v.takes.what, n)
	}
	return misuse("%s needs %s", v.name, v.takes.what)
}

// anyNumber is the most arguments of a verb without a bound.
const anyNumber = math.MaxInt

func helpVerb(flags) *verb {
	return &verb{
		name: "help", takes: arity{0, 1, "a verb or a topic"}, words: helpWords,
		run: func(_ context.Context, u *ui, args []string) error {
			if len(args) == 0 {
				return helpPages().ExecuteTemplate(u.out, "runexp", nil)
			}
			if write := topics[args[0]]; write != nil {
				return write(u.out)
			}
			v, err := findVerb(args[0], slices.Collect(maps.Keys(topics))...)
			if err != nil {
				return err
			}
			return helpPages().ExecuteTemplate(u.out, v.name, nil)
		},
	}
}

func verbNames() (names []string) {
	for _, v := range verbs() {
		names = append(names, v.name)
	}
	return names
}

// findVerb returns a verb by its name. For an unknown one it also suggests the words in others.
func findVerb(name string, others ...string) (*verb, error) {
	known := append([]string{"--help", "--version"}, others...)
	for _, v := range verbs() {
		if v.name == strings.TrimPrefix(name, "--") && (v.name == name || v.name == "version") {
			return v, nil
		}
		known = append(known, v.name)
	}
	hint := cmp.Or(plan.Guess(name, known), `see "runexp help"`)
	return nil, usage(fmt.Errorf("unknown verb %q", name), hint)
}

func isHelp(arg string) bool { return arg == "--help" || arg == "-help" || arg == "-h" }
