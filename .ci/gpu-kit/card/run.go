package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A run measures a card. Every step is a process of its own with a time limit, so that one that fails, hangs
// or crashes costs itself; the table in the folder out is written after each.
type run struct {
	log      io.Writer
	kit      string // folder of the sets webgpu and cuda
	out      string
	classes  []string
	rehearse bool // small nets, and PyTorch on the processor if need be

	machine machine
	load    *load
	table   table
	told    string    // the name of doctor's last line that has one
	details io.Writer // everything that steps print
	start   time.Time
}

// least is the time that a step is begun with.
const least = 3 * time.Second

// all runs the steps until they or the time are over. It returns an error only if nothing can be run: what a
// card can't do is in the table.
func (r *run) all(ctx context.Context) error {
	r.start = time.Now()
	if r.kit == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		r.kit = filepath.Dir(filepath.Dir(self))
	}
	if err := os.MkdirAll(r.out, 0o777); err != nil {
		return err
	}
	details, err := os.Create(filepath.Join(r.out, "log.txt"))
	if err != nil {
		return err
	}
	defer details.Close()
	r.details = details
	r.machine = look(ctx, r.kit)
	r.load = watch(ctx)
	defer r.load.stop()
	r.table.facts = append(r.table.facts, r.machine.facts()...)
	if i := slices.Index(r.classes, "cuda"); i >= 0 && !r.machine.cuda {
		r.table.fact("cuda", "its pieces aren't here")
		r.classes = slices.Delete(r.classes, i, i+1)
	}
	for _, s := range r.plan(ctx) {
		if deadline, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(deadline) < least {
			r.table.missing(s, "the time was over before")
		} else {
			r.do(ctx, s)
		}
		if err := r.table.write(r.out); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(r.log, "\n%s\ntable.md, table.csv and log.txt are in %s\n", r.table.markdown(),
		r.out)
	return err
}

// say prints a line of progress.
func (r *run) say(format string, args ...any) {
	fmt.Fprintf(r.log, "[%3.0f s] %s\n", time.Since(r.start).Seconds(), fmt.Sprintf(format, args...))
}
