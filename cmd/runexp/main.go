// Command runexp takes an experiment file and gives a reviewed answer.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/runexp/runexp/registry"
)

func main() {
	os.Exit(newCommand().start(os.Args[1:]))
}

// newCommand returns the command as a process of its own has it.
func newCommand() *ui {
	u := newUI(os.Stdout, os.Stderr)
	u.working = collectLater()
	registry.CatchFaults(faultText, exitBug)
	registry.UseWorkers(os.Args[0], workerVerb)
	return u
}

// verbs lists what the command can do, in the order of the help text.
func verbs() []*verb {
	return []*verb{
		newVerb(), inspectVerb(), runVerb(), planVerb(), whyVerb(), checkVerb(), graphVerb(), stagesVerb(), schemaVerb(),
		getVerb(), diffVerb(), verifyVerb(), cacheVerb(), doctorVerb(), versionVerb(), helpVerb(),
	}
}

// A verb is one of the things that the command does.
type verb struct {
	name  string
	short string // a line in the list of verbs
	help  string // a screen, ending with an example
	flags *flags
	run   func(ctx context.Context, u *ui, args []string) error

	drains bool // on a first signal it finishes what runs; others stop
}

const usage = `runexp: an experiment file in, a reviewed answer out

usage: runexp VERB [ARGUMENTS] [FLAGS]

`

const usageEnd = `
Flags may stand before or after arguments. Results go to stdout, all else to
stderr. "runexp help VERB" tells more.

example:
  runexp run experiments/quickstart.yaml
`

func writeUsage(w io.Writer) {
	io.WriteString(w, usage)
	for _, v := range verbs() {
		fmt.Fprintf(w, "  %-9s %s\n", v.name, v.short)
	}
	io.WriteString(w, usageEnd)
}

// start runs one command and returns its exit code.
func (u *ui) start(args []string) (code int) {
	defer func() {
		if r := recover(); r != nil {
			u.bug(r, debug.Stack())
			code = exitBug
		}
	}()
	if len(args) == 0 {
		writeUsage(u.err)
		return exitUsage
	}
	if isHelp(args[0]) {
		writeUsage(u.out)
		return u.end(nil)
	}
	if args[0] == workerVerb {
		registry.ServeWorker(os.Stdin, os.Stdout)
		return exitDone
	}
	v := findVerb(args[0])
	if v == nil {
		return u.end(unknownVerb(args[0]))
	}
	rest, err := v.flags.parse(args[1:])
	if err == errHelp {
		io.WriteString(u.out, v.help)
		return u.end(nil)
	}
	if err != nil {
		return u.end(err)
	}
	ctx, stop := withSignals(context.Background(), v.drains)
	defer stop()
	err = v.run(ctx, u, rest)
	registry.Unwatch()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return u.end(err)
}

func findVerb(name string) *verb {
	if name == "--version" {
		name = "version"
	}
	for _, v := range verbs() {
		if v.name == name {
			return v
		}
	}
	return nil
}

func unknownVerb(name string) error {
	known := []string{"--help", "--version"}
	for _, v := range verbs() {
		known = append(known, v.name)
	}
	return &usageError{err: fmt.Errorf("unknown verb %q", name), hint: nearest(name, known)}
}

func isHelp(arg string) bool { return arg == "--help" || arg == "-help" || arg == "-h" }
