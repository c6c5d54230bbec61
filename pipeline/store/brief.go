package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A brief is a file, parts/brief-<experiment>.<random>, that spares the shares of a wave hundreds of logs and
// objects. It has the records of actions that they read, their listings, and the places of the records of
// items that they look for: mostly none, in logs that hold all other experiments' records. It is a log of
// frames 'B', whose keys are those of the actions, the digests of the listings' objects, and the groups. A
// share that sees no brief, or a damaged one, reads what was copied.
type brief struct {
	file *os.File
	at   map[stages.Digest]span
}

const briefFrame frameKind = 'B'

// maxBrief is how many bytes of listings a brief has at most. Every share reads it once.
const maxBrief = 512 << 20

func briefName(experiment string) string {
	return fmt.Sprintf("brief-%016x.", nameHash(experiment, ""))
}

// isBrief reports whether a file in parts/ is named like a brief.
func isBrief(name string) bool { return strings.HasPrefix(name, "brief-") }

// WriteBrief writes the brief of an experiment's next wave, in place of those before: what its shares read of
// some actions, and where the records of items of some groups are. Without any it only removes those before.
// What can't be read is left out, and that nothing can be written is worth a warning only.
func (s *Store) WriteBrief(experiment string, hits []Hit, groups []stages.Digest) error {
	if s.opts.ReadOnly {
		return errReadOnly
	}
	err := s.replaceBriefs(experiment, hits, groups)
	if err == nil || errors.As(err, new(stop)) {
		return err
	}
	s.warn("brief of %s: %v; shares read what would be copied", experiment, err)
	return nil
}

func (s *Store) replaceBriefs(experiment string, hits []Hit, groups []stages.Digest) error {
	before, err := s.briefs(experiment)
	if err != nil {
		return err
	}
	if len(hits)+len(groups) > 0 {
		name := fmt.Sprintf("%s%016x", briefName(experiment), rand.Uint64())
		if err := s.setUp(); err != nil {
			return err
		}
		err := s.replaceBy(filepath.Join(s.partsDir(), name), 0o666, true,
			func(write func([]byte) error) error {
				if err := s.copyActions(hits, write); err != nil {
					return err
				}
				return s.copyPlaces(groups, write)
			})
		if err != nil {
			return err
		}
	}
	for _, path := range before {
		if err := s.remove(path); err != nil {
			return err
		}
	}
	return nil
}

// copyActions writes the frames of actions and listings.
func (s *Store) copyActions(hits []Hit, write func([]byte) error) error {
	written, size := map[stages.Digest]bool{}, int64(0)
	add := func(key stages.Digest, payload []byte) error {
		written[key] = true
		return write(appendFrame(nil, briefFrame, key, payload))
	}
	for _, h := range hits {
		a, err := s.Action(h)
		if err != nil || written[h.key] {
			continue
		}
		payload, err := encodeAction(&a)
		if err != nil {
			return err
		}
		if err := add(h.key, payload); err != nil {
			return err
		}
		for _, o := range a.Outputs {
			if o.Object == nil || written[o.Object.Digest] || o.Object.Size > maxBrief-size {
				continue
			}
			b, err := s.Load(Ref{Digest: o.Object.Digest, Object: *o.Object, Len: o.Object.Size})
			if err != nil {
				continue
			}
			if err := add(o.Object.Digest, b); err != nil {
				return err
			}
			size += o.Object.Size
		}
	}
	return nil
}

// copyPlaces writes the frames of groups: of each record the distance from the one before, and its length.
func (s *Store) copyPlaces(groups []stages.Digest, write func([]byte) error) error {
	groups = slices.Clone(groups)
	slices.SortFunc(groups, func(a, b stages.Digest) int { return bytes.Compare(a[:], b[:]) })
	groups = slices.Compact(groups)
	for len(groups) > 0 {
		log := s.log(itemFrame, groups[0])
		n := slices.IndexFunc(groups, func(g stages.Digest) bool { return g[0] != log.bucket })
		if n < 0 {
			n = len(groups)
		}
		places, ends := map[stages.Digest][]byte{}, map[stages.Digest]int64{}
		for _, g := range groups[:n] {
			places[g] = []byte{}
		}
		_, err := s.readLog(log, 0, func(off int64, group stages.Digest, payload []byte) {
			if b, ok := places[group]; ok {
				length := frameLen + len(payload)
				places[group] = appendUint(appendUint(b, uint64(off-ends[group])), uint64(length))
				ends[group] = off + int64(length)
			}
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, g := range groups[:n] {
			if err := write(appendFrame(nil, briefFrame, g, places[g])); err != nil {
				return err
			}
		}
		groups = groups[n:]
	}
	return nil
}

// placesOf returns where the item records of a group are in their log, if the share has a brief that tells.
func (p *part) placesOf(group stages.Digest) (places []span, ok bool) {
	if p == nil {
		return nil, false
	}
	b := p.brief.get(group)
	if b == nil {
		return nil, false
	}
	d := &decoder{b: b}
	for end := int64(0); len(d.b) > 0; {
		at := span{end + d.size(), int(d.size())}
		places, end = append(places, at), at.off+int64(at.len)
	}
	return places, !d.bad
}

// briefs lists the briefs of an experiment.
func (s *Store) briefs(experiment string) (paths []string, err error) {
	entries, err := s.entries(s.partsDir())
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), briefName(experiment)) {
			paths = append(paths, filepath.Join(s.partsDir(), e.Name()))
		}
	}
	return paths, err
}

// openBrief opens the brief of an experiment, nil if there is none, or if there are several: then nobody
// knows which is the newest.
func (s *Store) openBrief(experiment string) (b *brief, err error) {
	paths, err := s.briefs(experiment)
	for _, path := range paths {
		f, e := s.read(path)
		if errors.Is(e, fs.ErrNotExist) {
			continue // a newer one has replaced it
		} else if e != nil {
			s.warn("%s can't be read: %v", filepath.Base(path), e)
			continue
		}
		if b != nil {
			b.file.Close()
			return nil, f.Close()
		}
		b = &brief{f, map[stages.Digest]span{}}
		if _, e = readOpenLog(f, 0, briefFrame, func(off int64, key stages.Digest, payload []byte) {
			b.at[key] = span{off, frameLen + len(payload)}
		}); e != nil {
			s.warn("%s can't be read whole: %v", filepath.Base(path), e)
		}
	}
	return b, err
}

// get returns what the brief has under a key, nil for nothing.
func (b *brief) get(key stages.Digest) []byte {
	if b == nil {
		return nil
	}
	at, ok := b.at[key]
	if !ok {
		return nil
	}
	payload, _ := readFrame(b.file, at, briefFrame, key) // what can't be read isn't there
	return payload
}
