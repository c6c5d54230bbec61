package attribute

import (
	"context"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/lower"
	"github.com/runexp/runexp/stages/internal/program"
)

// attentionParams are the parameters of a method that makes its map of a transformer's attention. What it
// asks the model for is separate from the map, so that methods can share a forward pass.
type attentionParams interface {
	glance() lower.Glance
	settings() Common // of the explained class, which counts if the glance explains one
	// newMap returns what makes the map of the item in a row, given its attention.
	newMap(ctx context.Context, e *stages.Env, n *program.Net, a program.Attention) (attentionMap, error)
}

// An attentionMap makes the map of item i, which is in a row.
type attentionMap func(i, row int, a program.Attention) (stages.Tensor, error)

func (c Common) settings() Common { return c }

// groupedAttention is what methods of attention share: on the same items few programs answer all of them,
// each with one forward pass, and one backward pass for all that read the derivative.
var groupedAttention = program.Shared(func(ctx context.Context, parts []stages.Part) error {
	n, err := program.Load(parts[0].Env)
	if err != nil {
		return err
	}
	var groups []*attentionGroup
	for _, part := range parts {
		if p := part.Env.Stage.Input("images"); n.Text != nil && !p.Texts {
			return fmt.Errorf("%s takes no texts: %s", part.Env.Stage.Name, p.NotTexts)
		}
		u, err := newAttentionUser(ctx, part, n)
		if err != nil {
			return err
		}
		k := slices.IndexFunc(groups, func(g *attentionGroup) bool { return g.admits(ctx, n, u) })
		if k < 0 {
			groups, k = append(groups, &attentionGroup{}), len(groups)
		}
		groups[k].add(u)
	}
	for _, g := range groups {
		if err := g.run(ctx, n); err != nil {
			return err
		}
	}
	return nil
})

// An attentionGroup is methods that share a forward pass.
type attentionGroup struct {
	users    []attentionUser
	glances  []lower.Glance // all different
	Common                  // of the first user whose glance explains a class
	question lower.Question // of the same user
	about    bool           // there is one
}

// An attentionUser is a method in a group.
type attentionUser struct {
	attentionParams
	env      *stages.Env
	question lower.Question // of its glance, if that explains a class
}

// newAttentionUser returns a method of attention. One without the parameter backward takes derivatives.
func newAttentionUser(ctx context.Context, part stages.Part, n *program.Net) (attentionUser, error) {
	p, ok := part.Params.(attentionParams)
	if !ok {
		return attentionUser{}, fmt.Errorf("%T are not the parameters of a method of attention", part.Params)
	}
	u := attentionUser{attentionParams: p, env: part.Env}
	if !p.glance().Explains() {
		return u, nil
	}
	by, ok := part.Params.(interface {
		atImage(context.Context, *stages.Env, *program.Net, Common) (lower.Question, error)
	})
	if !ok {
		by = Balanced{}
	}
	var err error
	u.question, err = by.atImage(ctx, part.Env, n, p.settings())
	return u, err
}

// admits reports whether a method may share the group's forward pass. All that explain a class ask the same
// question about it.
func (g *attentionGroup) admits(ctx context.Context, n *program.Net, u attentionUser) bool {
	e, q, what := u.env, g.question, u.glance()
	if what.Explains() {
		q = u.question
		if g.about && (u.settings().Target != g.Target || q.String() != g.question.String()) {
			return false
		}
	}
	return !slices.ContainsFunc(g.glances, func(o lower.Glance) bool {
		return o != what && !n.OneGlance(ctx, e.Slot, n.Fit(e.Len(), e.Batch), o, what, q)
	})
}

// add adds a method to the group.
func (g *attentionGroup) add(u attentionUser) {
	g.users = append(g.users, u)
	what := u.glance()
	if !slices.Contains(g.glances, what) {
		g.glances = append(g.glances, what)
	}
	if !g.about && what.Explains() {
		g.Common, g.question, g.about = u.settings(), u.question, true
	}
}

// run makes the maps of all methods of the group, a batch at a time.
func (g *attentionGroup) run(ctx context.Context, n *program.Net) error {
	e := g.users[0].env
	glances, err := n.Attentions(ctx, e.Slot, g.glances, g.question, n.Fit(e.Len(), e.Batch))
	if err != nil {
		return err
	}
	maps := make([]attentionMap, len(g.users))
	seen := make([]program.Attention, len(g.users))
	for k, u := range g.users {
		seen[k] = glances[slices.Index(g.glances, u.glance())]
		if maps[k], err = u.newMap(ctx, u.env, n, seen[k]); err != nil {
			return err
		}
	}
	p := glances[0]
	for from := 0; from < e.Len(); from += p.Batch {
		to := min(from+p.Batch, e.Len())
		if err := g.answer(ctx, n, p, from, to); err != nil {
			return err
		}
		for i := from; i < to; i++ {
			for k, u := range g.users {
				m, err := maps[k](i, i-from, ofItem(seen[k], u.env, i))
				if err != nil {
					return err
				}
				putMap(u.env, i, m)
			}
		}
	}
	return nil
}

// answer runs the program on a batch of items.
func (g *attentionGroup) answer(ctx context.Context, n *program.Net, p program.Attention, from,
	to int) error {
	k := 0 // a method that explains a class has the ports of one
	if g.about {
		k = slices.IndexFunc(g.users, func(u attentionUser) bool { return u.glance().Explains() })
	}
	e := g.users[k].env
	for i := from; i < to; i++ {
		if g.about {
			t, err := g.target(e, i, n)
			if err != nil {
				return err
			}
			p.Explain(i-from, t)
		}
		if err := image(e, i, n, p.Image(i-from)); err != nil {
			return err
		}
	}
	return p.Run(ctx)
}
