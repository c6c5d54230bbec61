package perturb

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/metric"
	"github.com/runexp/runexp/stages/internal/modelfile"
	"github.com/runexp/runexp/stages/internal/program"
)

// removedTokens is the substrate that leaves tokens out; the others hide them by another one.
const removedTokens = "removal"

// ofTexts reports whether a substrate replaces tokens of texts.
func ofTexts(substrate string) bool {
	return substrate == removedTokens || substrate == "mask" || substrate == "pad"
}

// checkUnits refuses a substrate and units that the texts, or the images, don't have.
func checkUnits(substrate, unit string, texts bool) error {
	switch {
	case !texts && ofTexts(substrate):
		return stages.BadField("substrate", "substrate is %s, which is for the tokens of texts: images have "+
			"pixels", substrate)
	case texts && !ofTexts(substrate):
		hint := "write substrate: mask, or pad or removal"
		if unit != "pixel" {
			hint = "write substrate: mask, unit: pixel; substrate: pad or removal do as well"
		}
		return &stages.FieldError{Field: "substrate", Hint: hint,
			Err: fmt.Errorf("substrate is %s, but the tokens of a text have no values in between: others "+
				"take their place, or they are removed", substrate)}
	case texts && unit != "pixel":
		return &stages.FieldError{Field: "unit", Hint: "write unit: pixel", Err: fmt.Errorf(
			"unit is %s, but the units of a text are its tokens", unit)}
	}
	return nil
}

// checkTexts refuses parameters with which the curves of texts of several lengths would differ in their
// number of points, and orders that leave tokens without a place.
func (p Params) checkTexts(d direction) error {
	if err := checkUnits(p.Substrate, p.Unit, true); err != nil {
		return err
	}
	switch {
	case p.Values == metric.Positive && (d.leastFirst || d.drawn):
		return stages.BadField("values", "values is positive, by which the other tokens have no place, but "+
			"the order is %s: it needs one of all", d.name)
	case p.Step > 0:
		return stages.BadField("step", "step is %d, but texts have different numbers of tokens: give steps "+
			"or shares, so that all curves have as many points", p.Step)
	case p.Limit > 0:
		return stages.BadField("limit", "limit is %d, but texts have different numbers of tokens: give "+
			"shares instead", p.Limit)
	}
	return nil
}

// textSteps is the number of steps of a curve of a text, unless the parameters state it.
const textSteps = 10

// tokenPoints returns the number of tokens, of n, that are replaced at each point.
func (p Params) tokenPoints(n int) []int {
	if len(p.Shares) == 0 {
		if p.Steps == 0 {
			p.Steps = textSteps
		}
		return p.points(n, 0)
	}
	out := []int{0}
	for _, s := range p.Shares {
		out = append(out, int(math.Floor(float64(n)*s+1e-9))) // 0.7·90 is 62.99…
	}
	return out
}

// versions classifies texts of one length at a time: each is a version of an item's text without some of its
// tokens.
type versions struct {
	env     *stages.Env
	net     *program.Net
	removal bool
	id      int64 // in the place of tokens, unless they are removed
	batch   int
	waiting map[int][]version // by the length of the program
	warned  map[int]bool      // of which item
}

// A version is a text, and what takes the model's output for it.
type version struct {
	text modelfile.Tokenised
	use  func(row []float32)
}

// newVersions returns a classifier of about so many versions with a substrate.
func newVersions(e *stages.Env, n *program.Net, substrate string, rows int) (v *versions, err error) {
	v = &versions{env: e, net: n, removal: substrate == removedTokens, batch: n.Fit(rows, e.Batch),
		waiting: map[int][]version{}, warned: map[int]bool{}}
	if !v.removal {
		v.id, err = n.TextID("substrate", substrate)
	}
	return v, err
}

// add classifies the text of item i without some of its tokens, at the latest when flush is called.
func (v *versions) add(ctx context.Context, i int, text modelfile.Tokenised, gone func(token int) bool,
	use func(row []float32)) error {
	if v.removal {
		text = text.Without(gone)
	} else {
		text = text.Replaced(gone, v.id)
	}
	if text.Len() == 0 {
		if !v.warned[i] {
			v.env.WarnItem(i, "removal leaves none of its tokens, and a model's response to no text is "+
				"undefined: its tokeniser adds no special ones; substrate: mask or pad keeps the length")
		}
		v.warned[i] = true
		return nil
	}
	n := v.net.ForTokens(text.Len())
	waiting := append(v.waiting[n.Width], version{text, use})
	if v.waiting[n.Width] = waiting; len(waiting) < v.batch {
		return nil
	}
	return v.run(ctx, n)
}

// flush classifies what is waiting.
func (v *versions) flush(ctx context.Context) error {
	for _, length := range slices.Sorted(maps.Keys(v.waiting)) {
		if err := v.run(ctx, v.net.ForTokens(length)); err != nil {
			return err
		}
	}
	return nil
}

// run classifies the waiting texts of a length.
func (v *versions) run(ctx context.Context, n *program.Net) error {
	if len(v.waiting[n.Width]) == 0 {
		return nil
	}
	f, err := n.Forward(ctx, v.env.Slot, v.batch)
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(v.waiting[n.Width], f.Batch) {
		for row, version := range batch {
			if err := n.Normalise(version.text.Tensor(), f.Image(row)); err != nil {
				return err
			}
		}
		if err := f.Run(ctx); err != nil {
			return err
		}
		for row, version := range batch {
			version.use(f.Row(row))
		}
	}
	v.waiting[n.Width] = v.waiting[n.Width][:0]
	return nil
}

// tokenRanks decodes the ranks of a text's tokens, or draws an order. It returns ranks without units for a
// map without an order, and how many tokens have a place: those of special tokens are above that.
func (b *blend) tokenRanks(i int, text modelfile.Tokenised) (r ranks, placed int, err error) {
	units := metric.Tokens(text.Special)
	if b.drawn {
		order := b.env.Rand("order", i).Perm(units.Count)
		r = ranks{make([]float32, text.Len()), units.Count}
		for token, unit := range units.Of {
			r.of[token] = metric.NoUnit
			if unit >= 0 {
				r.of[token] = float32(order[unit])
			}
		}
		return r, units.Count, nil
	}
	t, err := stages.DecodeTensor(b.env.In("maps", i))
	if err != nil || t.DType == stages.U32 && slices.Equal(t.Shape, []int{0, 0}) {
		return r, 0, err
	}
	if t.DType != stages.U32 || !slices.Equal(t.Shape, []int{1, text.Len()}) {
		return r, 0, fmt.Errorf("a map of %v doesn't match a text of %d tokens", t.Shape, text.Len())
	}
	r = ranks{t.Float32s(), units.Count}
	for token, place := range t.Uint32s() {
		switch {
		case place == metric.NoUnit:
			continue
		case text.Special[token] || int(place) >= units.Count:
			return r, 0, fmt.Errorf("token %d has the place %d of %d tokens: the ranks are of another text",
				token, place, units.Count)
		}
		placed++
	}
	return r, placed, nil
}

// gone returns the tokens that a set has, of which those that aren't placed stay in the text, or out of it if
// it is inserted into.
func (r ranks) gone(set removed, text modelfile.Tokenised) func(token int) bool {
	return func(token int) bool {
		place := int(r.of[token])
		switch {
		case text.Special[token]:
			return false
		case set.count == r.units:
			return true
		case set.last:
			return place >= r.units-set.count
		}
		return place < set.count
	}
}

// runTexts computes the curves of texts.
func runTexts(ctx context.Context, n *program.Net, blends []*blend, traces []*trace) error {
	for _, t := range traces {
		if err := t.checkTexts(t.direction); err != nil {
			return err
		}
	}
	e := traces[0].env
	for _, b := range blends {
		rows := 0
		for _, t := range traces {
			if t.blend == b {
				rows += len(t.tokenPoints(many))
			}
		}
		v, err := newVersions(e, n, b.params.Substrate, rows*e.Len())
		if err != nil {
			return err
		}
		put := make([]func(), 0, e.Len())
		for i := range e.Len() {
			done, err := b.addText(ctx, v, i, traces)
			if err != nil {
				return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
			}
			put = append(put, done)
		}
		if err := v.flush(ctx); err != nil {
			return err
		}
		for _, f := range put {
			f()
		}
	}
	return nil
}

// addText has the versions of text i classified, and returns what puts its curves when they are.
func (b *blend) addText(ctx context.Context, v *versions, i int, traces []*trace) (put func(), err error) {
	text, err := program.TokensOf(v.env, i)
	if err != nil {
		return nil, err
	}
	by, err := responderOf(v.env, i, v.net)
	if err != nil {
		return nil, err
	}
	r, placed, err := b.tokenRanks(i, text)
	if err != nil {
		return nil, err
	}
	responses := map[removed]response{}
	for _, t := range traces {
		if t.blend != b || r.units == 0 {
			continue
		}
		for _, k := range t.tokenPoints(r.units) {
			set := t.removedAt(min(k, placed), r.units)
			if _, seen := responses[set]; seen {
				continue
			}
			responses[set] = undefined
			err := v.add(ctx, i, text, r.gone(set, text),
				func(row []float32) { responses[set] = by.response(row) })
			if err != nil {
				return nil, err
			}
		}
	}
	return func() {
		for _, t := range traces {
			if t.blend != b {
				continue
			}
			t.putText(i, placed, r.units, responses)
			by.warn(t.env, i)
			t.env.Done(1)
		}
	}, nil
}

// putText writes the curve of text i, NaN if its map has no order, and how many tokens have changed at each
// point.
func (t *trace) putText(i, placed, units int, responses map[removed]response) {
	ks := t.tokenPoints(units)
	curve, changed := make([]response, len(ks)), make([]float64, len(ks))
	for at, k := range ks {
		r := undefined
		if units > 0 {
			k = min(k, placed)
			r = responses[t.removedAt(k, units)]
		}
		curve[at], changed[at] = r, float64(k)
	}
	values := append(rows(t.env, curve), changed...)
	t.env.Put("curves", i, stages.NewTensor(values, rowsOf(t.env)+1, len(ks)).Encode())
}
