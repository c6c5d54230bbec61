package program

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
)

// A comparison is the program that goes back, and the one that answers to the reference. On a processor this
// makes all that the other reads of the reference, once for as many images as there are; a device would take
// longer to fetch that than to make it.
type comparison struct {
	*Program
	reference *Program
	inner     bool // the reference's program returns the layer's value, last
	ready     bool // the reference's program has run
}

// keepComparison returns the programs of a comparison on a slot. once says that what is read of the reference
// is made once.
func (n *Net) keepComparison(ctx context.Context, slot stages.Slot, q Question, official bool, batch int,
	once bool) (*comparison, error) {
	key := fmt.Sprintf("program deeplift of %q, official %t, probability %t, once %t, batch %d of %s",
		q.Layer, official, q.Probability, once, batch, n.digest)
	// Weights twice, and turned around for the way back, and twice for the reference.
	l, err := sharing(slot)(key, 6*n.size, func() (io.Closer, error) {
		return n.openComparison(ctx, slot, q, official, batch, once)
	})
	if err != nil {
		return nil, err
	}
	both := l.(pair)
	k, err := slot.Keep("memory of "+key, both.backward.memory()+both.reference.memory(),
		func() (io.Closer, error) {
			c, err := both.allocate(once)
			return c, err
		})
	if err != nil {
		return nil, err
	}
	c := k.(*comparison)
	c.inner = q.Layer != ""
	c.on(slot, both.backward)
	c.reference.on(slot, both.reference)
	return c, nil
}

// A pair is the loaded programs of a comparison.
type pair struct{ backward, reference *loaded }

// Close unloads both.
func (p pair) Close() error { return errors.Join(p.backward.Close(), p.reference.Close()) }

// openComparison lowers and loads the programs of a comparison.
func (n *Net) openComparison(ctx context.Context, slot stages.Slot, q Question, official bool, batch int,
	once bool) (both pair, err error) {
	p, err := n.lower(ctx, slot, batch, n.comparison(q, official, once))
	if err != nil {
		return both, err
	}
	if both.reference, err = n.open(p.Reference, slot); err != nil {
		return both, err
	}
	if both.backward, err = n.open(p, slot); err != nil {
		return both, errors.Join(err, both.reference.Close())
	}
	return both, nil
}

func (n *Net) comparison(q Question, official, once bool) lower.Request {
	return lower.Request{Kind: lower.Comparison, Question: q, Inputs: n.targetsAndImages,
		Images: lower.Images, Official: official, Once: once}
}

// allocate returns the programs with memory: what the one returns, or is fed, the other is fed.
func (p pair) allocate(once bool) (c *comparison, err error) {
	c = &comparison{}
	if c.reference, err = allocate(p.reference); err != nil {
		return nil, err
	}
	if c.Program, err = allocate(p.backward); err != nil {
		return nil, errors.Join(err, c.reference.Close())
	}
	same := c.reference.inputs
	if once {
		same = c.reference.outputs
	}
	for i := range c.inputs[2:] {
		mine := &c.inputs[2+i]
		err = errors.Join(err, (*mine).Close())
		*mine = same[i]
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close frees the memory of both programs.
func (c *comparison) Close() error {
	c.inputs = c.inputs[:2] // the others are the reference's
	return errors.Join(c.Program.Close(), c.reference.Close())
}
