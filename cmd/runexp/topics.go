package main

import (
	"io"
	"maps"
	"slices"

	"github.com/runexp/runexp/docs"
	"github.com/runexp/runexp/registry"
)

// topics are what help tells of other than verbs.
var topics = map[string]func(w io.Writer) error{
	"language": func(w io.Writer) error {
		_, err := io.WriteString(w, docs.Example())
		return err
	},
	"methods": listFamilies("attribute"),
	"metrics": listFamilies("score", "stats"),
}

// listFamilies returns a function that writes a line for each stage of some families.
func listFamilies(families ...string) func(w io.Writer) error {
	return func(w io.Writer) error {
		for _, f := range families {
			if err := registry.List(w, registry.Builtin().Family(f)); err != nil {
				return err
			}
		}
		const more = "\n\"runexp stages NAME\" has the formula, the ports and the parameters of one.\n"
		_, err := io.WriteString(w, more)
		return err
	}
}

// helpWords are what help takes: verbs and topics.
func helpWords() []string { return slices.Concat(verbNames(), slices.Sorted(maps.Keys(topics))) }
