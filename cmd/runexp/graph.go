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

func graphVerb(f *flags) *verb {
	var dot bool
	f.toggle(&dot, "dot", "write DOT instead of Mermaid")
	o := f.narrow()
	return &verb{
		name: "graph", args: "FILE", short: "the experiment as a picture, Mermaid or DOT",
		takes:   arity{1, 1, "an experiment file"},
		example: "graph experiments/quickstart.yaml --dot | dot -Tsvg > quickstart.svg",
		about: `Prints the experiment as a graph, one node a stage with its implementations,
axes and number of cells: Mermaid, which Markdown viewers draw, or DOT.
`,
		run: func(_ context.Context, u *ui, args []string) error {
			p, err := load(args[0], o)
			if err != nil {
				return err
			}
			if dot {
				head := fmt.Sprintf("digraph %q {\n  rankdir=LR\n  node [shape=box]\n", p.Name)
				writeGraph(u.out, p, head, "  n%d [label=%q]\n", "\n", "  n%d -> n%d\n", "}\n")
			} else {
				writeGraph(u.out, p, "flowchart LR\n", "  n%d[\"%s\"]\n", "<br/>", "  n%d --> n%d\n", "")
			}
			return nil
		},
	}
}

// writeGraph writes the declared stages of a plan as nodes, whose lines are joined by lineBreak. What the
// engine puts between two of them is an edge.
func writeGraph(w io.Writer, p *plan.Plan, head, node, lineBreak, edge, end string) {
	io.WriteString(w, head)
	index := map[*plan.Step]int{}
	var declared []*plan.Step
	for _, s := range p.Steps {
		if !s.Implied {
			index[s] = len(declared)
			fmt.Fprintf(w, node, len(declared), strings.Join(label(s), lineBreak))
			declared = append(declared, s)
		}
	}
	for i, s := range declared {
		from := map[int]bool{}
		sources(s, func(f *plan.Step) { from[index[f]] = true })
		for j := range declared {
			if from[j] {
				fmt.Fprintf(w, edge, j, i)
			}
		}
	}
	io.WriteString(w, end)
}

// sources yields the declared stages that s reads, through implied ones too.
func sources(s *plan.Step, yield func(*plan.Step)) {
	seen := map[*plan.Step]bool{}
	for _, c := range s.Cells {
		for _, in := range c.Inputs {
			for _, e := range in.Edges {
				switch from := e.From.Step; {
				case seen[from]:
				case from.Implied:
					sources(from, yield)
				default:
					yield(from)
				}
				seen[e.From.Step] = true
			}
		}
	}
}

// label describes a stage in up to four lines.
func label(s *plan.Step) []string {
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
