package store

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
)

// A spill is a file without a name, which ends with the process. Columns write to it what they don't hold in
// memory, so that memory doesn't grow with the number of images. If the file can't be written, everything
// stays in memory.
type spill struct {
	s    *Store
	once sync.Once // opens file
	file *os.File  // nil if it can't be made
	end  atomic.Int64
}

// put appends b, and returns its place; ok is false if b can't be written.
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

// open makes the file among the objects, so that it is collected as their temporary files are if the process
// is killed before the file loses its name.
func (p *spill) open() {
	if p.s.opts.ReadOnly { // nothing is written to the store: use this machine's own disk
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

// get returns n bytes that put wrote. It panics if they can't be read: no caller has another source.
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
