package store

import "syscall"

// syncAll writes all file systems to their disks.
func syncAll(string) error {
	syscall.Sync()
	return nil
}
