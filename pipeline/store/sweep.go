package store

import (
	"errors"
	"io/fs"

	"github.com/runexp/runexp/stages"
)

// A sweep lists logs, and the frames to remove from them.
type sweep []*sweptLog

type sweptLog struct {
	logFile
	logScan
	drop map[place]bool
}

// A place is the place of a key's frame in a log.
type place struct {
	key stages.Digest
	off int64
}

// A record has the fields of a frame that decide whether it stays.
type record struct {
	place
	objects []ObjectRef // it refers to
	cell    string      // of an action: its name for people
	madeBy  string      // of an action
	outputs []Output    // of an action
}

func (l logFile) record(off int64, key stages.Digest, payload []byte) (r record, err error) {
	r.place = place{key, off}
	switch l.kind {
	case actionFrame:
		var a Action
		a, err = decodeAction(key, payload)
		r.objects, r.cell, r.madeBy, r.outputs = a.Objects, a.name(), a.MadeBy, a.Outputs
	case itemFrame:
		_, r.objects, _, err = decodeItems(payload)
	case statFrame:
		_, err = decodeState(payload)
	}
	if _, ok := inBuckets[l.kind]; ok && key[0] != l.bucket {
		err = errMalformed
	}
	return r, err
}

// sweepLog reads a log, and lists the frames that stays refuses. A log that doesn't exist has none.
func (s *Store) sweepLog(file logFile, stays func(r record, err error) bool) (log *sweptLog, err error) {
	log = &sweptLog{logFile: file, drop: map[place]bool{}}
	log.logScan, err = s.readLog(file, 0, func(off int64, key stages.Digest, payload []byte) {
		if r, err := file.record(off, key, payload); !stays(r, err) {
			log.drop[r.place] = true
		}
	})
	if errors.Is(err, fs.ErrNotExist) {
		return log, nil
	}
	return log, s.writeErr(err)
}

// rewrite removes the listed frames. Frames that another process has appended since stay.
func (w sweep) rewrite(s *Store) error {
	for _, log := range w {
		if err := s.rewriteLog(log.logFile, log.drop); err != nil {
			return err
		}
	}
	s.lookMu.Lock()
	defer s.lookMu.Unlock()
	clear(s.looked) // Check looks again
	return nil
}
