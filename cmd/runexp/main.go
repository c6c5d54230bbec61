// Command runexp takes an experiment file and gives a reviewed answer.
//
// main.go finds the verb of a command line (verb.go), parses its flags (flags.go) under a context that
// signals end (signals.go), and calls the verb. A verb is a file of its own name, such as run.go; its help
// is in help.tmpl. get.go uses export.go for files and get_table.go for tables; new.go uses
// starter_methods.go, starter_budget.go, starter_leads.go and starter_verdict.go, for texts
// starter_texts.go, or quickstart.go for the sample experiment. recommend.go plays a tournament: of
// recommend_candidates.go, by the schedule of recommend_rounds.go, on the engine by recommend_play.go, up to
// the test of recommend_confirm.go, and reported by recommend_report.go.
//
// A verb that needs an experiment and results opens a session (session.go): a place (place.go), a store, an
// engine that knows this build (build.go), and a plan, with the files at addresses and the functions in
// Python (remote.go) that the user's configuration allows (config.go). share.go
// runs a share, wave.go closes a wave of shares, sharelog.go reads their logs, and slurm.go submits them;
// runlog.go keeps the events of a run, and failures.go repeats at its end what failed. ui.go prints the
// results, topics.go help on other topics, and exit.go turns the ending into an exit code. garbage.go
// postpones garbage collection.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/runexp/runexp/stages/ort"
)

// workerVerb is the first argument of the child processes in which the command runs code that may crash or
// hang: see [ort.UseWorkers]. Users don't need it, so it isn't in the help.
const workerVerb = "worker"

// faultText is printed after the signal's name if the command crashes inside ONNX Runtime.
const faultText = " in ONNX Runtime: a model made it crash, or memory ran out; " +
	"a run goes on with the same command, and a model's crash then costs its own cells\n"

func main() {
	os.Exit(newCommand().start(os.Args[1:]))
}

// newCommand returns the command with the process's own streams.
func newCommand() *ui {
	u := newUI(os.Stdout, os.Stderr)
	u.err = ort.Unmuted(u.err)
	u.working = collectLater()
	ort.CatchFaults(faultText, exitBug)
	ort.UseWorkers(os.Args[0], workerVerb)
	return u
}

// start runs one command and returns its exit code.
func (u *ui) start(args []string) (code int) {
	defer func() {
		if r := recover(); r != nil {
			u.bug(r, debug.Stack())
			code = exitBug
		}
	}()
	switch {
	case len(args) == 0:
		_ = helpPages().ExecuteTemplate(u.err, "runexp", nil)
		return exitUsage
	case isHelp(args[0]):
		return u.end(helpPages().ExecuteTemplate(u.out, "runexp", nil))
	case args[0] == workerVerb:
		ort.Serve(os.Stdin, os.Stdout)
		return exitDone
	}
	v, err := findVerb(args[0])
	if err != nil {
		return u.end(err)
	}
	err = u.call(v, args[1:])
	if exit := (*exitError)(nil); errors.As(err, &exit) && exit.code == exitUsage {
		exit.hint = cmp.Or(exit.hint, fmt.Sprintf("see %q", "runexp help "+v.name))
	}
	return u.end(err)
}

// call runs a verb with its arguments and flags, and then closes everything it opened.
func (u *ui) call(v *verb, args []string) error {
	rest, err := v.flags.parse(args)
	if err == errHelp {
		return helpPages().ExecuteTemplate(u.out, v.name, nil)
	}
	if err == nil {
		err = v.accepts(rest)
	}
	if err != nil {
		return err
	}
	ctx, stop := withSignals(context.Background(), v.drains)
	defer stop()
	err = v.run(ctx, u, rest)
	for _, closeIt := range u.closing {
		err = errors.Join(err, closeIt())
	}
	ort.Unwatch()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
