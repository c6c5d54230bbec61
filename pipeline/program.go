package pipeline

import (
	"context"
	"errors"

	"github.com/runexp/runexp/stages"
)

// errNotCompiled says that a key can't be known yet: the program that the cell
// would run was never compiled, and planning compiles nothing.
var errNotCompiled = errors.New("its program isn't compiled yet")

// makeProgram finds the digest of the program that n would run, which is
// remembered under the version of its compiler, its parameters and its models.
func (r *resolver) makeProgram(ctx context.Context, n *node) error {
	h := newHasher("program")
	h.text(n.Stage.Name)
	h.num(n.Stage.Version)
	h.params(r.params, n.Params)
	e := &stages.Env{Stage: n.Stage, Ports: map[string][]stages.Data{}}
	for p := range n.Inputs {
		port := &n.Stage.Inputs[p]
		if port.Type.Items {
			continue
		}
		for _, edge := range n.Inputs[p].Edges {
			from := r.nodes[edge.From.Index]
			h.digest(from.result(edge.Port))
		}
	}
	key := h.sum()
	if b, ok := r.store.Memo(key); ok && len(b) == len(n.program) {
		copy(n.program[:], b)
		return nil
	}
	if r.value == nil {
		return errNotCompiled
	}
	for p := range n.Inputs {
		port := &n.Stage.Inputs[p]
		if port.Type.Items {
			continue
		}
		for _, edge := range n.Inputs[p].Edges {
			d, err := r.value(ctx, r.nodes[edge.From.Index], edge)
			if err != nil {
				return err
			}
			e.Ports[port.Name] = append(e.Ports[port.Name], d)
		}
	}
	var err error
	func() {
		defer catch(&err)
		n.program, err = n.Stage.Program(ctx, n.Params, e)
	}()
	if err != nil {
		return err
	}
	return r.store.SetMemo(key, n.program[:])
}
