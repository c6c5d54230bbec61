package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
)

const planHelp = `usage: runexp plan FILE [FLAGS]

Says what run would do: for every stage its cells, how many of the possible
combinations exist, how many are cached, run, or depend on others that run, and
the bytes of its items: about what "store: keep" writes, in brackets where the
stage says "store: none"; known once a cell of the stage has run, with --limit or
without. Plan writes nothing.

  --check              exit code 5 unless everything is cached
  --cells              a line for every cell, with the reason
` + narrowHelp + engineHelp + `
example:
  runexp plan experiments/quickstart.yaml --set images.with.count=128
`

func planVerb() *verb {
	f := newFlags("plan")
	narrow, engine := narrowFlags(f), newEngineFlags(f)
	check, each := f.Bool("check", false, ""), f.Bool("cells", false, "")
	return &verb{
		name: "plan", short: "what run would do: cached, runs, depends on", help: planHelp, flags: f,
		run: func(ctx context.Context, u *ui, args []string) (err error) {
			plan, s, err := engine.loadAndOpen(u, args, narrow, true)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.store.Close()) }()
			outlook, err := s.outlook(ctx, u, plan)
			if err != nil {
				return err
			}
			if *each {
				err = writeCells(u.out, plan, outlook)
			} else {
				err = writePlan(u.out, plan, outlook)
			}
			if err != nil {
				return err
			}
			if *check && !outlook.Complete() {
				return &exitError{code: exitOutdated}
			}
			return nil
		},
	}
}

func writeCells(w io.Writer, plan *plan.Plan, o *pipeline.Outlook) error {
	var b strings.Builder
	for _, c := range plan.Cells {
		fmt.Fprintf(&b, "%s: %s\n", c, o.State(c))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writePlan(w io.Writer, plan *plan.Plan, o *pipeline.Outlook) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "cells\tof\tcached\trun\tdepend\tbroken\titems\tbytes\t\n")
	var total [4]int
	for _, s := range plan.Steps {
		counts := o.Counts(s)
		for i, n := range counts {
			total[i] += n
		}
		name := s.Name
		if s.Implied {
			name += " (implied)"
		}
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t  %s\n", len(s.Cells), s.Possible,
			counts[pipeline.IsCached], counts[pipeline.Runs], counts[pipeline.DependsOn], counts[pipeline.Broken], items(s, o), bytesOf(s, o), name)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	blocked := total[pipeline.Broken]
	for _, c := range plan.Cells {
		if a := o.State(c); a.Kind == pipeline.Broken && !inherited(c, o) {
			fmt.Fprintf(w, "%s: %s\n", c, a)
			blocked--
		}
	}
	if blocked > 0 {
		fmt.Fprintf(w, "%s more can't run, because of that\n", cells(blocked))
	}
	for _, n := range plan.Narrowed {
		fmt.Fprintf(w, "narrowed: %s\n", n)
	}
	_, err := fmt.Fprintf(w, "%s: %d cached, %d to run, %d depending on them\n", cells(len(plan.Cells)),
		total[pipeline.IsCached], total[pipeline.Runs], total[pipeline.DependsOn])
	return err
}

// inherited reports whether c can't run because of a cell that it reads.
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

// bytesOf tells the bytes of a step's items.
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

// items counts the items of a step's cells: the number that all have, or a range.
func items(s *plan.Step, o *pipeline.Outlook) string {
	low, high := -1, -1
	for _, c := range s.Cells {
		n := o.Items(c)
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
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d-%d", low, high)
}
