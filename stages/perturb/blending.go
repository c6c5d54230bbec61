package perturb

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/program"
)

// A preset is the parameters of a stage that blends images with a substrate.
type preset interface {
	curve() (Params, direction)
}

// blending declares a stage that blends images with a substrate.
func blending[P preset](d stages.Def[P]) stages.Stage {
	d.Relation, d.Seeded, d.Device = stages.Each, true, true
	d.Inputs, d.Outputs = blendInputs(), outputs()
	d.Shared, d.Passes = &curveRun, stages.Passes{Forward: "points"}
	d.Check = func(p P, wired func(string) bool) error {
		common, direction := p.curve()
		return common.checkCurve(direction, wired)
	}
	d.Facts = func(p P, in map[string]stages.Facts) (map[string]stages.Facts, error) {
		common, direction := p.curve()
		return common.facts(direction, in)
	}
	d.Hooks = func(p P) stages.Hooks {
		common, _ := p.curve()
		return stages.Hooks{Replaces: common.replacement()}
	}
	return program.Stage(d)
}

// ofBlends completes the definition of the curves of images that are blended with a substrate.
func ofBlends(d stages.Definition) stages.Definition {
	d.Unit = cmp.Or(d.Unit, "a pixel with all its channels, or by unit a region or a segment; of a "+
		"text a token that isn't special")
	d.Response = "probability, logit and correctness of the explained class"
	d.Aggregation = "none: a value for each point, of which scores are made"
	d.Randomness = cmp.Or(d.Randomness, "by the experiment's seed: for the image with substrate: random, "+
		"for the map with ties: random")
	d.Undefined = cmp.Or(d.Undefined, "for a map with a value that isn't a number, and with ties: index for "+
		"one whose units are all equal")
	return d
}

// curveRun runs curves on the same maps. Images that several of them need are computed once: insertion
// into a substrate has the images of removal in the reverse order, and deletion is removal of the most
// relevant units.
var curveRun = program.Shared(func(ctx context.Context, parts []stages.Part) error {
	e := parts[0].Env
	n, err := program.Load(e)
	if err != nil {
		return err
	}
	blends, traces := blendsOf(parts, n)
	if n.Text != nil {
		return runTexts(ctx, n, blends, traces)
	}
	most := 0
	for _, b := range blends {
		most = max(most, b.count(traces, b.params.units(n.Height, n.Width), max(n.Height, n.Width)))
	}
	c, err := n.Curve(ctx, e.Slot, n.Fit(most, e.Batch))
	if err != nil {
		return err
	}
	image, other := make([]float32, n.Size()), make([]float32, n.Size())
	for i := range e.Len() {
		if err := runItem(ctx, i, n, c, blends, traces, image, other); err != nil {
			return fmt.Errorf("item %q: %w", e.Calls[i].ID, err)
		}
	}
	return nil
})

// A trace is the curve of one cell.
type trace struct {
	Params
	direction
	env   *stages.Env
	blend *blend
}

// A blend is the common part of curves that can share points: the substrate, and the source of the order.
type blend struct {
	substrate
	params Params
	drawn  bool
	env    *stages.Env // whose random numbers it draws
}

// shares reports whether a curve has the blend's substrate and order.
func (b *blend) shares(t *trace) bool {
	p, q := b.params, t.Params
	random := t.drawn || q.Substrate == "random" // numbers differ from stage to stage
	return p.Substrate == q.Substrate && b.drawn == t.drawn && p.Unit == q.Unit && p.Region == q.Region &&
		(q.Substrate != "blur" || p.Kernel == q.Kernel && p.Sigma == q.Sigma) &&
		(!random || b.env.Stage.Name == t.env.Stage.Name)
}

// blendsOf returns the curves of some cells, and their blends.
func blendsOf(parts []stages.Part, n *program.Net) (blends []*blend, traces []*trace) {
	for _, part := range parts {
		t := &trace{env: part.Env}
		t.Params, t.direction = part.Params.(preset).curve()
		for _, b := range blends {
			if b.shares(t) {
				t.blend = b
			}
		}
		if t.blend == nil {
			t.blend = &blend{newSubstrate(t.Params, n), t.Params, t.drawn, part.Env}
			blends = append(blends, t.blend)
		}
		traces = append(traces, t)
	}
	return blends, traces
}

// A removed is a set of units that the substrate replaces: the first in the order, or the last.
type removed struct {
	last  bool
	count int
}

// removedAt returns the set of units that are replaced at the point k of a curve over n units.
func (d direction) removedAt(k, n int) removed {
	r := removed{d.leastFirst, k}
	if d.insert {
		r = removed{!d.leastFirst, n - k}
	}
	if r.count == 0 || r.count == n {
		r.last = false
	}
	return r
}

// sets returns how many units the curves of the blend replace: the first ones in the order, and the last
// ones.
func (b *blend) sets(traces []*trace, units, longest int) (first, last []int) {
	seen := map[removed]bool{}
	var ends []int // no units and all of them, which are the first as well as the last
	for _, t := range traces {
		if t.blend != b {
			continue
		}
		for _, k := range t.points(units, longest) {
			switch r := t.removedAt(k, units); {
			case seen[r]:
				continue
			case r.count == 0 || r.count == units:
				seen[r], ends = true, append(ends, r.count)
			case r.last:
				seen[r], last = true, append(last, r.count)
			default:
				seen[r], first = true, append(first, r.count)
			}
		}
	}
	if len(first) == 0 && len(last) > 0 {
		return nil, append(last, ends...)
	}
	return append(first, ends...), last
}

// count returns how many sets of one kind the blend has at most, with that many units; 0 if images differ in
// that.
func (b *blend) count(traces []*trace, units, longest int) int {
	first, last := b.sets(traces, cmp.Or(units, many), longest)
	return max(len(first), len(last))
}

// many is a number of segments with which no two points of a curve are the same.
const many = 1 << 20

// runItem computes the curves of item i. Image and other are buffers.
func runItem(ctx context.Context, i int, n *program.Net, c program.Curve, blends []*blend, traces []*trace,
	image, other []float32) error {
	e, longest := traces[0].env, max(n.Height, n.Width)
	t, err := stages.DecodeTensor(e.In("images", i))
	if err == nil {
		err = n.Normalise(t, image)
	}
	if err != nil {
		return err
	}
	by, err := responderOf(e, i, n)
	if err != nil {
		return err
	}
	for _, b := range blends {
		r, err := ranksOf(e.In("maps", i), n.Height, n.Width, b.params.Unit == "pixel")
		if err == nil && b.drawn {
			r, err = b.params.randomRanks(b.env, i, n.Height, n.Width)
		}
		if err != nil {
			return err
		}
		responses := map[removed]response{}
		if r.units > 0 {
			if err := b.fill(b.env, i, image, other); err != nil {
				return err
			}
			first, last := b.sets(traces, r.units, longest)
			c.Set(image, other, r.of)
			err := runPoints(ctx, c, first, func(k int, row []float32) {
				responses[morf.removedAt(first[k], r.units)] = by.response(row)
			})
			if err != nil {
				return err
			}
			points := b.setLast(c, traces, r, last, image, other)
			err = runPoints(ctx, c, points, func(k int, row []float32) {
				responses[lerf.removedAt(last[k], r.units)] = by.response(row)
			})
			if err != nil {
				return err
			}
		}
		for _, t := range traces {
			if t.blend == b {
				t.put(i, r.units, n, responses)
			}
		}
	}
	for _, t := range traces {
		by.warn(t.env, i)
		t.env.Done(1)
	}
	return nil
}

// setLast has the program replace the last units in the order, and returns its points for the numbers of
// them: from the substrate to the image if a curve is an insertion, or else in the reverse order.
func (b *blend) setLast(c program.Curve, traces []*trace, r ranks, last []int, image, other []float32) []int {
	inserts := slices.ContainsFunc(traces, func(t *trace) bool { return t.blend == b && t.insert })
	if !inserts {
		c.Set(image, other, r.reversed())
		return last
	}
	c.Set(other, image, r.of)
	kept := make([]int, len(last))
	for k, count := range last {
		kept[k] = r.units - count
	}
	return kept
}

// runPoints runs the program on the points of a curve, and calls use with the model's output at each.
func runPoints(ctx context.Context, c program.Curve, points []int, use func(k int, row []float32)) error {
	for from := 0; from < len(points); from += c.Batch {
		batch := points[from:min(from+c.Batch, len(points))]
		if err := c.Run(ctx, batch); err != nil {
			return err
		}
		for row := range batch {
			use(from+row, c.Row(row))
		}
	}
	return nil
}

// put writes the curve of item i, NaN if its map has no order.
func (t *trace) put(i, units int, n *program.Net, responses map[removed]response) {
	var curve []response
	if units == 0 {
		units = cmp.Or(t.units(n.Height, n.Width), many)
	}
	for _, k := range t.points(units, max(n.Height, n.Width)) {
		at, ok := responses[t.removedAt(k, units)]
		if !ok {
			at = undefined
		}
		curve = append(curve, at)
	}
	t.env.Put("curves", i, encodeCurve(t.env, curve))
}
