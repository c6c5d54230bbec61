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

// settled is how long a file must have been left alone before its digest is remembered beyond the process.
// Within the resolution of file times — 2 s on some file systems — two versions of a file may look the same.
const settled = 2 * time.Second

// A stamp is what a file looks like from outside.
type stamp struct {
	size         int64
	mtime, ctime int64 // in Unix nanoseconds
	inode        uint64
}

// A fileState is a file's stamp, and the digest of the bytes that were then in it.
type fileState struct {
	stamp
	digest stages.Digest
	racy   bool // changed too short before it was read to be trusted
}

// FileDigest returns the SHA-256 of an outside file. It reads the file only if size, times or inode are new,
// or if it changed so recently that they don't tell. The file must be a regular one, or a link to one.
func (s *Store) FileDigest(path string) (stages.Digest, error) {
	st, err := s.fileState(path, false)
	return st.digest, err
}

// FileUnchanged returns an error unless the file still has the digest that FileDigest returned. What was made
// from a file that changed meanwhile is worth nothing.
func (s *Store) FileUnchanged(path string, digest stages.Digest) error {
	now, err := s.fileState(path, true)
	if err != nil {
		return err
	}
	if now.digest != digest {
		return fmt.Errorf("%q changed while it was in use", path)
	}
	return nil
}

// fileState returns the state of a file. With again, the digest of a racy file isn't taken from memory.
func (s *Store) fileState(path string, again bool) (fileState, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return fileState{}, err
	}
	info, err := os.Stat(abs)
	if err != nil {
		return fileState{}, err
	}
	if !info.Mode().IsRegular() {
		return fileState{}, fmt.Errorf("%q isn't a regular file", path)
	}
	key := stages.Sum([]byte(abs))
	b, _ := s.files.get(key)
	now, stamped := stampOf(info)
	if old, ok := decodeState(b); ok && stamped && now == old.stamp && !(again && old.racy) {
		return old, nil
	}
	state, err := readState(abs)
	if err != nil {
		return fileState{}, err
	}
	return state, s.files.set(key, state.encode(), !state.racy && stamped && !s.opts.ReadOnly)
}

// readState digests a file, again if it changed meanwhile.
func readState(path string) (fileState, error) {
	for range 3 {
		began := time.Now()
		before, err := os.Stat(path)
		if err != nil {
			return fileState{}, err
		}
		f, err := stages.OpenFile(path)
		if err != nil {
			return fileState{}, err
		}
		d, n, err := hashFile(context.Background(), f)
		if err != nil {
			return fileState{}, err
		}
		after, err := os.Stat(path)
		if err != nil {
			return fileState{}, err
		}
		a, ok := stampOf(before)
		if b, _ := stampOf(after); a != b || n != a.size {
			continue
		}
		young := began.Add(-settled).UnixNano()
		return fileState{a, d, !ok || a.mtime > young || a.ctime > young}, nil
	}
	return fileState{}, fmt.Errorf("%q changes while it's read", path)
}

// stampOf returns a file's stamp; ok is false where the system has no inodes.
func stampOf(info os.FileInfo) (st stamp, ok bool) {
	ctime, inode, ok := changeTime(info)
	return stamp{info.Size(), info.ModTime().UnixNano(), ctime, inode}, ok
}

const stateLen = 4*8 + keyLen

// encode returns the state as it's remembered. A racy one has a byte more, and never goes to the file.
func (f fileState) encode() []byte {
	b := make([]byte, 0, stateLen+1)
	for _, v := range []uint64{uint64(f.size), uint64(f.mtime), uint64(f.ctime), f.inode} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = append(b, f.digest[:]...)
	if f.racy {
		b = append(b, 1)
	}
	return b
}

func decodeState(b []byte) (f fileState, ok bool) {
	if len(b) != stateLen && len(b) != stateLen+1 {
		return f, false
	}
	le := binary.LittleEndian
	f.size, f.mtime = int64(le.Uint64(b)), int64(le.Uint64(b[8:]))
	f.ctime, f.inode = int64(le.Uint64(b[16:])), le.Uint64(b[24:])
	f.digest = stages.Digest(b[32:stateLen])
	f.racy = len(b) > stateLen
	return f, f.size >= 0
}
