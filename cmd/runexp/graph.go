package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/plan"
)

const graphHelp = `usage: runexp graph FILE

Prints the experiment as a graph, one node a stage with its implementations,
axes and number of cells: Mermaid, which Markdown viewers draw, or DOT.

  --dot                write DOT instead of Mermaid
  --set, --only        as in run

example:
  runexp graph experiments/quickstart.yaml --dot | dot -Tsvg > quickstart.svg
`

func graphVerb() *verb {
	f := newFlags("graph")
	dot := f.Bool("dot", false, "")
	o := narrowFlags(f)
	return &verb{
		name: "graph", short: "the experiment as a picture, Mermaid or DOT", help: graphHelp, flags: f,
		run: func(_ context.Context, u *ui, args []string) error {
			plan, err := loadPlan("graph", args, o)
			if err != nil {
				return err
			}
			g := newGraph(plan)
			if *dot {
				return g.dot(u.out)
			}
			return g.mermaid(u.out)
		},
	}
}

// A graph has the declared stages of a plan; what the engine puts between two of
// them is an edge.
type graph struct {
	name  string
	steps []*plan.Step
	edges [][2]int
}

func newGraph(p *plan.Plan) *graph {
	g := &graph{name: p.Name}
	index := map[*plan.Step]int{}
	for _, s := range p.Steps {
		if !s.Implied {
			index[s] = len(g.steps)
			g.steps = append(g.steps, s)
		}
	}
	for _, s := range g.steps {
		from := map[*plan.Step]bool{}
		sources(s, from)
		var edges [][2]int
		for f := range from {
			edges = append(edges, [2]int{index[f], index[s]})
		}
		slices.SortFunc(edges, func(a, b [2]int) int { return a[0] - b[0] })
		g.edges = append(g.edges, edges...)
	}
	return g
}

// sources collects the declared stages that s reads, through implied ones too.
func sources(s *plan.Step, into map[*plan.Step]bool) {
	seen := map[*plan.Step]bool{}
	for _, c := range s.Cells {
		for _, in := range c.Inputs {
			for _, e := range in.Edges {
				switch from := e.From.Step; {
				case seen[from]:
				case from.Implied:
					sources(from, into)
				default:
					into[from] = true
				}
				seen[e.From.Step] = true
			}
		}
	}
}

// label says what a stage is in up to four lines.
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
	return append(lines, cells(len(s.Cells)))
}

func (g *graph) mermaid(w io.Writer) error {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for i, s := range g.steps {
		fmt.Fprintf(&b, "  n%d[\"%s\"]\n", i, strings.Join(label(s), "<br/>"))
	}
	for _, e := range g.edges {
		fmt.Fprintf(&b, "  n%d --> n%d\n", e[0], e[1])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (g *graph) dot(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n  rankdir=LR\n  node [shape=box]\n", g.name)
	for i, s := range g.steps {
		fmt.Fprintf(&b, "  n%d [label=%q]\n", i, strings.Join(label(s), "\n"))
	}
	for _, e := range g.edges {
		fmt.Fprintf(&b, "  n%d -> n%d\n", e[0], e[1])
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}
