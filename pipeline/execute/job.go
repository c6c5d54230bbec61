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
// finds the calls whose outcomes aren't known, and cuts them into chunks. Compute runs the stages for a
// chunk, and store keeps what came out. Commit makes the cells' results of all outcomes. A call is one item
// of an itemwise stage.
type Job struct {
	members     []*member    // in the order in which they are executed
	restores    bool         // its one member finished before
	chunks      [][]int32    // of calls; a Whole stage has one, without any
	next        int          // chunk to start next
	onProbation bool         // what it computes is compared with the processor
	folds       bool         // a member collapses what others make and nobody keeps: chunks are of one item
	most        int          // items computed at once
	perItem     atomic.Int64 // bytes in flight, 0 while unknown
	left        atomic.Int32 // chunks
	total       int          // items to execute
	computed    atomic.Int32 // items
	start       time.Time
	apart       atomic.Bool // members that share work failed at it together, and not each alone
}

// NewJob returns a job of cells, in the order in which they are to be executed.
func (x *Executor) NewJob(cells []*resolve.Cell) *Job {
	j := &Job{members: make([]*member, len(cells)), start: time.Now()}
	for i, n := range cells {
		j.members[i] = &member{cell: n}
	}
	j.onProbation = x.compares() && j.device()
	return j
}

// device reports whether a chunk of j computes on a device.
func (j *Job) device() bool {
	return slices.ContainsFunc(j.members, func(m *member) bool { return m.cell.Stage.Device })
}

// mayCompareLater reports whether chunks of j may be compared with the processor without a slot: their stages
// load nothing while they run.
func (j *Job) mayCompareLater() bool {
	late := func(p stages.Port) bool { return p.Over }
	return j.onProbation && !slices.ContainsFunc(j.members, func(m *member) bool {
		return m.cell.Stage.Device && slices.ContainsFunc(m.cell.Stage.Inputs, late)
	})
}

// An Ending says how a cell of a job ended.
type Ending struct {
	Cell  *resolve.Cell
	Err   error
	Look  *resolve.Look // of one that reads another cell of the job: what the store had once that was done
	Items int           // that the job executed
	Took  time.Duration
}

// Endings returns how the cells of j ended, of which err is about all.
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
	id     *key.Identity             // of the cell, with all but the key of one that reads another member
	in     map[*resolve.Cell]*member // the members of the job that come before it
	ports  map[string][]stages.Data  // what Env.Ports holds, without a way to load
	inputs [][]*input                // by port of items, by live edge
	facts  map[string]stages.Facts   // of output ports
	group  stages.Digest             // key that the records of its items are stored under
	calls  *key.IDs                  // what the calls are called
	frees  []*resolve.Cell           // those whose bytes no later member reads

	stored   *store.Items     // what earlier runs know of items under this recipe
	items    *store.Items     // what this job computed
	known    []int32          // by call: its row in items plus one, minus that of stored, or 0
	listings []*store.Listing // the results of a Whole stage
	look     *resolve.Look    // see [Ending]; if it found results, these are taken: early cut-off

	mu  sync.Mutex // guards what follows
	err error
}

// An input is what a member reads on a port of items from one cell.
type input struct {
	from    *resolve.Cell
	port    int
	coord   []stages.Coord // of from, on the collapsed axes
	before  *member        // from, if that is of the same job
	listing *store.Listing // of from otherwise
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

// find looks for what earlier runs recorded under the key of a call, and takes it if it is of use.
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

// usable reports whether an outcome is one of m's stage, and its bytes are stored unless they aren't meant to
// be kept.
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

// guard runs one phase of a member, unless that or a member that it reads has failed. Its error is the
// member's own, unless it says that w's device is lost.
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

// A Blocked error says that a cell can't be executed because another one failed.
type Blocked struct{ By *plan.Cell }

func (e *Blocked) Error() string { return fmt.Sprintf("it needs %s, which failed", e.By) }

// A Postponed error says that a cell is another run's to execute.
type Postponed struct {
	Cell  *plan.Cell // where the wait begins
	Items int        // that it lacks; 0 for one that gathers those of all shares
}

func (e *Postponed) Error() string {
	if e.Items > 0 {
		return fmt.Sprintf("%s lacks %d items", e.Cell, e.Items)
	}
	return fmt.Sprintf("%s waits for the items of all shares", e.Cell)
}

// BlockedBy returns the error of what needs a cell that ended with err: it names the cell where the trouble,
// or the wait, began.
func BlockedBy(c *plan.Cell, err error) error {
	if errors.As(err, new(*Blocked)) || errors.As(err, new(*Postponed)) {
		return err
	}
	return &Blocked{c}
}
