package attribute

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// oneWayBack is what the stages are called together by that go backwards once an
// image: with one way forward for all of them, whoever runs first answers the
// questions of those beside it too, and leaves the answers on the slot.
const oneWayBack = "one way back"

// A wayBack is one of them: from what the parameters say is explained to where they
// say the map is made, by some rules.
type wayBack struct {
	Tapped
	rules relevance.Policy
}

// waysBack returns what a method of these parameters asks; others say so themselves.
func (p Tapped) waysBack() []wayBack { return []wayBack{{p, relevance.Derivative()}} }

// also returns the questions that may be answered together with q: those of the
// stages beside, of the same class explained, whose answers aren't there yet.
//
// wanted says how often each of them will be fetched.
func (p Tapped) also(ctx context.Context, e *stages.Env, n *program.Net, q program.Question, left *leftovers) (also []program.Question, wanted map[string]int) {
	wanted = map[string]int{}
	for _, b := range e.Beside {
		other, ok := b.Params.(interface{ waysBack() []wayBack })
		if !ok {
			continue
		}
		for _, way := range other.waysBack() {
			if way.Target != p.Target {
				continue
			}
			// What can't be asked, its own stage will say.
			o, err := way.question(ctx, e, n, way.rules)
			if err != nil || left.have(e, o) || !n.Together(ctx, e.Slot, q, o) {
				continue
			}
			name := o.String()
			if wanted[name]++; wanted[name] == 1 && name != q.String() {
				also = append(also, o)
			}
		}
	}
	return also, wanted
}

// answering returns the program that answers q, and the others if it can be made.
func answering(ctx context.Context, e *stages.Env, n *program.Net, q program.Question, also []program.Question) (program.Gradient, []program.Question, error) {
	batch := n.Fit(e.Len(), e.Batch)
	if len(also) > 0 {
		g, err := n.Gradient(ctx, e.Slot, q, batch, also...)
		if err == nil || errors.Is(err, stages.ErrOutOfMemory) || ctx.Err() != nil {
			return g, also, err
		}
		// One of the others doesn't fit the model, and will say so itself.
	}
	g, err := n.Gradient(ctx, e.Slot, q, batch)
	return g, nil, err
}

// leftovers are answers that a stage found for those beside it. They lie on the slot
// until they are fetched.
type leftovers struct{ found map[leftoverKey]leftover }

// A leftoverKey names an answer: to which question, for which image and class.
type leftoverKey struct {
	question string
	image    stages.Digest
	target   program.Target
}

// A leftover is what one way back brought, and what the model answered.
type leftover struct {
	derivative
	row    []float32 // of the model's answer
	wanted int       // how often it will be fetched
}

func (*leftovers) Close() error { return nil }

// leftoversOf returns the leftovers of a model on the slot. Those of other images than
// the calls' are from an earlier chunk, and forgotten.
func leftoversOf(e *stages.Env, n *program.Net) (*leftovers, error) {
	c, err := e.Slot.Keep("answers of "+n.Digest().String(), 0, func() (io.Closer, error) {
		return &leftovers{map[leftoverKey]leftover{}}, nil
	})
	if err != nil {
		return nil, err
	}
	left := c.(*leftovers)
	now := map[stages.Digest]bool{}
	for _, c := range e.Calls {
		now[c.Digest] = true
	}
	for key := range left.found {
		if !now[key.image] {
			delete(left.found, key)
		}
	}
	return left, nil
}

// have reports whether a question was answered for all calls, whatever the class.
func (l *leftovers) have(e *stages.Env, q program.Question) bool {
	images := map[stages.Digest]bool{}
	for key := range l.found {
		if key.question == q.String() {
			images[key.image] = true
		}
	}
	return !slices.ContainsFunc(e.Calls, func(c stages.Call) bool { return !images[c.Digest] })
}

// leave keeps what row i of a run says about call k to those beside.
func (l *leftovers) leave(e *stages.Env, g program.Gradient, q program.Question, also []program.Question, wanted map[string]int, i, k int, t program.Target) {
	keep := func(q program.Question, gradient, value []float32, shape []int) {
		count := wanted[q.String()]
		if count == 0 {
			return
		}
		a := leftover{derivative{gradient: slices.Clone(gradient), shape: shape}, slices.Clone(g.Row(i)), count}
		if q.Layer != "" { // at the input it is the image
			a.value = slices.Clone(value)
		}
		l.found[leftoverKey{q.String(), e.Calls[k].Digest, t}] = a
	}
	keep(q, g.Gradient(i), g.Value(i), g.Shape())
	for j, o := range also {
		gradient, value, shape := g.Also(j, i)
		keep(o, gradient, value, shape)
	}
}

// fetch hands over the answers to a question that others found, and forgets those that
// nobody else wants; false if one of them isn't there.
func (p Tapped) fetch(e *stages.Env, n *program.Net, q program.Question, left *leftovers, use func(i int, d derivative) error) (bool, error) {
	keys := make([]leftoverKey, e.Len())
	for i := range keys {
		t, err := p.target(e, i, n)
		if err != nil {
			return false, err
		}
		keys[i] = leftoverKey{q.String(), e.Calls[i].Digest, t}
		if _, ok := left.found[keys[i]]; !ok {
			return false, nil
		}
	}
	pixels := make([]float32, n.Size())
	for i, key := range keys {
		a := left.found[key]
		if q.Layer == "" {
			if err := image(e, i, n, pixels); err != nil {
				return true, err
			}
			a.value = pixels
		}
		a.response = p.response(n, a.row, key.target)
		if err := use(i, a.derivative); err != nil {
			return true, err
		}
	}
	for _, key := range keys {
		a := left.found[key]
		if a.wanted--; a.wanted > 0 {
			left.found[key] = a
		} else {
			delete(left.found, key)
		}
	}
	return true, nil
}
