package store

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/runexp/runexp/stages"
)

// An extract is a file like that of a share, shares/extract-<experiment>.<random>, with what all shares of an
// experiment read of the store: actions, the objects of their listings, and the item records of some groups,
// of which most have none. It saves each share from opening hundreds of logs and objects. A share that sees
// no extract, or a damaged one, reads the originals.

// maxExtract is how many bytes of listings and of item records an extract has at most. Tests change it.
var maxExtract int64 = 512 << 20

func extractName(experiment string) string {
	return fmt.Sprintf("extract-%016x.", nameHash(experiment, ""))
}

// isExtract reports whether a file among shares has the name of an extract, or the name that earlier versions
// gave to it.
func isExtract(name string) bool {
	return strings.HasPrefix(name, "extract-") || strings.HasPrefix(name, "brief-")
}

// WriteExtract writes the extract of an experiment, and removes earlier ones. It leaves out what can't be
// read, and only warns if nothing can be written.
func (s *Store) WriteExtract(experiment string, hits []Hit, groups []stages.Digest) error {
	if s.opts.ReadOnly {
		return errReadOnly
	}
	before, err := s.extracts(experiment)
	if err == nil {
		err = s.setUp()
	}
	if err == nil {
		name := fmt.Sprintf("%s%016x", extractName(experiment), rand.Uint64())
		err = s.replaceBy(filepath.Join(s.sharesDir(), name), 0o666, true,
			func(write func([]byte) error) error {
				e := extracting{s: s, write: write, written: map[stages.Digest]bool{}}
				return e.all(experiment, hits, groups)
			})
	}
	if err == nil {
		err = s.removeAll(before)
	}
	if err == nil || errors.As(err, new(stop)) {
		return err
	}
	s.warn("extract of %s: %v; shares read what would be copied", experiment, err)
	return nil
}

// RemoveExtract removes the extract of an experiment. It is called before something is recorded that the
// extract lacks.
func (s *Store) RemoveExtract(experiment string) error {
	before, err := s.extracts(experiment)
	if err != nil {
		return err
	}
	return s.removeAll(before)
}

func (s *Store) removeAll(paths []string) error {
	for _, path := range paths {
		if err := s.remove(path); err != nil {
			return err
		}
	}
	return nil
}

// An extracting writes an extract.
type extracting struct {
	s       *Store
	write   func([]byte) error
	written map[stages.Digest]bool // keys of actions, and digests of objects
	size    int64                  // of the copied listings and item records
}

func (e *extracting) all(experiment string, hits []Hit, groups []stages.Digest) error {
	note := func(n any) error {
		payload, err := json.Marshal(n)
		return cmp.Or(err, e.write(appendFrame(nil, noteFrame, stages.Digest{}, payload)))
	}
	now := time.Now().Unix()
	if err := note(ShareStart{Format: shareFormat, Experiment: experiment, Started: now}); err != nil {
		return err
	}
	for _, h := range hits {
		if err := e.action(h); err != nil {
			return err
		}
	}
	asked := [buckets]map[stages.Digest][]byte{} // item frames
	for _, g := range groups {
		if asked[g[0]] == nil {
			asked[g[0]] = map[stages.Digest][]byte{}
		}
		asked[g[0]][g] = nil
	}
	for bucket, frames := range asked {
		if err := e.items(byte(bucket), frames); err != nil {
			return err
		}
	}
	return note(ShareEnd{Outcome: ShareOK, Ended: now})
}

// action copies an action, after the objects of its listings.
func (e *extracting) action(h Hit) error {
	a, err := e.s.Action(h)
	if err != nil || e.written[h.key] {
		return nil
	}
	for _, out := range a.Outputs {
		o := out.Object
		if o == nil || e.written[o.Digest] || o.Size > maxExtract-e.size {
			continue
		}
		b, err := e.s.Load(Ref{Digest: o.Digest, Object: *o, Len: o.Size})
		if err != nil {
			continue
		}
		size := binary.LittleEndian.AppendUint64(nil, uint64(o.Size))
		if err := e.write(append(appendFrame(nil, objectFrame, o.Digest, size), b...)); err != nil {
			return err
		}
		e.written[o.Digest] = true
		e.size += o.Size
	}
	payload, err := encodeAction(&a)
	if err != nil {
		return err
	}
	e.written[h.key] = true
	return e.write(appendFrame(nil, actionFrame, h.key, payload))
}

// items copies the item records of groups whose log is that of a bucket. For a group without any it writes an
// empty record. If the records are too large together, it copies none, and shares read the log.
func (e *extracting) items(bucket byte, frames map[stages.Digest][]byte) error {
	if len(frames) == 0 {
		return nil
	}
	size := e.size
	_, err := e.s.readLog(e.s.log(itemFrame, stages.Digest{bucket}), 0,
		func(_ int64, group stages.Digest, payload []byte) {
			if b, ok := frames[group]; ok && size <= maxExtract {
				frames[group] = appendFrame(b, itemFrame, group, payload)
				size += int64(frameLen + len(payload))
			}
		})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if size > maxExtract {
		return nil
	}
	e.size = size
	for group, b := range frames {
		if b == nil {
			b = appendFrame(nil, itemFrame, group, encodeItems("", nil))
		}
		if err := e.write(b); err != nil {
			return err
		}
	}
	return nil
}

// extracts lists the extracts of an experiment.
func (s *Store) extracts(experiment string) (paths []string, err error) {
	entries, err := s.entries(s.sharesDir())
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), extractName(experiment)) {
			paths = append(paths, filepath.Join(s.sharesDir(), e.Name()))
		}
	}
	return paths, err
}

// openExtract opens the extract of an experiment. It returns nil if there is none, or if there are several:
// their names don't show which is the newest.
func (s *Store) openExtract(experiment string) (*shareFile, error) {
	paths, err := s.extracts(experiment)
	var found []*shareFile
	for _, path := range paths {
		f, err := s.foundShare(filepath.Split(path)).read()
		switch {
		case errors.Is(err, fs.ErrNotExist): // a newer one has replaced it
		case err != nil:
			s.warn("%s can't be read: %v", filepath.Base(path), err)
		case f.last == nil:
			s.warn("%s isn't whole", f.name)
			f.close()
		default:
			found = append(found, f)
		}
	}
	if len(found) == 1 {
		return found[0], err
	}
	for _, f := range found {
		f.close()
	}
	return nil, err
}
