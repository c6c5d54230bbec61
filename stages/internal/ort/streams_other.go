//go:build !unix

package ort

import "os"

// ownStdout returns out: what a library prints is mixed with replies there.
func ownStdout(out *os.File) *os.File { return out }
