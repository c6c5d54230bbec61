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

// maxBytes bounds a file: the largest models and archives of images that people use are smaller.
const maxBytes = 32 << 30

// A Cache keeps fetched files. Several processes may use it at a time.
type Cache struct {
	Dir     string // contains a folder for each address
	Hub     Hub
	Offline string // why downloads aren't allowed, "" if they are
	// Show, if set, is called with the progress of a download: often, by one goroutine.
	Show func(Progress)
	// Again, if set, is called with the reason when a request is repeated.
	Again func(why string)

	transport *http.Transport
	wait      time.Duration // before the first repetition
	stall     time.Duration // how long a connection may be silent
	most      int64         // largest file, in bytes
}

// Open returns the cache in the user's cache folder. The hub is the one that its own tools would use.
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

// folder returns the folder of an address; the hub's addresses depend on its endpoint.
func (c *Cache) folder(a Address) string {
	text := a.String()
	if a.onHub() {
		text += " " + c.Hub.Endpoint.String()
	}
	d := sha256.Sum256([]byte(text))
	return filepath.Join(c.Dir, hex.EncodeToString(d[:16]))
}

// File returns the path of an address's local file, which needn't exist yet.
func (c *Cache) File(a Address) string { return filepath.Join(c.folder(a), a.Name()) }
