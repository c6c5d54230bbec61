package schedule

// A State is the state of a cell in a run.
type State int8

// States of cells, in the order in which a cell can go through them: see the picture in the package comment.
const (
	Waiting    State = iota // for its inputs, or for another cell with the same key
	Due                     // all its inputs have finished: the caller looks it up
	Uncompiled              // it has no key before its program is compiled
	Compiling
	Ready // to execute
	Held  // to execute together with the cells that read it, because its bytes aren't kept
	Running
	Cached    // an earlier run executed it
	Done      // this run executed it
	Failed    // its own work failed
	Blocked   // a cell that it needs failed
	Postponed // another run executes it
)

// Finished reports whether the state is final in this run.
func (s State) Finished() bool { return s >= Cached }

// OK reports whether the cell has results.
func (s State) OK() bool { return s == Cached || s == Done }
