package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sort"

	"github.com/runexp/runexp/stages"
)

// A Problem is something that Verify found wrong.
type Problem struct {
	File  string   // below the store's folder
	What  string   // in words
	Cells []string // whose results it takes away, sorted, "experiment: cell"
}

func (p Problem) String() string { return p.File + ": " + p.What }

// Verify reads everything: each object must have the bytes of its name, each
// record must be whole and lead to objects that are there. What's damaged is set
// aside or dropped, so that it's a miss and the next Verify finds nothing; a
// store opened for reading stays as it is. What a killed process left behind —
// temporary files, the beginning of a record — is no problem. progress, if it
// isn't nil, is told how many bytes of all objects are done.
func (s *Store) Verify(ctx context.Context, progress func(done, total int64)) ([]Problem, error) {
	v := &verification{s: s, packs: map[PackRef]string{}, cells: map[stages.Digest]map[string]bool{}, ctx: ctx}
	if err := v.objects(progress); err != nil {
		return nil, err
	}
	if err := v.actions(); err != nil {
		return nil, err
	}
	if err := v.items(); err != nil {
		return nil, err
	}
	if err := v.plainLogs(); err != nil {
		return nil, err
	}
	v.index()
	if err := v.mend(); err != nil {
		return nil, err
	}
	v.report()
	return v.problems, nil
}

type verification struct {
	s        *Store
	ctx      context.Context
	problems []Problem
	present  map[stages.Digest]int64 // sound objects and their sizes
	damaged  map[stages.Digest]objectProblem
	packs    map[PackRef]string // what's wrong with objects that records refer to; "" if nothing
	cells    map[stages.Digest]map[string]bool
	rewrite  sweep // logs to mend
	kinds    map[string]logKind
	known    map[place]bool // actions that can be had
	reindex  bool
}

type objectProblem struct{ file, what string }

type place struct {
	key stages.Digest
	off int64
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

// objects digests all objects, and sets aside those that aren't what they're called.
func (v *verification) objects(progress func(done, total int64)) error {
	v.present, v.damaged = map[stages.Digest]int64{}, map[stages.Digest]objectProblem{}
	var all []objectFile
	var done, total int64
	err := v.s.eachObject(func(o objectFile) error {
		if !o.temporary() {
			all = append(all, o)
			total += o.size
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, o := range all {
		d, n, err := v.hash(o.path)
		switch {
		case v.ctx.Err() != nil:
			return context.Cause(v.ctx)
		case errors.Is(err, fs.ErrNotExist):
			continue // collected meanwhile
		case err == nil && d == o.digest:
			v.present[d] = n
		default:
			what := "its bytes aren't those of its name"
			if err != nil {
				what = err.Error()
			}
			v.damaged[o.digest] = objectProblem{v.rel(o.path), what}
			if !v.s.readOnly {
				if err := v.s.setAside(o.path, filepath.Base(o.path)); err != nil {
					return err
				}
			}
		}
		if done += o.size; progress != nil {
			progress(done, total)
		}
	}
	return nil
}

// hash is hashFile that can be cancelled.
func (v *verification) hash(path string) (d stages.Digest, size int64, err error) {
	f, err := v.s.read(path)
	if err != nil {
		return d, 0, err
	}
	defer f.Close()
	h := sha256.New()
	for v.ctx.Err() == nil {
		n, err := io.CopyN(h, f, 16<<20)
		size += n
		if err == io.EOF {
			break
		} else if err != nil {
			return d, 0, err
		}
	}
	return stages.Digest(h.Sum(nil)), size, nil
}

// usable reports whether a record's objects are all sound, and notes what cell
// needs those that aren't.
func (v *verification) usable(packs []PackRef, cell string) bool {
	ok := true
	for _, p := range packs {
		size, there := v.present[p.Digest]
		if _, bad := v.damaged[p.Digest]; !there && !bad {
			// Another process may have put it since.
			n, err := v.s.size(v.s.packPath(p.Digest))
			size, there = n, err == nil
		}
		switch {
		case there && size == p.Size:
			continue
		case there:
			v.packs[p] = fmt.Sprintf("has %d bytes, a record says %d", size, p.Size)
		default:
			v.packs[p] = "is missing"
		}
		ok = false
		if v.cells[p.Digest] == nil {
			v.cells[p.Digest] = map[string]bool{}
		}
		if cell != "" {
			v.cells[p.Digest][cell] = true
		}
	}
	return ok
}

// log reads a log and asks of each frame whether it's sound, which returns what's
// wrong, and whether it can stay.
func (v *verification) log(path string, kind logKind, sound func(off int, key stages.Digest, payload []byte) (what string, stay bool)) error {
	if err := v.ctx.Err(); err != nil {
		return context.Cause(v.ctx)
	}
	b, err := v.s.readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		v.problem(path, "%v", err)
		return nil
	}
	if v.rewrite == nil {
		v.rewrite, v.kinds = sweep{}, map[string]logKind{}
	}
	log := &sweptLog{len(b), map[int]bool{}}
	mend := false
	scan := scanLog(b, kind, func(off int, key stages.Digest, payload []byte) {
		what, stay := sound(off, key, payload)
		if what != "" {
			v.problem(path, "%s, at byte %d", what, off)
		}
		log.stay[off] = stay
		mend = mend || !stay
	})
	for _, g := range scan.gaps {
		if !g.torn {
			v.problem(path, "%d bytes at %d are damaged", g.len, g.off)
			mend = true
		}
	}
	if mend {
		v.rewrite[path], v.kinds[path] = log, kind
	}
	return nil
}

func (v *verification) actions() error {
	v.known = map[place]bool{}
	return v.s.eachLog("actions", func(path string, bucket byte) error {
		return v.log(path, actionLog, func(off int, key stages.Digest, payload []byte) (string, bool) {
			a, err := decodeAction(key, payload)
			if err != nil || key[0] != bucket {
				return "an action is malformed", false
			}
			if !v.usable(a.Packs, a.cellName()) {
				return "", false
			}
			for i := range a.Outputs {
				if _, err := v.s.listing(&a.Outputs[i]); err != nil {
					return fmt.Sprintf("cell %q: %v", a.cellName(), err), false
				}
			}
			v.known[place{key, int64(off)}] = true
			return "", true
		})
	})
}

func (v *verification) items() error {
	return v.s.eachLog("items", func(path string, bucket byte) error {
		return v.log(path, itemLog, func(_ int, group stages.Digest, payload []byte) (string, bool) {
			_, packs, _, err := decodeItems(payload)
			if err != nil || group[0] != bucket {
				return "item records are malformed", false
			}
			return "", v.usable(packs.packs, "")
		})
	})
}

func (v *verification) plainLogs() error {
	err := v.log(v.s.memoPath(), memoLog, func(int, stages.Digest, []byte) (string, bool) { return "", true })
	if err != nil {
		return err
	}
	return v.log(v.s.statPath(), statLog, func(_ int, _ stages.Digest, payload []byte) (string, bool) {
		if _, ok := decodeState(payload); !ok {
			return "the state of a file is malformed", false
		}
		return "", true
	})
}

// index checks that the index is whole and names only actions that can be had. It's
// derived, so anything wrong makes it anew.
func (v *verification) index() {
	b, err := v.s.readFile(v.s.indexPath())
	if err != nil {
		v.reindex = len(v.known) > 0
		if !errors.Is(err, fs.ErrNotExist) {
			v.problem(v.s.indexPath(), "%v", err)
		}
		return
	}
	var x index
	if n := x.parse(b).altered(); n > 0 {
		v.problem(v.s.indexPath(), "%d bytes are damaged", n)
		v.reindex = true
	}
	lost := 0
	for h := range x.hits() {
		if off, _ := h.span(); v.known[place{h.key, off}] {
			continue
		}
		v.reindex = true
		if _, err := v.s.Action(h); err != nil {
			lost++
		}
	}
	if lost > 0 {
		v.problem(v.s.indexPath(), "names %d actions whose records are missing", lost)
	}
}

// mend drops what can't be had from the records.
func (v *verification) mend() error {
	if v.s.readOnly {
		return nil
	}
	paths := make([]string, 0, len(v.rewrite))
	for path := range v.rewrite {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	for _, path := range paths {
		if err := v.rewrite.rewrite(v.s, path, v.kinds[path]); err != nil {
			return err
		}
	}
	v.s.forgetPacks()
	if v.reindex || len(paths) > 0 {
		return v.s.rebuildIndex()
	}
	return nil
}

// report turns what was found about objects into problems, and sorts all.
func (v *verification) report() {
	for p, what := range v.packs {
		if _, ok := v.damaged[p.Digest]; !ok {
			v.damaged[p.Digest] = objectProblem{v.rel(v.s.packPath(p.Digest)), what}
		}
	}
	for d, o := range v.damaged {
		p := Problem{File: o.file, What: o.what}
		for cell := range v.cells[d] {
			p.Cells = append(p.Cells, cell)
		}
		sort.Strings(p.Cells)
		v.problems = append(v.problems, p)
	}
	sort.Slice(v.problems, func(i, j int) bool {
		a, b := v.problems[i], v.problems[j]
		if a.File != b.File {
			return a.File < b.File
		}
		return a.What < b.What
	})
}
