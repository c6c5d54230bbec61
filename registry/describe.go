package registry

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/runexp/runexp/stages"
)

var relations = map[stages.Relation]string{
	stages.Each:   "each: one item in, one item out",
	stages.Expand: "expand: one item in, any number out",
	stages.Group:  "group: all items of one origin in, one item out",
	stages.Whole:  "whole: sees everything at once",
}

// List writes one line a stage: its name and title.
func List(w io.Writer, list []*stages.Stage) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range list {
		fmt.Fprintf(t, "%s\t%s\n", s.Name, Title(s))
	}
	return t.Flush()
}

// Describe writes the reference page of a stage: what it does, its ports, its
// parameters with defaults and ranges, and where paper and code differ.
func Describe(w io.Writer, s *stages.Stage) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	title, prose, _ := strings.Cut(s.Doc, "\n")
	fmt.Fprintf(t, "%s: %s\n", s.Name, title)
	if prose = strings.TrimSpace(prose); prose != "" {
		fmt.Fprintf(t, "\n%s\n", prose)
	}
	fmt.Fprintf(t, "\nrelation\n  %s%s\n", relations[s.Relation], traits(s))
	if len(s.Inputs) > 0 {
		fmt.Fprint(t, "\ninputs\n")
		for _, p := range s.Inputs {
			fmt.Fprintf(t, "  %s\t%s\t%s\n", p.Name, p.Wire().Name, inputDoc(p))
		}
	}
	fmt.Fprint(t, "\noutputs\n")
	for _, p := range s.Outputs {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", p.Name, p.Type.Name, p.Doc)
	}
	if params := parameters(s); len(params) > 0 {
		fmt.Fprint(t, "\nparameters\n")
		for _, p := range params {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", p.Name, p.kind(), p.Default, p.Doc)
		}
	}
	if len(s.Variants) > 0 {
		fmt.Fprint(t, "\nwhere paper and code differ\n")
		for _, v := range s.Variants {
			fmt.Fprintf(t, "  %s\tdefault %s\t%s\n", v.Item, v.Default, v.Differs)
		}
	}
	return t.Flush()
}

// Variants writes the table of all places where papers and official code differ.
func Variants(w io.Writer, list []*stages.Stage) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "stage\titem\tdefault\tgolden\twhat differs\n")
	for _, s := range list {
		for _, v := range s.Variants {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", s.Name, v.Item, v.Default, v.Golden, v.Differs)
		}
	}
	return t.Flush()
}

func traits(s *stages.Stage) string {
	var b strings.Builder
	if s.Seeded {
		b.WriteString("; random, from the experiment's seed")
	}
	if s.Device {
		b.WriteString("; computes on a device")
	}
	return b.String()
}

func inputDoc(p stages.Port) string {
	parts := make([]string, 0, 3)
	if p.Doc != "" {
		parts = append(parts, p.Doc)
	}
	switch {
	case p.Else != "":
		parts = append(parts, "unwired: what "+p.Else+" says")
	case p.Optional:
		parts = append(parts, "optional")
	}
	if p.Via != "" {
		parts = append(parts, "passes through "+p.Via)
	}
	return strings.Join(parts, "; ")
}
