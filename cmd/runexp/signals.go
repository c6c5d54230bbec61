package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

type drainKey struct{}

// withSignals returns a context for a command. For one that drains, a first interrupt, termination or hang-up
// closes draining(ctx), so that work under way may finish, and a second cancels the context; for another the
// first does. From then on signals have their usual effect.
func withSignals(parent context.Context, drains bool) (context.Context, func()) {
	drain := make(chan struct{})
	s := &signalled{drain: drain}
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, drainKey{}, s))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	end := make(chan struct{})
	go func() {
		defer signal.Stop(signals)
		for waits := drains; ; waits = false {
			select {
			case got := <-signals:
				if !waits {
					cancel(signalError{got.(syscall.Signal)})
					return
				}
				s.first = got.(syscall.Signal)
				close(drain)
			case <-end:
				return
			}
		}
	}()
	return ctx, func() { close(end) }
}

// signalled is what a context made by withSignals knows of signals.
type signalled struct {
	drain chan struct{}
	first syscall.Signal // set before drain is closed
}

// draining returns a channel that a first signal closes.
func draining(ctx context.Context) <-chan struct{} {
	return ctx.Value(drainKey{}).(*signalled).drain
}

// stoppedBy returns the error for a command that a signal drained, nil if there was none.
func stoppedBy(ctx context.Context) error {
	s := ctx.Value(drainKey{}).(*signalled)
	select {
	case <-s.drain:
		return signalError{s.first}
	default:
		return nil
	}
}
