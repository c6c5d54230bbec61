package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// drainKey is the key of a context's value: a second context, which the first signal ends.
type drainKey struct{}

// deaf is how long a command that doesn't drain may go on after a signal, before signals have their usual
// effect.
const deaf = 3 * time.Second

// withSignals returns a context for a command. If the command drains, the first interrupt, termination or
// hang-up closes draining(ctx), so that running work may finish, and a second one cancels the context;
// otherwise the first one cancels it. Further signals have their usual effect.
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
		select { // a computation may not notice that the context has ended
		case <-end:
		case <-time.After(deaf):
			_ = syscall.Kill(os.Getpid(), got.(syscall.Signal))
		}
	}()
	return ctx, func() { close(end) }
}

// draining returns a channel that the first signal closes.
func draining(ctx context.Context) <-chan struct{} {
	return ctx.Value(drainKey{}).(context.Context).Done()
}

// untilSignal returns a context that the first signal ends, whether the command drains or not.
func untilSignal(ctx context.Context) (context.Context, func()) {
	drained := ctx.Value(drainKey{}).(context.Context)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(drained, func() { cancel(context.Cause(drained)) })
	return ctx, func() { stop(); cancel(nil) }
}

// stoppedBy returns the error for a command that a signal drained, nil if there was no signal.
func stoppedBy(ctx context.Context) error {
	return context.Cause(ctx.Value(drainKey{}).(context.Context))
}
