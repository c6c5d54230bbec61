package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"

	"github.com/runexp/runexp/pipeline/appendix"
	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/registry"
)

func appendixVerb(f flags) *verb {
	var out string
	f["-o"] = &out
	return &verb{
		name: "appendix", takes: arity{1, 1, "a review folder"},
		run: func(_ context.Context, u *ui, args []string) error {
			if out == "" {
				return misuse("appendix needs a folder, -o DIR")
			}
			p, err := here()
			if err != nil {
				return err
			}
			v, err := publish.ReadVersion(args[0])
			if err != nil {
				return environment(err)
			}
			files, err := appendix.Write(appendix.Source{Version: v, Program: "runexp " + build(),
				Stage: citedStage, Data: citedData})
			if err != nil {
				return environment(err)
			}
			to, err := openOut(p, out)
			if err != nil {
				return err
			}
			defer to.Close()
			for _, name := range slices.Sorted(maps.Keys(files)) {
				if err := to.MkdirAll(path.Dir(name), 0o777); err != nil {
					return environment(err)
				}
				err := writeFile(to, name, func(w io.Writer) error {
					_, err := w.Write(files[name])
					return err
				})
				if err != nil {
					return environment(err)
				}
				fmt.Fprintln(u.out, filepath.Join(to.Name(), name))
			}
			return nil
		},
	}
}

// citedStage describes a stage of this program for an appendix.
func citedStage(name string) (appendix.Stage, bool) {
	s, ok := registry.Builtin().Lookup(name)
	if !ok {
		return appendix.Stage{}, false
	}
	return appendix.Stage{Version: s.Version, Cites: citations(registry.Cited(s))}, true
}

func citedData(texts []string) []appendix.Citation { return citations(registry.DataSets(texts)) }

func citations(list []*registry.Reference) (out []appendix.Citation) {
	for _, r := range list {
		out = append(out, appendix.Citation{Key: r.Key, BibTeX: r.BibTeX, Title: r.Title, Terms: r.Terms})
	}
	return out
}
