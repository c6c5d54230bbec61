package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runexp/runexp/pipeline/publish"
)

// head is the revision that folders are compared with unless another one is named.
const head = "HEAD"

func diffVerb(f flags) *verb {
	var o diffPrinter
	f["--md"], f["--json"] = &o.md, &o.json
	return &verb{
		name:  "diff",
		takes: arity{0, 2, "two review folders, a review folder and a git revision, or one of these"},
		run: func(ctx context.Context, u *ui, args []string) error {
			o.ui = u
			switch {
			case o.md && o.json:
				return misuse("--md and --json exclude each other")
			case len(args) == 0:
				return diffAll(ctx, &o, head)
			case len(args) == 1 && !isFolder(args[0]):
				return diffAll(ctx, &o, args[0])
			case len(args) == 1:
				args = []string{head, args[0]}
			}
			d, err := diffOf(ctx, args[0], args[1])
			if err != nil {
				return environment(err)
			}
			o.print(d)
			return o.end(d.Within())
		},
	}
}

// A diffPrinter writes differences as text or Markdown, one by one, or all of them as one object.
type diffPrinter struct {
	ui       *ui
	md, json bool
	all      diffObject
}

// A diffObject is the output of diff --json, which docs/stability.md promises.
type diffObject struct {
	Within  bool                `json:"within"`
	Folders []*publish.DiffData `json:"folders"` // that differ, or the two that were named
	Same    []string            `json:"same"`    // folders without differences
	Added   []string            `json:"added"`   // folders that the revision hasn't got
	Removed []string            `json:"removed"` // folders that only the revision has
}

func (o *diffPrinter) print(d *publish.Difference) {
	text := d.String()
	switch {
	case o.json:
		o.all.Folders = append(o.all.Folders, d.Data())
		return
	case o.md:
		text = d.Markdown()
	}
	fmt.Fprintln(o.ui.out, strings.TrimSuffix(text, "\n"))
}

// say writes a line that stands beside the differences.
func (o *diffPrinter) say(format string, args ...any) {
	if !o.json {
		fmt.Fprintf(o.ui.out, format+"\n", args...)
	}
}

// end writes the object, and returns the error that says whether all is within its tolerances.
func (o *diffPrinter) end(within bool) error {
	if o.json {
		o.all.Within = within
		for _, list := range []*[]string{&o.all.Same, &o.all.Added, &o.all.Removed} {
			*list = append([]string{}, *list...) // not null
		}
		o.all.Folders = append([]*publish.DiffData{}, o.all.Folders...)
		if err := o.ui.json().Encode(o.all); err != nil {
			return err
		}
	}
	return differs(!within)
}

// diffOf compares two review folders. An argument that isn't a folder is a git revision of the other one.
func diffOf(ctx context.Context, a, b string) (*publish.Difference, error) {
	x, err := versionOf(ctx, a, b)
	if err != nil {
		return nil, err
	}
	y, err := versionOf(ctx, b, a)
	if err != nil {
		return nil, err
	}
	return publish.Diff(x, y)
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// diffAll compares all review folders in artifacts/ with those of a git revision.
func diffAll(ctx context.Context, o *diffPrinter, revision string) error {
	p, err := here()
	if err != nil {
		return err
	}
	dir := p.review("")
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, dir); err == nil {
			dir = rel
		}
	}
	before, now, err := publish.FoldersAt(ctx, revision, dir)
	if err != nil {
		return environment(err)
	}
	only := func(of, other []string, verb string) (names []string) {
		for _, name := range of {
			if !slices.Contains(other, name) {
				names = append(names, name)
				o.say("%s: %s since %s", name, verb, revision)
			}
		}
		return names
	}
	o.all.Removed, o.all.Added = only(before, now, "removed"), only(now, before, "added")
	within := len(o.all.Removed)+len(o.all.Added) == 0
	for _, name := range now {
		if !slices.Contains(before, name) {
			continue
		}
		d, err := diffOf(ctx, revision, name)
		if err != nil {
			return environment(err)
		}
		if within = within && d.Within(); d.Empty() {
			o.all.Same = append(o.all.Same, name)
			continue
		}
		if !o.md {
			o.say("%s since %s", name, revision)
		}
		o.print(d)
		o.say("")
	}
	if n := len(o.all.Same); n > 0 {
		o.say("%d of %d review folders are as in %s", n, len(now), revision)
	}
	return o.end(within)
}
