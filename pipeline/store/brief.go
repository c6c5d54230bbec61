package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A brief is a file of copies, parts/brief-<experiment>.<random>: of the records of actions that the shares
// of a wave read, and of their listings, so that a share opens it instead of hundreds of logs and objects. It
// is a log of frames 'B', whose keys are those of the actions and the digests of the listings' objects. A
// share that sees none, or a damaged one, reads what was copied.
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
// some actions. Without actions it only removes those. What can't be read is left out, and that nothing can
// be written is worth a warning only.
func (s *Store) WriteBrief(experiment string, hits []Hit) error {
	if s.opts.ReadOnly {
		return errReadOnly
	}
	err := s.replaceBriefs(experiment, hits)
	if err == nil || errors.As(err, new(stop)) {
		return err
	}
	s.warn("%v; without a brief, shares ask for many files", err)
	return nil
}

func (s *Store) replaceBriefs(experiment string, hits []Hit) error {
	before, err := s.briefs(experiment)
	if err != nil {
		return err
	}
	if len(hits) > 0 {
		name := fmt.Sprintf("%s%016x", briefName(experiment), rand.Uint64())
		if err := s.setUp(); err != nil {
			return err
		}
		err := s.replaceBy(filepath.Join(s.partsDir(), name), 0o666, true,
			func(write func([]byte) error) error { return s.copyActions(hits, write) })
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

// copyActions writes the frames of a brief.
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
			b, err := s.Load(Ref{Digest: o.Object.Digest, Pack: *o.Object, Len: o.Object.Size})
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

// openBrief opens a brief, up to the first byte that isn't as it was written.
func (s *Store) openBrief(path string) (*brief, error) {
	f, err := s.read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a newer one has replaced it
	} else if err != nil {
		return nil, err
	}
	b := &brief{f, map[stages.Digest]span{}}
	_, err = readOpenLog(f, 0, briefFrame, func(off int64, key stages.Digest, payload []byte) {
		b.at[key] = span{off, frameLen + len(payload)}
	})
	return b, err
}

// get returns what is copied under a key, nil for nothing.
func (b *brief) get(key stages.Digest) []byte {
	at, ok := b.at[key]
	if !ok {
		return nil
	}
	frame := make([]byte, at.len)
	if _, err := b.file.ReadAt(frame, at.off); err != nil {
		return nil
	}
	if found, payload, _, ok := frameAt(frame, briefFrame); ok && bytes.Equal(found[:], key[:]) {
		return payload
	}
	return nil
}
