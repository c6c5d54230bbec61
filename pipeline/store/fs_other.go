//go:build !linux && !darwin

package store

// syncAll leaves the disk to the system: what's lost with the power is a miss.
func syncAll(string) error { return nil }

// noFollow is no flag that opening a file knows here.
const noFollow = 0

// logLimit returns how many logs a store may have open.
func logLimit() int { return 2 * buckets }
