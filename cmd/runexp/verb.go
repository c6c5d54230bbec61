package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"strings"
)

// A verb is one of the things that the command does: a declaration in a file of its own, which [verbs] lists.
type verb struct {
	name    string
	args    string // what follows the name in its usage
	short   string // its line in the list of verbs
	about   string // what it does
	example string

	takes  arity
	flags  *flags
	run    func(ctx context.Context, u *ui, args []string) error
	drains bool // on a first signal it finishes what runs; others stop
}

// An arity is how many arguments a verb takes, from least to most, and what they are.
type arity struct {
	least, most int
	what        string
}

// verbs lists what the command can do, in the order of the help text.
func verbs() (list []*verb) {
	for _, declare := range []func(*flags) *verb{
		newVerb, inspectVerb, runVerb, planVerb, whyVerb, checkVerb, graphVerb, stagesVerb, schemaVerb,
		getVerb, diffVerb, verifyVerb, cacheVerb, doctorVerb, versionVerb, helpVerb,
	} {
		f := &flags{}
		v := declare(f)
		v.flags = f
		list = append(list, v)
	}
	return list
}

// help returns a screen that ends with an example.
func (v *verb) help() string {
	text := strings.TrimSpace("usage: runexp "+v.name+" "+v.args) + "\n\n" + v.about
	if flags := strings.TrimPrefix(v.flags.help.String(), "\n"); flags != "" {
		text += "\n" + flags
	}
	return text + "\nexample:\n  runexp " + v.example + "\n"
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

func helpVerb(*flags) *verb {
	return &verb{
		name: "help", args: "[VERB]", short: "tell more about a verb", example: "help run",
		about: "Tells what the command, or one of its verbs, does.\n", takes: arity{0, 1, "a verb"},
		run: func(_ context.Context, u *ui, args []string) error {
			if len(args) == 0 {
				writeUsage(u.out)
				return nil
			}
			v, err := findVerb(args[0])
			if err == nil {
				_, err = io.WriteString(u.out, v.help())
			}
			return err
		},
	}
}

func writeUsage(w io.Writer) {
	io.WriteString(w, "runexp: an experiment file in, a reviewed answer out\n\n")
	io.WriteString(w, "usage: runexp VERB [ARGUMENTS] [FLAGS]\n\n")
	for _, v := range verbs() {
		fmt.Fprintf(w, "  %-9s %s\n", v.name, v.short)
	}
	io.WriteString(w, `
Flags may stand before or after arguments. Results go to stdout, all else to
stderr. "runexp help VERB" tells more.

example:
  runexp run experiments/quickstart.yaml
`)
}

func findVerb(name string) (*verb, error) {
	known := []string{"--help", "--version"}
	for _, v := range verbs() {
		if v.name == strings.TrimPrefix(name, "--") && (v.name == name || v.name == "version") {
			return v, nil
		}
		known = append(known, v.name)
	}
	hint := cmp.Or(nearest(name, known), `"runexp help" tells more`)
	return nil, usage(fmt.Errorf("unknown verb %q", name), hint)
}

func isHelp(arg string) bool { return arg == "--help" || arg == "-help" || arg == "-h" }
