package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// maxBytes bounds a file: the largest model and the largest archive of images that a person would name are
// below.
const maxBytes = 32 << 30

// A Cache keeps fetched files. It is safe for several processes.
type Cache struct {
	Dir     string // below it are the folders of addresses
	Hub     Hub
	Offline string // why nothing may be downloaded, "" if it may
	// Show, if set, is told how a download goes: often, by one goroutine.
	Show func(Progress)
	// Again, if set, is told why a request is made once more.
	Again func(why string)

	transport *http.Transport
	wait      time.Duration // before the first of the further attempts
	stall     time.Duration // how long no byte may arrive
	most      int64         // bytes of a file
}

// Open returns the user's cache, in the folder of programs' caches, with the hub as its own tools find it.
func Open() (*Cache, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("no folder to fetch files to: set XDG_CACHE_HOME: %w", err)
	}
	hub, err := userHub()
	if err != nil {
		return nil, err
	}
	c := New(filepath.Join(dir, "runexp", "files"), hub)
	c.Offline = offline()
	return c, nil
}

// New returns a cache in a folder.
func New(dir string, hub Hub) *Cache {
	return &Cache{Dir: dir, Hub: hub, transport: newTransport(), wait: time.Second,
		stall: time.Minute, most: maxBytes}
}

// folder returns what is kept for an address: of the hub, at its endpoint.
func (c *Cache) folder(a Address) string {
	text := a.String()
	if a.onHub() {
		text += " " + c.Hub.Endpoint.String()
	}
	d := sha256.Sum256([]byte(text))
	return filepath.Join(c.Dir, hex.EncodeToString(d[:16]))
}

// File returns the file that an address is fetched to, whether it is there or not.
func (c *Cache) File(a Address) string { return filepath.Join(c.folder(a), a.Name()) }
