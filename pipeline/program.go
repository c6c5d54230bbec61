package pipeline

import (
	"context"
	"errors"
	"sync"

	"github.com/runexp/runexp/pipeline/device"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// errNotCompiled says that a key isn't known yet: the program that the cell would run has to be compiled first, which
// the scheduling goroutine doesn't wait for.
var errNotCompiled = errors.New("its program isn't compiled yet")

// programs are the digests of programs that a run has found or looked up.
type programs struct {
	mu     sync.Mutex // guards what follows
	known  map[stages.Digest]stages.Digest
	making map[stages.Digest]chan struct{} // closed once it's known, or couldn't be found
}

// take returns the digest known under a key. It waits for a caller that is compiling it; where there is none, this
// caller compiles it and reports the result with done.
func (p *programs) take(key stages.Digest) (d stages.Digest, ok bool, done func(stages.Digest, error)) {
	for {
		p.mu.Lock()
		if d, ok := p.known[key]; ok {
			p.mu.Unlock()
			return d, true, nil
		}
		others, busy := p.making[key]
		if !busy {
			break
		}
		p.mu.Unlock()
		<-others
	}
	defer p.mu.Unlock()
	mine := make(chan struct{})
	p.making[key] = mine
	return d, false, func(d stages.Digest, err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if err == nil {
			p.known[key] = d
		}
		delete(p.making, key)
		close(mine)
	}
}

// compiler names what compiles programs, so that another doesn't trust their digests.
func (r *resolver) compiler() string {
	if r.Compiler == nil {
		return ""
	}
	return r.Compiler()
}

// recall looks up n's program, and returns errNotCompiled where this compiler hasn't compiled it before.
func (r *resolver) recall(n *node) error {
	key := r.programKey(n)
	r.programs.mu.Lock()
	defer r.programs.mu.Unlock()
	d, ok := r.programs.known[key]
	if !ok {
		b, remembered := r.store.Memo(key)
		if !remembered || len(b) != len(d) {
			return errNotCompiled
		}
		d = stages.Digest(b)
		r.programs.known[key] = d
	}
	n.program = d
	return nil
}

// compile finds the digest of n's program, all of whose value inputs are finished, by compiling it. It must not run on
// the scheduling goroutine.
func (r *resolver) compile(ctx context.Context, slot *device.Slot, n *node) (err error) {
	if err := r.recall(n); err == nil {
		return nil
	}
	key := r.programKey(n)
	d, ok, done := r.programs.take(key)
	if ok {
		n.program = d
		return nil
	}
	defer func() { done(n.program, err) }()
	r.emit(Event{Kind: CellCompiling, Cell: n.String(), Step: n.Step.Name})
	e := &stages.Env{Stage: n.Stage, Slot: slot, Ports: map[string][]stages.Data{}}
	for p := range n.Inputs {
		port := &n.Stage.Inputs[p]
		for _, edge := range r.live(n, p) {
			d := stages.Data{Coord: edge.Coord} // of items nothing but that they're wired
			if !port.Type.Items {
				from := r.nodes[edge.From.Index]
				load := func(int) ([]byte, error) {
					b := make([][]byte, 1)
					_, err := r.fetch(from, edge.Port, []int32{0}, b)
					return b[0], err
				}
				if d, err = r.data(from, edge, load); err != nil {
					return err
				}
			}
			e.Ports[port.Name] = append(e.Ports[port.Name], d)
		}
	}
	defer slot.Begin()()
	defer plan.Catch(&err)
	if n.program, err = n.Stage.Program(ctx, n.Params, e); err != nil {
		n.program = stages.Digest{}
		return err
	}
	// Without the memo it is compiled again next time.
	_ = r.store.SetMemo(key, n.program[:])
	return nil
}

// compileSlot returns a slot to compile programs on. It shares the cache of the processor's slots, so that the graphs
// are there when the programs run.
func (r *resolver) compileSlot() *device.Slot {
	return r.compiling.NewSlot(stages.Device{Class: "cpu", Threads: 1})
}
