// Package store keeps what runs computed, so that nothing is computed twice. Its nouns:
//
//	payload  the bytes of an item at a port
//	object   payloads one after another, named by the SHA-256 of them all
//	ref      the place of a payload: in an object or, if it is small, in the record that mentions it
//	listing  the ordered items of an output port of a cell: their refs, ids and origins
//	action   an executed cell under its key: what the key was made from, and the listings
//	record   the outcomes of a chunk's items, under the key of the group that these belong to
//	memo     a fact under a key, such as the digest of a compiled program
//	log      a file of frames, each with a key, a payload and a checksum
//	index    what a look-up of an action needs; derived from the logs of actions
//	share    a store of one file, which one process writes over a store that it only reads
//
// The path of the data:
//
//	object.go     payloads become an object, and each a [Ref] to its place in it
//	items.go      the outcomes of a chunk's items are recorded,
//	itemlog.go    and found again by a cell with other items
//	listing.go    the items of one output port of a cell become a [Listing]
//	action.go     an executed cell is recorded under its key, with its listings: an [Action]
//	index.go      a key is looked up and gives a [Hit], which leads to action, listings and objects
//	keylog.go     memos, and the digests of outside files (outside.go), are remembered
//	sweep.go      logs are read, and written again without some of their frames:
//	verify.go     damaged records and objects are dropped
//	gc.go         unused records and objects are dropped; info.go counts the rest
//	merge.go      the contents of another store are added
//	share.go      a job on a cluster writes a store of its own,
//	sharefile.go  which is one file,
//	extract.go    over copies of what all shares read;
//	shares.go     shares are added to the store,
//	combine.go    their small objects combined to few large ones
//
// Below that are layer.go (where a store writes and looks first: its folder, or a share's file), column.go
// (encoded values in memory, and on disk by spill.go), codec.go and ref.go (encoded records), frame.go
// (frames of a log), log.go (logs as files), file.go (files that appear whole, and nothing outside the
// store), system.go and fs_*.go (calls of the file system).
//
// On disk, below the store's folder:
//
//	FORMAT              the format of all this
//	objects/ab/abcd…    objects; sha256sum can verify them
//	actions/ab.log      actions, JSON, by the first byte of the key
//	items/ab.log        records, by the first byte of the group
//	memo.log            memos
//	stat.idx            digests of outside files
//	index               the index
//	damaged/            objects whose bytes weren't those of their name
//	shares/3of64.89ab…  shares, until they are added
//	shares/extract-01…  copies of what shares read
//	parts/              shares of earlier versions
//
// The invariants of this folder: objects appear under their name when they're complete, by rename; logs only
// grow, a frame at a time; a frame is written after all objects to which it refers. So a process that is
// killed leaves either a whole object or record or none, and two processes may write at once without a lock.
// Anything that can't be read, or doesn't match its name or checksum, counts as never written: it is a
// [Miss], with the reason.
package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/runexp/runexp/stages"
)

// Options say how a store is opened.
type Options struct {
	// ReadOnly keeps the store from writing anything, derived files included. [Store.Shares] alone makes a
	// file, and removes it, to learn the time of the disk. A folder that doesn't exist is then an empty
	// store.
	ReadOnly bool

	// Hook is called before and after every system call that writes, with the name of that point. Its error
	// ends the operation there and then, without any cleaning up, as a kill would. For tests.
	Hook func(point string) error

	// Warn is called with a sentence about damage that the store works around.
	Warn func(string)

	files fileSystem // nil for the machine's; for tests
}

// A Store is an open store. Its methods may be called concurrently.
type Store struct {
	opts         Options
	fs           fileSystem
	dir, objects string

	setUp   func() error // prepare, once
	written atomic.Bool
	temp    atomic.Uint64 // number of the next temporary file
	tempID  uint64

	folderMu sync.RWMutex
	folders  map[string]bool // those below dir that are known to be real ones

	damageMu sync.RWMutex // read-locked while an object is put, locked while a damaged one is set aside

	lookMu sync.Mutex
	looked map[ObjectRef]*Miss // the remembered looks: nil if the object exists

	maxLogs   int        // that are open at once
	logMu     sync.Mutex // guards appending, and is held while appending to a log
	appending map[string]openLog

	indexMu sync.RWMutex // guards what follows
	index   index
	indexed *os.File // nil until first written
	pending []byte   // frames for it

	itemMu    sync.Mutex // guards what follows
	groups    map[itemGroup]*knownGroup
	itemBytes int64 // that groups hold

	memos, files keyLog
	spill        spill

	layer  layer
	trusts bool       // the records of files and objects, without a look at the disk: in a share
	kept   *keptFiles // nil in a store that closes what it reads at once
}

// ErrUnwritable is the cause of an error about a store whose disk is read-only, or whose folder is another
// user's: nothing new can be recorded there.
var ErrUnwritable = errors.New("can't be written")

var errReadOnly = errors.New("the store was opened for reading only")

const (
	formatName = "FORMAT"
	format     = 1
)

// Open opens the store in dir, which is made when something is first written. Damage isn't an error: what
// can't be read was never written.
func Open(dir string, o Options) (*Store, error) {
	s, err := openAsIndexed(dir, o)
	if err != nil {
		return nil, err
	}
	if err := s.mendIndex(); err != nil {
		return nil, err
	}
	return s, nil
}

// openAsIndexed opens the store as its index file has it.
func openAsIndexed(dir string, o Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{
		opts: o, dir: dir, objects: filepath.Join(dir, "objects"), tempID: rand.Uint64(), maxLogs: logLimit(),
		folders: map[string]bool{}, appending: map[string]openLog{}, groups: map[itemGroup]*knownGroup{},
	}
	if s.fs = o.files; s.fs == nil {
		s.fs = osFiles{}
	}
	s.setUp = sync.OnceValue(s.prepare)
	s.spill.s = s
	s.layer = folder{s}
	s.memos = keyLog{s: s, file: s.log(memoFrame, stages.Digest{})}
	s.files = keyLog{s: s, file: s.log(statFrame, stages.Digest{}), batch: 32 << 10}
	if st, err := os.Stat(dir); err == nil && !st.IsDir() {
		return nil, fmt.Errorf("store %q is a file, not a folder", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("store %q: %w", dir, err)
	}
	if err := s.checkFormat(); err != nil {
		return nil, err
	}
	s.openIndex()
	s.looked = make(map[ObjectRef]*Miss, s.index.objects)
	return s, nil
}

// Close ends the use of the store. One sync writes everything through to the disk; a store that was only read
// isn't synced.
func (s *Store) Close() error {
	s.spill.close()
	err := errors.Join(s.files.flush(), s.closeIndex(), s.layer.close())
	s.logMu.Lock()
	err = errors.Join(err, s.closeLogs())
	s.logMu.Unlock()
	if s.written.Swap(false) {
		if e := s.at("sync"); e != nil {
			return e
		}
		if e := s.fs.SyncAll(s.dir); e != nil {
			err = errors.Join(err, fmt.Errorf("store %q: %w", s.dir, e))
		}
	}
	return err
}

func (s *Store) warn(format string, args ...any) {
	if s.opts.Warn != nil {
		s.opts.Warn(fmt.Sprintf(format, args...))
	}
}

// formatLine returns the contents of FORMAT. The checksum keeps a damaged digit from looking like another
// format.
func formatLine(n int) string {
	line := fmt.Sprintf("runexp store %d", n)
	return fmt.Sprintf("%s %08x\n", line, crc32.Checksum([]byte(line), castagnoli))
}

// checkFormat refuses a store of another version of the program. A FORMAT that's missing or damaged is
// written again by the next writer; frames and names differ between formats, so nothing can be misread
// meanwhile.
func (s *Store) checkFormat() error {
	b, err := s.readFile(filepath.Join(s.dir, formatName))
	var n int
	var sum uint32
	switch _, e := fmt.Sscanf(string(b), "runexp store %d %x\n", &n, &sum); {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("store %q can't be read: %w", s.dir, err)
	case e != nil || string(b) != formatLine(n):
		s.warn("%s of store %q is damaged", formatName, s.dir)
	case n != format:
		const another = "store %q has format %d, this program reads %d: use another folder"
		return fmt.Errorf(another, s.dir, n, format)
	}
	return nil
}

// prepare makes sure that the store may be written, and that its folder exists and names its format.
func (s *Store) prepare() error {
	if s.opts.ReadOnly {
		return errReadOnly
	}
	path := filepath.Join(s.dir, formatName)
	if b, err := s.readFile(path); err == nil && string(b) == formatLine(format) {
		return nil
	}
	return s.replaceFile(path, 0o666, []byte(formatLine(format)))
}
