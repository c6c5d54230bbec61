package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/runexp/runexp/stages"
)

// An openLog is a log that stays open from its first append on, as a run of many small cells appends to a few
// hundred logs in turn: until the store is closed, or too many are open.
type openLog struct {
	file *os.File
	info os.FileInfo
}

// appendLog adds frames to a log with one write, and returns where they begin. A log that was rewritten
// meanwhile (see rewriteLog) is another file under the same name: then the frames are written there again.
func (s *Store) appendLog(log logFile, frames []byte) (off int64, err error) {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	for {
		l, err := s.openLog(log.path)
		if err != nil {
			return 0, err
		}
		if err := s.write(l.file, frames); err != nil {
			return 0, err
		}
		// The position after an appending write is the end of what it wrote.
		end, err := l.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return 0, s.writeErr(err)
		}
		if now, err := s.fs.Lstat(log.path); err == nil && os.SameFile(l.info, now) {
			return end - int64(len(frames)), nil
		}
		l.file.Close()
		delete(s.appending, log.path)
	}
}

// openLog returns an open log. The caller holds logMu.
func (s *Store) openLog(path string) (l openLog, err error) {
	l, ok := s.appending[path]
	if ok {
		return l, nil
	}
	if len(s.appending) >= s.maxLogs {
		if err := s.closeLogs(); err != nil {
			s.warn("%v", s.writeErr(err))
		}
	}
	if l.file, err = s.openAppend(path); err != nil {
		return l, err
	}
	if l.info, err = l.file.Stat(); err != nil {
		return l, s.writeErr(err)
	}
	s.appending[path] = l
	return l, nil
}

// closeLogs closes all logs; a later append opens its log again. The caller holds logMu.
func (s *Store) closeLogs() (err error) {
	for _, l := range s.appending {
		err = errors.Join(err, l.file.Close())
	}
	clear(s.appending)
	return err
}

// readLog calls fn for each frame of a log, from off on. A payload is valid only during the call.
func (s *Store) readLog(log logFile, off int64, fn frameFunc) (logScan, error) {
	f, err := s.read(log.path)
	if err != nil {
		return logScan{}, err
	}
	defer f.Close()
	return readOpenLog(f, off, log.kind, fn)
}

func readOpenLog(f *os.File, off int64, kind frameKind, fn frameFunc) (logScan, error) {
	info, err := f.Stat()
	if err != nil {
		return logScan{}, err
	}
	return scanFile(f, off, info.Size(), kind, fn)
}

// rewriteLog replaces a log by its frames except those at some places. A process that appends meanwhile loses
// nothing: frames from before the replacement are copied, and afterwards appendLog notices it.
func (s *Store) rewriteLog(log logFile, drop map[place]bool) error {
	old, err := s.read(log.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return s.writeErr(err)
	}
	defer old.Close()
	var kept, late []byte
	dropped := false
	scan, err := readOpenLog(old, 0, log.kind, func(off int64, key stages.Digest, payload []byte) {
		if drop[place{key, off}] {
			dropped = true
		} else {
			kept = appendFrame(kept, log.kind, key, payload)
		}
	})
	if err != nil {
		return s.writeErr(err)
	}
	if !dropped && scan.torn+scan.altered == 0 {
		return nil
	}
	if err := s.writeFile(log.path, 0o666, kept); err != nil {
		return err
	}
	// A frame that was just being written is whole by now, or will be written again.
	if _, err := readOpenLog(old, scan.end, log.kind, func(_ int64, key stages.Digest, payload []byte) {
		late = appendFrame(late, log.kind, key, payload)
	}); err != nil {
		return s.writeErr(err)
	}
	if len(late) > 0 {
		_, err = s.appendLog(log, late)
	}
	return err
}

const buckets = 256

// A logFile is one of the logs.
type logFile struct {
	path   string
	kind   frameKind
	bucket byte // the first byte of its keys, if the kind has a log for each byte
}

// inBuckets are the folders of the kinds that have a log for each first byte of keys.
var inBuckets = map[frameKind]string{actionFrame: "actions", itemFrame: "items"}

// log returns the log that has the frames of a key.
func (s *Store) log(kind frameKind, key stages.Digest) logFile {
	if folder, ok := inBuckets[kind]; ok {
		return logFile{filepath.Join(s.dir, folder, fmt.Sprintf("%02x.log", key[0])), kind, key[0]}
	}
	name := map[frameKind]string{indexFrame: "index", memoFrame: "memo.log", statFrame: "stat.idx"}[kind]
	return logFile{path: filepath.Join(s.dir, name), kind: kind}
}

func (s *Store) logs(kinds ...frameKind) (list []logFile, err error) {
	for _, kind := range kinds {
		folder, ok := inBuckets[kind]
		if !ok {
			list = append(list, s.log(kind, stages.Digest{}))
			continue
		}
		entries, err := s.entries(filepath.Join(s.dir, folder))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			var key stages.Digest
			if n, _ := fmt.Sscanf(e.Name(), "%02x.log", &key[0]); n == 1 && e.Type().IsRegular() {
				list = append(list, s.log(kind, key))
			}
		}
	}
	return list, nil
}
