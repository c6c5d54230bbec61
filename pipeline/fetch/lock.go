package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// locked calls do while no other process works on an address's folder. part is the file for incomplete
// downloads. Its name is always the same, so that a download continues where an earlier process stopped.
func (c *Cache) locked(ctx context.Context, a Address, do func(part string) error) error {
	dir := c.folder(a)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	defer f.Close() // which unlocks it
	part := filepath.Join(dir, ".part")
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return do(part)
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			// Without file locks, processes can't share an incomplete download.
			part = fmt.Sprintf("%s-%d", part, os.Getpid())
			defer os.Remove(part)
			return do(part)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
