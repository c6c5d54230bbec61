package plan

import (
	"slices"
	"strconv"

	"github.com/runexp/runexp/stages"
)

// otherwise fills an input that isn't wired. Where the consumer has edges from
// several cells, so has the result.
func (x *expander) otherwise(b *stepBuild, c *Cell, p *stages.Port, wired [][]Edge, depth int) []Edge {
	type combo struct {
		coord  []stages.Coord
		inputs [][]Edge
	}
	stage := x.impliedStage(b, c, p, p.Else)
	if stage == nil {
		return nil
	}
	out := outputOf(stage, p)
	combos := []combo{{inputs: make([][]Edge, len(stage.Inputs))}}
	for k := range stage.Inputs {
		q := &stage.Inputs[k]
		edges := sameInput(c, wired, q)
		if len(edges) == 0 || out < 0 {
			if q.Optional || q.Else != "" {
				continue
			}
			if !p.Optional {
				x.at(b.decl.key, "wire it, or the input "+strconv.Quote(q.Name)+", from which "+p.Else+" makes it",
					"the input "+strconv.Quote(p.Name)+" of "+c.Stage.Name+" isn't connected")
			}
			return nil
		}
		var next []combo
		for _, was := range combos {
			for _, e := range edges {
				coord, agree := mergeCoord(was.coord, e.Coord)
				if !agree {
					continue
				}
				from, ok := x.upstream(b, c, e, p, q)
				if !ok {
					return nil
				}
				inputs := slices.Clone(was.inputs)
				inputs[k] = []Edge{from}
				next = append(next, combo{coord, inputs})
			}
		}
		combos = next
	}
	slices.SortStableFunc(combos, func(a, b combo) int { return compareCoord(a.coord, b.coord) })
	edges := x.edgeSlab.take(len(combos))
	for i, m := range combos {
		from := x.impliedCell(b, c, stage, m.inputs, out, true, depth)
		if from == nil {
			return nil
		}
		edges[i] = Edge{Coord: m.coord, From: from, Port: out}
	}
	return edges
}

// upstream follows an edge of items to the stage that made the items from
// sources: what's said of an item there holds for all that is made from it.
func (x *expander) upstream(b *stepBuild, c *Cell, e Edge, p, q *stages.Port) (Edge, bool) {
	for q.Type.Items && e.Port >= 0 && !x.standIns[e.From.Stage] {
		k := e.From.Stage.Primary()
		if k < 0 || len(e.From.Inputs[k].Edges) == 0 {
			break
		}
		e = e.From.Inputs[k].Edges[0]
	}
	if e.Port < 0 || x.standIns[e.From.Stage] {
		return Edge{}, false // complained about already
	}
	outs, want := e.From.Stage.Outputs, q.Wire().Name
	if outs[e.Port].Type.Name != want {
		at := -1
		for i := range outs {
			if outs[i].Type.Name == want && (at < 0 || outs[i].Name == q.Name) {
				at = i
			}
		}
		if at < 0 {
			x.at(b.decl.key, "wire it", "the input "+strconv.Quote(p.Name)+" of "+c.Stage.Name+" isn't connected, and "+
				e.From.Step.Name+" has no "+want+" to make it from")
			return Edge{}, false
		}
		e.Port = at
	}
	return Edge{From: e.From, Port: e.Port}, true
}

// mergeCoord joins two places that agree on the axes they share.
func mergeCoord(a, b []stages.Coord) (out []stages.Coord, agree bool) {
	if len(a) == 0 || len(b) == 0 {
		return append(slices.Clip(a), b...), true
	}
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Axis < b[0].Axis:
			out, a = append(out, a[0]), a[1:]
		case len(a) == 0 || b[0].Axis < a[0].Axis:
			out, b = append(out, b[0]), b[1:]
		case a[0].ID != b[0].ID:
			return nil, false
		default:
			out, a, b = append(out, a[0]), a[1:], b[1:]
		}
	}
	return out, true
}
