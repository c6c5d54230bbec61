package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/runexp/runexp/stages"
)

// Roots choose what a collection keeps. A nil function keeps everything.
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

// inFlight is how long a file that nothing refers to may be part of what another process is just doing.
const inFlight = time.Hour

// GC removes the actions and item groups that roots don't keep, older records of the same action or memo, the
// objects that nothing left refers to, and what killed processes left. Without apply it only reports. What
// another run is doing meanwhile costs it misses at worst.
func (s *Store) GC(roots Roots, apply bool) (GCReport, error) {
	if apply && s.opts.ReadOnly {
		return GCReport{}, errReadOnly
	}
	c := &collection{s: s, roots: roots, referred: map[stages.Digest]bool{}}
	err := errors.Join(s.eachLog("actions", c.actions), s.eachLog("items", c.items),
		c.newest(s.memos.path, memoFrame), c.newest(s.files.path, statFrame))
	if err == nil {
		err = s.eachObject(c.object)
	}
	damaged, e := s.entries(filepath.Join(s.dir, "damaged"))
	if err = errors.Join(err, e); err != nil {
		return c.GCReport, err
	}
	for _, f := range damaged {
		c.Leftovers++
		c.garbage = append(c.garbage, filepath.Join(s.dir, "damaged", f.Name()))
	}
	slices.Sort(c.Cells)
	if _, err := os.Stat(s.dir); !apply || errors.Is(err, fs.ErrNotExist) {
		return c.GCReport, nil
	}
	return c.GCReport, c.apply()
}

// A collection finds out what goes.
type collection struct {
	GCReport
	s        *Store
	roots    Roots
	sweep    sweep
	referred map[stages.Digest]bool // objects that records refer to: whether one of those stays
	garbage  []string               // files
}

// actions decides which actions of a log stay: of each key and class of device the newest, if the roots keep
// the key.
func (c *collection) actions(path string, _ byte) error {
	type identity struct {
		key    stages.Digest
		madeBy string
	}
	type action struct {
		place
		identity
		name  string
		packs []PackRef
	}
	var all []action
	newest := map[identity]int64{}
	stays := func(off int64, key stages.Digest, payload []byte) bool {
		a, err := decodeAction(key, payload)
		if err != nil {
			return false
		}
		id := identity{key, a.MadeBy}
		newest[id] = off
		all = append(all, action{place{key, off}, id, a.name(), a.Packs})
		return true // to be decided below
	}
	log, _, err := c.sweep.read(c.s, path, actionFrame, stays)
	for _, a := range all {
		current := newest[a.identity] == a.off
		stays := current && (c.roots.Action == nil || c.roots.Action(a.identity.key))
		if stays {
			c.ActionsKept++
		} else if c.Actions++; current {
			c.Cells = append(c.Cells, a.name)
		}
		log.drop[a.place] = !stays
		c.refer(a.packs, stays)
	}
	return err
}

// items decides which item records of a log stay.
func (c *collection) items(path string, _ byte) error {
	groups := map[stages.Digest]bool{}
	_, _, err := c.sweep.read(c.s, path, itemFrame, func(_ int64, group stages.Digest, payload []byte) bool {
		packs, _, err := decodeItems(payload)
		if err != nil {
			return false
		}
		stays := c.roots.Items == nil || c.roots.Items(group)
		groups[group] = stays
		c.refer(packs, stays)
		return stays
	})
	for _, stays := range groups {
		if stays {
			c.GroupsKept++
		} else {
			c.Groups++
		}
	}
	return err
}

// newest decides that of a log whose frames replace older ones of the same key the newest stay.
func (c *collection) newest(path string, kind frameKind) error {
	newest := map[stages.Digest]int64{}
	log, _, err := c.sweep.read(c.s, path, kind, func(off int64, key stages.Digest, _ []byte) bool {
		newest[key] = off
		return false
	})
	for key, off := range newest {
		delete(log.drop, place{key, off})
	}
	return err
}

func (c *collection) refer(packs []PackRef, stays bool) {
	for _, p := range packs {
		c.referred[p.Digest] = c.referred[p.Digest] || stays
	}
}

// object decides whether a file of objects/ stays.
func (c *collection) object(o objectFile) error {
	fresh := time.Since(o.changed) < inFlight
	stays, referred := c.referred[o.digest]
	switch {
	case o.temporary() && fresh:
	case o.temporary():
		c.Leftovers++
		c.garbage = append(c.garbage, o.path)
	case stays, fresh && !referred:
		c.ObjectsKept++
		c.BytesKept += o.size
	default:
		c.Objects++
		c.Bytes += o.size
		c.garbage = append(c.garbage, o.path)
	}
	return nil
}

// apply removes what was found. Records go before the objects they refer to, and the index before the
// records, so that a kill leaves nothing that misleads.
func (c *collection) apply() error {
	s := c.s
	if err := s.makeWay(s.indexPath()); err != nil {
		return err
	}
	if err := s.remove(s.indexPath()); err != nil {
		return err
	}
	if err := c.sweep.rewrite(s); err != nil {
		return err
	}
	if err := s.rebuildIndex(); err != nil {
		return err
	}
	for _, path := range c.garbage {
		if err := s.remove(path); err != nil {
			return err
		}
	}
	s.forgetPacks()
	return nil
}

// A sweep lists logs, and which of their frames go.
type sweep []*sweptLog

type sweptLog struct {
	path string
	kind frameKind
	drop map[place]bool
}

// A place is where the frame of a key lies in a log.
type place struct {
	key stages.Digest
	off int64
}

// A frameTest reports whether a frame stays.
type frameTest = func(off int64, key stages.Digest, payload []byte) bool

// read adds a log, of whose frames those go that stays refuses.
func (w *sweep) read(s *Store, path string, kind frameKind, stays frameTest) (*sweptLog, logScan, error) {
	log := &sweptLog{path, kind, map[place]bool{}}
	scan, err := s.readLog(path, 0, kind, func(off int64, key stages.Digest, payload []byte) {
		if !stays(off, key, payload) {
			log.drop[place{key, off}] = true
		}
	})
	if errors.Is(err, fs.ErrNotExist) {
		return log, scan, nil
	} else if err != nil {
		return log, scan, s.writeErr(err)
	}
	*w = append(*w, log)
	return log, scan, nil
}

// rewrite drops the frames. What another process appended since stays.
func (w sweep) rewrite(s *Store) error {
	for _, log := range w {
		keep := func(off int64, key stages.Digest) bool { return !log.drop[place{key, off}] }
		if err := s.rewriteLog(log.path, log.kind, keep); err != nil {
			return err
		}
	}
	return nil
}
