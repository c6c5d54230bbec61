package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/onnx"
	"github.com/runexp/runexp/stages/internal/relevance"
)

// A comparison is the program that goes back, and the one that answers to the reference.
// On a processor this makes all that the other reads of the reference, once for as many
// images as there are; a device would take longer to fetch that than to make it.
type comparison struct {
	*Program
	reference *Program
	inner     bool // the reference's program returns the layer's value, last
	ready     bool // the reference's program has run
}

// keepComparison returns the programs of a comparison on a slot. once says that what is
// read of the reference is made once.
func (n *Net) keepComparison(ctx context.Context, slot stages.Slot, q Question, official bool, batch int, once bool) (*comparison, error) {
	key := fmt.Sprintf("program deeplift of %q, official %t, probability %t, once %t, batch %d of %s", q.Layer, official, q.Probability, once, batch, n.digest)
	// Weights twice, and turned around for the way back, and twice for the reference.
	l, err := sharing(slot)(key, 6*n.size, func() (io.Closer, error) {
		return n.openComparison(ctx, slot, q, official, batch, once)
	})
	if err != nil {
		return nil, err
	}
	both := l.(pair)
	k, err := slot.Keep("memory of "+key, both.back.memory()+both.reference.memory(), func() (io.Closer, error) {
		c, err := both.allocate(once)
		return c, err
	})
	if err != nil {
		return nil, err
	}
	c := k.(*comparison)
	c.inner = q.Layer != ""
	c.on(slot, both.back)
	c.reference.on(slot, both.reference)
	return c, nil
}

// A pair is the loaded programs of a comparison.
type pair struct{ back, reference *loaded }

// Close unloads both.
func (p pair) Close() error { return errors.Join(p.back.Close(), p.reference.Close()) }

// openComparison compiles and loads the programs of a comparison. Where values of the graph
// of a single image don't broadcast to those of a batch, the reference stands in every row.
func (n *Net) openComparison(ctx context.Context, slot stages.Slot, q Question, official bool, batch int, once bool) (p pair, err error) {
	g, err := n.Graph(ctx, slot, batch)
	if err != nil {
		return p, err
	}
	one := g
	if n.Batch == 0 && batch > 1 {
		if one, err = n.Graph(ctx, slot, 1); err != nil {
			return p, err
		}
	}
	to, err := n.compileComparison(g, one, q, official, batch, once)
	if err != nil {
		return p, err
	}
	if p.reference, err = n.open(to.there.Model, to.rows, to.forth, slot); err != nil {
		return p, err
	}
	if p.back, err = n.open(to.here.Model, batch, to.back, slot); err != nil {
		return p, errors.Join(err, p.reference.Close())
	}
	return p, nil
}

// allocate returns the programs with memory: what the one returns, or is fed, the other is
// fed.
func (p pair) allocate(once bool) (c *comparison, err error) {
	c = &comparison{}
	if c.reference, err = allocate(p.reference); err != nil {
		return nil, err
	}
	if c.Program, err = allocate(p.back); err != nil {
		return nil, errors.Join(err, c.reference.Close())
	}
	same := c.reference.feeds
	if once {
		same = c.reference.returned
	}
	for i := range c.feeds[2:] {
		mine := &c.feeds[2+i]
		err = errors.Join(err, (*mine).Close())
		*mine = same[i]
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// compiled are the programs of a comparison: the one that goes back, and the one for the
// reference, which has that many rows.
type compiled struct {
	here, there *onnx.Graph
	back, forth recipe
	rows        int
}

func (n *Net) compileComparison(g, one *onnx.Graph, q Question, official bool, batch int, once bool) (_ compiled, err error) {
	defer onnx.Sound(&err)
	var c compiled
	there, rows := one.Clone(), max(1, n.Batch)
	all := g.Clone()
	at, wrt, explained, err := n.compared(g, q, batch)
	if err != nil {
		return c, err
	}
	var twin map[string]string
	ok := false
	if _, _, _, err := n.compared(there, q, rows); err == nil {
		twin, ok = relevance.Twin(g, there, n.Input)
	}
	if !ok {
		there, rows = all, batch
		if _, _, _, err := n.compared(there, q, rows); err != nil {
			return c, err
		}
		if twin, ok = relevance.Twin(g, there, n.Input); !ok {
			return c, errors.New("the graph for the reference isn't that for the images")
		}
	}

	back := recipe{canonical: true, feeds: []feed{{"targets", []int{batch, n.Classes}}, {"images", at.images(batch)}}}
	forth := recipe{canonical: true, feeds: []feed{{"reference", at.images(1)}}}
	inputs, err := declare(g, back.feeds)
	if err != nil {
		return c, err
	}
	image, err := declare(there, forth.feeds)
	if err != nil {
		return c, err
	}
	before := g.Fragment()
	n.enter(before, "runexp_images", g.Types[n.Input].Elem)
	g.Before(before)
	before = there.Fragment()
	every := before.Ints("every_row", []int64{int64(rows), 1, 1, 1}, 4)
	n.enter(before, before.Op("Expand", []string{"runexp_reference", every}), there.Types[n.Input].Elem)
	there.Before(before)

	returned, _, err := n.back(g, "", beginning{at: explained, seed: "runexp_targets"}, wrt, at, walk{
		Question: Question{Layer: q.Layer, Rules: relevance.Rescale(official, twin)},
	})
	if err != nil {
		return c, err
	}
	back.returns = []feed{returned, value(g, "", at, q)}
	steady(g, batch)
	steady(there, rows)
	seal(g, inputs, back) // what nobody reads is gone
	read := forth.feeds
	if !once {
		join(g, there, twin)
	} else if read, err = divide(g, there, twin); err != nil {
		return c, err
	} else {
		forth.returns = slices.Clone(read)
	}
	more, err := declare(g, read)
	if err != nil {
		return c, err
	}
	back.feeds = append(back.feeds, read...)
	if q.Layer != "" {
		forth.returns = append(forth.returns, feed{"reference_value", at.layer(rows)})
		end := there.Fragment()
		end.OpTo("runexp_reference_value", "Identity", []string{q.Layer})
		there.After(end)
	}

	seal(there, image, forth)
	seal(g, append(inputs, more...), back)
	return compiled{here: g, there: there, back: back, forth: forth, rows: rows}, nil
}

// compared emits what is explained of a graph for a batch, and returns where that is and
// with respect to what.
func (n *Net) compared(g *onnx.Graph, q Question, batch int) (at bounds, wrt, explained string, err error) {
	if at, wrt, err = n.bounds(g, batch, q); err != nil {
		return at, "", "", err
	}
	merge(g, q.Layer)
	return at, wrt, n.explained(g, batch, q.Probability), nil
}

// Close frees the memory of both programs.
func (c *comparison) Close() error {
	c.feeds = c.feeds[:2] // the others are the reference's
	return errors.Join(c.Program.Close(), c.reference.Close())
}
