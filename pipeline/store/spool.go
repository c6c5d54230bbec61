package store

import (
	"encoding/binary"
	"io"
	"math/bits"
	"os"
	"slices"
	"sort"
	"sync"
)

// A spool is where a process puts what it needs to find again and doesn't want
// to hold in memory: a file without a name, that ends with the process. What was
// put there last is in memory, all of it if the store is only read.
type spool struct {
	mu   sync.Mutex // guards what follows
	file *os.File   // nil until needed
	path string     // to remove, where an open file can't be
	base int64      // bytes in the file
	tail []byte     // what follows them

	closed bool
}

// spoolTail is how many bytes at the end of the spool are in memory. Small runs
// have no file.
const spoolTail = 64 << 10

// spoolAppend puts b into the spool and returns where it lies.
func (s *Store) spoolAppend(b []byte) (int64, error) {
	p := &s.spool
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.tail) > 0 && len(p.tail)+len(b) > spoolTail && !s.readOnly {
		if p.file == nil {
			if err := s.openSpool(); err != nil {
				return 0, err
			}
		}
		if err := s.write(p.file, p.tail); err != nil {
			p.file.Seek(p.base, io.SeekStart) // the next try writes over what this one left
			return 0, err
		}
		p.base += int64(len(p.tail))
		p.tail = p.tail[:0]
	}
	off := p.base + int64(len(p.tail))
	p.tail = append(p.tail, b...)
	return off, nil
}

// spoolRead returns n bytes of the spool.
func (s *Store) spoolRead(off int64, n int) ([]byte, error) {
	b := make([]byte, n)
	p := &s.spool
	p.mu.Lock()
	file, inFile, closed := p.file, off < p.base, p.closed // a piece is never here and there
	if !inFile && !closed {
		copy(b, p.tail[off-p.base:])
	}
	p.mu.Unlock()
	switch {
	case closed:
		return nil, os.ErrClosed
	case inFile:
		if _, err := file.ReadAt(b, off); err != nil {
			return nil, s.writeErr(err)
		}
	}
	return b, nil
}

// openSpool makes the spool's file, beside objects so that one whose process was
// killed at this very moment is swept like theirs.
func (s *Store) openSpool() error {
	if err := s.setUp(); err != nil {
		return err
	}
	path := s.tempName(s.packPath([keyLen]byte{}))
	f, err := s.open(path, os.O_RDWR|os.O_EXCL, 0o600)
	if f == nil {
		return err
	}
	if os.Remove(path) != nil {
		s.spool.path = path
	}
	s.spool.file = f
	return err
}

func (s *Store) closeSpool() {
	p := &s.spool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		p.file.Close()
		p.file, p.tail, p.closed = nil, nil, true
	}
	if p.path != "" {
		os.Remove(p.path)
		p.path = ""
	}
}

// Rows are a list of records that grows at its end and is read anywhere, mostly
// in order. There may be one for every image of a data set, so they lie in a file
// of the store's, until it's closed, but for a page or two.
type Rows struct {
	s *Store

	mu     sync.Mutex // guards what follows
	n      int
	page   []byte       // the last one: each row after its length
	sealed *sealedPages // those before it, if any
}

type sealedPages struct {
	places []pagePlace
	n      int // rows
	recent [4]cachedPage
	turn   int // which of them is replaced next
}

// A pagePlace is a page in the spool.
type pagePlace struct {
	off   int64
	len   int32
	first int32 // row
}

type cachedPage struct {
	number int // among the sealed pages, plus one
	b      []byte
}

// pageSize is the size of a page in bytes; one with a larger row is larger.
const pageSize = 4 << 10

// NewRows returns an empty list.
func (s *Store) NewRows() *Rows { return &Rows{s: s} }

// Len returns the number of rows.
func (t *Rows) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

// Append adds a row. The bytes are copied.
func (t *Rows) Append(row []byte) error {
	_, err := t.append(row)
	return err
}

// append is Append, and returns the row's number.
func (t *Rows) append(row []byte) (number int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	need := binary.MaxVarintLen32 + len(row)
	if len(t.page) > 0 && len(t.page)+need > pageSize {
		off, err := t.s.spoolAppend(t.page)
		if err != nil {
			return 0, err
		}
		if t.sealed == nil {
			t.sealed = &sealedPages{}
		}
		p := t.sealed
		p.places = append(p.places, pagePlace{off, int32(len(t.page)), int32(p.n)})
		p.keep(len(p.places), t.page)
		t.page, p.n = make([]byte, 0, pageSize), t.n
	}
	t.page = slices.Grow(t.page, need)
	t.page = appendUint(t.page, uint64(len(row)))
	t.page = append(t.page, row...)
	t.n++
	return t.n - 1, nil
}

// At returns row i. The bytes must not be changed.
func (t *Rows) At(i int) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	page, first := t.page, 0
	if p := t.sealed; p != nil {
		if first = p.n; i < first {
			k := sort.Search(len(p.places), func(k int) bool { return int(p.places[k].first) > i }) // one behind
			var err error
			if page, err = p.read(t.s, k); err != nil {
				return nil, err
			}
			first = int(p.places[k-1].first)
		}
	}
	for ; first < i; first++ {
		n, w := binary.Uvarint(page)
		page = page[w+int(n):]
	}
	n, w := binary.Uvarint(page)
	return page[w : w+int(n) : w+int(n)], nil
}

// read returns the page of a number, which counts from one.
func (p *sealedPages) read(s *Store, number int) ([]byte, error) {
	for i := range p.recent {
		if p.recent[i].number == number {
			return p.recent[i].b, nil
		}
	}
	at := p.places[number-1]
	b, err := s.spoolRead(at.off, int(at.len))
	if err != nil {
		return nil, err
	}
	p.keep(number, b)
	return b, nil
}

func (p *sealedPages) keep(number int, b []byte) {
	p.recent[p.turn] = cachedPage{number, b}
	p.turn = (p.turn + 1) % len(p.recent)
}

// held returns how many bytes of the rows are in memory for good.
func (t *Rows) held() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.page)
}

// A RowIndex finds rows by a hash of what is in them. It takes about a dozen
// bytes a row, and leaves the comparing to its user.
type RowIndex struct {
	slots []uint64 // the hash above the row's number plus one; 0 for none
	n     int
}

// Find returns the row with the hash that is the same, or -1.
func (x *RowIndex) Find(hash uint32, same func(row int) (bool, error)) (int, error) {
	if at, err := x.slot(hash, same); err != nil || at < 0 || x.slots[at] == 0 {
		return -1, err
	} else {
		return rowOf(x.slots[at]), nil
	}
}

// Set makes row the one that Find returns for what is the same.
func (x *RowIndex) Set(hash uint32, row int, same func(row int) (bool, error)) error {
	x.Grow(x.n + 1)
	at, err := x.slot(hash, same)
	if err != nil {
		return err
	}
	if x.slots[at] == 0 {
		x.n++
	}
	x.slots[at] = uint64(hash)<<32 | uint64(uint32(row)+1)
	return nil
}

// Len returns the number of different rows.
func (x *RowIndex) Len() int { return x.n }

func rowOf(slot uint64) int { return int(uint32(slot)) - 1 }

// slot returns where the row is, or the empty slot where it would be; -1 without
// any slots.
func (x *RowIndex) slot(hash uint32, same func(row int) (bool, error)) (int, error) {
	if len(x.slots) == 0 {
		return -1, nil
	}
	for at := int(hash) & (len(x.slots) - 1); ; at = (at + 1) & (len(x.slots) - 1) {
		v := x.slots[at]
		if v == 0 {
			return at, nil
		}
		if uint32(v>>32) != hash {
			continue
		}
		if ok, err := same(rowOf(v)); err != nil || ok {
			return at, err
		}
	}
}

// Grow makes room for n different rows in all.
func (x *RowIndex) Grow(n int) {
	if 4*n <= 3*len(x.slots) {
		return
	}
	old := x.slots
	x.slots = make([]uint64, max(8, 1<<bits.Len(uint(4*n/3))))
	for _, v := range old {
		if v == 0 {
			continue
		}
		at := int(v>>32) & (len(x.slots) - 1)
		for x.slots[at] != 0 {
			at = (at + 1) & (len(x.slots) - 1)
		}
		x.slots[at] = v
	}
}
