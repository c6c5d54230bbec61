//go:build !linux && !darwin

package store

import "os"

// syncAll leaves the disk to the system: what's lost with the power is a miss.
func syncAll(string) error { return nil }

// changeTime isn't known here, so outside files are read each time.
func changeTime(os.FileInfo) (ctime int64, inode uint64, ok bool) { return 0, 0, false }

// noFollow is no flag that opening a file knows here.
const noFollow = 0

// logLimit returns how many logs a store may have open.
func logLimit() int { return 2 * buckets }
