package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// Verify reads everything: each object must have the bytes of its name, each record must be whole and lead
// to objects that exist. It sets aside or drops whatever is damaged, so that it's a miss and the next Verify
// finds nothing; a store opened for reading stays as it is. The remains of a killed process — temporary
// files, the beginning of a record — are no problem. The problems begin with the name of a file of the store.
func (s *Store) Verify(ctx context.Context) (problems []string, err error) {
	v := newVerification(ctx, s)
	if err := v.shares(); err != nil {
		return nil, err
	}
	if err := s.eachObject(v.object); err != nil {
		return nil, err
	}
	return v.records()
}

type verification struct {
	s        *Store
	ctx      context.Context
	problems []string
	sizes    map[stages.Digest]int64 // of objects, or unsound
	sweep    sweep                   // logs to mend
	known    map[place]bool          // actions that can be read
	reindex  bool
}

// unsound replaces the size of an object that is damaged, or differs from what records say.
const unsound = -1

func newVerification(ctx context.Context, s *Store) *verification {
	return &verification{s: s, ctx: ctx, sizes: map[stages.Digest]int64{}, known: map[place]bool{}}
}

// records checks and mends everything except objects, which were checked before, and returns all problems.
func (v *verification) records() ([]string, error) {
	logs, err := v.s.logs(actionFrame, itemFrame, memoFrame, statFrame)
	for _, log := range logs {
		err = cmp.Or(err, v.log(log))
	}
	if err != nil {
		return nil, err
	}
	v.index()
	slices.Sort(v.problems)
	return v.problems, v.mend()
}

func (v *verification) problem(path, format string, args ...any) {
	file := filepath.ToSlash(strings.TrimPrefix(path, v.s.dir+string(filepath.Separator)))
	v.problems = append(v.problems, file+": "+fmt.Sprintf(format, args...))
}

// shares adds the sound records of shares to the store, as a run does. It then sets aside damaged shares that
// aren't in use.
func (v *verification) shares() error {
	if v.s.opts.ReadOnly {
		return nil
	}
	r, err := v.s.MergeShares(v.ctx)
	if err != nil {
		return err
	}
	for _, refused := range r.Refused {
		v.problems = append(v.problems, "shares/"+refused)
	}
	for _, f := range r.damaged {
		switch err := v.s.setAside(f.path, f.name); {
		case errors.Is(err, fs.ErrPermission):
			const text = "damaged shares stay here: the folder is another user's, who can open it to " +
				"the group (chmod -R g+rwX): %v"
			v.problem(v.s.sharesDir(), text, err)
			return nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return nil
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
		v.sizes[d] = size
		return nil
	case err == nil:
		err = errors.New("its bytes aren't those of its name")
	}
	v.problem(o.path, "%v", err)
	v.sizes[o.digest] = unsound
	if v.s.opts.ReadOnly {
		return nil
	}
	return v.s.setAside(o.path, filepath.Base(o.path))
}

// usable reports whether a record's objects are all sound.
func (v *verification) usable(objects []ObjectRef) bool {
	usable := true
	for _, p := range objects {
		path := v.s.objectPath(p.Digest)
		size, known := v.sizes[p.Digest]
		if !known {
			// Another process may have put it since.
			n, err := v.s.size(path)
			if size = n; err != nil {
				v.problem(path, "is missing")
				size = unsound
			}
		}
		if size != p.Size && size != unsound {
			v.problem(path, "has %d bytes, a record says %d", size, p.Size)
			size = unsound
		}
		v.sizes[p.Digest] = size
		usable = usable && size != unsound
	}
	return usable
}

// log reads a log and checks each record.
func (v *verification) log(file logFile) error {
	if v.ctx.Err() != nil {
		return context.Cause(v.ctx)
	}
	log, err := v.s.sweepLog(file, func(r record, err error) bool {
		if err == nil && !v.usable(r.objects) {
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

// index checks that the index is whole and names only actions that can be read. It's derived, so it is
// rebuilt if anything is wrong.
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

// mend drops the records that can't be read, or whose objects can't.
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
