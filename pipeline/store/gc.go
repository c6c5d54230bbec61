package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/runexp/runexp/stages"
)

// Roots choose what a collection keeps. A nil function keeps everything.
type Roots struct {
	Action func(key stages.Digest) bool
	Items  func(group stages.Digest) bool
}

// A GCReport counts what a collection removed, or would remove.
type GCReport struct {
	Actions, ActionsKept int
	Objects, ObjectsKept int
	Bytes, BytesKept     int64    // of objects
	Shares               int      // which stay
	Leftovers            int      // temporary and damaged files removed
	Cells                []string // whose actions are removed, sorted, "experiment: cell"
}

// inFlight is the age up to which another process may still be using a file to which nothing refers.
const inFlight = time.Hour

// GC removes the actions and item groups that roots don't keep, older records of the same action or memo, the
// objects to which no remaining record refers, and the remains of killed processes. Without apply it only
// reports. Another run at the same time has misses at worst. Shares stay, with the objects to which their
// records refer.
func (s *Store) GC(roots Roots, apply bool) (GCReport, error) {
	if apply && s.opts.ReadOnly {
		return GCReport{}, errReadOnly
	}
	c := &collection{s: s, roots: roots, referred: map[stages.Digest]bool{}}
	logs, err := s.logs(actionFrame, itemFrame, memoFrame, statFrame)
	for _, log := range logs {
		err = errors.Join(err, c.log(log))
	}
	if err == nil {
		err = c.shares()
	}
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

// A collection finds out what to remove.
type collection struct {
	GCReport
	s        *Store
	roots    Roots
	sweep    sweep
	referred map[stages.Digest]bool // objects to which records refer: whether one of these records stays
	garbage  []string               // files
}

// log decides which records of a log stay: those that the roots keep and, of records that replace one
// another, as all except item records do, the newest.
func (c *collection) log(file logFile) error {
	type identity struct {
		key    stages.Digest
		madeBy string
	}
	var all []record
	newest := map[identity]int64{}
	log, err := c.s.sweepLog(file, func(r record, err error) bool {
		if err == nil {
			all = append(all, r)
			newest[identity{r.key, r.madeBy}] = r.off
		}
		return err == nil // to be decided below
	})
	c.sweep = append(c.sweep, log)
	keep := map[frameKind]func(stages.Digest) bool{actionFrame: c.roots.Action, itemFrame: c.roots.Items}
	root := keep[file.kind]
	for _, r := range all {
		current := newest[identity{r.key, r.madeBy}] == r.off || file.kind == itemFrame
		stays := current && (root == nil || root(r.key))
		log.drop[r.place] = !stays
		for _, p := range r.objects {
			c.referred[p.Digest] = c.referred[p.Digest] || stays
		}
		switch {
		case file.kind != actionFrame:
		case stays:
			c.ActionsKept++
		default:
			if c.Actions++; current {
				c.Cells = append(c.Cells, r.cell)
			}
		}
	}
	return err
}

// shares keeps the objects to which records of shares refer, until the shares are merged, and finds leftover
// files in their folders.
func (c *collection) shares() error {
	if err := c.s.eachShare(func(f *shareFile) error {
		c.Shares++
		return f.eachFrame(func(_ int64, _ stages.Digest, payload []byte) {
			_, objects, _, _ := decodeItems(payload)
			for _, p := range objects {
				c.referred[p.Digest] = true
			}
		})
	}); err != nil {
		return err
	}
	for _, dir := range c.s.shareDirs() {
		entries, err := c.s.entries(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				continue
			}
			age := time.Since(info.ModTime())
			if strings.HasPrefix(e.Name(), tempPrefix) && age > inFlight ||
				isExtract(e.Name()) && age > shareInUse {
				c.Leftovers++
				c.garbage = append(c.garbage, filepath.Join(dir, e.Name()))
			}
		}
	}
	return nil
}

// object decides whether a file of objects/ stays.
func (c *collection) object(o objectFile) error {
	fresh := time.Since(o.ModTime()) < inFlight
	stays, referred := c.referred[o.digest]
	switch {
	case o.temporary() && fresh:
	case o.temporary():
		c.Leftovers++
		c.garbage = append(c.garbage, o.path)
	case stays, fresh && !referred:
		c.ObjectsKept++
		c.BytesKept += o.Size()
	default:
		c.Objects++
		c.Bytes += o.Size()
		c.garbage = append(c.garbage, o.path)
	}
	return nil
}

// apply removes what was found: the index before the records, and records before the objects to which they
// refer, so that a kill leaves no reference to something that was removed.
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
	return nil
}
