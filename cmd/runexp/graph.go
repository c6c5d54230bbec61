package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/progress"
)

func graphVerb(f flags) *verb {
	var dot bool
	f["--dot"] = &dot
	o := f.narrow()
	return &verb{
		name: "graph", takes: arity{1, 1, "an experiment file"},
		run: func(ctx context.Context, u *ui, args []string) error {
			p, err := load(ctx, args[0], o)
			if err != nil {
				return err
			}
			if dot {
				head := fmt.Sprintf("digraph %q {\n  rankdir=LR\n  node [shape=box]\n", p.Name)
				writeGraph(u.out, p, head,
					"  n%d [label=%q]\n", "\n", "  n%d -> n%d%s\n", " [label=%q]", "}\n")
			} else {
				writeGraph(u.out, p, "flowchart LR\n",
					"  n%d[\"%s\"]\n", "<br/>", "  n%d -->%[3]s n%[2]d\n", "|%s|", "")
			}
			return nil
		},
	}
}

// writeGraph writes the declared stages of a plan as nodes with lines joined by lineBreak. Stages that the
// engine inserts between them are part of the edges. An edge of some cells has their ids as its label.
func writeGraph(w io.Writer, p *plan.Plan, head, node, lineBreak, edge, label, end string) {
	io.WriteString(w, head)
	declared := slices.DeleteFunc(slices.Clone(p.Steps), func(s *plan.Step) bool { return s.Implied })
	for i, s := range declared {
		fmt.Fprintf(w, node, i, strings.Join(nodeLines(s), lineBreak))
	}
	for i, s := range declared {
		from := map[*plan.Step]bool{}
		sources(s, from)
		for j, f := range declared {
			taken := p.Taken(f, s)
			if from[f] && len(taken) == 0 { // by implied stages alone
				taken = []string{""}
			}
			for _, at := range taken {
				if at != "" {
					at = fmt.Sprintf(label, at)
				}
				fmt.Fprintf(w, edge, j, i, at)
			}
		}
	}
	io.WriteString(w, end)
}

// sources collects the declared stages that s reads, directly or through implied ones.
func sources(s *plan.Step, from map[*plan.Step]bool) {
	for _, c := range s.Cells {
		for _, in := range c.Inputs {
			for _, e := range in.Edges {
				if up := e.From.Step; !from[up] {
					from[up] = true
					if up.Implied {
						sources(up, from)
					}
				}
			}
		}
	}
}

// nodeLines describes a stage in up to four lines.
func nodeLines(s *plan.Step) []string {
	lines := []string{s.Name}
	var uses []string
	for _, c := range s.Cells {
		if !slices.Contains(uses, c.Stage.Name) {
			uses = append(uses, c.Stage.Name)
		}
	}
	switch {
	case len(uses) > 3:
		lines = append(lines, fmt.Sprintf("%s and %d more", uses[0], len(uses)-1))
	case len(uses) > 0:
		lines = append(lines, strings.Join(uses, ", "))
	}
	if len(s.Axes) > 0 {
		lines = append(lines, strings.Join(s.Axes, " × "))
	}
	return append(lines, progress.Cells(len(s.Cells)))
}
