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

// maxLog bounds the logs and the index, which are read whole.
const maxLog = 4 << 30

// An openLog is a log that stays open from its first append on, as a run of many small cells appends to a few
// hundred logs in turn: until the store is closed, or too many are open.
type openLog struct {
	file *os.File
	info os.FileInfo
}

// appendLog adds frames to the log at path with one write, and returns where they begin. A log that was
// rewritten meanwhile (see rewriteLog) is another file under the same name: then the frames are written there
// again.
func (s *Store) appendLog(path string, frames []byte) (off int64, err error) {
	if err := s.setUp(); err != nil {
		return 0, err
	}
	s.logMu.Lock()
	defer s.logMu.Unlock()
	for {
		l, err := s.openLog(path)
		if err != nil {
			return 0, err
		}
		s.written.Store(true)
		if err := s.write(l.file, frames); err != nil {
			return 0, err
		}
		// The position behind an appending write is the end of what it wrote.
		end, err := l.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return 0, s.writeErr(err)
		}
		if now, err := os.Lstat(path); err == nil && os.SameFile(l.info, now) {
			return end - int64(len(frames)), nil
		}
		l.file.Close()
		delete(s.logs, path)
	}
}

// record appends a frame to the log at path, and returns its place.
func (s *Store) record(path string, kind frameKind, key stages.Digest, payload []byte) (int64, int, error) {
	if len(payload) > maxPayload {
		return 0, 0, fmt.Errorf("a record for %q has %d bytes, more than %d", path, len(payload), maxPayload)
	}
	frame := appendFrame(nil, kind, key, payload)
	off, err := s.appendLog(path, frame)
	return off, len(frame), err
}

// openLog returns an open log. The caller holds logMu.
func (s *Store) openLog(path string) (l openLog, err error) {
	l, ok := s.logs[path]
	if ok {
		return l, nil
	}
	if len(s.logs) >= s.maxLogs {
		if err := s.closeLogs(); err != nil {
			s.warn("%v", s.writeErr(err))
		}
	}
	if l.file, err = s.open(path, os.O_WRONLY|os.O_APPEND, 0o666); err == nil {
		if l.info, err = l.file.Stat(); err != nil {
			err = s.writeErr(err)
		}
	}
	if err != nil {
		l.file.Close() // of nil, too
		return l, err
	}
	s.logs[path] = l
	return l, nil
}

// closeLogs closes all logs; what's appended later opens its log again. The caller holds logMu.
func (s *Store) closeLogs() (err error) {
	for _, l := range s.logs {
		err = errors.Join(err, l.file.Close())
	}
	clear(s.logs)
	return err
}

// readLog calls fn for each frame of the log at path, from off on. A payload is valid only during the call.
func (s *Store) readLog(path string, off int64, kind frameKind, fn frameFunc) (logScan, error) {
	f, err := s.read(path)
	if err != nil {
		return logScan{}, err
	}
	defer f.Close()
	return readOpenLog(f, off, kind, fn)
}

func readOpenLog(f *os.File, off int64, kind frameKind, fn frameFunc) (logScan, error) {
	info, err := f.Stat()
	if err != nil {
		return logScan{}, err
	}
	if info.Size() > maxLog {
		return logScan{}, fmt.Errorf("%q has %d bytes, more than %d", f.Name(), info.Size(), int64(maxLog))
	}
	return scanFile(f, off, info.Size(), kind, fn)
}

// rewriteLog replaces a log by the frames that keep accepts. A process that appends meanwhile loses nothing:
// what came before the replacement is copied, and after it appendLog notices.
func (s *Store) rewriteLog(path string, kind frameKind, keep func(off int64, key stages.Digest) bool) error {
	old, err := s.read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return s.writeErr(err)
	}
	defer old.Close()
	var kept, late []byte
	dropped := false
	scan, err := readOpenLog(old, 0, kind, func(off int64, key stages.Digest, payload []byte) {
		if keep(off, key) {
			kept = appendFrame(kept, kind, key, payload)
		} else {
			dropped = true
		}
	})
	if err != nil {
		return s.writeErr(err)
	}
	if !dropped && len(scan.gaps) == 0 {
		return nil
	}
	if err := s.writeFile(path, 0o666, kept); err != nil {
		return err
	}
	// A frame that was just being written is whole by now, or will be written again.
	if _, err := readOpenLog(old, scan.end, kind, func(_ int64, key stages.Digest, payload []byte) {
		late = appendFrame(late, kind, key, payload)
	}); err != nil {
		return s.writeErr(err)
	}
	if len(late) > 0 {
		_, err = s.appendLog(path, late)
	}
	return err
}

const buckets = 256

// logPath returns the path of the log in a folder, actions or items, for keys that begin with a byte.
func (s *Store) logPath(folder string, bucket byte) string {
	return filepath.Join(s.dir, folder, fmt.Sprintf("%02x.log", bucket))
}

// eachLog calls fn for every log of a folder.
func (s *Store) eachLog(folder string, fn func(path string, bucket byte) error) error {
	logs, err := s.entries(filepath.Join(s.dir, folder))
	if err != nil {
		return err
	}
	for _, l := range logs {
		var bucket byte
		if n, _ := fmt.Sscanf(l.Name(), "%02x.log", &bucket); n != 1 || !l.Type().IsRegular() {
			continue
		}
		if err := fn(s.logPath(folder, bucket), bucket); err != nil {
			return err
		}
	}
	return nil
}
