package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"

	"github.com/runexp/runexp/stages"
)

// A fileState is a file's stamp, and the digest of the file's bytes at that time.
type fileState struct {
	stages.Stamp
	digest stages.Digest
}

// FileDigest returns the SHA-256 of an outside file. It reads the file only if size, times or inode are new,
// or if it changed so recently that these may not show it. The file must be a regular one, or a link to one.
// A share returns the digest that the store remembers without looking at the file, since otherwise all shares
// would look at every file of a data set.
func (s *Store) FileDigest(path string) (stages.Digest, error) {
	return s.fileDigest(path, s.trusts)
}

// fileDigest is FileDigest. With trust it doesn't look at a file whose digest is remembered.
func (s *Store) fileDigest(path string, trust bool) (none stages.Digest, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return none, err
	}
	key := stages.Sum([]byte(abs))
	if b, ok := s.files.get(key); ok && trust {
		if known, err := decodeState(b); err == nil {
			return known.digest, nil
		}
	}
	for range 3 {
		before, settled, err := stages.StampOf(abs)
		if err != nil {
			return none, err
		}
		b, _ := s.files.get(key)
		if known, err := decodeState(b); err == nil && before == known.Stamp {
			return known.digest, nil
		}
		f, err := stages.OpenFile(abs)
		if err != nil {
			return none, err
		}
		d, n, err := hashFile(context.Background(), f)
		if err != nil {
			return none, err
		}
		if after, _, err := stages.StampOf(abs); err != nil {
			return none, err
		} else if after != before || n != before.Size {
			continue
		}
		if !settled {
			if known, err := decodeState(b); err == nil && known.digest != d {
				return d, s.files.set(key, nil) // shares would trust the remembered digest
			}
			return d, nil
		}
		return d, s.files.set(key, fileState{before, d}.encode())
	}
	return none, fmt.Errorf("%q changes while it's read", path)
}

// KnowsFile reports whether a digest of an outside file is remembered, even if the file has changed since. It
// doesn't look at the file.
func (s *Store) KnowsFile(path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	_, ok := s.files.get(stages.Sum([]byte(abs)))
	return ok
}

// FileUnchanged returns an error unless the file still has the digest that FileDigest returned. Results from
// a file that changed meanwhile are worthless.
func (s *Store) FileUnchanged(path string, digest stages.Digest) error {
	now, err := s.fileDigest(path, false)
	if err == nil && now != digest && s.trusts {
		const text = "%q isn't what the store noted of it: run --share close, or a run of all, notes it anew"
		return fmt.Errorf(text, path)
	}
	if err == nil && now != digest {
		return fmt.Errorf("%q changed while it was in use", path)
	}
	return err
}

const stateLen = 4*8 + keyLen

func (f fileState) encode() []byte {
	b := make([]byte, 0, stateLen)
	for _, v := range []uint64{uint64(f.Size), uint64(f.MTime), uint64(f.CTime), f.Inode} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return append(b, f.digest[:]...)
}

func decodeState(b []byte) (f fileState, err error) {
	if len(b) != stateLen || b[7] > 127 { // a size isn't negative
		return f, errMalformed
	}
	le := binary.LittleEndian
	f.Size, f.MTime = int64(le.Uint64(b)), int64(le.Uint64(b[8:]))
	f.CTime, f.Inode = int64(le.Uint64(b[16:])), le.Uint64(b[24:])
	f.digest = stages.Digest(b[32:])
	return f, nil
}
