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

// A Short is the error of a run that doesn't begin, or doesn't end, because memory is short: the kernel
// would end the process instead, and this one with it. It is [stages.ErrOutOfMemory].
type Short struct {
	Need int64 // bytes
	Free int64
	why  string
}

func (s *Short) Error() string {
	return fmt.Sprintf("%v: it needs %s, and %s is what %s", stages.ErrOutOfMemory, size(s.Need),
		size(s.Free),
		s.why)
}

// Is reports that memory is short.
func (*Short) Is(err error) bool { return err == stages.ErrOutOfMemory }

// size tells bytes.
func size(bytes int64) string {
	if bytes < 1e9 {
		return fmt.Sprintf("%.3g MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.3g GB", gb(bytes))
}

// An account admits the runs of programs that this process has memory for. A run that others leave no room
// for waits for them; one that the room is too small for is refused.
//
// What runs took, the library keeps for others, if they are small: that is free for them as well. What large
// ones took the system has again.
type account struct {
	room    func() Room
	process func() int64 // bytes of the process that aren't Go's or a loaded model's
	release func()       // gives back to the system what nobody uses
	busy    func() bool  // whether others than runs take memory, for now
	most    int64        // bytes that a run may need, 0 if that doesn't matter
	loaded  atomic.Int64 // bytes of loaded models

	turn chan struct{} // holds one while somebody waits for room

	mu      sync.Mutex // guards the rest
	runs    map[*ticket]bool
	pooled  int64         // bytes that small runs under way may take
	others  int64         // bytes that the others may take
	highest int64         // that pooled has been
	ended   chan struct{} // closed when the next run ends
	last    Room          // when it was last looked at
	looked  time.Time
	watched bool
}

// A ticket is that of a run under way.
type ticket struct {
	need int64
	kind runKind
	end  context.CancelCauseFunc
}

// A runKind says where a run takes its memory from.
type runKind int

const (
	pooledRun runKind = iota // from what the library keeps for others
	largeRun                 // from the system, which has it again when the run ends
	apartRun                 // of a process of its own, which ends where more is taken
)

func newAccount(room func() Room, process func() int64) *account {
	return &account{room: room, process: process, release: debug.FreeOSMemory,
		busy: func() bool { return false }, turn: make(chan struct{}, 1), runs: map[*ticket]bool{},
		ended: make(chan struct{})}
}

// fresh is how long a look at the room is good for where there is plenty.
const fresh = 100 * time.Millisecond

// admit waits until there is room for a run that needs so many bytes. leave is to be called when it ends; ctx
// is that of the run, which ends with a [Short] if memory gets short all the same.
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

// wait enters t when enough of the others have left, one waiting run after the other.
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

// How much room a run asks for: twice of what all may take, so that a look from before is good enough; as
// much as they may take; or, alone, as much as it is likely to take.
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

// look looks at the room, unless it has lately and that is good enough.
func (a *account) look(lately bool) {
	if now := time.Now(); !lately || now.Sub(a.looked) > fresh {
		a.last, a.looked = a.room(), now
	}
}

// kept returns how many bytes the library keeps for small runs, at least: no more than these ever needed at
// once, and no more than the process takes that nothing else explains.
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

// watch looks at the room while programs run, and ends the largest run if nothing is left. A run ends between
// two nodes.
func (a *account) watch() {
	for range time.Tick(fresh) {
		a.mu.Lock()
		if len(a.runs) == 0 {
			a.watched = false
			a.mu.Unlock()
			return
		}
		a.look(false)
		// Where others take the memory, it's no use.
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

// goMemory returns the bytes that Go's own memory takes.
func goMemory() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// Needs are the bytes that a program needs at least: in a run, apart from what is loaded, and for good once
// it is loaded. The zero value is a program of which nothing is known.
type Needs struct{ Run, Kept int64 }

// How many times as much as the values that live at once a run takes at most, as measured: kernels have
// memory of their own, and what is kept for other runs is in pieces.
const (
	overLarge = 3
	overSmall = 3.5
)

// usual is how many times as much it is.
const usual = 1.5

// most returns how many bytes the run takes at most.
func (t *ticket) most() int64 {
	switch t.kind {
	case pooledRun:
		return int64(overSmall * float64(t.need))
	}
	return overLarge * t.need
}

// likely returns how many bytes the run probably takes.
func (t *ticket) likely() int64 {
	if t.kind == apartRun {
		return t.need
	}
	return int64(usual * float64(t.need))
}

// Surely reports whether there is room for a run whatever it takes beyond what it needs. If not, it is to run
// in a process of its own, which ends instead of this one.
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

// Needing returns the runtime for a program that needs so much. Its runs wait until there is as much, or fail
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
	// ONNX Runtime packs weights, so that they are there twice.
	a.process, a.most = func() int64 { return native() - before - 2*a.loaded.Load() }, most
	a.release = func() {
		endIdle()
		debug.FreeOSMemory()
	}
	a.busy = func() bool { return len(isolating) > 0 }
	process.account = a
	return a, nil
}

// memoryLimit returns the limit of memory for a process of its own that has so many bytes already: it may
// take what is free too, or what $RUNEXP_MODEL_MEMORY says in all.
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

// little is how much memory a process of its own may take in any case. Where less is free others are taking
// it, and the system ends the largest.
func (r Room) little() int64 { return min(256<<20, r.Size/8) }

// kind returns whether a run of this process that needs so much is small or large: to keep for others what
// small ones took costs a small part of the memory.
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

// load admits the loading of a model of so many bytes: the library's own weights, and these packed.
func (a *account) load(model, kept int64) (leave func(), err error) {
	if a == nil {
		return func() {}, nil
	}
	_, leave, err = a.admit(context.Background(), 2*model+kept, apartRun)
	return leave, err
}
