package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// Verify reads everything: each object must have the bytes of its name, each record must be whole and lead
// to objects that exist. What's damaged is set aside or dropped, so that it's a miss and the next Verify
// finds nothing; a store opened for reading stays as it is. What a killed process left behind — temporary
// files, the beginning of a record — is no problem.
func (s *Store) Verify(ctx context.Context) ([]Problem, error) {
	v := newVerification(ctx, s)
	if err := s.eachObject(v.object); err != nil {
		return nil, err
	}
	return v.records()
}

type verification struct {
	s        *Store
	ctx      context.Context
	problems []Problem
	sound    map[stages.Digest]int64    // objects and their sizes
	unsound  map[stages.Digest]*Problem // objects that are damaged, or aren't what records say
	sweep    sweep                      // logs to mend
	known    map[place]bool             // actions that can be had
	reindex  bool
}

func newVerification(ctx context.Context, s *Store) *verification {
	return &verification{
		s: s, ctx: ctx,
		sound: map[stages.Digest]int64{}, unsound: map[stages.Digest]*Problem{}, known: map[place]bool{},
	}
}

// records checks and mends everything but objects, which were checked before, and returns all problems.
func (v *verification) records() ([]Problem, error) {
	logs, err := v.s.logs(actionFrame, itemFrame, memoFrame, statFrame)
	for _, log := range logs {
		err = cmp.Or(err, v.log(log))
	}
	if err != nil {
		return nil, err
	}
	v.index()
	if err := v.mend(); err != nil {
		return nil, err
	}
	for _, p := range v.unsound {
		slices.Sort(p.Cells)
		p.Cells = slices.Compact(p.Cells)
		v.problems = append(v.problems, *p)
	}
	slices.SortFunc(v.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.What, b.What))
	})
	return v.problems, nil
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

// object digests an object, and sets it aside if its bytes aren't those of its name.
func (v *verification) object(o objectFile) error {
	if o.temporary() {
		return nil
	}
	d, size, err := v.s.hash(v.ctx, o.path)
	switch {
	case v.ctx.Err() != nil:
		return context.Cause(v.ctx)
	case errors.Is(err, fs.ErrNotExist): // collected meanwhile
		return nil
	case err == nil && d == o.digest:
		v.sound[d] = size
		return nil
	case err == nil:
		err = errors.New("its bytes aren't those of its name")
	}
	v.unsound[o.digest] = &Problem{File: v.rel(o.path), What: err.Error()}
	if v.s.opts.ReadOnly {
		return nil
	}
	return v.s.setAside(o.path, filepath.Base(o.path))
}

// usable reports whether a record's objects are all sound, and notes what cell needs those that aren't.
func (v *verification) usable(packs []PackRef, cell string) bool {
	usable := true
	for _, p := range packs {
		problem := v.unsound[p.Digest]
		if problem == nil {
			size, sound := v.sound[p.Digest]
			path := v.s.packPath(p.Digest)
			if !sound {
				// Another process may have put it since.
				n, err := v.s.size(path)
				size, sound = n, err == nil
			}
			if sound && size == p.Size {
				continue
			}
			problem = &Problem{File: v.rel(path), What: "is missing"}
			if sound {
				problem.What = fmt.Sprintf("has %d bytes, a record says %d", size, p.Size)
			}
			v.unsound[p.Digest] = problem
		}
		usable = false
		if cell != "" {
			problem.Cells = append(problem.Cells, cell)
		}
	}
	return usable
}

// log reads a log and checks each record.
func (v *verification) log(file logFile) error {
	if v.ctx.Err() != nil {
		return context.Cause(v.ctx)
	}
	var w sweep
	log, err := w.read(v.s, file, func(r record, err error) bool {
		if err == nil && !v.usable(r.packs, r.cell) {
			return false
		}
		for i := 0; i < len(r.outputs) && err == nil; i++ {
			_, err = v.s.listing(&r.outputs[i])
		}
		if err != nil {
			v.problem(file.path, "%v, at byte %d", err, r.off)
			return false
		}
		if file.kind == actionFrame {
			v.known[r.place] = true
		}
		return true
	})
	if err != nil {
		v.problem(file.path, "%v", err)
		return nil
	}
	if log.altered > 0 {
		v.problem(file.path, "%d bytes are damaged", log.altered)
	}
	if len(log.drop) > 0 || log.altered > 0 {
		v.sweep = append(v.sweep, log)
	}
	return nil
}

// index checks that the index is whole and names only actions that can be had. It's derived, so anything
// wrong makes it anew.
func (v *verification) index() {
	path := v.s.indexPath()
	b, err := v.s.readFile(path)
	if err != nil {
		v.reindex = len(v.known) > 0
		if !errors.Is(err, fs.ErrNotExist) {
			v.problem(path, "%v", err)
		}
		return
	}
	var x index
	if n := x.parse(b).altered; n > 0 {
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
}

// mend drops what can't be had from the records.
func (v *verification) mend() error {
	if v.s.opts.ReadOnly {
		return nil
	}
	if err := v.sweep.rewrite(v.s); err != nil {
		return err
	}
	if v.reindex || len(v.sweep) > 0 {
		return v.s.rebuildIndex()
	}
	return nil
}
