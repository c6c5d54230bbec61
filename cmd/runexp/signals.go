package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

type drainKey struct{}

// withSignals returns a context for a command. A first interrupt or termination
// closes draining(ctx), so that work under way may finish; a second cancels the
// context; from then on signals have their usual effect.
func withSignals(parent context.Context) (context.Context, func()) {
	drain := make(chan struct{})
	s := &signalled{drain: drain}
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, drainKey{}, s))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	end := make(chan struct{})
	go func() {
		defer signal.Stop(signals)
		for first := true; ; first = false {
			select {
			case got := <-signals:
				if !first {
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

// stoppedBy returns the error for a command that a signal drained, nil if there
// was none.
func stoppedBy(ctx context.Context) error {
	s := ctx.Value(drainKey{}).(*signalled)
	select {
	case <-s.drain:
		return signalError{s.first}
	default:
		return nil
	}
}
