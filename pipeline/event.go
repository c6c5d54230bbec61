package pipeline

import (
	"time"

	"github.com/runexp/runexp/pipeline/plan"
)

// An Event tells what happens in a run. Progress displays, logs and the JSON stream are all made from events.
type Event struct {
	Kind   EventKind
	Cell   string        // the cell's name; empty for events about the whole run
	Step   string        // the cell's stage in the experiment
	Done   int           // Planned, Finished: cells done; Items: items of the cell done so far
	Total  int           // Planned, Finished: cells in all; Items: items the cell executes
	Device string        // where it ran, "cpu:0"
	Reason string        // CellDone: why it ran; CellBlocked: by what; Warning: the sentence
	Err    error         // CellFailed
	Took   time.Duration // CellDone, CellFailed, Finished
	Left   time.Duration // until the run is expected to end; 0 while nobody knows
}

// eventOf returns an event about a cell.
func eventOf(kind EventKind, c *plan.Cell) Event {
	return Event{Kind: kind, Cell: c.String(), Step: c.Step.Name}
}

// NothingStored is the usual reason why a cell runs; the others are worth a word.
const NothingStored = "nothing is stored under its key"

// An EventKind says what an [Event] is about.
type EventKind int

const (
	Planned       EventKind = iota // the run begins: Done cells are cached, of Total
	CellCompiling                  // the program of a cell is compiled, to learn whether it's a known one
	CellStarted                    // the first items of a cell begin
	Items                          // items of a cell are finished
	CellDone
	CellCached
	CellFailed
	CellBlocked // something it needs failed
	Warning
	Draining // a first signal: what runs is finished, nothing new begins
	Finished
)

var eventNames = [...]string{"planned", "compiling", "started", "items", "done", "cached",
	"failed", "blocked", "warning", "draining", "finished"}

func (k EventKind) String() string { return eventNames[k] }
