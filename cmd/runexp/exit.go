package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages/ort"
)

// The exit codes, which scripts may rely on.
const (
	exitDone        = 0
	exitFailed      = 1   // a cell failed, the other cells finished
	exitUsage       = 2   // wrong usage, or an invalid experiment
	exitEnvironment = 3   // no runtime, no such device, no such file
	exitOutdated    = 5   // plan --check: a run would execute something
	exitDiffers     = 6   // verify, diff, or a run that doesn't reproduce the published results
	exitBug         = 70  // a bug in runexp
	exitAgain       = 75  // a signal stopped a share; the same command continues it
	exitSignal      = 128 // plus the number of the signal
)

// An exitError ends the command with an exit code; err is nil if the reason has been reported already.
type exitError struct {
	code int
	err  error
	hint string // what to do next; by default, for wrong usage, how to get help
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// misuse returns the error for wrong usage.
func misuse(format string, args ...any) error { return usage(fmt.Errorf(format, args...), "") }

func usage(err error, hint string) error { return &exitError{exitUsage, err, hint} }

// environment marks an error as one of the machine, not of the command line.
func environment(err error) error { return &exitError{code: exitEnvironment, err: err} }

// differs returns the error for a comparison with differences, nil without differences.
func differs(yes bool) error {
	if yes {
		return &exitError{code: exitDiffers}
	}
	return nil
}

// A signalError is the cause of a context that a signal ended.
type signalError struct{ syscall.Signal }

func (e signalError) Error() string { return "stopped by a signal: " + e.Signal.String() }

// exitCode is the one place where errors become exit codes.
func exitCode(err error) int {
	var (
		signal signalError
		exit   *exitError
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, new(plan.Diags)):
		return exitUsage
	case errors.As(err, &signal):
		return exitSignal + int(signal.Signal)
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, new(*plan.BugError)):
		return exitBug
	case ort.NoRuntime(err):
		return exitEnvironment
	case errors.Is(err, context.Canceled):
		return exitSignal + int(syscall.SIGINT)
	}
	return exitFailed
}
