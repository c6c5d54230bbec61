package program

import (
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/modelfile"
)

// shortestText is the least number of tokens of a program for texts.
const shortestText = 8

// length returns the number of tokens of the program for a text: a power of two, so that texts of similar
// length share one, unless the model has no attention mask to hide the rest. It depends on the text alone.
func (n *Net) length(tokens int) int {
	switch {
	case n.Text.Fixed:
		return n.Width
	case !n.Text.Attention:
		return min(n.Width, max(1, tokens))
	}
	return min(n.Width, 1<<bits.Len(uint(max(shortestText, tokens)-1)))
}

// ofLength returns the net for texts of so many tokens, with programs of its own.
func (n *Net) ofLength(length int) *Net {
	if n == nil || length == n.Width {
		return n
	}
	if n.whole != nil {
		return n.whole.ofLength(length)
	}
	short := *n
	short.whole, short.Width = n, length
	short.digest = stages.Sum(fmt.Appendf(n.digest[:len(n.digest):len(n.digest)], "length %d", length))
	short.base = n.base.ofLength(length)
	return &short
}

// ForTokens returns the net whose programs take texts of so many tokens, at most as many as those of n do.
func (n *Net) ForTokens(tokens int) *Net { return n.ofLength(n.length(tokens)) }

// ofTexts returns the net for the texts on the port images, which are of about one length, with the ids that
// their data set names.
func (n *Net) ofTexts(e *stages.Env) (*Net, error) {
	out := *n
	text := *n.Text
	out.Text = &text
	for name, id := range map[string]*int64{"pad": &text.Pad, "mask": &text.Mask} {
		*id = -1
		if s := e.Facts("images")[name]; s != "" {
			v, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("port images: the fact %s is %q, which is no id", name, s)
			}
			*id = v
		}
	}
	if known, model := e.Facts("images")["vocabulary"], n.Text.Vocabulary; known != "" && model > 0 {
		if v, err := strconv.Atoi(known); err == nil && v > model {
			return nil, fmt.Errorf("the texts are of a tokeniser with %d ids, and the model knows %d: it "+
				"has another tokeniser", v, model)
		}
	}
	most := 1
	for i := range e.Len() {
		t, err := TokensOf(e, i)
		if err != nil {
			return nil, err
		}
		most = max(most, t.Len())
	}
	if e.Len() == 0 {
		return &out, nil
	}
	return out.ofLength(n.length(most)), nil
}

// TokensOf returns the text of item i.
func TokensOf(e *stages.Env, i int) (modelfile.Tokenised, error) {
	t, err := stages.DecodeTensor(e.In("images", i))
	if err == nil {
		var tokens modelfile.Tokenised
		if tokens, err = modelfile.TokensOf(t); err == nil {
			return tokens, nil
		}
	}
	return modelfile.Tokenised{}, fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
}

// TextID returns the id of the token that hides others, mask or pad, for a parameter.
func (n *Net) TextID(field, token string) (int64, error) {
	id := int64(-1)
	switch token {
	case "mask":
		id = n.Text.Mask
	case "pad":
		id = n.Text.Pad
	default:
		return 0, &stages.FieldError{Field: field, Hint: "write " + field + ": mask or " + field + ": pad",
			Err: fmt.Errorf("%s is %s: the tokens of a text are hidden by others", field, token)}
	}
	switch {
	case id < 0:
		return 0, stages.BadField(field, "%s is %[2]s, but the data set of the texts names no %[2]s token",
			field, token)
	case !n.Text.Knows(id):
		return 0, stages.BadField(field, "%s is %s, whose id is %d by the data set, and the model knows the "+
			"ids from 0 to %d", field, token, id, n.Text.Vocabulary-1)
	}
	return id, nil
}

// Shared returns the work that stages share which run a model on images or texts: texts run by their lengths.
func Shared(run func(ctx context.Context, parts []stages.Part) error) stages.SharedRun {
	return stages.SharedRun{Run: func(ctx context.Context, parts []stages.Part) error {
		return byLength(ctx, parts, run)
	}}
}

// byLength calls run with the items of each length of programs; with all of them, unless they are texts.
func byLength(ctx context.Context, parts []stages.Part,
	run func(ctx context.Context, parts []stages.Part) error) error {
	e := parts[0].Env
	if p := e.Stage.Input("images"); p == nil || !p.Texts || !e.Wired("model") ||
		e.Stage.Relation == stages.Whole { // its items aren't calls: it splits them itself
		return run(ctx, parts)
	}
	n, err := LoadNet(e.Slot, e.Ports["model"][0])
	if err != nil {
		return fmt.Errorf("port model: %w", err)
	}
	if n.Text == nil {
		return run(ctx, parts)
	}
	items := map[int][]int{} // by length
	for i := range e.Len() {
		t, err := TokensOf(e, i)
		if err != nil {
			return err
		}
		length := n.length(t.Len())
		items[length] = append(items[length], i)
	}
	for _, length := range slices.Sorted(maps.Keys(items)) {
		some := make([]stages.Part, len(parts))
		for k, p := range parts {
			some[k] = stages.Part{Params: p.Params, Env: p.Env.Some(items[length])}
		}
		err := run(ctx, some)
		for k, p := range parts {
			p.Env.Take(some[k].Env, items[length])
		}
		if err != nil {
			return err
		}
	}
	for _, p := range parts { // those of a length came together
		slices.SortStableFunc(p.Env.Outputs, func(a, b stages.Output) int { return a.Call - b.Call })
	}
	return nil
}
