package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// drainKey is the key under which a context holds another, which a first signal ends.
type drainKey struct{}

// deaf is how long a command that doesn't drain may go on after a signal, before that has its usual effect.
const deaf = 3 * time.Second

// withSignals returns a context for a command. For one that drains, a first interrupt, termination or hang-up
// closes draining(ctx), so that work under way may finish, and a second cancels the context; for another the
// first does. From then on signals have their usual effect.
func withSignals(parent context.Context, drains bool) (context.Context, func()) {
	drained, drain := context.WithCancelCause(parent)
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, drainKey{}, drained))
	effects := []context.CancelCauseFunc{drain, cancel}
	if !drains {
		effects = effects[1:]
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	end := make(chan struct{})
	go func() {
		var got os.Signal
		for _, effect := range effects {
			select {
			case got = <-signals:
				effect(signalError{got.(syscall.Signal)})
			case <-end:
				signal.Stop(signals)
				return
			}
		}
		signal.Stop(signals)
		if drains {
			return
		}
		select { // what computes without asking whether it should
		case <-end:
		case <-time.After(deaf):
			_ = syscall.Kill(os.Getpid(), got.(syscall.Signal))
		}
	}()
	return ctx, func() { close(end) }
}

// draining returns a channel that a first signal closes.
func draining(ctx context.Context) <-chan struct{} {
	return ctx.Value(drainKey{}).(context.Context).Done()
}

// untilSignal returns a context for what a first signal ends, whether the command drains or not.
func untilSignal(ctx context.Context) (context.Context, func()) {
	drained := ctx.Value(drainKey{}).(context.Context)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(drained, func() { cancel(context.Cause(drained)) })
	return ctx, func() { stop(); cancel(nil) }
}

// stoppedBy returns the error for a command that a signal drained, nil if there was none.
func stoppedBy(ctx context.Context) error {
	return context.Cause(ctx.Value(drainKey{}).(context.Context))
}
