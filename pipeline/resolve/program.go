package resolve

import (
	"context"
	"errors"
	"sync"

	"github.com/runexp/runexp/pipeline/key"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages"
)

// ErrNotCompiled means that a key isn't known yet: the cell's program has to be compiled first, for which
// the scheduling goroutine doesn't wait.
var ErrNotCompiled = errors.New("its program isn't compiled yet")

// programs are the digests of programs that a run has compiled or looked up, by their keys.
type programs struct {
	known  sync.Map // digests
	making sync.Map // functions that return a digest; several callers wait for the first
}

// Recall looks up n's program, and returns ErrNotCompiled if this compiler hasn't compiled it before.
func (r *Resolver) Recall(n *Cell) error {
	d, err := r.recall(n.ID())
	if err == nil {
		n.setProgram(d)
	}
	return err
}

func (r *Resolver) recall(id *key.Identity) (d stages.Digest, err error) {
	at := r.Keys.Program(id, r.CompiledBy())
	if d, ok := r.programs.known.Load(at); ok {
		return d.(stages.Digest), nil
	}
	b, ok := r.Store.Memo(at)
	if !ok || len(b) != len(d) {
		return d, ErrNotCompiled
	}
	r.programs.known.Store(at, stages.Digest(b))
	return stages.Digest(b), nil
}

// Compile finds the digest of n's program by compiling it; all value inputs must be finished. It must not
// run on the scheduling goroutine.
func (r *Resolver) Compile(ctx context.Context, n *Cell) error {
	if err := r.Recall(n); err == nil {
		return nil
	}
	at := r.Keys.Program(n.ID(), r.CompiledBy())
	f, _ := r.programs.making.LoadOrStore(at, sync.OnceValues(func() (stages.Digest, error) {
		d, err := r.compileProgram(ctx, n)
		if err == nil {
			r.programs.known.Store(at, d)
			_ = r.Store.SetMemo(at, d[:]) // if it fails, the program is compiled again next time
		}
		return d, err
	}))
	d, err := f.(func() (stages.Digest, error))()
	if err != nil {
		r.programs.making.Delete(at) // another caller has its own error, or none
		return err
	}
	n.setProgram(d)
	return nil
}

// compileProgram compiles n's program on a slot that shares the cache of the processor's slots, so that the
// graphs are cached when the program runs.
func (r *Resolver) compileProgram(ctx context.Context, n *Cell) (_ stages.Digest, err error) {
	r.Events.Compiling(n.Cell)
	slot := r.Compiling.NewSlot(stages.Device{Class: "cpu", Threads: 1})
	e := &stages.Env{Stage: n.Stage, Slot: slot, Ports: map[string][]stages.Data{}}
	for p := range n.Inputs {
		port := &n.Stage.Inputs[p]
		for _, edge := range n.ID().Live(p) {
			d := stages.Data{Coord: edge.Coord} // of items only that they are wired
			if !port.Type.Items {
				if d, err = r.Data(edge, r.Stored); err != nil {
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

func (n *Cell) setProgram(d stages.Digest) { n.update(func(id *key.Identity) { id.Program = d }) }

// CompiledBy identifies the compiler of programs.
func (r *Resolver) CompiledBy() string {
	if r.Compiler == nil {
		return ""
	}
	return r.Compiler()
}
