package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
)

// The exit codes, which scripts may rely on.
const (
	exitDone        = 0
	exitFailed      = 1   // a cell failed, and the rest finished
	exitUsage       = 2   // usage, or an invalid experiment
	exitEnvironment = 3   // no runtime, no such device, no such file
	exitOutdated    = 5   // plan --check: something would run
	exitDiffers     = 6   // verify, diff, or a run that doesn't reproduce what is published
	exitBug         = 70  // a bug in runexp
	exitAgain       = 75  // a share was stopped by a signal, and goes on with the same command
	exitSignal      = 128 // plus the number of the signal
)

// An exitError ends the command with a code; err is nil when everything is reported.
type exitError struct {
	code int
	err  error
	hint string // what to do; for usage, where help is by default
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// misuse returns the error for a command that makes no sense.
func misuse(format string, args ...any) error { return usage(fmt.Errorf(format, args...), "") }

func usage(err error, hint string) error { return &exitError{exitUsage, err, hint} }

// environment marks an error as one of the machine, not of the command.
func environment(err error) error { return &exitError{code: exitEnvironment, err: err} }

// differs returns the error for a comparison that finds differences, nil where it finds none.
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
	case registry.NoRuntime(err):
		return exitEnvironment
	case errors.Is(err, context.Canceled):
		return exitSignal + int(syscall.SIGINT)
	}
	return exitFailed
}
