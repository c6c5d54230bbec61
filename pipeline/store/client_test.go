package store

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runexp/runexp/stages"
)

// A client is a machine on a shared file system. It sees what others do late: a folder's listing and the
// absence of a name are remembered until it changes that folder itself, or for long. A crash takes what it
// wrote and didn't sync, bytes and names.
type client struct {
	rand  *rand.Rand
	names bool // those of a crash stay, for files with zeros

	mu       sync.Mutex // guards what follows
	lists    map[string][]fs.DirEntry
	absent   map[string]bool
	unsynced map[string]*unsyncedFile
	calls    map[string]int
}

type unsyncedFile struct {
	synced int64 // bytes on the disk
	named  bool  // so is the name
}

func newClient(seed uint64) *client {
	c := &client{rand: rand.New(rand.NewPCG(seed, 7)), unsynced: map[string]*unsyncedFile{},
		calls: map[string]int{}}
	c.look()
	return c
}

// look forgets what was seen.
func (c *client) look() { c.lists, c.absent = map[string][]fs.DirEntry{}, map[string]bool{} }

// call counts a call, after which the client may have forgotten what it saw.
func (c *client) call(name string) func() {
	c.mu.Lock()
	c.calls[name]++
	if c.rand.IntN(40) == 0 {
		c.look()
	}
	return c.mu.Unlock
}

// changes is called when the client changes a folder.
func (c *client) changes(path string) {
	dir := filepath.Dir(path)
	delete(c.lists, dir)
	maps.DeleteFunc(c.absent, func(name string, _ bool) bool { return filepath.Dir(name) == dir })
}

func (c *client) OpenFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	defer c.call("open")()
	if flag&os.O_CREATE == 0 && c.absent[path] {
		return nil, fs.ErrNotExist
	}
	info, gone := os.Lstat(path)
	f, err := os.OpenFile(path, flag, mode)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.absent[path] = true
	case err == nil && flag&(os.O_WRONLY|os.O_RDWR) != 0:
		if c.unsynced[path] == nil && gone == nil {
			c.unsynced[path] = &unsyncedFile{info.Size(), true}
		} else if gone != nil {
			c.unsynced[path] = &unsyncedFile{}
			c.changes(path)
		}
	}
	return f, err
}

func (c *client) Lstat(path string) (fs.FileInfo, error) {
	defer c.call("lstat")()
	if c.absent[path] {
		return nil, fs.ErrNotExist
	}
	info, err := os.Lstat(path)
	c.absent[path] = errors.Is(err, fs.ErrNotExist)
	return info, err
}

func (c *client) ReadDir(path string) (list []fs.DirEntry, err error) {
	defer c.call("list")()
	list, seen := c.lists[path]
	if !seen {
		if list, err = os.ReadDir(path); err == nil {
			c.lists[path] = list
		}
	}
	return list, err
}

func (c *client) MkdirAll(path string, mode fs.FileMode) error {
	defer c.call("mkdir")()
	c.look()
	return os.MkdirAll(path, mode)
}

func (c *client) Rename(from, to string) error {
	defer c.call("rename")()
	c.changes(from)
	c.changes(to)
	if u := c.unsynced[from]; u != nil {
		c.unsynced[to] = &unsyncedFile{u.synced, false}
		delete(c.unsynced, from)
	}
	return os.Rename(from, to)
}

func (c *client) RemoveAll(path string) error {
	defer c.call("remove")()
	c.changes(path)
	delete(c.unsynced, path)
	return os.RemoveAll(path)
}

func (c *client) Sync(f *os.File) error {
	defer c.call("sync")()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	for path, u := range c.unsynced {
		u.named = u.named || info.IsDir() && filepath.Dir(path) == f.Name()
		if path == f.Name() {
			u.synced = info.Size()
		}
	}
	return nil
}

func (c *client) SyncAll(string) error {
	defer c.call("sync all")()
	clear(c.unsynced)
	return nil
}

// crash loses what wasn't synced, or leaves zeros in its place.
func (c *client) crash(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for path, u := range c.unsynced {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		if !u.named && !c.names && c.rand.IntN(2) > 0 { // a name may reach the disk by chance
			err = os.Remove(path)
		} else {
			err = errors.Join(os.Chmod(path, 0o666), os.Truncate(path, u.synced))
			if c.names || c.rand.IntN(2) == 0 {
				err = errors.Join(err, os.Truncate(path, info.Size()))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	clear(c.unsynced)
	c.look()
}

// TestSharedDisk has machines that see each other late write shares and merge, crash anywhere while they do,
// and write again. What a share had synced is found, and nothing else than what was computed.
func TestSharedDisk(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	combineAt(t, 20_000)
	crashes, removed := 0, 0
	for seed := range rounds {
		w := newWorld(12)
		dir := (&world{cells: w.cells[:1]}).filled(t)
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		var clients []*client
		for k := range 3 {
			clients = append(clients, newClient(uint64(3*seed+k)))
		}
		written := &world{cells: slices.Clone(w.cells[:1])}
		at, last := 0, 0
		for range 40 {
			if at = (at + r.IntN(2)*r.IntN(3)) % len(clients); at != last {
				clear(clients[last].unsynced) // others see what was sent to the server
				last = at
			}
			c := clients[at]
			o := Options{files: c}
			if r.IntN(2) == 0 {
				o.Hook = (&killer{n: 1 + r.IntN([]int{14, 60}[r.IntN(2)])}).hook
			}
			var err error
			if r.IntN(3) == 0 {
				one := &world{cells: w.cells[r.IntN(len(w.cells)):][:1]}
				if err = one.writeShare(t, dir, r.IntN(3), o); err == nil {
					written.cells = append(written.cells, one.cells...)
				}
			} else {
				s, e := Open(dir, o)
				if err = e; err == nil {
					w.items(t, s) // fails at a wrong byte
					var f SharesReport
					f, err = s.MergeShares(t.Context())
					removed += f.Removed
				}
				if err == nil {
					err = s.Close()
				}
			}
			if err != nil && !errors.Is(err, errKilled) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if r.IntN(3) == 0 { // the machine, else only the process was killed
				crashes++
				c.crash(t)
			}
			if r.IntN(8) == 0 {
				age(t, dir)
			}
		}
		s := open(t, dir, Options{})
		if _, err := s.MergeShares(t.Context()); err != nil {
			t.Fatal(err)
		}
		if v := written.items(t, s); v.misses > 0 {
			t.Fatalf("seed %d: %d of %d items are lost", seed, v.misses, v.misses+v.hits)
		}
		s.Close()
		os.RemoveAll(dir)
	}
	if t.Logf("%d crashes, %d shares removed", crashes, removed); crashes < rounds || removed < rounds/2 {
		t.Errorf("%d crashes, %d shares removed: too few", crashes, removed)
	}
}

// writeShare records the cells in a share, up to its end.
func (w *world) writeShare(t *testing.T, dir string, share int, o Options) error {
	s, _, err := OpenShare(dir, ShareName{Share: share, Shares: 3}, o)
	if err != nil {
		return err
	}
	w.items(t, s) // fails at a wrong byte
	if err := w.record(s, "a", nil); err != nil {
		return err
	}
	endShare(s, ShareOK)
	return s.Close()
}

// age makes shares without an end look as if their shares had been killed long ago.
func age(t *testing.T, dir string) {
	t.Helper()
	long := time.Now().Add(-2 * shareInUse)
	for _, path := range shareNames(t, dir) {
		if err := os.Chtimes(path, long, long); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// TestShareTornInStore: where appends of two machines tore a record that a merge had added, the next merge
// adds it again.
func TestShareTornInStore(t *testing.T) {
	w := newWorld(4)
	dir := sharedBy(t, scratch(t), w)
	mergeShares(t, dir)
	logs, err := filepath.Glob(filepath.Join(dir, "items", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	for _, log := range logs {
		flip(t, log, 100, 0xff)
	}
	if r := mergeShares(t, dir); r.Removed > 0 || r.Items == 0 {
		t.Errorf("%+v", r)
	}
	s := open(t, dir, Options{})
	if v := w.items(t, s); v.misses > 0 {
		t.Errorf("%d items are missing", v.misses)
	}
	if r := mergeShares(t, dir); r.Removed != 1 {
		t.Errorf("%+v", r)
	}
}

// TestShareMetadata counts what a share asks of a file server by names, as all machines of a cluster do at
// once: fewer than ten times a minute, opening and closing included, though it reads all items of 200 cells
// that an earlier wave made. Files of the data set aren't counted.
func TestShareMetadata(t *testing.T) {
	const minutes, chunks, cells = 8, 50, 200
	w := newWorld(cells)
	dir := scratch(t)
	for n := range w.cells {
		w.cells[n].group = number(3000 + 7*n)
		sharedBy(t, dir, &world{cells: w.cells[n:][:1]})
	}
	mergeShares(t, dir)
	mergeShares(t, dir)
	var next []stages.Digest
	for chunk := range chunks {
		next = append(next, number(5000+chunk))
	}
	w.close(t, dir, next...)
	c := newClient(1)
	c.rand = rand.New(rand.NewPCG(1, 1))
	s := openShare(t, dir, Options{files: c})
	opening := maps.Clone(c.calls)
	for minute := range minutes {
		for n := range w.cells {
			if !w.checkCell(t, s, &w.cells[n]) {
				t.Fatal("a miss")
			}
		}
		for chunk := range chunks {
			payload := []byte(strings.Repeat(fmt.Sprint(minute, chunk), 4000))
			refs, err := s.Put([][]byte{payload})
			if err != nil {
				t.Fatal(err)
			}
			key := stages.Sum(payload)
			group := number(5000 + chunk)
			records := []ItemRecord{{key, ItemOutcome{[][]SubItem{{{refs[0], ""}}}}}}
			if err := s.RecordItems(group, "a", records); err != nil {
				t.Fatal(err)
			}
			o, _ := outcomeOf(s.Items(group, "a"), key)
			if b, err := s.Load(o.Ports[0][0].Ref); err != nil || string(b) != string(payload) {
				t.Fatal("other bytes:", err)
			}
		}
		for range time.Minute / shareSync {
			if err := s.layer.(*share).sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	endShare(s, ShareOK)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	sum := func(calls map[string]int) (n int) {
		for _, k := range calls {
			n += k
		}
		return n
	}
	t.Logf("opening: %v; all of %d minutes: %v", opening, minutes, c.calls)
	if n := sum(c.calls); n >= 10*minutes {
		t.Errorf("%d calls in %d minutes: %v", n, minutes, c.calls)
	}
}
