package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/runexp/runexp/stages"
)

// Roots say what a collection keeps. A nil function keeps everything.
type Roots struct {
	Action func(key stages.Digest) bool
	Items  func(group stages.Digest) bool
}

// A GCReport tells what a collection removed, or would remove.
type GCReport struct {
	Actions, ActionsKept int
	Groups, GroupsKept   int
	Objects, ObjectsKept int
	Bytes, BytesKept     int64    // of objects
	Leftovers            int      // temporary and damaged files removed
	Cells                []string // whose actions go, sorted, "experiment: cell"
}

// GC removes the actions and item groups that roots don't keep, older records of
// the same action, the objects that nothing left refers to, and what killed
// processes left. Without apply it only reports. What another run is doing
// meanwhile costs it misses at worst.
func (s *Store) GC(roots Roots, apply bool) (GCReport, error) {
	var r GCReport
	if apply && s.readOnly {
		return r, errReadOnly
	}
	keep, drop := map[stages.Digest]bool{}, map[stages.Digest]bool{} // objects that records refer to
	actions, err := s.sweepActions(roots.Action, keep, drop, &r)
	if err != nil {
		return r, err
	}
	items, err := s.sweepItems(roots.Items, keep, drop, &r)
	if err != nil {
		return r, err
	}
	var garbage []string
	err = s.eachObject(func(o objectFile) error {
		fresh := time.Since(o.changed) < inFlight
		switch {
		case o.temporary() && !fresh:
			r.Leftovers++
			garbage = append(garbage, o.path)
		case o.temporary():
		case keep[o.digest], fresh && !drop[o.digest]:
			r.ObjectsKept++
			r.BytesKept += o.size
		default:
			r.Objects++
			r.Bytes += o.size
			garbage = append(garbage, o.path)
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	damaged, err := s.entries(filepath.Join(s.dir, "damaged"))
	if err != nil {
		return r, err
	}
	for _, f := range damaged {
		r.Leftovers++
		garbage = append(garbage, filepath.Join(s.dir, "damaged", f.Name()))
	}
	sort.Strings(r.Cells)
	if _, err := os.Stat(s.dir); !apply || errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	return r, s.collect(actions, items, garbage)
}

// collect removes what GC found. Records go before the objects they refer to,
// and the index before the records, so that a kill leaves nothing that misleads.
func (s *Store) collect(actions, items sweep, garbage []string) error {
	if err := s.makeWay(s.indexPath()); err != nil {
		return err
	}
	if err := s.remove(s.indexPath()); err != nil {
		return err
	}
	err := s.eachLog("actions", func(path string, _ byte) error { return actions.rewrite(s, path, actionLog) })
	if err != nil {
		return err
	}
	err = s.eachLog("items", func(path string, _ byte) error { return items.rewrite(s, path, itemLog) })
	if err != nil {
		return err
	}
	for _, log := range []struct {
		path string
		kind logKind
	}{{s.memoPath(), memoLog}, {s.statPath(), statLog}} {
		if err := s.newestOnly(log.path, log.kind); err != nil {
			return err
		}
	}
	if err := s.rebuildIndex(); err != nil {
		return err
	}
	for _, path := range garbage {
		if err := s.remove(path); err != nil {
			return err
		}
	}
	s.forgetPacks()
	return nil
}

// A sweep says which frames of some logs stay: those at these offsets, and
// whatever another process appended since the sweep.
type sweep map[string]*sweptLog

type sweptLog struct {
	size int
	stay map[int]bool
}

func (w sweep) log(path string, size int) *sweptLog {
	w[path] = &sweptLog{size, map[int]bool{}}
	return w[path]
}

func (w sweep) rewrite(s *Store, path string, kind logKind) error {
	log, ok := w[path]
	if !ok {
		return nil // another process made it since
	}
	return s.rewriteLog(path, kind, func(off int, _ stages.Digest, _ []byte) bool {
		return off >= log.size || log.stay[off]
	})
}

// sweepActions decides which actions stay.
func (s *Store) sweepActions(root func(stages.Digest) bool, keep, drop map[stages.Digest]bool, r *GCReport) (sweep, error) {
	type identity struct {
		key    stages.Digest
		madeBy string
	}
	w := sweep{}
	return w, s.eachLog("actions", func(path string, _ byte) error {
		b, err := s.readFile(path)
		if err != nil {
			return s.writeErr(err)
		}
		log := w.log(path, len(b))
		newest := map[identity]int{}
		scanLog(b, actionLog, func(off int, key stages.Digest, payload []byte) {
			if a, err := decodeAction(key, payload); err == nil {
				newest[identity{key, a.MadeBy}] = off
			}
		})
		scanLog(b, actionLog, func(off int, key stages.Digest, payload []byte) {
			a, err := decodeAction(key, payload)
			if err != nil {
				return
			}
			into := drop
			current := newest[identity{key, a.MadeBy}] == off
			if current && (root == nil || root(key)) {
				log.stay[off] = true
				into = keep
				r.ActionsKept++
			} else if r.Actions++; current {
				r.Cells = append(r.Cells, a.cellName())
			}
			for _, p := range a.Packs {
				into[p.Digest] = true
			}
		})
		return nil
	})
}

// sweepItems decides which item records stay.
func (s *Store) sweepItems(root func(stages.Digest) bool, keep, drop map[stages.Digest]bool, r *GCReport) (sweep, error) {
	w := sweep{}
	return w, s.eachLog("items", func(path string, _ byte) error {
		b, err := s.readFile(path)
		if err != nil {
			return s.writeErr(err)
		}
		log := w.log(path, len(b))
		groups := map[stages.Digest]bool{}
		scanLog(b, itemLog, func(off int, group stages.Digest, payload []byte) {
			_, packs, _, err := decodeItems(payload)
			if err != nil {
				return
			}
			kept := root == nil || root(group)
			groups[group] = kept
			into := drop
			if kept {
				log.stay[off] = true
				into = keep
			}
			for _, p := range packs.packs {
				into[p.Digest] = true
			}
		})
		for _, kept := range groups {
			if kept {
				r.GroupsKept++
			} else {
				r.Groups++
			}
		}
		return nil
	})
}

// newestOnly rewrites a log whose frames replace older ones of the same key.
func (s *Store) newestOnly(path string, kind logKind) error {
	b, err := s.readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return s.writeErr(err)
	}
	newest := map[stages.Digest]int{}
	scanLog(b, kind, func(off int, key stages.Digest, _ []byte) { newest[key] = off })
	w := sweep{}
	log := w.log(path, len(b))
	for _, off := range newest {
		log.stay[off] = true
	}
	return w.rewrite(s, path, kind)
}
