package store

import (
	"fmt"
	"os"
	"sync"
)

// A spill is a file without a name that ends with the process. Columns put there what they don't hold in
// memory, so that memory stays flat however many images there are. The zero value has no file: all stays in
// memory, as it does where the file can't be written.
type spill struct {
	s *Store

	mu     sync.Mutex // guards what follows
	file   *os.File   // nil until needed
	path   string     // to remove, where an open file can't be
	end    int64
	failed bool // the disk is full, or there's no file
}

// put appends b, and returns its place if that worked.
func (p *spill) put(b []byte) (off int64, ok bool) {
	if p == nil || p.s.opts.ReadOnly {
		return 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil && !p.failed {
		p.failed = p.open() != nil
	}
	if p.failed {
		return 0, false
	}
	if _, err := p.file.WriteAt(b, p.end); err != nil {
		p.failed = true
		return 0, false
	}
	off = p.end
	p.end += int64(len(b))
	return off, true
}

// open makes the file among the objects, so that one whose process was killed at this very moment is swept
// like theirs.
func (p *spill) open() error {
	if err := p.s.setUp(); err != nil {
		return err
	}
	path := p.s.tempName(p.s.packPath([keyLen]byte{}))
	f, err := p.s.open(path, os.O_RDWR|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if os.Remove(path) != nil {
		p.path = path
	}
	p.file = f
	return nil
}

// get returns n bytes that put wrote. It panics if the disk can't return them: no caller has another source.
func (p *spill) get(off int64, n int) []byte {
	p.mu.Lock()
	f := p.file
	p.mu.Unlock()
	b := make([]byte, n)
	if _, err := f.ReadAt(b, off); err != nil {
		panic(fmt.Errorf("a temporary file of the store can't be read: %w", err))
	}
	return b
}

func (p *spill) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		p.file.Close()
		p.file, p.failed = nil, true
	}
	if p.path != "" {
		os.Remove(p.path)
		p.path = ""
	}
}
