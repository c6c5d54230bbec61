package attribute

import (
	"context"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// sharedForward is what methods with backward passes share: their passes on the same items are answered by
// few programs, each with one forward pass.
var sharedForward = stages.SharedRun{Run: func(ctx context.Context, parts []stages.Part) error {
	n, err := program.Load(parts[0].Env)
	if err != nil {
		return err
	}
	users := make([]passUser, len(parts))
	for k, part := range parts {
		method, err := backwardOf(part.Params)
		if err != nil {
			return err
		}
		passes, err := method.backwardPasses(ctx, part.Env, n)
		if err != nil {
			return err
		}
		users[k] = passUser{passes, func(i int, results []passResult) error {
			return method.combine(part.Env, i, n, results)
		}}
	}
	return runBackward(ctx, parts[0].Env, n, users)
}}

// A passUser is a method: its backward passes, and what makes a map of their results for item i.
type passUser struct {
	passes []backwardPass
	use    func(i int, results []passResult) error
}

// A passGroup is backward passes that share a forward pass, and the program that answers them.
type passGroup struct {
	program.Gradient
	passes []backwardPass
}

// A passPlace is where the result of a pass is found.
type passPlace struct {
	group *passGroup
	index int // in the group
}

// runBackward runs the backward passes of some methods for every item of e, a batch at a time, and has the
// methods use the results. Equal passes run once.
func runBackward(ctx context.Context, e *stages.Env, n *program.Net, users []passUser) error {
	var groups []*passGroup
	places := make([][]passPlace, len(users))
	for u := range users {
		for _, pass := range users[u].passes {
			k := slices.IndexFunc(groups, func(g *passGroup) bool { return g.admits(ctx, e, n, pass) })
			if k < 0 {
				groups, k = append(groups, &passGroup{}), len(groups)
			}
			places[u] = append(places[u], groups[k].add(pass))
		}
	}
	batch := e.Len()
	for _, g := range groups {
		var also []program.Question
		for _, pass := range g.passes[1:] {
			also = append(also, pass.question)
		}
		var err error
		g.Gradient, err = n.Gradient(ctx, e.Slot, g.passes[0].question, n.Fit(e.Len(), e.Batch), also...)
		if err != nil {
			return err
		}
		batch = min(batch, g.Batch)
	}
	for from := 0; from < e.Len(); from += batch {
		to := min(from+batch, e.Len())
		results := make([][][]passResult, len(users)) // by user and item
		for u := range users {
			for range to - from {
				results[u] = append(results[u], make([]passResult, len(places[u])))
			}
		}
		for _, g := range groups {
			for i := from; i < to; i++ {
				if err := g.put(e, i, n, i-from); err != nil {
					return err
				}
			}
			if err := g.Run(ctx); err != nil {
				return err
			}
			// Groups that differ in their targets alone have one program, whose next run overwrites its
			// results.
			overwritten := slices.ContainsFunc(groups,
				func(o *passGroup) bool { return o != g && o.Program == g.Program })
			for u := range users {
				for k, place := range places[u] {
					for i := from; i < to && place.group == g; i++ {
						r, err := place.result(e, i, n, i-from, users[u].passes[k])
						if err != nil {
							return err
						}
						if overwritten {
							r.Gradient, r.Value, r.Seed =
								slices.Clone(r.Gradient), slices.Clone(r.Value), slices.Clone(r.Seed)
						}
						results[u][i-from][k] = r
					}
				}
			}
		}
		for i := from; i < to; i++ {
			for u := range users {
				if err := users[u].use(i, results[u][i-from]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// admits reports whether a pass may share the group's forward pass.
func (g *passGroup) admits(ctx context.Context, e *stages.Env, n *program.Net, pass backwardPass) bool {
	return !slices.ContainsFunc(g.passes, func(o backwardPass) bool {
		return o.Target != pass.Target ||
			!n.SharesForward(ctx, e.Slot, n.Fit(e.Len(), e.Batch), o.question, pass.question)
	})
}

// add adds a pass to the group, unless it has an equal one.
func (g *passGroup) add(pass backwardPass) passPlace {
	k := slices.IndexFunc(g.passes,
		func(o backwardPass) bool { return o.question.String() == pass.question.String() })
	if k < 0 {
		g.passes, k = append(g.passes, pass), len(g.passes)
	}
	return passPlace{g, k}
}

// put puts item i into a row of the group's program.
func (g *passGroup) put(e *stages.Env, i int, n *program.Net, row int) error {
	t, err := g.passes[0].target(e, i, n)
	if err != nil {
		return err
	}
	g.Explain(row, t)
	for _, pass := range g.passes {
		if pass.counts == nil {
			continue
		}
		if err := pass.counts(n.Rivals(g.Counts(pass.question.Counts, row), t)); err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
	}
	return image(e, i, n, g.Image(row))
}

// result returns what the program has for a pass and item i, which is in a row.
func (p passPlace) result(e *stages.Env, i int, n *program.Net, row int,
	pass backwardPass) (passResult, error) {
	t, err := pass.target(e, i, n)
	return passResult{p.group.Result(p.index, row), pass.response(n, p.group.Row(row), t), pass.factor}, err
}
