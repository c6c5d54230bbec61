package pipeline

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
)

// An Event is something that happens in a run. Progress displays, logs and the JSON stream are made from
// events.
type Event struct {
	Kind   EventKind
	Cell   string        // the cell's name; empty for events about the whole run
	Step   string        // the cell's stage in the experiment
	Done   int           // Planned, Finished: cells done; Items: items of the cell done so far
	Total  int           // Planned, Finished: cells in all; Items: items the cell executes
	Device string        // where it ran, "cpu:0"
	Reason string        // CellDone: why it ran; CellBlocked: the blocking cell; Warning: the sentence
	Err    error         // CellFailed
	Took   time.Duration // CellDone, CellFailed, Finished
	Left   time.Duration // until the expected end of the run; 0 while unknown
}

// eventOf returns an event about a cell.
func eventOf(kind EventKind, c *plan.Cell) Event {
	return Event{Kind: kind, Cell: c.String(), Step: c.Step.Name}
}

// NothingStored is the usual reason why a cell runs; other reasons are shown.
const NothingStored = resolve.NothingStored

// An EventKind is the kind of an [Event].
type EventKind int

const (
	Planned       EventKind = iota // the run begins: Done cells are cached, of Total
	CellCompiling                  // the program of a cell is compiled, to find whether it is known
	CellStarted                    // the first items of a cell begin
	Items                          // items of a cell are finished
	CellDone
	CellCached
	CellFailed
	CellBlocked // a cell that it needs failed
	Warning
	Draining // a first signal: running work is finished, nothing new begins
	Finished
)

var eventNames = [...]string{"planned", "compiling", "started", "items", "done", "cached",
	"failed", "blocked", "warning", "draining", "finished"}

func (k EventKind) String() string { return eventNames[k] }

// A reporter passes events on, one at a time. Resolvers and executors report to it.
type reporter struct {
	on  func(Event) // nil if there is no listener
	mu  sync.Mutex
	end atomic.Int64 // expected end of the run, in Unix nanoseconds; 0 while unknown
}

func (r *reporter) show(e Event) {
	if r.on == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if end := r.end.Load(); end > 0 && e.Kind != Finished {
		e.Left = max(time.Until(time.Unix(0, end)), time.Second)
	}
	r.on(e)
}

// Compiling implements [resolve.Events].
func (r *reporter) Compiling(c *plan.Cell) { r.show(eventOf(CellCompiling, c)) }

// Warn implements [resolve.Events].
func (r *reporter) Warn(c *plan.Cell, text string) {
	e := eventOf(Warning, c)
	e.Reason = text
	r.show(e)
}

// Started implements [execute.Events].
func (r *reporter) Started(c *plan.Cell, items int) {
	e := eventOf(CellStarted, c)
	e.Total = items
	r.show(e)
}

// Computed implements [execute.Events].
func (r *reporter) Computed(c *plan.Cell, done, items int, device string) {
	e := eventOf(Items, c)
	e.Done, e.Total, e.Device = done, items, device
	r.show(e)
}

// DeviceLost implements [execute.Events].
func (r *reporter) DeviceLost(device, text string) {
	r.show(Event{Kind: Warning, Device: device, Reason: text})
}
