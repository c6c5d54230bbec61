package pipeline

import (
	"context"
	"errors"
	"sync"

	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// errNotCompiled says that a key isn't known yet: the program that the cell would run has to be compiled
// first, which the scheduling goroutine doesn't wait for.
var errNotCompiled = errors.New("its program isn't compiled yet")

// programs are the digests of programs that a run has found or looked up, by their keys.
type programs struct {
	known  sync.Map // digests
	making sync.Map // functions that return a digest; several callers wait for the first
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
	if d, ok := r.programs.known.Load(key); ok {
		n.program = d.(stages.Digest)
		return nil
	}
	b, ok := r.store.Memo(key)
	if !ok || len(b) != len(n.program) {
		return errNotCompiled
	}
	n.program = stages.Digest(b)
	r.programs.known.Store(key, n.program)
	return nil
}

// compile finds the digest of n's program, all of whose value inputs are finished, by compiling it. It must
// not run on the scheduling goroutine.
func (r *resolver) compile(ctx context.Context, n *node) error {
	if err := r.recall(n); err == nil {
		return nil
	}
	key := r.programKey(n)
	f, _ := r.programs.making.LoadOrStore(key, sync.OnceValues(func() (stages.Digest, error) {
		d, err := r.compileProgram(ctx, n)
		if err == nil {
			r.programs.known.Store(key, d)
			_ = r.store.SetMemo(key, d[:]) // without it, it is compiled again next time
		}
		return d, err
	}))
	d, err := f.(func() (stages.Digest, error))()
	if err != nil {
		r.programs.making.Delete(key) // another caller has its own error, or none
		return err
	}
	n.program = d
	return nil
}

// compileProgram compiles n's program on a slot that shares the cache of the processor's slots, so that the
// graphs are there when the program runs.
func (r *resolver) compileProgram(ctx context.Context, n *node) (_ stages.Digest, err error) {
	r.emit(eventOf(CellCompiling, n.Cell))
	slot := r.compiling.NewSlot(stages.Device{Class: "cpu", Threads: 1})
	e := &stages.Env{Stage: n.Stage, Slot: slot, Ports: map[string][]stages.Data{}}
	for p := range n.Inputs {
		port := &n.Stage.Inputs[p]
		for _, edge := range r.live(n, p) {
			d := stages.Data{Coord: edge.Coord} // of items nothing but that they're wired
			if !port.Type.Items {
				if d, err = r.data(edge, r.stored); err != nil {
					return stages.Digest{}, err
				}
			}
			e.Ports[port.Name] = append(e.Ports[port.Name], d)
		}
	}
	defer slot.Begin()()
	defer plan.Catch(&err)
	return n.Stage.Program(ctx, n.Params, e)
}

// stored is the loader of values that the store has.
func (r *resolver) stored(from *node, port int) func(int) ([]byte, error) {
	return func(int) ([]byte, error) {
		b := make([][]byte, 1)
		_, err := r.fetch(from, port, []int32{0}, b)
		return b[0], err
	}
}
