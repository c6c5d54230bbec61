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
	exitSignal      = 128 // plus the number of the signal
)

// A usageError is a command that makes no sense.
type usageError struct {
	verb string // whose help tells more
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// misuse returns a usageError.
func misuse(format string, args ...any) error { return &usageError{err: fmt.Errorf(format, args...)} }

// An exitError ends the command with a code; err is nil when all is said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// environment marks an error as one of the machine, not of the command.
func environment(err error) error { return &exitError{exitEnvironment, err} }

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
		usage  *usageError
		diags  plan.Diags
		exit   *exitError
		signal signalError
		bug    *plan.BugError
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage), errors.As(err, &diags):
		return exitUsage
	case errors.As(err, &signal):
		return exitSignal + int(signal.Signal)
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &bug):
		return exitBug
	case registry.NoRuntime(err):
		return exitEnvironment
	case errors.Is(err, context.Canceled):
		return exitSignal + int(syscall.SIGINT)
	}
	return exitFailed
}
