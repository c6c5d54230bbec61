//go:build !linux

package ortapi

import "unsafe"

// IsProcessor returns false: no plugin for processors is known here.
func IsProcessor(string, unsafe.Pointer) bool { return false }

// IsIntels returns false.
func IsIntels(string, unsafe.Pointer) bool { return false }

// AsIntel calls register.
func AsIntel(_ string, register func() error) error { return register() }
