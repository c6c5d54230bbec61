package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/pipeline/schedule"
	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// A job executes one cell, or several that share work: see package schedule. It has four phases. Open finds the calls
// whose outcomes aren't known, and cuts them into chunks. Compute runs the stages for a chunk, and commit
// stores what came out. Close makes the cells' results of all outcomes. A call is one item of an itemwise
// stage.
type job struct {
	members     []*member // in topological order
	planned     *schedule.Job
	restores    bool         // its one member finished before
	chunks      [][]int32    // of calls; a Whole stage has one, without any
	next        int          // chunk to start next
	onProbation bool         // what it computes is compared with the processor
	folds       bool         // a member collapses what others make and nobody keeps: chunks are of one item
	most        int          // items computed at once
	perItem     atomic.Int64 // bytes in flight, 0 while unknown
	left        atomic.Int32
	total       int          // items to execute
	computed    atomic.Int32 // items
	start       time.Time
	apart       atomic.Bool // members that share work failed at it together, and not each alone
}

// newJob returns a job for the cells of a planned one.
func (r *run) newJob(planned *schedule.Job) *job {
	j := &job{planned: planned, members: make([]*member, len(planned.Cells))}
	for i, c := range planned.Cells {
		n := r.nodes[c.Index]
		n.live = r.schedule.Live(c)
		j.members[i] = &member{node: n}
	}
	j.onProbation = r.compares() && j.device()
	return j
}

// device reports whether a chunk of j computes on a device.
func (j *job) device() bool {
	return slices.ContainsFunc(j.members, func(m *member) bool { return m.Stage.Device })
}

// mayCompareLater reports whether chunks of j may be compared with the processor without a slot: their stages
// load nothing while they run.
func (j *job) mayCompareLater() bool {
	late := func(p stages.Port) bool { return p.Over }
	return j.onProbation && !slices.ContainsFunc(j.members, func(m *member) bool {
		return m.Stage.Device && slices.ContainsFunc(m.Stage.Inputs, late)
	})
}

// A member is a cell in a job.
type member struct {
	*node
	in     map[*node]*member        // the members of the job that come before it
	ports  map[string][]stages.Data // what Env.Ports holds, without a way to load
	inputs [][]input                // by port of items, by live edge
	facts  map[string]stages.Facts  // of output ports
	group  stages.Digest            // key that item records lie under
	calls  *idList                  // what the calls are called
	frees  []*node                  // those whose bytes no later member reads

	stored   *store.Items     // what earlier runs know of items under this recipe
	items    *store.Items     // what this job computed
	known    []int32          // by call: its row in items plus one, minus that of stored, or 0
	listings []*store.Listing // the results of a Whole stage
	cut      bool             // early cut-off: inputs unchanged, earlier results reused

	mu  sync.Mutex // guards what follows
	err error
}

// An input is what a member reads on a port of items from one cell.
type input struct {
	from    *node
	port    int
	coord   []stages.Coord // of from, on the collapsed axes
	before  *member        // from, if that is of the same job
	listing *store.Listing // of from otherwise
	ids     *idList
	join    *join
}

// of returns the positions of what belongs to a call.
func (in *input) of(call int) []int32 {
	if in.join == nil {
		return []int32{int32(call)}
	}
	return in.join.of(call)
}

// digest returns that of the payload at a position, or false if it isn't known yet.
func (in *input) digest(at int) (stages.Digest, bool) {
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
func (r *run) find(m *member, call int, key stages.Digest) bool {
	if m.known[call] != 0 {
		return true
	}
	if m.stored == nil {
		return false
	}
	row := m.stored.Find(key)
	if row < 0 || !r.usable(m, m.stored.At(row)) {
		return false
	}
	m.known[call] = int32(-row - 1)
	return true
}

// usable reports whether an outcome is one of m's stage, and its bytes are stored unless they aren't meant to
// be kept.
func (r *run) usable(m *member, o store.ItemOutcome) bool {
	if len(o.Ports) != len(m.Stage.Outputs) {
		return false
	}
	if !m.Step.Keep {
		return true
	}
	for _, port := range o.Ports {
		for _, p := range port {
			if !p.Kept() || p.Inline == nil && r.store.Check(p.Pack) != nil {
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
// member's own, unless it tells that w's device is lost.
func (w *worker) guard(m *member, phase func() error) {
	err := m.failure()
	for _, from := range w.edges(m.node) {
		if before := m.in[from]; before != nil && err == nil {
			if failure := before.failure(); failure != nil {
				err = blockedBy(from.Cell, failure)
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
	case errors.Is(err, stages.ErrDeviceLost) && !w.slot.On(w.hostCache):
		w.lost = err
	case err != nil:
		m.fail(err)
	}
}

// A blockedError says that a cell can't be executed because another one failed.
type blockedError struct{ by *plan.Cell }

func (e *blockedError) Error() string { return fmt.Sprintf("it needs %s, which failed", e.by) }

// blockedBy returns the error of what needs a cell that ended with err: it names the cell where the trouble,
// or the wait, began.
func blockedBy(c *plan.Cell, err error) error {
	if errors.As(err, new(*blockedError)) || errors.As(err, new(*postponedError)) {
		return err
	}
	return &blockedError{c}
}
