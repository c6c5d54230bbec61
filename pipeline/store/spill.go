package store

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
)

// A spill is a file without a name that ends with the process. Columns put there what they don't hold in
// memory, so that memory stays flat however many images there are. Where the file can't be written, all stays
// in memory.
type spill struct {
	s    *Store
	once sync.Once // opens file
	file *os.File  // nil if it can't be made
	end  atomic.Int64
}

// put appends b, and returns its place if that worked.
func (p *spill) put(b []byte) (off int64, ok bool) {
	if p == nil {
		return 0, false
	}
	if p.once.Do(p.open); p.file == nil {
		return 0, false
	}
	off = p.end.Add(int64(len(b))) - int64(len(b))
	_, err := p.file.WriteAt(b, off)
	return off, err == nil
}

// open makes the file among the objects, so that one whose process was killed at this very moment is swept
// like theirs.
func (p *spill) open() {
	if p.s.opts.ReadOnly { // nothing is written there: this machine's own disk will do
		if f, err := os.CreateTemp("", "runexp-spill-"); err == nil {
			os.Remove(f.Name())
			p.file = f
		}
		return
	}
	if p.s.setUp() != nil {
		return
	}
	path := p.s.tempName(p.s.objectPath([keyLen]byte{}))
	if f, err := p.s.open(path, os.O_RDWR|os.O_EXCL, 0o600); err == nil {
		p.s.fs.RemoveAll(path)
		p.file = f
	}
}

// get returns n bytes that put wrote. It panics if the disk can't return them: no caller has another source.
func (p *spill) get(off int64, n int) []byte {
	b := make([]byte, n)
	if _, err := p.file.ReadAt(b, off); err != nil {
		panic(fmt.Errorf("a temporary file of the store can't be read: %w", err))
	}
	return b
}

func (p *spill) close() {
	p.once.Do(func() {})
	p.file.Close() // of nil, too
}
