// Package progress shows the events of a run to a person or a program. A tally (tally.go) counts the events
// and estimates the end of the run; line.go writes an event as a sentence, bar.go all as a bar, json.go
// each as a line of JSON. download.go shows the progress of fetched files. The engine doesn't import this
// package.
package progress

import (
	"cmp"
	"io"
	"sync"
	"time"

	"github.com/runexp/runexp/pipeline"
)

// A Display shows events. Its methods may be called by several goroutines.
type Display interface {
	// Show takes the next event of a run.
	Show(pipeline.Event)
	// Close removes the parts of the display that aren't meant to stay, such as a bar.
	Close()
}

// A Clock returns the current time: time.Now except in tests.
type Clock func() time.Time

// Quiet returns a display that shows only failures, blocked cells and warnings.
func Quiet(w io.Writer) Display { return &text{w: w, tally: newTally(time.Now), shows: bad} }

// Lines returns a display that writes a line for every finished cell, and one every half minute for a
// cell that takes longer.
func Lines(w io.Writer, now Clock) Display {
	return &text{w: w, tally: newTally(now), shows: func(pipeline.EventKind) bool { return true }}
}

// Bar returns a display for a terminal: one bar for the whole run, with the number of finished cells, items
// a second, time left and device. Failures, warnings and the last line are above the bar and stay. width
// returns how many letters fit in a line of the terminal.
func Bar(w io.Writer, width func() int, now Clock) Display {
	shows := func(k pipeline.EventKind) bool { return bad(k) || k == pipeline.Finished }
	return &text{w: w, tally: newTally(now), shows: shows, bar: &bar{w: w, width: width}}
}

// bad reports whether an event is one that a person must not miss.
func bad(k pipeline.EventKind) bool {
	switch k {
	case pipeline.CellFailed, pipeline.CellBlocked, pipeline.Warning, pipeline.Draining:
		return true
	}
	return false
}

// A text display writes events as lines, above a bar if there is one.
type text struct {
	mu    sync.Mutex // guards the fields below
	w     io.Writer
	tally tally
	shows func(pipeline.EventKind) bool
	bar   *bar // nil without a terminal
}

func (d *text) Show(e pipeline.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.Device = cmp.Or(e.Device, d.tally.cells[e.Cell].device) // before the tally forgets a finished cell
	d.tally.add(e)
	if e.Kind == pipeline.Finished {
		d.bar.close()
	}
	if d.shows(e.Kind) {
		if s := line(&d.tally, e); s != "" {
			d.bar.clear()
			io.WriteString(d.w, s+"\n")
		}
	}
	d.bar.show(&d.tally, e.Kind)
}

func (d *text) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bar.close()
}
