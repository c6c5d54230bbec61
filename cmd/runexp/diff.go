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
	var md bool
	f["--md"] = &md
	return &verb{
		name:  "diff",
		takes: arity{0, 2, "two review folders, a review folder and a git revision, or one of these"},
		run: func(ctx context.Context, u *ui, args []string) error {
			switch {
			case len(args) == 0:
				return diffAll(ctx, u, head, md)
			case len(args) == 1 && !isFolder(args[0]):
				return diffAll(ctx, u, args[0], md)
			case len(args) == 1:
				args = []string{head, args[0]}
			}
			d, err := diffOf(ctx, args[0], args[1])
			if err != nil {
				return environment(err)
			}
			printDiff(u, d, md)
			return differs(!d.Within())
		},
	}
}

func printDiff(u *ui, d *publish.Difference, md bool) {
	text := d.String()
	if md {
		text = d.Markdown()
	}
	fmt.Fprintln(u.out, strings.TrimSuffix(text, "\n"))
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
func diffAll(ctx context.Context, u *ui, revision string, md bool) error {
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
	within, same := true, 0
	only := func(of, other []string, verb string) {
		for _, name := range of {
			if !slices.Contains(other, name) {
				within = false
				fmt.Fprintf(u.out, "%s: %s since %s\n", name, verb, revision)
			}
		}
	}
	only(before, now, "removed")
	only(now, before, "added")
	for _, name := range now {
		if !slices.Contains(before, name) {
			continue
		}
		d, err := diffOf(ctx, revision, name)
		if err != nil {
			return environment(err)
		}
		if within = within && d.Within(); d.Empty() {
			same++
			continue
		}
		if !md {
			fmt.Fprintf(u.out, "%s since %s\n", name, revision)
		}
		printDiff(u, d, md)
		fmt.Fprintln(u.out)
	}
	if same > 0 {
		fmt.Fprintf(u.out, "%d of %d review folders are as in %s\n", same, len(now), revision)
	}
	return differs(!within)
}
