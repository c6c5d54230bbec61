package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/runexp/runexp/registry"
)

// shownLeaders is the number of methods that new names of a metric.
const shownLeaders = 3

// Architecture names the families that the model may be of, "" where the graph doesn't tell.
func (s *starter) Architecture() string { return strings.Join(s.Model.Families, " or ") }

// printed are the metrics that new prints, those of which its experiment has curves; the experiment has all.
var printed = []string{"insertion", "deletion"}

// leads prints which methods lead on the measured nets of the model's family; nothing where the graph doesn't
// tell the family.
func (s *starter) leads(u *ui) {
	list := registry.Leads(s.Model.Families...)
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(u.out, "architecture %s: on small nets of it these led (docs/architectures.md)\n",
		s.Architecture())
	t := tabwriter.NewWriter(u.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  net\tmetric\trandom map\tled, or weren't told apart from the first")
	for _, l := range list {
		if !slices.Contains(printed, l.Metric) {
			continue
		}
		methods := leadersOf(l, func(m registry.Measurement) string {
			return fmt.Sprintf("%s %.2f", m.Method, m.Mean)
		})
		fmt.Fprintf(t, "  %s\t%s\t%.2f\t%s\n", l.Net, metricOf(l), l.Random.Mean, methods)
	}
	t.Flush()
}

// metricOf names a metric, with the direction in which it is better.
func metricOf(l registry.Lead) string {
	if l.Lower {
		return l.Metric + " ↓"
	}
	return l.Metric + " ↑"
}

// leadersOf lists the first of the methods that lead.
func leadersOf(l registry.Lead, text func(registry.Measurement) string) string {
	var names []string
	for _, m := range l.Best[:min(shownLeaders, len(l.Best))] {
		names = append(names, text(m))
	}
	list := strings.Join(names, ", ")
	if n := l.Leaders - len(names); n > 0 {
		list += fmt.Sprintf(" and %d more", n)
	}
	return list
}

// Leads describes what leads on the measured nets of the model's family, a line for each net and metric.
func (s *starter) Leads() (lines []string) {
	for _, l := range registry.Leads(s.Model.Families...) {
		lines = append(lines, fmt.Sprintf("%s, %s: %s; a random map %.3f", l.Net, metricOf(l),
			leadersOf(l, func(m registry.Measurement) string {
				return fmt.Sprintf("%s %.3f [%.3f, %.3f]", m.Method, m.Mean, m.Low, m.High)
			}), l.Random.Mean))
	}
	return lines
}

// Absent returns the methods of [starter.Leads] that the experiment doesn't compare, as its lines would be.
func (s *starter) Absent() (lines []string) {
	for _, l := range registry.Leads(s.Model.Families...) {
		for _, m := range l.Best[:min(shownLeaders, len(l.Best))] {
			line := fmt.Sprintf("%-21s %s", m.Method+":", m.Uses)
			there := func(method string) bool { return strings.HasPrefix(method, m.Method+": ") }
			if !slices.ContainsFunc(s.Methods, there) && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}
