package plan

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// impliedCells are the cells that an experiment doesn't write: cells that a port inserts before itself
// (Via), and cells that feed an unwired port (Else). Ports beside one of these are fed by the same cells.
// Cells with equal implementation, parameters and edges are one cell.
type impliedCells struct {
	cells map[string]*Cell
	steps map[string]*Step
	names map[string]int // number of steps with a name, without the numbers in it
	ids   map[*Cell]uint64
}

// maxImplied bounds how deep implied stages may imply others.
const maxImplied = 8

// A consumer is a cell whose ports imply other cells, and its own depth of implication, 0 for a cell of the
// experiment.
type consumer struct {
	*stepBuild // of the experiment
	cell       *Cell
	depth      int
	takes      map[string]string // by parameter of an implied stage: the cell's that has another name
}

// complete gives a cell the inputs that its ports imply. They depend on the edges as wired, not on inserted
// cells.
func (x *expander) complete(c consumer) {
	wired := slices.Clone(c.cell.Inputs)
	for k := range wired {
		p, edges := &c.cell.Stage.Inputs[k], wired[k].Edges
		passes := p.Via != "" && (p.ViaIf == nil || p.ViaIf(c.cell.Params))
		if len(edges) > 0 && !passes || len(edges) == 0 && p.Else == "" {
			continue
		}
		if c.depth >= maxImplied {
			x.report(c.decl.key, "", "stages imply each other without end: %s", c.cell.Stage.Name)
			return
		}
		c.cell.Inputs[k].Edges = x.imply(c, p, edges, wired)
	}
	for k := range wired {
		if p := &c.cell.Stage.Inputs[k]; p.Beside != "" && len(wired[k].Edges) == 0 {
			c.cell.Inputs[k].Edges = x.beside(c, p)
		}
	}
}

// beside returns the edges of an input from the cells that feed the input named by its Beside.
func (x *expander) beside(c consumer, p *stages.Port) []Edge {
	edges := slices.Clone(c.cell.Inputs[portNamed(c.cell.Stage.Inputs, p.Beside)].Edges)
	for i, e := range edges {
		if e.Port < 0 {
			return nil // reported already
		}
		at := portOfType(e.From.Stage.Outputs, p.Type)
		if at < 0 {
			x.report(c.decl.key, "wire it", "the input %q of %s isn't connected, and %s, which feeds %q, "+
				"has no output of the type %s", p.Name, c.cell.Stage.Name, e.From.Step.Name, p.Beside,
				p.Type.Name)
			return nil
		}
		edges[i].Port = at
	}
	return edges
}

// A combo is the edges of an implied cell, and its place among the implied cells of an input.
type combo struct {
	coord  []stages.Coord
	inputs [][]Edge
}

// imply returns the edges of an input from the cells that its port implies. An implied cell has the
// consumer's edges on inputs of the same name: if these come from several cells, there are as many implied
// cells.
func (x *expander) imply(c consumer, p *stages.Port, edges []Edge, wired []Input) []Edge {
	name, via, to := p.Else, len(edges) > 0, c.cell.Stage
	if via {
		name = p.Via
	}
	stage, ok := x.catalog.Lookup(name)
	if !ok {
		x.report(c.decl.uses, "",
			"the input %q of %s needs the stage %q, which doesn't exist", p.Name, to.Name, name)
		return nil
	}
	in, out := -1, portOfType(stage.Outputs, p.Type)
	if via {
		in = portOfType(stage.Inputs, p.Wire())
	}
	if via && in < 0 || out < 0 {
		x.report(c.decl.uses, "",
			"%s can't turn %s into the input %q of %s", name, p.Wire().Name, p.Name, to.Name)
		return nil
	}
	combos := []combo{{inputs: make([][]Edge, len(stage.Inputs))}}
	for k := range stage.Inputs {
		q := &stage.Inputs[k]
		from := edges
		if k != in {
			from = edgesOf(to.Inputs, wired, q.Name, via)
		}
		from = slices.Clone(from)
		if len(from) == 0 {
			if via || q.Optional || q.Else != "" {
				continue
			}
			if !p.Optional {
				hint := fmt.Sprintf("wire it, or the input %q, from which %s makes it", q.Name, p.Else)
				x.report(c.decl.key, hint, "the input %q of %s isn't connected", p.Name, to.Name)
			}
			return nil
		}
		for i := range from {
			if !via && !x.upstream(c, &from[i], p, q) || from[i].Port < 0 {
				return nil
			}
		}
		combos = combined(combos, k, from)
	}
	slices.SortStableFunc(combos, func(a, b combo) int { return compareCoord(a.coord, b.coord) })
	implied := make([]Edge, len(combos))
	for i, m := range combos {
		keep := !via || m.inputs[in][0].From.Step.Keep
		implied[i] = Edge{Coord: m.coord, From: x.impliedCell(c, stage, m.inputs, out, keep), Port: out}
	}
	return implied
}

// edgesOf returns the edges of the input with a name; nil if there is none, or if one is set and there are
// several. Texts are those on the input images.
func edgesOf(ports []stages.Port, wired []Input, name string, one bool) []Edge {
	k := portNamed(ports, name)
	if name == stages.TextsName && k < 0 {
		k = slices.IndexFunc(ports, func(p stages.Port) bool { return p.Called(name) })
		if k >= 0 && !ofTexts(wired[k].Edges) {
			k = -1
		}
	}
	if k < 0 || one && len(wired[k].Edges) != 1 {
		return nil
	}
	return wired[k].Edges
}

// combined extends each combination by each edge of input k that agrees with it.
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

// upstream moves an edge of items to the stage that made the items from sources, unless p asks for its own
// items: a property of an item there holds for all items derived from it. It returns false, with a
// diagnostic, if that stage has no fitting output.
func (x *expander) upstream(c consumer, e *Edge, p, q *stages.Port) bool {
	for !p.Own && q.Type.Items && e.Port >= 0 && !x.standIns[e.From.Stage] {
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
	outs, expected := e.From.Stage.Outputs, q.Wire()
	if q.Takes(outs[e.Port].Type) {
		return true
	}
	e.Port = portOfType(outs, expected)
	if at := portNamed(outs, q.Name); at >= 0 && q.Takes(outs[at].Type) {
		e.Port = at
	}
	if e.Port < 0 {
		const format = "the input %q of %s isn't connected, and %s has no %s to make it from"
		x.report(c.decl.key, "wire it", format, p.Name, c.cell.Stage.Name, e.From.Step.Name, expected.Name)
	}
	return e.Port >= 0
}

// mergeCoord joins two coordinates that agree on their common axes.
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

// kept returns the coordinates of the edge's cell on axes that aren't collapsed.
func (e Edge) kept() []stages.Coord {
	if len(e.Coord) == 0 {
		return e.From.Coord
	}
	return slices.DeleteFunc(slices.Clone(e.From.Coord), func(c stages.Coord) bool {
		return slices.ContainsFunc(e.Coord, func(on stages.Coord) bool { return on.Axis == c.Axis })
	})
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
// consumer.
func (x *expander) impliedCell(c consumer, stage *stages.Stage, inputs [][]Edge, out int, keep bool) *Cell {
	m := &x.implied
	key, params := []byte(stage.Name), stage.NewParams()
	from, to := reflect.ValueOf(c.cell.Params).Elem(), reflect.ValueOf(params).Elem()
	for _, f := range x.types.of(stage).fields {
		if f.Keyed {
			v := to.FieldByIndex(f.Index)
			g := x.types.of(c.cell.Stage).byName[cmp.Or(c.takes[f.Name], f.Name)]
			if g != nil && g.Keyed && g.Type == f.Type {
				if u := from.FieldByIndex(g.Index); g.Declared == "" || u.String() != stages.AsDeclared {
					v.Set(u) // a value that is still to be declared isn't needed
				}
			}
			key = AppendValue(append(key, 0), v)
		}
	}
	paramKey := string(key)
	for _, in := range inputs {
		key = append(key, 0, byte(len(in)))
		for _, e := range in {
			key = binary.AppendUvarint(binary.AppendUvarint(key, m.id(e.From)), uint64(e.Port))
		}
	}
	if known := m.cells[string(key)]; known != nil {
		return known
	}
	// It is called by its stage until its inputs are implied.
	cell := &Cell{Step: &Step{Name: stage.Name}, Stage: stage, Params: params,
		Inputs: make([]Input, len(inputs))}
	if stage.Seeded {
		cell.Seed = x.exp.seed
	}
	for k, in := range inputs {
		cell.Inputs[k].Edges = in
		for _, e := range in {
			cell.Coord, _ = mergeCoord(cell.Coord, e.kept())
		}
	}
	refused := x.refusalsAsWired(cell)
	x.complete(consumer{stepBuild: c.stepBuild, cell: cell, depth: c.depth + 1})
	m.cells[string(key)] = cell // not before: a stage that needs itself is found by its depth
	cell.Step = x.impliedStep(cell, paramKey, out, keep)
	cell.Step.Cells = append(cell.Step.Cells, cell)
	cell.Step.Possible++
	if len(refused) == 0 {
		refused = x.misfits(cell)
	}
	for _, err := range refused {
		x.report(c.decl.uses, "", "for the inputs of %s, %s: %v", c.cell.Stage.Name, stage.Name, err)
	}
	return cell
}

// impliedStep finds the step of an implied cell: the one with its implementation, its parameters and the
// steps that it reads. It is named after its output, its inputs, ranks~maps, of which implied ones have the
// name of their output alone, and parameters that aren't the default.
func (x *expander) impliedStep(c *Cell, paramKey string, out int, keep bool) *Step {
	m := &x.implied
	key, name := []byte(paramKey), c.Stage.Outputs[out].Type.Name
	for _, in := range c.Inputs {
		named := map[string]bool{}
		for _, e := range in.Edges {
			from := e.From.Step.Name
			if len(e.Coord) > 0 && named[from] { // of several cells of a step that the stage reads at once
				continue
			}
			named[from] = true
			key = append(append(key, 0), from...)
			key = binary.AppendUvarint(append(key, 0), uint64(e.Port))
			if e.From.Step.Implied {
				from, _, _ = strings.Cut(from, "~")
			}
			name += "~" + from
		}
	}
	if s := m.steps[string(key)]; s != nil {
		s.Keep = s.Keep || keep
		return s
	}
	v := reflect.ValueOf(c.Params).Elem()
	for _, f := range x.types.of(c.Stage).fields {
		value := AppendValue(nil, v.FieldByIndex(f.Index))
		if f.Keyed && string(value) != string(AppendValue(nil, f.standard)) {
			name += "~" + f.Name + "=" + strings.Trim(string(value), `"`)
		}
	}
	if m.names[name]++; m.names[name] > 1 {
		name += "~" + strconv.Itoa(m.names[name])
	}
	s := &Step{Name: name, Implied: true, Keep: keep}
	for _, co := range c.Coord {
		s.Axes = append(s.Axes, co.Axis)
	}
	m.steps[string(key)] = s
	x.plan.Steps = append(x.plan.Steps, s)
	return s
}
