package store

import (
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
)

// An openLog is a log that stays open from its first append on, as a run of many
// small cells appends to a few hundred logs in turn: until the store is closed, or
// too many are open.
type openLog struct {
	used uint64 // the number of the append that used it last, 0 while closed; guarded by Store.logMu

	mu   sync.Mutex // held while appending
	file *os.File   // nil while closed
	info os.FileInfo
}

// logAt returns the log at path, open or not.
func (s *Store) logAt(path string) *openLog {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	l := s.logs[path]
	if l == nil {
		if s.logs == nil {
			s.logs = map[string]*openLog{}
		}
		l = &openLog{}
		s.logs[path] = l
	}
	return l
}

// appendLog adds frames to the log at path with one write, and returns where they
// begin. A log that was rewritten meanwhile (see rewriteLog) is another file under the
// same name: then the frames go there.
func (s *Store) appendLog(path string, frames []byte) (off int64, err error) {
	if s.readOnly {
		return 0, errReadOnly
	}
	if err := s.setUp(); err != nil {
		return 0, err
	}
	l := s.logAt(path)
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if l.file == nil {
			if err := s.openLog(l, path); err != nil {
				return 0, err
			}
		}
		s.noteUse(l)
		off, same, err := s.appendTo(l, path, frames)
		if err != nil || same {
			return off, err
		}
		l.close()
	}
}

// noteUse notes that l is open, and closes the logs that weren't used for longest if
// too many are. The caller holds l.mu.
func (s *Store) noteUse(l *openLog) {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	if l.used == 0 {
		s.openLogs++
	}
	s.appends++
	l.used = s.appends
	for s.openLogs > s.maxLogs {
		var spare *openLog
		for _, other := range s.logs {
			if other != l && other.used > 0 && (spare == nil || other.used < spare.used) {
				spare = other
			}
		}
		if spare == nil || !spare.mu.TryLock() {
			return // it's in use again, so the next append will close one
		}
		if err := spare.close(); err != nil {
			s.warn("%v", s.writeErr(err))
		}
		spare.used = 0
		s.openLogs--
		spare.mu.Unlock()
	}
}

func (s *Store) openLog(l *openLog, path string) error {
	f, err := s.open(path, os.O_WRONLY|os.O_APPEND, 0o666)
	if err == nil {
		if l.info, err = f.Stat(); err != nil {
			err = s.writeErr(err)
		}
	}
	if err != nil {
		if f != nil {
			f.Close()
		}
		return err
	}
	l.file = f
	return nil
}

func (s *Store) appendTo(l *openLog, path string, frames []byte) (off int64, same bool, err error) {
	s.written.Store(true)
	if err := s.write(l.file, frames); err != nil {
		return 0, false, err
	}
	// The position behind an appending write is the end of what it wrote.
	end, err := l.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, false, s.writeErr(err)
	}
	now, err := os.Lstat(path)
	return end - int64(len(frames)), err == nil && os.SameFile(l.info, now), nil
}

func (l *openLog) close() error {
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return f.Close()
}

// closeLogs closes all logs; what's appended later opens its log again.
func (s *Store) closeLogs() error {
	s.logMu.Lock()
	all := slices.Collect(maps.Values(s.logs))
	s.logMu.Unlock()
	var err error
	for _, l := range all {
		l.mu.Lock()
		err = errors.Join(err, l.close())
		s.logMu.Lock()
		if l.used > 0 {
			l.used = 0
			s.openLogs--
		}
		s.logMu.Unlock()
		l.mu.Unlock()
	}
	return err
}
