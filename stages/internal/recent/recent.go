// Package recent keeps what was made of the files that were read last, for as long as these don't change.
package recent

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/runexp/runexp/stages"
)

// most is how many values a cache keeps.
const most = 4

// A Cache keeps values. Its zero value is empty.
type Cache[T any] struct {
	mu   sync.Mutex // held while a value is made, for which concurrent callers wait
	kept []kept[T]
}

type kept[T any] struct {
	key   string
	value T
}

// Get returns the value made of some files and of what else the key says. It calls make unless it has the
// value, and keeps it if the files haven't changed meanwhile. A file that doesn't exist counts, too.
func (c *Cache[T]) Get(key string, files []string, make func() (T, error)) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stamps, settled := stampsOf(files)
	for _, k := range c.kept {
		if settled && k.key == key+stamps {
			return k.value, nil
		}
	}
	value, err := make()
	if now, _ := stampsOf(files); err == nil && settled && now == stamps {
		c.kept = append(c.kept[max(0, len(c.kept)-most+1):], kept[T]{key + stamps, value})
	}
	return value, err
}

// stampsOf returns the places and the stamps of files as a text, and whether a change of one changes it.
func stampsOf(files []string) (text string, settled bool) {
	settled = true
	for _, file := range files {
		abs, err := filepath.Abs(file)
		if err != nil {
			return "", false
		}
		stamp, ok, err := stages.StampOf(abs)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", false
		}
		settled = settled && (ok || err != nil)
		text += fmt.Sprintf("\n%q %v", abs, stamp)
	}
	return text, settled
}
