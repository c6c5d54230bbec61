package plan

import (
	"encoding/binary"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// impliedCells are the cells that nobody wrote: what ports put between an edge
// and an input (Via), and what fills an input that isn't wired (Else). Equal ones,
// with the same implementation, parameters and edges, are one cell.
type impliedCells struct {
	cells map[string]*Cell
	steps map[string]*Step
	names map[string]int // how many steps wanted a name
	takes map[takeQuery][]takenParam
	ids   map[*Cell]uint64
	key   []byte
}

// maxImplied bounds how deep implied stages may imply others.
const maxImplied = 8

// complete gives a cell what its ports imply.
func (x *expander) complete(b *stepBuild, c *Cell) { x.completeAt(b, c, 0) }

func (x *expander) completeAt(b *stepBuild, c *Cell, depth int) {
	for k := range c.Stage.Inputs {
		if p := &c.Stage.Inputs[k]; p.Via != "" && len(c.Inputs[k].Edges) > 0 || p.Else != "" && len(c.Inputs[k].Edges) == 0 {
			x.imply(b, c, depth)
			return
		}
	}
}

func (x *expander) imply(b *stepBuild, c *Cell, depth int) {
	if depth >= maxImplied {
		x.endless(b, c)
		return
	}
	// What's implied hangs on the edges as written, not on what is put in between.
	wired := make([][]Edge, len(c.Inputs))
	for k := range wired {
		wired[k] = c.Inputs[k].Edges
	}
	for k := range c.Stage.Inputs {
		p := &c.Stage.Inputs[k]
		switch {
		case p.Via != "" && len(wired[k]) > 0:
			c.Inputs[k].Edges = x.via(b, c, p, wired[k], wired, depth)
		case p.Else != "" && len(wired[k]) == 0:
			c.Inputs[k].Edges = x.otherwise(b, c, p, wired, depth)
		}
	}
}

func (x *expander) endless(b *stepBuild, c *Cell) {
	x.at(b.decl.key, "", "stages imply each other without end: "+c.Stage.Name)
}

// impliedStage finds the stage that a port implies.
func (x *expander) impliedStage(b *stepBuild, c *Cell, p *stages.Port, name string) *stages.Stage {
	stage, ok := x.catalog.Lookup(name)
	if !ok {
		x.at(b.decl.uses, "", "the input "+strconv.Quote(p.Name)+" of "+c.Stage.Name+" needs the stage "+strconv.Quote(name)+", which doesn't exist")
	}
	return stage
}

// via puts a stage between edges and an input, one cell an edge.
func (x *expander) via(b *stepBuild, c *Cell, p *stages.Port, edges []Edge, wired [][]Edge, depth int) []Edge {
	stage := x.impliedStage(b, c, p, p.Via)
	if stage == nil {
		return nil
	}
	in := slices.IndexFunc(stage.Inputs, func(q stages.Port) bool { return q.Type.Name == p.Wire().Name })
	out := outputOf(stage, p)
	if in < 0 || out < 0 {
		x.at(b.decl.uses, "", p.Via+" can't stand between "+p.Wire().Name+" and the input "+strconv.Quote(p.Name)+" of "+c.Stage.Name)
		return nil
	}
	result := x.edgeSlab.take(len(edges))
	for i, e := range edges {
		if e.Port < 0 {
			return nil // complained about already
		}
		inputs := make([][]Edge, len(stage.Inputs))
		for k := range stage.Inputs {
			if w := sameInput(c, wired, &stage.Inputs[k]); k == in {
				inputs[k] = []Edge{{From: e.From, Port: e.Port}}
			} else if len(w) == 1 {
				inputs[k] = []Edge{{From: w[0].From, Port: w[0].Port}}
			}
		}
		from := x.impliedCell(b, c, stage, inputs, out, e.From.Step.Keep, depth)
		if from == nil {
			return nil
		}
		result[i] = Edge{Coord: e.Coord, From: from, Port: out}
	}
	return result
}

// outputOf returns the output of a stage that fits an input.
func outputOf(stage *stages.Stage, p *stages.Port) int {
	return slices.IndexFunc(stage.Outputs, func(q stages.Port) bool { return q.Type.Name == p.Type.Name })
}

// sameInput returns the consumer's edges on the input that an implied stage's
// input is called like.
func sameInput(c *Cell, wired [][]Edge, p *stages.Port) []Edge {
	for k := range c.Stage.Inputs {
		if c.Stage.Inputs[k].Name == p.Name {
			return wired[k]
		}
	}
	return nil
}

// A takenParam says where a keyed field of an implied stage has its value from: a
// field of the consumer, or the default.
type takenParam struct {
	name     string
	from, to []int  // for reflect.Value.FieldByIndex; from is nil for the default
	standard []byte // the default as it stands in keys
}

type takeQuery struct{ from, to *stages.Stage }

// takes says where an implied stage has its keyed parameters from: those that the
// consumer has too, by name and type, are the consumer's.
func (x *expander) takes(from, to *stages.Stage) []takenParam {
	q := takeQuery{from, to}
	taken, ok := x.implied.takes[q]
	if ok {
		return taken
	}
	have, want := x.types.of(from), x.types.of(to)
	standard := reflect.ValueOf(to.NewParams()).Elem()
	for i := range want.fields {
		f := &want.fields[i]
		if !f.Keyed {
			continue
		}
		t := takenParam{name: f.Name, to: f.Index, standard: AppendValue(nil, standard.FieldByIndex(f.Index))}
		if g := have.byName[f.Name]; g != nil && g.Keyed && g.Type == f.Type {
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

// impliedCell returns the cell of an implied stage with the given edges and the
// parameters it takes from its consumer, or nil when it needs itself.
func (x *expander) impliedCell(b *stepBuild, c *Cell, stage *stages.Stage, inputs [][]Edge, out int, keep bool, depth int) *Cell {
	m := &x.implied
	if m.cells == nil {
		*m = impliedCells{cells: map[string]*Cell{}, steps: map[string]*Step{}, names: map[string]int{}, takes: map[takeQuery][]takenParam{}, ids: map[*Cell]uint64{}}
	}
	have := reflect.ValueOf(c.Params).Elem()
	key := append(m.key[:0], stage.Name...)
	taken := x.takes(c.Stage, stage)
	for _, t := range taken {
		if key = append(key, 0); t.from == nil {
			key = append(key, t.standard...)
		} else {
			key = AppendValue(key, have.FieldByIndex(t.from))
		}
	}
	params := len(key)
	for _, in := range inputs {
		key = append(key, 0, byte(len(in)))
		for _, e := range in {
			key = binary.AppendUvarint(key, m.id(e.From))
			key = binary.AppendUvarint(key, uint64(e.Port))
		}
	}
	m.key = key
	if known := m.cells[string(key)]; known != nil {
		if known.Step == nil { // it's in the making, for its own sake
			x.endless(b, known)
			return nil
		}
		return known
	}
	text := string(key)
	cell := &x.cellSlab.take(1)[0]
	m.cells[text] = cell
	*cell = Cell{Stage: stage, Params: stage.NewParams(), Inputs: x.inputSlab.take(len(inputs))}
	v := reflect.ValueOf(cell.Params).Elem()
	for _, t := range taken {
		if t.from != nil {
			v.FieldByIndex(t.to).Set(have.FieldByIndex(t.from))
		}
	}
	for k, in := range inputs {
		cell.Inputs[k].Edges = in
		for _, e := range in {
			cell.Coord, _ = mergeCoord(cell.Coord, e.From.Coord)
		}
	}
	x.completeAt(b, cell, depth+1)
	cell.Step = x.impliedStep(b, cell, text[:params], taken, out, keep)
	cell.Step.Cells = append(cell.Step.Cells, cell)
	cell.Step.Possible++
	for _, err := range x.refusals(cell) {
		x.at(b.decl.uses, "", "for the inputs of "+c.Stage.Name+", "+stage.Name+": "+err.Error())
	}
	return cell
}

// impliedStep finds the step of an implied cell: the one for its implementation,
// its parameters and the steps it takes from. Its name says what it makes, of what:
// ranks~maps. Parameters that aren't the default are part of it.
func (x *expander) impliedStep(b *stepBuild, c *Cell, params string, taken []takenParam, out int, keep bool) *Step {
	m := &x.implied
	key, name := []byte(params), c.Stage.Outputs[out].Type.Name
	var axes []string
	for k := range c.Inputs {
		for _, e := range c.Inputs[k].Edges {
			key = append(append(key, 0), e.From.Step.Name...)
			key = binary.AppendUvarint(append(key, 0), uint64(e.Port))
			name += "~" + e.From.Step.Name
		}
	}
	for _, co := range c.Coord {
		axes = append(axes, co.Axis)
	}
	if s := m.steps[string(key)]; s != nil {
		s.Keep = s.Keep || keep
		return s
	}
	v := reflect.ValueOf(c.Params).Elem()
	for _, t := range taken {
		if mine := string(AppendValue(nil, v.FieldByIndex(t.to))); mine != string(t.standard) {
			name += "~" + t.name + "=" + strings.Trim(mine, `"`)
		}
	}
	if m.names[name]++; m.names[name] > 1 {
		name += "~" + strconv.Itoa(m.names[name])
	}
	s := &Step{Name: name, Implied: true, Axes: axes, Keep: keep, Line: b.step.Line}
	m.steps[string(key)] = s
	x.plan.Steps = append(x.plan.Steps, s)
	return s
}
