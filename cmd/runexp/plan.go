package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
)

func planVerb(f flags) *verb {
	var check, each bool
	f["--check"], f["--cells"] = &check, &each
	narrow, engine := f.narrow(), f.engine()
	return &verb{
		name: "plan", takes: arity{1, 1, "an experiment file"},
		run: func(ctx context.Context, u *ui, args []string) error {
			p, s, err := engine.loadAndOpen(ctx, u, args[0], narrow, true)
			if err != nil {
				return err
			}
			o, err := s.outlook(ctx, u, p)
			if err != nil {
				return err
			}
			if each {
				for _, c := range p.Cells {
					fmt.Fprintf(u.out, "%s: %s\n", c, o.State(c))
				}
			} else {
				writePlan(u.out, p, o)
			}
			if check && !o.Complete() && u.out.failure() == nil {
				return &exitError{code: exitOutdated}
			}
			return nil
		},
	}
}

func writePlan(w io.Writer, p *plan.Plan, o *pipeline.Outlook) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "cells\tof\tcached\trun\tdepend\tbroken\titems\tbytes\tpasses\ttime\t\n")
	var total [4]int
	var all pipeline.Estimate
	for _, s := range p.Steps {
		counts := o.Counts(s)
		for i, n := range counts {
			total[i] += n
		}
		name := s.Name
		if s.Implied {
			name += " (implied)"
		}
		e := o.Estimate(s)
		all.Add(e)
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t  %s\n", len(s.Cells), s.Possible,
			counts[pipeline.IsCached], counts[pipeline.Runs], counts[pipeline.DependsOn],
			counts[pipeline.Broken], items(s, o), bytesOf(s, o), passesOf(e), timeOf(e), name)
	}
	t.Flush()
	blocked := total[pipeline.Broken]
	for _, c := range p.Cells {
		if a := o.State(c); a.Kind == pipeline.Broken && !inherited(c, o) {
			fmt.Fprintf(w, "%s: %s\n", c, a)
			blocked--
		}
	}
	if blocked > 0 {
		fmt.Fprintf(w, "%s more can't run, because of that\n", progress.Cells(blocked))
	}
	for _, r := range p.Remotes() {
		if !r.Fetched() {
			fmt.Fprintf(w, "not fetched yet: %s\n", r.Address)
		}
	}
	for _, n := range p.Narrowed {
		fmt.Fprintf(w, "narrowed: %s\n", n)
	}
	for _, s := range p.Powers() {
		fmt.Fprintln(w, s)
	}
	for _, ways := range o.Ways() {
		fmt.Fprintln(w, waysOf(ways))
	}
	fmt.Fprintf(w, "%s: %d cached, %d to run, %d depending on them\n", progress.Cells(len(p.Cells)),
		total[pipeline.IsCached], total[pipeline.Runs], total[pipeline.DependsOn])
	if total[pipeline.Runs]+total[pipeline.DependsOn] == 0 {
		return
	}
	fmt.Fprintf(w, "estimated: %s, of %s passes, as measured before on this kind of machine\n", timeOf(all),
		passesOf(all))
	if worthSaying(all.Loading, all.Seconds) {
		fmt.Fprintf(w, "of this, %s to compile %s\n", timeOf(pipeline.Estimate{Seconds: all.Loading}),
			programCount(int(math.Round(all.Programs))))
	}
	if all.Elsewhere > 0 {
		fmt.Fprintf(w, "of these, %s are measured on another kind of machine alone\n",
			progress.Cells(all.Elsewhere))
	}
	if all.Unknown > 0 {
		fmt.Fprintf(w, "nothing is measured of %s: a run with --limit 4 measures\n",
			progress.Cells(all.Unknown))
	}
}

// worthSaying reports whether compiling takes a second, or a tenth of the time.
func worthSaying(compiling, all float64) bool {
	return compiling >= 1 || compiling > 0 && compiling >= all/10
}

// programCount names a number of programs.
func programCount(n int) string {
	if n == 1 {
		return "1 program"
	}
	return fmt.Sprintf("%d programs", n)
}

// waysOf compares the two ways to an exact answer.
func waysOf(w *pipeline.Ways) string {
	items, passes, time := fmt.Sprint(w.Again[0]), passesOf(w.Least), timeOf(w.Least)
	if w.Again[0] < w.Again[1] {
		items += fmt.Sprintf(" to %d", w.Again[1])
		passes, time = passes+" to "+passesOf(w.Most), time+" to "+timeOf(w.Most)
	}
	begin := fmt.Sprintf("%s: exact by %s of %s of %d images: ", w.Step.Name, w.Value, items, w.Items)
	if w.Least.Unknown+w.Whole.Unknown > 0 {
		return begin + "its passes and time aren't measured yet"
	}
	text := fmt.Sprintf("%s passes, %s; %s of all: %s passes, %s", passes, time, w.Value, passesOf(w.Whole),
		timeOf(w.Whole))
	if w.Whole.Seconds <= w.Least.Seconds {
		text += "; precision: " + w.Value + " alone is the shorter way"
	}
	return begin + text
}

// passesOf describes the passes of a step: forward, and those with a backward pass.
func passesOf(e pipeline.Estimate) string {
	switch {
	case e.Unknown > 0 && e.Forward == 0:
		return "?"
	case e.Backward > 0:
		return fmt.Sprintf("%d+%d", e.Forward, e.Backward)
	}
	return fmt.Sprint(e.Forward)
}

// timeOf writes an estimated time, with a + if the time of some cells is unknown.
func timeOf(e pipeline.Estimate) string {
	d := time.Duration(e.Seconds * float64(time.Second))
	text := d.Round(100 * time.Millisecond).String()
	switch {
	case e.Unknown > 0 && e.Seconds == 0:
		return "?"
	case d > time.Minute:
		text = d.Round(time.Second).String()
	}
	if e.Unknown > 0 {
		text += "+"
	}
	return text
}

// inherited reports whether c can't run because a cell that it reads can't.
func inherited(c *plan.Cell, o *pipeline.Outlook) bool {
	for _, in := range c.Inputs {
		for _, e := range in.Edges {
			if o.State(e.From).Kind == pipeline.Broken {
				return true
			}
		}
	}
	return false
}

// bytesOf writes the size of a step's items.
func bytesOf(s *plan.Step, o *pipeline.Outlook) string {
	n, ok := o.Bytes(s)
	switch {
	case !ok:
		return "?"
	case n == 0:
		return "0"
	case !s.Keep:
		return "(" + size(n) + ")"
	}
	return size(n)
}

// items writes the number of items of a step's cells: one number, a range, or after ~ an estimate from the
// last run.
func items(s *plan.Step, o *pipeline.Outlook) string {
	low, high, about := -1, -1, ""
	for _, c := range s.Cells {
		n := o.Items(c)
		if n < 0 && c.Stage.Outputs[0].Type.Items {
			n, about = o.Likely(c), "~"
		}
		if n < 0 {
			return "?"
		}
		if low < 0 || n < low {
			low = n
		}
		high = max(high, n)
	}
	switch {
	case low < 0:
		return "0"
	case low == high:
		return fmt.Sprint(about, low)
	}
	return fmt.Sprintf("%s%d-%d", about, low, high)
}
