package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/runexp/runexp/stages"
)

// A fileState is what a file looks like from outside, and the digest of the bytes that were then in it.
type fileState struct {
	stamp
	digest stages.Digest
}

type stamp struct {
	size         int64
	mtime, ctime int64 // in Unix nanoseconds
	inode        uint64
}

// settled is how long a file must have been left alone before its digest is remembered. Within the resolution
// of file times — 2 s on some file systems — two versions of a file may look the same.
const settled = 2 * time.Second

// FileDigest returns the SHA-256 of an outside file. It reads the file only if size, times or inode are new,
// or if it changed so recently that they don't tell. The file must be a regular one, or a link to one.
func (s *Store) FileDigest(path string) (none stages.Digest, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return none, err
	}
	key := stages.Sum([]byte(abs))
	for range 3 {
		young := time.Now().Add(-settled).UnixNano()
		before, stamped, err := stampOf(abs)
		if err != nil {
			return none, err
		}
		b, _ := s.files.get(key)
		if known, err := decodeState(b); err == nil && stamped && before == known.stamp {
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
		if after, _, err := stampOf(abs); err != nil {
			return none, err
		} else if after != before || n != before.size {
			continue
		}
		if !stamped || before.mtime > young || before.ctime > young {
			return d, nil
		}
		return d, s.files.set(key, fileState{before, d}.encode())
	}
	return none, fmt.Errorf("%q changes while it's read", path)
}

// FileUnchanged returns an error unless the file still has the digest that FileDigest returned. What was made
// from a file that changed meanwhile is worth nothing.
func (s *Store) FileUnchanged(path string, digest stages.Digest) error {
	now, err := s.FileDigest(path)
	if err == nil && now != digest {
		return fmt.Errorf("%q changed while it was in use", path)
	}
	return err
}

// stampOf returns a file's stamp; ok is false where the system has no inodes.
func stampOf(path string) (st stamp, ok bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return st, false, err
	}
	if !info.Mode().IsRegular() {
		return st, false, fmt.Errorf("%q isn't a regular file", path)
	}
	ctime, inode, ok := changeTime(info)
	return stamp{info.Size(), info.ModTime().UnixNano(), ctime, inode}, ok, nil
}

const stateLen = 4*8 + keyLen

func (f fileState) encode() []byte {
	b := make([]byte, 0, stateLen)
	for _, v := range []uint64{uint64(f.size), uint64(f.mtime), uint64(f.ctime), f.inode} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return append(b, f.digest[:]...)
}

func decodeState(b []byte) (f fileState, err error) {
	if len(b) != stateLen || b[7] > 127 { // a size isn't negative
		return f, errMalformed
	}
	le := binary.LittleEndian
	f.size, f.mtime = int64(le.Uint64(b)), int64(le.Uint64(b[8:]))
	f.ctime, f.inode = int64(le.Uint64(b[16:])), le.Uint64(b[24:])
	f.digest = stages.Digest(b[32:])
	return f, nil
}
