package ort

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runexp/runexp/stages"
)

// A Short is the error of a run that isn't started, or is ended, because memory is short: otherwise the
// kernel would kill the process that runs it, and perhaps this one. It is [stages.ErrOutOfMemory].
type Short struct {
	Need int64 // bytes
	Free int64
	why  string
}

func (s *Short) Error() string {
	return fmt.Sprintf("%v: it needs %s, and %s is all that %s", stages.ErrOutOfMemory, size(s.Need),
		size(s.Free),
		s.why)
}

// Is reports that memory is short.
func (*Short) Is(err error) bool { return err == stages.ErrOutOfMemory }

// size returns a number of bytes in words.
func size(bytes int64) string {
	if bytes < 1e9 {
		return fmt.Sprintf("%.3g MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.3g GB", gb(bytes))
}

// An account admits the runs of programs for which this process has memory. A run waits while others use
// the memory it needs, and is refused if it doesn't fit even alone.
//
// The library keeps the memory of small runs and uses it for the next ones, so such runs take nothing new.
// The memory of large runs is returned to the system.
type account struct {
	room    func() Room
	process func() int64 // bytes of the process besides Go's memory and loaded models
	release func()       // returns unused memory to the system
	busy    func() bool  // whether something other than runs takes memory now
	most    int64        // bytes that a run may need; 0: any number
	loaded  atomic.Int64 // bytes of loaded models

	turn chan struct{} // holds one while a run waits for room

	mu      sync.Mutex // guards the fields below
	runs    map[*ticket]bool
	pooled  int64         // bytes that the current small runs may take
	others  int64         // bytes that the current other runs may take
	highest int64         // the largest value of pooled so far
	ended   chan struct{} // closed when the next run ends
	last    Room          // the room when it was last measured
	looked  time.Time
	watched bool
}

// A ticket is an admitted run.
type ticket struct {
	need int64
	kind runKind
	end  context.CancelCauseFunc
}

// A runKind is the source of a run's memory.
type runKind int

const (
	pooledRun runKind = iota // memory that the library keeps and reuses
	largeRun                 // memory of the system, returned when the run ends
	apartRun                 // memory of a worker process, which ends if it takes more than it may
)

func newAccount(room func() Room, process func() int64) *account {
	return &account{room: room, process: process, release: debug.FreeOSMemory,
		busy: func() bool { return false }, turn: make(chan struct{}, 1), runs: map[*ticket]bool{},
		ended: make(chan struct{})}
}

// fresh is how long a measured room stays valid while there is plenty.
const fresh = 100 * time.Millisecond

// admit waits until there is room for a run that needs this many bytes. The caller calls leave when the run
// ends. The returned context is the run's; it ends with a [Short] if memory gets short nevertheless.
func (a *account) admit(ctx context.Context, need int64, kind runKind) (_ context.Context, leave func(),
	err error) {
	t := &ticket{need: need, kind: kind}
	if a.most > 0 && need > a.most {
		return nil, nil, &Short{need, a.most, "$" + memoryVariable + " allows"}
	}
	if !a.enter(t, plenty) {
		if err := a.wait(ctx, t); err != nil {
			return nil, nil, err
		}
	}
	ctx, end := context.WithCancelCause(ctx)
	a.mu.Lock()
	t.end = end
	a.mu.Unlock()
	return ctx, func() { a.leave(t); end(nil) }, nil
}

// wait admits t when enough of the other runs have ended. One run waits at a time.
func (a *account) wait(ctx context.Context, t *ticket) error {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		a.mu.Lock()
		alone, ended := len(a.runs) == 0, a.ended
		a.mu.Unlock()
		if a.enter(t, enough) {
			return nil
		}
		if alone {
			a.release()
			if a.enter(t, barely) {
				return nil
			}
			if !a.busy() {
				a.mu.Lock()
				defer a.mu.Unlock()
				return &Short{t.need, max(0, a.last.Free-a.last.reserve()), a.last.Of}
			}
		}
		select {
		case <-ended:
		case <-time.After(fresh):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A roominess is how much free room a run demands: twice the most that all runs may take, so that an
// earlier measurement is good enough; the most that they may take; or, if the run is alone, as much as it
// is likely to take.
type roominess int

const (
	plenty roominess = iota
	enough
	barely
)

// enter adds a run if there is room for it.
func (a *account) enter(t *ticket, asks roominess) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.look(asks == plenty)
	pooled, others := a.pooled, a.others
	if t.kind == pooledRun {
		pooled += t.most()
	} else {
		others += t.most()
	}
	free := a.last.Free - a.last.reserve()
	switch {
	case asks == plenty && (len(a.turn) > 0 || pooled+others > free/2),
		asks == enough && max(0, pooled-a.kept())+others > free,
		asks == barely && (len(a.runs) > 0 || t.likely() > free+a.kept()):
		return false
	}
	a.pooled, a.others, a.highest = pooled, others, max(a.highest, pooled)
	a.runs[t] = true
	if !a.watched {
		a.watched = true
		go a.watch()
	}
	return true
}

// look measures the room, unless lately is set and the last measurement is fresh.
func (a *account) look(lately bool) {
	if now := time.Now(); !lately || now.Sub(a.looked) > fresh {
		a.last, a.looked = a.room(), now
	}
}

// kept returns a lower bound of the bytes that the library keeps for small runs: at most what these ever
// needed at once, and at most the memory of the process that nothing else explains.
func (a *account) kept() int64 { return max(0, min(a.highest, a.process())) }

func (a *account) leave(t *ticket) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.runs, t)
	if t.kind == pooledRun {
		a.pooled -= t.most()
	} else {
		a.others -= t.most()
	}
	close(a.ended)
	a.ended = make(chan struct{})
}

// watch measures the room while programs run, and ends the largest run if nothing is left. A run can end
// between two nodes.
func (a *account) watch() {
	for range time.Tick(fresh) {
		a.mu.Lock()
		if len(a.runs) == 0 {
			a.watched = false
			a.mu.Unlock()
			return
		}
		a.look(false)
		// If other processes take the memory, ending a run doesn't help.
		if a.last.Free < a.last.reserve()/2 && a.process() > a.last.Size/4 {
			a.endLargest()
		}
		a.mu.Unlock()
	}
}

func (a *account) endLargest() {
	var largest *ticket
	for t := range a.runs {
		if t.end != nil && (largest == nil || t.need > largest.need) {
			largest = t
		}
	}
	if largest != nil {
		largest.end(&Short{a.process(), a.last.Free, a.last.Of})
	}
}

// goMemory returns how many bytes Go's runtime takes.
func goMemory() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// Needs are lower bounds of the bytes that a program takes: Run during a run, in addition to the loaded
// model, and Kept as long as it is loaded. The zero value means that nothing is known.
type Needs struct{ Run, Kept int64 }

// Upper bounds, as measured, of a run's memory relative to that of the values which are live at once:
// kernels allocate memory of their own, and the memory that is kept for other runs is fragmented.
const (
	overLarge = 3
	overSmall = 3.5
)

// usual is the same ratio for most runs.
const usual = 1.5

// most returns an upper bound of the bytes that the run takes.
func (t *ticket) most() int64 {
	switch t.kind {
	case pooledRun:
		return int64(overSmall * float64(t.need))
	}
	return overLarge * t.need
}

// likely returns how many bytes the run usually takes.
func (t *ticket) likely() int64 {
	if t.kind == apartRun {
		return t.need
	}
	return int64(usual * float64(t.need))
}

// Surely reports whether a run fits even if it takes the most that a program with these needs can take. If
// not, the program is to run in a worker process, which then ends instead of this one.
func Surely(n Needs) (bool, error) {
	a, err := theAccount()
	if err != nil {
		return false, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.look(true)
	return (&ticket{need: n.Run, kind: largeRun}).most()+n.Kept <= a.last.Free-a.last.reserve(), nil
}

// Needing returns the runtime for a program with these needs. Its runs wait until there is room, or fail
// with a [Short].
func (r *Runtime) Needing(n Needs) *Runtime {
	own := *r
	own.needs = n
	return &own
}

// theAccount returns the account of this process.
func theAccount() (*account, error) {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.account != nil {
		return process.account, nil
	}
	most, err := mostMemory()
	if err != nil {
		return nil, err
	}
	native := func() int64 { return ofProcess("RssAnon:") - goMemory() }
	before := native()
	a := newAccount(newRoomer("").room, nil)
	// ONNX Runtime packs weights, so that a loaded model takes its size twice.
	a.process, a.most = func() int64 { return native() - before - 2*a.loaded.Load() }, most
	a.release = func() {
		endIdle()
		debug.FreeOSMemory()
	}
	a.busy = func() bool { return len(isolating) > 0 }
	process.account = a
	return a, nil
}

// memoryLimit returns the limits of a worker process that already takes this many bytes: it may also take
// what is free, or as much in all as $RUNEXP_MODEL_MEMORY allows.
func memoryLimit(has int64) (l Limits, err error) {
	most, err := mostMemory()
	if err != nil || most > 0 {
		return Limits{Memory: most, Of: "$" + memoryVariable + " allows"}, err
	}
	r := newRoomer("").shared()
	if r.Free == math.MaxInt64 {
		return l, nil
	}
	return Limits{Memory: has + max(r.Free-r.reserve(), r.little()), Of: r.Of}, nil
}

// little is the memory that a worker process may always take. If less is free, other processes are taking
// it, and the system kills the largest.
func (r Room) little() int64 { return min(256<<20, r.Size/8) }

// kind returns whether a run in this process is small or large: the memory that the library keeps for small
// runs must remain a small part of the whole.
func (a *account) kind(need int64) runKind {
	if a == nil {
		return pooledRun
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.look(true)
	if need > min(1<<30, a.last.Size/8) {
		return largeRun
	}
	return pooledRun
}

// load admits the loading of a model of this size: the library's copy of the weights, and the packed one.
func (a *account) load(model, kept int64) (leave func(), err error) {
	if a == nil {
		return func() {}, nil
	}
	_, leave, err = a.admit(context.Background(), 2*model+kept, apartRun)
	return leave, err
}
