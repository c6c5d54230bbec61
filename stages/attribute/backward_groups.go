package attribute

import (
	"context"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
)

// groupedBackward is what methods with backward passes share: their passes on the same items are answered by
// few programs, each with one forward pass.
var groupedBackward = program.Shared(func(ctx context.Context, parts []stages.Part) error {
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
			warnLargest(part.Env, i, n, results)
			return method.combine(part.Env, i, n, results)
		}}
	}
	return runBackward(ctx, parts[0].Env, n, users)
})

// warnLargest warns of an expression that is at its upper bound for the image itself, as the similarity to
// the image's own detection is: it falls whatever changes, and has no direction in which it rises.
func warnLargest(e *stages.Env, i int, n *program.Net, results []passResult) {
	h := n.Head
	if h == nil || !h.Bounded() || len(results) == 0 {
		return
	}
	if results[0].response >= h.High-1e-6*(h.High-h.Low) {
		e.WarnItem(i, "the target is at its largest value for the image itself, so its derivative is 0, or "+
			"rounding: explain a score instead, such as that of the detected row, or use a method that "+
			"replaces pixels, such as attribute/rise")
	}
}

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

// groupedPasses are the passes of all users for a batch of items, in groups.
type groupedPasses struct {
	*stages.Env
	net    *program.Net
	users  []passUser
	places [][]passPlace // by user and pass
	groups []*passGroup
	batch  int // the number of items that all groups take at once
}

// runBackward runs the backward passes of some methods for every item of e, a batch at a time, and has the
// methods use the results. Equal passes run once.
func runBackward(ctx context.Context, e *stages.Env, n *program.Net, users []passUser) error {
	s := &groupedPasses{Env: e, net: n, users: users}
	s.groupPasses(ctx)
	if err := s.compile(ctx); err != nil {
		return err
	}
	for from := 0; from < e.Len(); from += s.batch {
		results, err := s.run(ctx, from, min(from+s.batch, e.Len()))
		if err != nil {
			return err
		}
		for row := range results {
			for u := range users {
				if err := users[u].use(from+row, results[row][u]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// groupPasses adds each pass to the first group that admits it.
func (s *groupedPasses) groupPasses(ctx context.Context) {
	s.places = make([][]passPlace, len(s.users))
	for u := range s.users {
		for _, pass := range s.users[u].passes {
			k := slices.IndexFunc(s.groups,
				func(g *passGroup) bool { return g.admits(ctx, s.Env, s.net, pass) })
			if k < 0 {
				s.groups, k = append(s.groups, &passGroup{}), len(s.groups)
			}
			s.places[u] = append(s.places[u], s.groups[k].add(pass))
		}
	}
}

// compile finds the program of each group.
func (s *groupedPasses) compile(ctx context.Context) (err error) {
	s.batch = s.Len()
	for _, g := range s.groups {
		var also []lower.Question
		for _, pass := range g.passes[1:] {
			also = append(also, pass.question)
		}
		g.Gradient, err = s.net.Gradient(ctx, s.Slot, g.passes[0].question, s.net.Fit(s.Len(), s.Batch),
			also...)
		if err != nil {
			return err
		}
		s.batch = min(s.batch, g.Batch)
	}
	return nil
}

// run runs all groups on a batch of items, and returns the results by row, user and pass.
func (s *groupedPasses) run(ctx context.Context, from, to int) ([][][]passResult, error) {
	results := make([][][]passResult, to-from)
	for row := range results {
		results[row] = make([][]passResult, len(s.users))
		for u := range s.users {
			results[row][u] = make([]passResult, len(s.places[u]))
		}
	}
	for _, g := range s.groups {
		for row := range results {
			if err := g.put(s.Env, from+row, s.net, row); err != nil {
				return nil, err
			}
		}
		if err := g.Run(ctx); err != nil {
			return nil, err
		}
		for row := range results {
			if err := s.collect(g, from+row, row, results[row]); err != nil {
				return nil, err
			}
		}
	}
	return results, nil
}

// collect puts what a group's program has for item i, which is in a row, into the results by user and pass.
func (s *groupedPasses) collect(g *passGroup, i, row int, results [][]passResult) error {
	// Groups that differ in their targets alone have one program, whose next run overwrites its results.
	overwritten := slices.ContainsFunc(s.groups,
		func(o *passGroup) bool { return o != g && o.Program == g.Program })
	for u := range s.users {
		for k, place := range s.places[u] {
			if place.group != g {
				continue
			}
			r, err := place.result(s.Env, i, s.net, row, s.users[u].passes[k])
			if err != nil {
				return err
			}
			if overwritten {
				r.Keep()
			}
			results[u][k] = r
		}
	}
	return nil
}

// admits reports whether a pass may share the group's forward pass.
func (g *passGroup) admits(ctx context.Context, e *stages.Env, n *program.Net, pass backwardPass) bool {
	return !slices.ContainsFunc(g.passes, func(o backwardPass) bool {
		return o.Target != pass.Target ||
			!n.OneForward(ctx, e.Slot, n.Fit(e.Len(), e.Batch), o.question, pass.question)
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
		if err := t.NoClass(); err != nil {
			return err
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
