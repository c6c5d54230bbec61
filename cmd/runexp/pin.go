package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/runexp/runexp/pipeline/fetch"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/registry"
)

func pinVerb(f flags) *verb {
	o := &plan.Overrides{}
	f["--allow-python"] = &o.Python
	return &verb{
		name: "pin", takes: arity{1, anyNumber, "an experiment file"},
		run: func(ctx context.Context, u *ui, args []string) error {
			for _, file := range args {
				if err := pin(ctx, u, file, o); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// A pinning is an address in a file, and its replacement.
type pinning struct {
	at          plan.Diag
	old, pinned string
}

// pin writes the digests of addresses into an experiment, and into the one that it extends. Addresses that
// can't be pinned are reported; the others are pinned nevertheless.
func pin(ctx context.Context, u *ui, file string, o *plan.Overrides) error {
	p, err := load(ctx, file, o)
	if err != nil {
		return err
	}
	c, done, err := u.openFiles(false)
	if err != nil {
		return err
	}
	defer done()
	byFile := map[string][]pinning{}
	var failed plan.Diags
	for _, r := range p.Remotes() {
		a, err := fetch.Parse(r.Address)
		if err != nil || a.Pinned() && a.Fixed() {
			continue
		}
		now, err := c.Pin(ctx, a)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, at := range r.Places {
			if err != nil {
				failed = append(failed, unfetched(c, p, at, err))
			} else {
				byFile[at.File] = append(byFile[at.File], pinning{at, r.Address, now.String()})
			}
		}
	}
	done()
	if len(byFile)+len(failed) == 0 {
		fmt.Fprintf(u.out, "%s: nothing to pin\n", file)
	}
	for name, list := range byFile {
		more, err := rewrite(ctx, u, p, o, name, list)
		if err != nil {
			return err
		}
		failed = append(failed, more...)
	}
	return u.unfetched(failed)
}

// rewrite replaces addresses in a file, and returns diagnostics for addresses that aren't written there
// literally.
func rewrite(ctx context.Context, u *ui, p *plan.Plan, o *plan.Overrides, file string,
	list []pinning) (failed plan.Diags, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, environment(err)
	}
	// From the end, so that earlier positions stay valid.
	slices.SortFunc(list, func(a, b pinning) int {
		return -cmp.Or(cmp.Compare(a.at.Line, b.at.Line), cmp.Compare(a.at.Col, b.at.Col))
	})
	was := text
	var lines []string
	for _, e := range list {
		now, ok := plan.Rewrite(text, e.at, e.old, e.pinned)
		if !ok {
			e.at.Msg = e.old + " is put together of parts, where no digest can be written"
			e.at.Hint = "write it out, as " + e.pinned
			failed = append(failed, e.at)
			continue
		}
		text = now
		lines = append(lines, fmt.Sprintf("%s:%d: %s\n", file, e.at.Line, e.pinned))
	}
	if len(lines) == 0 {
		return failed, nil
	}
	if file == p.File {
		_, err := plan.Parse(file, text, filepath.Dir(file), registry.Builtin(), withRemotes(ctx, file, *o))
		if err != nil {
			return nil, plan.Bug("pinned, %s isn't an experiment any more: %v", file, err)
		}
	}
	if err := replaceFile(file, was, text); err != nil {
		return nil, err
	}
	slices.Reverse(lines)
	for _, line := range lines {
		fmt.Fprint(u.out, line)
	}
	return failed, nil
}

// replaceFile replaces the text of a user's file atomically, unless the file has been changed since old was
// read.
func replaceFile(file string, old, text []byte) error {
	place, err := here()
	if err == nil {
		err = place.realNamed(file)
	}
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return environment(err)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != string(old) {
		return environment(errors.Join(fmt.Errorf("%s was changed meanwhile", file), err))
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".pin-*")
	if err != nil {
		return environment(err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return environment(err)
	}
	return nil
}
