package plan

import (
	"encoding/binary"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// impliedCells are the cells that no experiment writes: what a port puts between an edge and itself (Via),
// and what fills a port that isn't wired (Else). Those with equal implementation, parameters and edges are
// one cell.
type impliedCells struct {
	cells map[string]*Cell
	steps map[string]*Step
	names map[string]int // how many steps have a name, but for its number
	takes map[takeQuery][]takenParam
	ids   map[*Cell]uint64
}

func newImpliedCells() impliedCells {
	return impliedCells{map[string]*Cell{}, map[string]*Step{}, map[string]int{}, map[takeQuery][]takenParam{}, map[*Cell]uint64{}}
}

// maxImplied bounds how deep implied stages may imply others.
const maxImplied = 8

// complete gives a cell what its ports imply. That depends on the edges as wired, not on what is put in
// between.
func (x *expander) complete(b *stepBuild, c *Cell, depth int) {
	var wired []Input
	for k := range c.Inputs {
		p, edges := &c.Stage.Inputs[k], c.Inputs[k].Edges
		if len(edges) > 0 && p.Via == "" || len(edges) == 0 && p.Else == "" {
			continue
		}
		if depth >= maxImplied {
			x.endless(b, c)
			return
		}
		if wired == nil {
			wired = slices.Clone(c.Inputs)
		}
		c.Inputs[k].Edges = x.imply(b, c, k, wired, depth)
	}
}

func (x *expander) endless(b *stepBuild, c *Cell) {
	x.report(b.decl.key, "", "stages imply each other without end: %s", c.Stage.Name)
}

// A combo is the edges of an implied cell, and its place among those of one input.
type combo struct {
	coord  []stages.Coord
	inputs [][]Edge
}

// imply returns the edges of an input from the cells that its port implies. They have the consumer's edges on
// the inputs of the same names: where these come from several cells, there are as many implied ones.
func (x *expander) imply(b *stepBuild, c *Cell, port int, wired []Input, depth int) []Edge {
	p, via := &c.Stage.Inputs[port], len(wired[port].Edges) > 0
	name := p.Else
	if via {
		name = p.Via
	}
	stage, ok := x.catalog.Lookup(name)
	if !ok {
		x.report(b.decl.uses, "", "the input %q of %s needs the stage %q, which doesn't exist", p.Name, c.Stage.Name, name)
		return nil
	}
	in := slices.IndexFunc(stage.Inputs, func(q stages.Port) bool { return via && q.Type.Name == p.Wire().Name })
	out := slices.IndexFunc(stage.Outputs, func(q stages.Port) bool { return q.Type.Name == p.Type.Name })
	if via && in < 0 || out < 0 {
		x.report(b.decl.uses, "", "%s can't stand between %s and the input %q of %s", name, p.Wire().Name, p.Name, c.Stage.Name)
		return nil
	}
	combos := []combo{{inputs: make([][]Edge, len(stage.Inputs))}}
	for k := range stage.Inputs {
		q := &stage.Inputs[k]
		var edges []Edge
		switch same := slices.IndexFunc(c.Stage.Inputs, func(r stages.Port) bool { return r.Name == q.Name }); {
		case k == in:
			edges = wired[port].Edges
		case same >= 0 && (!via || len(wired[same].Edges) == 1):
			edges = wired[same].Edges
		}
		if len(edges) == 0 {
			if via || q.Optional || q.Else != "" {
				continue
			}
			if !p.Optional {
				x.report(b.decl.key, "wire it, or the input "+strconv.Quote(q.Name)+", from which "+p.Else+" makes it",
					"the input %q of %s isn't connected", p.Name, c.Stage.Name)
			}
			return nil
		}
		edges = slices.Clone(edges)
		for i := range edges {
			if !via && !x.upstream(b, c, &edges[i], p, q) || edges[i].Port < 0 {
				return nil
			}
		}
		combos = combined(combos, k, edges)
	}
	slices.SortStableFunc(combos, func(a, b combo) int { return compareCoord(a.coord, b.coord) })
	edges := make([]Edge, len(combos))
	for i, m := range combos {
		keep := !via || m.inputs[in][0].From.Step.Keep
		from := x.impliedCell(b, c, stage, m.inputs, out, keep, depth)
		if from == nil {
			return nil
		}
		edges[i] = Edge{Coord: m.coord, From: from, Port: out}
	}
	return edges
}

// combined gives each combination each edge that agrees with it, on input k.
func combined(combos []combo, k int, edges []Edge) (out []combo) {
	for _, m := range combos {
		for _, e := range edges {
			if coord, agree := mergeCoord(m.coord, e.Coord); agree {
				inputs := slices.Clone(m.inputs)
				inputs[k] = []Edge{{From: e.From, Port: e.Port}}
				out = append(out, combo{coord, inputs})
			}
		}
	}
	return out
}

// upstream moves an edge of items to the stage that made the items from sources: what holds for an item there
// holds for all that is made from it. It returns false where nothing is known about that.
func (x *expander) upstream(b *stepBuild, c *Cell, e *Edge, p, q *stages.Port) bool {
	for q.Type.Items && e.Port >= 0 && !x.standIns[e.From.Stage] {
		k := e.From.Stage.Primary()
		if k < 0 || len(e.From.Inputs[k].Edges) == 0 {
			break
		}
		up := e.From.Inputs[k].Edges[0]
		e.From, e.Port = up.From, up.Port
	}
	if e.Port < 0 || x.standIns[e.From.Stage] {
		return false // reported already
	}
	outs, expected := e.From.Stage.Outputs, q.Wire().Name
	if outs[e.Port].Type.Name == expected {
		return true
	}
	e.Port = -1
	for i, o := range outs {
		if o.Type.Name == expected && (e.Port < 0 || o.Name == q.Name) {
			e.Port = i
		}
	}
	if e.Port < 0 {
		x.report(b.decl.key, "wire it", "the input %q of %s isn't connected, and %s has no %s to make it from",
			p.Name, c.Stage.Name, e.From.Step.Name, expected)
	}
	return e.Port >= 0
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

// A takenParam is a keyed parameter of an implied stage, and where it has its value from: a parameter of the
// consumer, or the default.
type takenParam struct {
	name     string
	from, to []int  // for reflect.Value.FieldByIndex; from is nil for the default
	standard []byte // the default as it stands in keys
}

type takeQuery struct{ from, to *stages.Stage }

// takes returns the keyed parameters of an implied stage: those that the consumer has too, by name and type,
// are the consumer's.
func (x *expander) takes(from, to *stages.Stage) []takenParam {
	q := takeQuery{from, to}
	taken, ok := x.implied.takes[q]
	if ok {
		return taken
	}
	for _, f := range x.types.of(to).fields {
		if !f.Keyed {
			continue
		}
		t := takenParam{name: f.Name, to: f.Index, standard: AppendValue(nil, f.standard)}
		if g := x.types.of(from).byName[f.Name]; g != nil && g.Keyed && g.Type == f.Type {
			t.from = g.Index
		}
		taken = append(taken, t)
	}
	x.implied.takes[q] = taken
	return taken
}

// id numbers a cell for the keys of implied cells.
func (m *impliedCells) id(c *Cell) uint64 {
	n, ok := m.ids[c]
	if !ok {
		n = uint64(len(m.ids))
		m.ids[c] = n
	}
	return n
}

// impliedCell returns the cell of an implied stage with the given edges and the parameters it takes from its
// consumer, or nil when it needs itself.
func (x *expander) impliedCell(b *stepBuild, c *Cell, stage *stages.Stage, inputs [][]Edge, out int, keep bool, depth int) *Cell {
	m := &x.implied
	consumer := reflect.ValueOf(c.Params).Elem()
	key := []byte(stage.Name)
	taken := x.takes(c.Stage, stage)
	for _, t := range taken {
		if key = append(key, 0); t.from == nil {
			key = append(key, t.standard...)
		} else {
			key = AppendValue(key, consumer.FieldByIndex(t.from))
		}
	}
	params := len(key)
	for _, in := range inputs {
		key = append(key, 0, byte(len(in)))
		for _, e := range in {
			key = binary.AppendUvarint(binary.AppendUvarint(key, m.id(e.From)), uint64(e.Port))
		}
	}
	if known := m.cells[string(key)]; known != nil {
		if known.Step == nil { // it's in the making, for its own sake
			x.endless(b, known)
			return nil
		}
		return known
	}
	cell := &Cell{Stage: stage, Params: stage.NewParams(), Inputs: make([]Input, len(inputs))}
	m.cells[string(key)] = cell
	v := reflect.ValueOf(cell.Params).Elem()
	for _, t := range taken {
		if t.from != nil {
			v.FieldByIndex(t.to).Set(consumer.FieldByIndex(t.from))
		}
	}
	for k, in := range inputs {
		cell.Inputs[k].Edges = in
		for _, e := range in {
			cell.Coord, _ = mergeCoord(cell.Coord, e.From.Coord)
		}
	}
	x.complete(b, cell, depth+1)
	cell.Step = x.impliedStep(b, cell, string(key[:params]), taken, out, keep)
	cell.Step.Cells = append(cell.Step.Cells, cell)
	cell.Step.Possible++
	for _, err := range x.refusals(cell) {
		x.report(b.decl.uses, "", "for the inputs of %s, %s: %v", c.Stage.Name, stage.Name, err)
	}
	return cell
}

// impliedStep finds the step of an implied cell: the one for its implementation, its parameters and the steps
// it takes from. It is named after its output and its inputs, ranks~maps, and parameters that aren't the
// default.
func (x *expander) impliedStep(b *stepBuild, c *Cell, params string, taken []takenParam, out int, keep bool) *Step {
	m := &x.implied
	key, name := []byte(params), c.Stage.Outputs[out].Type.Name
	for _, in := range c.Inputs {
		for _, e := range in.Edges {
			key = append(append(key, 0), e.From.Step.Name...)
			key = binary.AppendUvarint(append(key, 0), uint64(e.Port))
			name += "~" + e.From.Step.Name
		}
	}
	if s := m.steps[string(key)]; s != nil {
		s.Keep = s.Keep || keep
		return s
	}
	v := reflect.ValueOf(c.Params).Elem()
	for _, t := range taken {
		if value := string(AppendValue(nil, v.FieldByIndex(t.to))); value != string(t.standard) {
			name += "~" + t.name + "=" + strings.Trim(value, `"`)
		}
	}
	if m.names[name]++; m.names[name] > 1 {
		name += "~" + strconv.Itoa(m.names[name])
	}
	s := &Step{Name: name, Implied: true, Keep: keep, Line: b.step.Line}
	for _, co := range c.Coord {
		s.Axes = append(s.Axes, co.Axis)
	}
	m.steps[string(key)] = s
	x.plan.Steps = append(x.plan.Steps, s)
	return s
}
