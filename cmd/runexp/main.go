// Command runexp takes an experiment file and gives a reviewed answer.
//
// The way of the data. A command line goes from main.go, which finds its verb (verb.go), its flags (flags.go)
// and a context that signals end (signals.go), to the file of that verb. A verb that needs an experiment and
// results opens a session (session.go): a place (place.go), a store, an engine that knows this build
// (build.go), and a plan. A run may be of a share (share.go); it keeps its events (runlog.go), get writes
// results to files (export.go). What is to report goes through ui.go, and ends as one of the exit codes of
// exit.go. garbage.go has the collector wait.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/runexp/runexp/registry"
)

// workerVerb is what the command calls itself with for what might end it: see [registry.UseWorkers]. No user
// needs it, so no help names it.
const workerVerb = "worker"

// faultText is what a fault in a library ends the command with, behind the signal's name.
const faultText = " in ONNX Runtime: a model made it crash, or memory ran out; " +
	"a run goes on with the same command, and a model's crash then costs its own cells\n"

func main() {
	os.Exit(newCommand().start(os.Args[1:]))
}

// newCommand returns the command as a process of its own has it.
func newCommand() *ui {
	u := newUI(os.Stdout, os.Stderr)
	u.err = registry.Unmuted(u.err)
	u.working = collectLater()
	registry.CatchFaults(faultText, exitBug)
	registry.UseWorkers(os.Args[0], workerVerb)
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
		registry.ServeWorker(os.Stdin, os.Stdout)
		return exitDone
	}
	v, err := findVerb(args[0])
	if err != nil {
		return u.end(err)
	}
	err = u.call(v, args[1:])
	if exit := (*exitError)(nil); errors.As(err, &exit) && exit.code == exitUsage {
		exit.hint = cmp.Or(exit.hint, fmt.Sprintf("%q tells more", "runexp help "+v.name))
	}
	return u.end(err)
}

// call runs a verb with its arguments and flags, and closes what it opened.
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
	registry.Unwatch()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
