//go:build !unix

package ort

import (
	"io"
	"os"
	"sync/atomic"
)

var talkative atomic.Bool

// ownStdout returns out: here, what a library prints is mixed with replies.
func ownStdout(out *os.File) *os.File { return out }

func mute() (done func()) { return func() {} }

// Unmuted returns stderr.
func Unmuted(stderr io.Writer) io.Writer { return stderr }
