package execute

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/resolve"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A Job executes one cell, or several that are planned to be executed together. It has four phases. Open
// finds the calls whose outcomes aren't known, and divides them into chunks. Compute runs the stages for a
// chunk, and store stores the results. Commit makes the cells' results from all outcomes. A call is one
// item of an itemwise stage.
//
// A job that is open has pieces. The goroutine that starts these owns chunks, next and start; the workers of
// several pieces share the atomic fields, and read the others.
type Job struct {
	members     []*member // in the order in which they are executed
	restores    bool      // its one member had finished before
	chunks      [][]int32 // of calls; a Whole stage has one, without calls
	next        int       // the next chunk to start
	onProbation bool      // its results are compared with the processor's
	// a member collapses the results of others, which aren't kept: chunks are of one item
	folds    bool
	most     int          // items computed at once, at most
	perItem  atomic.Int64 // bytes in flight, 0 while unknown
	left     atomic.Int32 // chunks that aren't done
	total    int          // items to execute
	computed atomic.Int32 // items
	start    time.Time
	apart    atomic.Bool // members that share work failed together, and not individually
}

// NewJob returns a job of cells, in the order in which they are to be executed.
func (x *Executor) NewJob(cells []*resolve.Cell) *Job {
	x.worked.Store(true)
	j := &Job{members: make([]*member, len(cells)), start: time.Now()}
	for i, n := range cells {
		j.members[i] = &member{cell: n}
	}
	j.onProbation = slices.ContainsFunc(cells, x.compares)
	return j
}

// device reports whether a chunk of j computes on a device.
func (j *Job) device() bool {
	return slices.ContainsFunc(j.members, func(m *member) bool { return m.cell.Stage.Device })
}

// mayCompareLater reports whether chunks of j may be compared with the processor without a slot: their
// stages load nothing while they run.
func (j *Job) mayCompareLater() bool {
	late := func(p stages.Port) bool { return p.Over }
	return j.onProbation && !slices.ContainsFunc(j.members, func(m *member) bool {
		return m.cell.Stage.Device && slices.ContainsFunc(m.cell.Stage.Inputs, late)
	})
}

// An Ending is the ending of a cell of a job.
type Ending struct {
	Cell  *resolve.Cell
	Err   error
	Look  *resolve.Look // of all cells but the first: what the store had once those before were done
	Items int           // number of items that the job executed
	Took  time.Duration
}

// Endings returns the endings of j's cells; err is an error of them all.
func (j *Job) Endings(err error) []Ending {
	endings := make([]Ending, len(j.members))
	for i, m := range j.members {
		if err != nil {
			m.fail(err)
		}
		endings[i] = Ending{m.cell, m.failure(), m.look, j.total, time.Since(j.start)}
	}
	return endings
}

// A member is a cell in a job.
type member struct {
	cell   *resolve.Cell
	id     *key.Identity             // of the cell, except the key of one that reads another member
	in     map[*resolve.Cell]*member // the members of the job that come before it
	ports  map[string][]stages.Data  // the value of Env.Ports, without a function that loads
	inputs [][]*input                // by port of items, by live edge
	facts  map[string]stages.Facts   // of output ports
	group  stages.Digest             // key under which the records of its items are stored
	calls  *key.IDs                  // names of the calls
	frees  []*resolve.Cell           // cells whose bytes no later member reads

	stored   *store.Items     // outcomes of items under this recipe in earlier runs
	items    *store.Items     // outcomes of this job
	known    []int32          // by call: its row in items plus one, minus its row in stored, or 0
	listings []*store.Listing // the results of a Whole stage
	look     *resolve.Look    // see [Ending]; if it found results, these are used: early cut-off

	mu  sync.Mutex // guards the fields below
	err error
}

// An input is the items that a member reads from one cell on a port.
type input struct {
	from    *resolve.Cell
	port    int
	coord   []stages.Coord // of from, on the collapsed axes
	before  *member        // from, if it is in the same job
	listing *store.Listing // of from, if it isn't
	ids     *key.IDs
	join    key.Join
}

// Of implements [key.Input].
func (in *input) Of(call int) []int32 { return in.join.Of(call) }

// IDs implements [key.Input].
func (in *input) IDs() *key.IDs { return in.ids }

// Payload implements [key.Input].
func (in *input) Payload(at int) (stages.Digest, bool) {
	if in.before == nil {
		return in.listing.PayloadDigest(at), true
	}
	o, ok := in.before.outcome(at)
	if !ok {
		return stages.Digest{}, false
	}
	return o.Ports[in.port][0].Ref.Digest, true
}

// outcome returns the outcome of a call, if it is known.
func (m *member) outcome(call int) (o store.ItemOutcome, ok bool) {
	switch row := int(m.known[call]); {
	case row > 0:
		return m.items.At(row - 1), true
	case row < 0:
		return m.stored.At(-row - 1), true
	}
	return o, false
}

// find looks up the record of earlier runs under the key of a call, and uses it if it is usable.
func (x *Executor) find(m *member, call int, key stages.Digest) bool {
	if m.known[call] != 0 {
		return true
	}
	if m.stored == nil {
		return false
	}
	row := m.stored.Find(key)
	if row < 0 || !x.usable(m, m.stored.At(row)) {
		return false
	}
	m.known[call] = int32(-row - 1)
	return true
}

// usable reports whether an outcome belongs to m's stage, and its bytes are stored unless they aren't to be
// kept.
func (x *Executor) usable(m *member, o store.ItemOutcome) bool {
	if len(o.Ports) != len(m.cell.Stage.Outputs) {
		return false
	}
	if !m.cell.Step.Keep {
		return true
	}
	for _, port := range o.Ports {
		for _, p := range port {
			if !p.Kept() || p.Inline == nil && x.Store.Check(p.Object) != nil {
				return false
			}
		}
	}
	return true
}

func (m *member) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = err
	}
}

func (m *member) failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

func (m *member) failed() bool { return m.failure() != nil }

// guard runs one phase of a member, unless it or a member that it reads has failed. An error is the
// member's own, unless it is the loss of w's device.
func (w *Worker) guard(m *member, phase func() error) {
	err := m.failure()
	for e := range m.cell.Edges() {
		if before := m.in[w.executor.Resolver.Of(e)]; before != nil && err == nil {
			if failure := before.failure(); failure != nil {
				err = BlockedBy(e.From, failure)
			}
		}
	}
	if err == nil {
		func() {
			defer plan.Catch(&err)
			err = w.mend(phase)
		}()
	}
	switch {
	case errors.Is(err, stages.ErrDeviceLost) && !w.slot.On(w.executor.hostCache):
		w.lost = err
	case err != nil:
		m.fail(err)
	}
}

// A Blocked error means that a cell can't be executed because another one failed.
type Blocked struct{ By *plan.Cell }

func (e *Blocked) Error() string { return fmt.Sprintf("it needs %s, which failed", e.By) }

// A Postponed error means that another run has to execute the cell.
type Postponed struct {
	Cell  *plan.Cell // the first cell that waits
	Items int        // number of missing items; 0 for a cell that collects the items of all shares
}

func (e *Postponed) Error() string {
	if e.Items > 0 {
		return fmt.Sprintf("%s lacks %d items", e.Cell, e.Items)
	}
	return fmt.Sprintf("%s waits for the items of all shares", e.Cell)
}

// BlockedBy returns the error of a cell that needs one which ended with err: it names the cell at which the
// failure, or the wait, began.
func BlockedBy(c *plan.Cell, err error) error {
	if errors.As(err, new(*Blocked)) || errors.As(err, new(*Postponed)) {
		return err
	}
	return &Blocked{c}
}
