package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/runexp/runexp/stages"
)

// A Problem is something that Verify found wrong.
type Problem struct {
	File  string   // below the store's folder
	What  string   // in words
	Cells []string // whose results it takes away, sorted, "experiment: cell"
}

func (p Problem) String() string { return p.File + ": " + p.What }

// Verify reads everything: each object must have the bytes of its name, each record must be whole and lead to
// objects that exist. What's damaged is set aside or dropped, so that it's a miss and the next Verify finds
// nothing; a store opened for reading stays as it is. What a killed process left behind — temporary files,
// the beginning of a record — is no problem. progress, if it isn't nil, is told how many bytes of all objects
// are done.
func (s *Store) Verify(ctx context.Context) ([]Problem, error) {
	v := newVerification(ctx, s)
	if err := v.objects(); err != nil {
		return nil, err
	}
	return v.records()
}

func newVerification(ctx context.Context, s *Store) *verification {
	return &verification{
		s: s, ctx: ctx, sound: map[stages.Digest]int64{}, unsound: map[stages.Digest]*unsoundObject{},
		known: map[place]bool{},
	}
}

// records checks and mends everything but objects, which were checked before, and returns all problems.
func (v *verification) records() ([]Problem, error) {
	steps := []func() error{
		func() error { return v.s.eachLog("actions", v.actions) },
		func() error { return v.s.eachLog("items", v.items) },
		func() error {
			return v.log(v.s.memos.path, memoFrame,
				func(int64, stages.Digest, []byte) (string, bool) { return "", true })
		},
		func() error { return v.log(v.s.files.path, statFrame, checkState) },
		v.index,
		v.mend,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	for _, o := range v.unsound {
		o.Cells = slices.Sorted(maps.Keys(o.cells))
		v.problems = append(v.problems, o.Problem)
	}
	slices.SortFunc(v.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.What, b.What))
	})
	return v.problems, nil
}

type verification struct {
	s        *Store
	ctx      context.Context
	problems []Problem
	sound    map[stages.Digest]int64 // objects and their sizes
	unsound  map[stages.Digest]*unsoundObject
	sweep    sweep          // logs to mend
	known    map[place]bool // actions that can be had
	reindex  bool
}

// An unsoundObject is damaged, or isn't what records say.
type unsoundObject struct {
	Problem
	cells map[string]bool
}

func (v *verification) problem(path, format string, args ...any) {
	v.problems = append(v.problems, Problem{File: v.rel(path), What: fmt.Sprintf(format, args...)})
}

func (v *verification) rel(path string) string {
	if r, err := filepath.Rel(v.s.dir, path); err == nil {
		return filepath.ToSlash(r)
	}
	return path
}

// objects digests all objects, and sets aside those whose bytes aren't those of their name.
func (v *verification) objects() error {
	return v.s.eachObject(func(o objectFile) error {
		if o.temporary() {
			return nil
		}
		d, n, err := v.hash(o.path)
		switch {
		case v.ctx.Err() != nil:
			return context.Cause(v.ctx)
		case errors.Is(err, fs.ErrNotExist): // collected meanwhile
			return nil
		case err == nil && d == o.digest:
			v.sound[d] = n
			return nil
		}
		what := "its bytes aren't those of its name"
		if err != nil {
			what = err.Error()
		}
		v.unsound[o.digest] = &unsoundObject{Problem{File: v.rel(o.path), What: what}, map[string]bool{}}
		if v.s.opts.ReadOnly {
			return nil
		}
		return v.s.setAside(o.path, filepath.Base(o.path))
	})
}

func (v *verification) hash(path string) (d stages.Digest, size int64, err error) {
	f, err := v.s.read(path)
	if err != nil {
		return d, 0, err
	}
	return hashFile(v.ctx, f)
}

// usable reports whether a record's objects are all sound, and notes what cell needs those that aren't.
func (v *verification) usable(packs []PackRef, cell string) bool {
	ok := true
	for _, p := range packs {
		size, there := v.sound[p.Digest]
		o := v.unsound[p.Digest]
		path := v.s.packPath(p.Digest)
		if !there && o == nil {
			// Another process may have put it since.
			n, err := v.s.size(path)
			size, there = n, err == nil
		}
		if there && size == p.Size {
			continue
		}
		if ok = false; o == nil {
			what := "is missing"
			if there {
				what = fmt.Sprintf("has %d bytes, a record says %d", size, p.Size)
			}
			o = &unsoundObject{Problem{File: v.rel(path), What: what}, map[string]bool{}}
			v.unsound[p.Digest] = o
		}
		if cell != "" {
			o.cells[cell] = true
		}
	}
	return ok
}

// log reads a log and asks of each frame whether it's sound, which returns what's wrong, and whether it can
// stay.
func (v *verification) log(path string, kind frameKind,
	check func(off int64, key stages.Digest, payload []byte) (
		what string, stay bool)) error {
	if v.ctx.Err() != nil {
		return context.Cause(v.ctx)
	}
	var w sweep
	log, scan, err := w.read(v.s, path, kind, func(off int64, key stages.Digest, payload []byte) bool {
		what, stay := check(off, key, payload)
		if what != "" {
			v.problem(path, "%s, at byte %d", what, off)
		}
		return stay
	})
	if err != nil {
		v.problem(path, "%v", err)
		return nil
	}
	for _, g := range scan.gaps {
		if !g.torn {
			v.problem(path, "%d bytes at %d are damaged", g.len, g.off)
		}
	}
	if len(log.drop) > 0 || scan.altered() > 0 {
		v.sweep = append(v.sweep, log)
	}
	return nil
}

func (v *verification) actions(path string, bucket byte) error {
	return v.log(path, actionFrame, func(off int64, key stages.Digest, payload []byte) (string, bool) {
		a, err := decodeAction(key, payload)
		if err != nil || key[0] != bucket {
			return "an action is malformed", false
		}
		if !v.usable(a.Packs, a.name()) {
			return "", false
		}
		for i := range a.Outputs {
			if _, err := v.s.listing(&a.Outputs[i]); err != nil {
				return fmt.Sprintf("cell %q: %v", a.name(), err), false
			}
		}
		v.known[place{key, off}] = true
		return "", true
	})
}

func (v *verification) items(path string, bucket byte) error {
	return v.log(path, itemFrame, func(_ int64, group stages.Digest, payload []byte) (string, bool) {
		packs, _, err := decodeItems(payload)
		if err != nil || group[0] != bucket {
			return "item records are malformed", false
		}
		return "", v.usable(packs, "")
	})
}

func checkState(_ int64, _ stages.Digest, payload []byte) (string, bool) {
	if f, ok := decodeState(payload); !ok || f.racy {
		return "the state of a file is malformed", false
	}
	return "", true
}

// index checks that the index is whole and names only actions that can be had. It's derived, so anything
// wrong makes it anew.
func (v *verification) index() error {
	path := v.s.indexPath()
	b, err := v.s.readFile(path)
	if err != nil {
		v.reindex = len(v.known) > 0
		if !errors.Is(err, fs.ErrNotExist) {
			v.problem(path, "%v", err)
		}
		return nil
	}
	var x index
	if n := x.parse(b).altered(); n > 0 {
		v.problem(path, "%d bytes are damaged", n)
		v.reindex = true
	}
	lost := 0
	for key, i := range x.newest {
		h := x.rows[i].hit()
		if off, _ := h.span(); v.known[place{key, off}] {
			continue
		}
		v.reindex = true
		if _, err := v.s.Action(h); err != nil {
			lost++
		}
	}
	if lost > 0 {
		v.problem(path, "names %d actions whose records are missing", lost)
	}
	return nil
}

// mend drops what can't be had from the records.
func (v *verification) mend() error {
	if v.s.opts.ReadOnly {
		return nil
	}
	if err := v.sweep.rewrite(v.s); err != nil {
		return err
	}
	v.s.forgetPacks()
	if v.reindex || len(v.sweep) > 0 {
		return v.s.rebuildIndex()
	}
	return nil
}
