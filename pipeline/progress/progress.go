// Package progress shows the events of a run to a person or a program: a bar on
// a terminal, plain lines where there is none, JSON for other programs. The
// engine knows nothing of it.
package progress

import (
	"io"
	"time"

	"github.com/runexp/runexp/pipeline"
)

// A Display shows events. Its methods may be called by several goroutines.
type Display interface {
	// Show takes the next event of a run.
	Show(pipeline.Event)
	// Close removes what isn't meant to stay, such as a bar.
	Close()
}

// A Clock tells the time, time.Now but in tests.
type Clock func() time.Time

// Quiet returns a display that shows only failures, blocked cells and warnings.
func Quiet(w io.Writer) Display { return newLines(w, time.Now, true) }

// Lines returns a display that writes one line for every finished cell, and now
// and then one for a cell that takes long.
func Lines(w io.Writer, now Clock) Display { return newLines(w, now, false) }
