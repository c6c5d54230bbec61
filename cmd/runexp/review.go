package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/runexp/runexp/pipeline/publish"
	"github.com/runexp/runexp/pipeline/results"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/pipeline/webpage"
)

// pageFile is the page of a review folder; a .gitignore next to it excludes it from the user's commits.
const pageFile = "review.html"

func reviewVerb(f flags) *verb {
	r := reviewFlags{store: os.Getenv("RUNEXP_STORE")}
	f["-o"], f["--against"], f["--store"] = &r.out, &r.against, &r.store
	return &verb{
		name: "review", takes: arity{1, 1, "a review folder"},
		run: func(ctx context.Context, u *ui, args []string) error {
			p, err := here()
			if err != nil {
				return err
			}
			dir, err := (&engineFlags{store: r.store}).folder(p)
			if err != nil {
				return err
			}
			s, err := store.Open(dir, store.Options{ReadOnly: true, Warn: u.warn, Hook: u.hook})
			if err != nil {
				return environment(err)
			}
			u.closing = append(u.closing, s.Close)
			file, err := r.write(ctx, p, s, args[0])
			if err == nil {
				fmt.Fprintln(u.out, file)
			}
			return err
		},
	}
}

type reviewFlags struct{ out, against, store string }

// write writes the page of a review folder, with the maps in the store, and returns its name.
func (r *reviewFlags) write(ctx context.Context, p place, s *store.Store, dir string) (string, error) {
	v, err := publish.ReadVersion(dir)
	if err != nil {
		return "", environment(err)
	}
	var before *webpage.Source
	if r.against != "" {
		w, err := versionOf(ctx, r.against, dir)
		if err != nil {
			return "", environment(err)
		}
		source := withMaps(s, w)
		before = &source
	}
	out := r.out
	if out == "" {
		out = filepath.Join(dir, pageFile)
	}
	to, err := openOut(p, filepath.Dir(out))
	if err != nil {
		return "", err
	}
	defer to.Close()
	if r.out == "" {
		if err := ignorePage(to); err != nil {
			return "", environment(err)
		}
	}
	err = writeFile(to, filepath.Base(out), func(w io.Writer) error {
		return webpage.Write(w, withMaps(s, v), before)
	})
	if err != nil {
		return "", environment(err)
	}
	return p.short(out), nil
}

// versionOf reads a review folder, or another folder's version in a git revision.
func versionOf(ctx context.Context, name, other string) (*publish.Version, error) {
	if isFolder(name) || !isFolder(other) {
		return publish.ReadVersion(name)
	}
	return publish.ReadRevision(ctx, name, other)
}

// withMaps adds the maps in the store to a version.
func withMaps(s *store.Store, v *publish.Version) webpage.Source {
	list, known := results.FindMaps(s, v)
	source := webpage.Source{Version: v, Maps: list}
	if !known {
		source.Missing = fmt.Sprintf("There are no maps of %s: no run on this store published its present "+
			"content. runexp run does.", v.Name)
	}
	return source
}

// ignorePage excludes the page from git by a .gitignore that excludes itself too. An existing file is the
// user's and stays.
func ignorePage(dir *os.Root) error {
	f, err := dir.OpenFile(".gitignore", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	_, err = io.WriteString(f, "/.gitignore\n/"+pageFile+"\n")
	return errors.Join(err, f.Close())
}
