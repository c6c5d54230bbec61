package attribute

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// oneWayForward is what the stages are called together by that go backwards from an
// image once or twice: with one way forward for all of them, whoever runs first answers
// the questions of those beside it too, and leaves the answers on the slot.
const oneWayForward = "one way forward"

// runBackward runs a method's backward passes for every item and calls use with the results.
// What the stages beside will ask of the same items is answered too.
func runBackward(ctx context.Context, e *stages.Env, n *program.Net, ways []backwardPass, use func(i int, d []passResult) error) error {
	left, err := leftoversOf(e, n)
	if err != nil {
		return err
	}
	groups, err := left.missing(ctx, e, n, ways)
	if err != nil {
		return err
	}
	told := func(i int) error {
		d := make([]passResult, len(ways))
		for k, way := range ways {
			var err error
			if d[k], err = left.fetch(e, n, i, way); err != nil {
				return err
			}
		}
		return use(i, d)
	}
	for k, group := range groups {
		tell := told
		if k < len(groups)-1 {
			tell = nil
		}
		if err := descend(ctx, e, n, group, left, tell); err != nil {
			return err
		}
	}
	if len(groups) > 0 {
		return nil
	}
	for i := range e.Len() {
		if err := told(i); err != nil {
			return err
		}
	}
	return nil
}

// descend goes some ways back from every item, a batch at a time, and those beside that
// may share the way forward. told is called for each item when its
// answers are there, and fetches the first ones; if it is nil they stay.
func descend(ctx context.Context, e *stages.Env, n *program.Net, ways []backwardPass, left *leftovers, told func(i int) error) error {
	wanted := map[string]int{} // how often each answer will be fetched
	for _, w := range ways {
		wanted[w.question.String()]++
	}
	asked, err := left.beside(ctx, e, n, ways, wanted)
	if err != nil {
		return err
	}
	g, asked, err := answering(ctx, e, n, ways, asked)
	if err != nil {
		return err
	}
	fresh := map[leftoverKey]bool{} // found here, not by an earlier stage that left them lying
	for from := 0; from < e.Len(); from += g.Batch {
		to := min(from+g.Batch, e.Len())
		for i := from; i < to; i++ {
			if err := put(e, i, n, g, i-from, asked); err != nil {
				return err
			}
		}
		if err := g.Run(ctx); err != nil {
			return err
		}
		for i := from; i < to; i++ {
			for k, w := range asked {
				key, err := keyOf(e, n, i, w)
				if err != nil {
					return err
				}
				a := leftover{g.Arrival(k, i-from), g.Row(i - from), wanted[w.question.String()]}
				if fresh[key] { // of an equal image
					a.wanted += left.found[key].wanted
				}
				if told == nil || k >= len(ways) || a.wanted > 1 {
					a = a.keep(w)
				}
				left.found[key], fresh[key] = a, true
			}
			if told == nil {
				continue
			}
			if err := told(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// put puts item i into a row of the program that answers some ways back.
func put(e *stages.Env, i int, n *program.Net, g program.Gradient, row int, asked []backwardPass) error {
	t, err := asked[0].target(e, i, n)
	if err != nil {
		return err
	}
	g.Explain(row, t)
	for _, w := range asked {
		if w.counts == nil {
			continue
		}
		if err := w.counts(g.Counts(w.question.Counts, row), t); err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
	}
	return image(e, i, n, g.Image(row))
}

// answering returns the program that answers some ways back, and those beside if it can
// be made, and all whom it answers.
func answering(ctx context.Context, e *stages.Env, n *program.Net, ways, beside []backwardPass) (program.Gradient, []backwardPass, error) {
	all := slices.Concat(ways, beside)
	var also []program.Question
	for _, w := range all[1:] {
		also = append(also, w.question)
	}
	g, err := n.Gradient(ctx, e.Slot, all[0].question, n.Fit(e.Len(), e.Batch), also...)
	if err == nil || len(beside) == 0 || ctx.Err() != nil {
		return g, all, err
	}
	return answering(ctx, e, n, ways, nil) // all of them may be too much at once
}

// leftovers are answers that lie on the slot until they are fetched, by the stage that
// found them or by those beside it.
type leftovers struct{ found map[leftoverKey]leftover }

// A leftoverKey names an answer: to which question, for which image and class.
type leftoverKey struct {
	question string
	image    stages.Digest
	target   program.Target
}

// A leftover is what one way back brought, and what the model answered.
type leftover struct {
	program.Arrival
	row    []float32 // of the model's answer
	wanted int       // how often it will be fetched
}

// keep returns a leftover that outlives the next run. At the input the value is the
// image, which everybody has.
func (a leftover) keep(w backwardPass) leftover {
	a.Gradient, a.Began, a.row = slices.Clone(a.Gradient), slices.Clone(a.Began), slices.Clone(a.row)
	if a.Value = slices.Clone(a.Value); w.question.Layer == "" {
		a.Value = nil
	}
	return a
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

func keyOf(e *stages.Env, n *program.Net, i int, w backwardPass) (leftoverKey, error) {
	t, err := w.target(e, i, n)
	return leftoverKey{w.question.String(), e.Calls[i].Digest, t}, err
}

// have reports whether the answers of a way back are there, for all items.
func (l *leftovers) have(e *stages.Env, n *program.Net, w backwardPass) (bool, error) {
	times := map[leftoverKey]int{} // more than one where images are equal
	for i := range e.Len() {
		key, err := keyOf(e, n, i, w)
		if err != nil {
			return false, err
		}
		if times[key]++; times[key] > l.found[key].wanted {
			return false, nil
		}
	}
	return true, nil
}

// missing returns the ways back whose answers aren't there, those side by side that may
// share the way forward.
func (l *leftovers) missing(ctx context.Context, e *stages.Env, n *program.Net, ways []backwardPass) (groups [][]backwardPass, err error) {
	for _, w := range ways {
		if have, err := l.have(e, n, w); have || err != nil {
			if err != nil {
				return nil, err
			}
			continue
		}
		k := slices.IndexFunc(groups, func(g []backwardPass) bool { return together(ctx, e, n, g, w) })
		if k < 0 {
			groups = append(groups, nil)
			k = len(groups) - 1
		}
		groups[k] = append(groups[k], w)
	}
	return groups, nil
}

// together reports whether one more way back may share the way forward of a group.
func together(ctx context.Context, e *stages.Env, n *program.Net, group []backwardPass, w backwardPass) bool {
	return !slices.ContainsFunc(group, func(o backwardPass) bool {
		return o.Target != w.Target || !n.Together(ctx, e.Slot, n.Fit(e.Len(), e.Batch), o.question, w.question)
	})
}

// beside returns the ways back of the stages beside that may share the way forward of
// ways and ask something else, and whose answers aren't there yet. It counts in wanted
// how often they will be fetched.
func (l *leftovers) beside(ctx context.Context, e *stages.Env, n *program.Net, ways []backwardPass, wanted map[string]int) (also []backwardPass, _ error) {
	for _, b := range e.Beside {
		method, err := backwardOf(b.Params)
		if err != nil {
			return nil, err
		}
		theirs, err := method.backwardPasses(ctx, e, n)
		if err != nil {
			continue // its own stage will say so
		}
		for _, w := range theirs {
			if !together(ctx, e, n, slices.Concat(ways, also), w) {
				continue
			}
			if have, err := l.have(e, n, w); have || err != nil {
				if err != nil {
					return nil, err
				}
				continue
			}
			if wanted[w.question.String()]++; wanted[w.question.String()] == 1 {
				also = append(also, w)
			}
		}
	}
	return also, nil
}

// fetch hands over the answer of a way back for item i, and forgets it if nobody else
// wants it.
func (l *leftovers) fetch(e *stages.Env, n *program.Net, i int, w backwardPass) (passResult, error) {
	key, err := keyOf(e, n, i, w)
	if err != nil {
		return passResult{}, err
	}
	a, ok := l.found[key]
	if !ok {
		return passResult{}, fmt.Errorf("the answer for %q was fetched already", e.Calls[i].ID)
	}
	d := passResult{a.Arrival, w.response(n, a.row, key.target), w.factor}
	if d.Value == nil {
		d.Value = make([]float32, n.Size())
		if err := image(e, i, n, d.Value); err != nil {
			return d, err
		}
	}
	if a.wanted--; a.wanted > 0 {
		l.found[key] = a
	} else {
		delete(l.found, key)
	}
	return d, nil
}
