package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/runexp/runexp/docs"
	"github.com/runexp/runexp/registry"
)

// topics are the subjects of help besides verbs.
var topics = map[string]func(w io.Writer) error{
	"language": func(w io.Writer) error {
		_, err := io.WriteString(w, docs.Example())
		return err
	},
	"methods": func(w io.Writer) error { return listStages(w, "methods") },
	"metrics": listMetrics,
}

// listStages writes a line for each stage on a page of docs/: its name, its purpose and its cost.
func listStages(w io.Writer, page string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range registry.Builtin().Guide(page) {
		fmt.Fprintf(t, "%s\t%s\t%s\n", l.Name, l.Title, l.Cost)
	}
	const more = "\nThe last column: passes through the model for an item; names are parameters.\n" +
		"\"runexp stages NAME\" has the formula, the ports and the parameters of one.\n"
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, more)
	return err
}

// listMetrics writes a line for each stage on the page of metrics, and one for each metric by its name in the
// field: what makes it here, and its names in other libraries.
func listMetrics(w io.Writer) error {
	if err := listStages(w, "metrics"); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "\nmetric\there\telsewhere\n")
	for _, m := range registry.Metrics() {
		fmt.Fprintf(t, "%s\t%s\t%s\n", m.Name, m.Here, m.Elsewhere)
	}
	return t.Flush()
}

// helpWords are the arguments that help accepts: verbs and topics.
func helpWords() []string { return slices.Concat(verbNames(), slices.Sorted(maps.Keys(topics))) }
