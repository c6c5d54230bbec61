package plan

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// An expander turns declared stages into steps and cells.
type expander struct {
	*loader
	plan       *Plan
	types      paramTypes
	order      []*stageDecl
	steps      map[*stageDecl]*stepBuild
	choiceWith map[*yamlNode][]paramDecl
	standIns   map[*stages.Stage]bool // for stages that don't exist
	ports      map[portQuery]int
	implied    impliedCells
	warnings   complaints
	noted      map[string]bool // paths that are in plan.files
	budget     int             // how many more cells there may be
	edgeBudget int

	cellSlab  slab[Cell]
	inputSlab slab[Input]
	edgeSlab  slab[Edge]
	coordSlab slab[stages.Coord]
}

// A stepBuild is a step in the making.
type stepBuild struct {
	decl      *stageDecl
	step      *Step
	axes      []*axisDecl // sorted by name
	collapsed []*axisDecl
	broken    bool     // some input or axis is unknown, and with it perhaps some axes
	relation  relation // its combinations, in the order of the cells
	recipes   []*recipe
}

// edgesPerCell bounds the edges of a plan: cells that collapse axes have many.
const edgesPerCell = 20

// expand makes the plan. Where the experiment is at fault it complains and goes
// on as well as it can.
func (l *loader) expand() *Plan {
	x := &expander{
		loader: l, types: paramTypes{}, steps: map[*stageDecl]*stepBuild{}, choiceWith: map[*yamlNode][]paramDecl{},
		standIns: map[*stages.Stage]bool{}, noted: map[string]bool{}, ports: map[portQuery]int{}, budget: l.limit, edgeBudget: l.limit * edgesPerCell,
	}
	x.plan = &Plan{Name: l.exp.name, Title: l.exp.title, Seed: l.exp.seed, Limit: l.o.Limit, Narrowed: l.exp.narrowed}
	x.plan.Order = stages.Order{}
	for _, a := range l.exp.axes {
		x.plan.Order[a.name] = a.ids
	}
	x.order = l.topological()
	for _, s := range x.order {
		x.stage(s)
	}
	for _, s := range l.exp.publish {
		if b := x.steps[s]; b != nil {
			x.plan.Publish = append(x.plan.Publish, b.step)
		}
	}
	x.number()
	x.warn()
	x.plan.decl = l.exp
	return x.plan
}

// number gives the cells their places in the plan.
func (x *expander) number() {
	n := 0
	for _, s := range x.plan.Steps {
		n += len(s.Cells)
	}
	x.plan.Cells = make([]*Cell, 0, n)
	for _, s := range x.plan.Steps {
		if s.Implied {
			slices.SortFunc(s.Cells, func(a, b *Cell) int { return compareCoord(a.Coord, b.Coord) })
		}
		for _, c := range s.Cells {
			c.Index = len(x.plan.Cells)
			x.plan.Cells = append(x.plan.Cells, c)
		}
	}
	if n == 0 && len(x.list) == 0 {
		x.at(x.exp.stages[0].key, "look at only, exclude and --only", "no combination of axes is left")
	}
}

func compareCoord(a, b []stages.Coord) int {
	return slices.CompareFunc(a, b, func(a, b stages.Coord) int {
		if c := strings.Compare(a.Axis, b.Axis); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
}

// stage expands one stage; those it takes from are expanded already.
func (x *expander) stage(s *stageDecl) {
	b := &stepBuild{decl: s, step: &Step{Name: s.name, Keep: !s.none, Drop: s.drop, Line: s.key.line}}
	x.steps[s] = b
	x.axesOf(b)
	b.step.Axes = axisNames(b.axes)
	b.step.Over = axisNames(b.collapsed)
	b.recipes = x.recipes(b)
	x.commonParams(b)
	x.checkLines(b)
	b.relation = relation{axes: b.axes}
	if _, size, ok := strides(unionAxes(b.axes, b.collapsed)); !ok {
		x.at(s.key, "", "the stage "+strconv.Quote(s.name)+" has too many combinations to count")
	} else {
		_, n, _ := strides(b.axes)
		b.step.Possible = int(min(n, size))
		b.relation = x.combinations(b)
	}
	x.cells(b)
	x.plan.Steps = append(x.plan.Steps, b.step)
}

// axesOf finds the axes of a step: those of its inputs, less over, and matrix.
func (x *expander) axesOf(b *stepBuild) {
	s := b.decl
	b.broken = s.lost
	var in []*axisDecl
	for _, d := range s.inputs {
		if b.broken = b.broken || d.bad; d.bad {
			continue
		}
		var first *stepBuild
		for _, w := range d.wires {
			from := x.steps[w.from]
			switch {
			case from == nil: // on a cycle
				b.broken, d.bad = true, true
				continue
			case from.broken:
				b.broken = true
			}
			if first == nil {
				first = from
			} else if !slices.Equal(first.axes, from.axes) && !b.broken {
				x.at(w.node, strconv.Quote(first.decl.name)+" has the axes ["+strings.Join(axisNames(first.axes), ", ")+
					"], "+strconv.Quote(from.decl.name)+" ["+strings.Join(axisNames(from.axes), ", ")+"]",
					"the edges of a stack have different axes")
				d.bad, b.broken = true, true
			}
			in = unionAxes(in, from.axes)
		}
		if d.stack != nil && !d.bad {
			if first != nil && hasAxis(first.axes, d.stack) {
				x.at(d.key, "a stack adds an axis", "the stage "+strconv.Quote(first.decl.name)+" has the axis "+strconv.Quote(d.stack.name)+" already")
				d.bad, b.broken = true, true
			}
			in = unionAxes(in, []*axisDecl{d.stack})
		}
	}
	in = unionAxes(in)
	b.collapsed = unionAxes(s.over)
	if s.overAll {
		b.collapsed = in
		for _, a := range s.matrix {
			if hasAxis(in, a) {
				x.at(s.overNode, "over takes an axis of the inputs away, matrix adds one",
					"the axis "+strconv.Quote(a.name)+" is both in over and in matrix")
			}
		}
	}
	for _, a := range s.over {
		if !hasAxis(in, a) && !b.broken {
			hint := "they have no axes"
			if len(in) > 0 {
				hint = "their axes: " + strings.Join(axisNames(in), ", ")
			}
			x.at(s.overNode, hint, "the inputs of "+strconv.Quote(s.name)+" have no axis "+strconv.Quote(a.name))
			b.broken = true
		}
	}
	b.axes = unionAxes(withoutAxes(in, b.collapsed), s.matrix)
}

// checkLines complains about lines that name axes the step doesn't have.
func (x *expander) checkLines(b *stepBuild) {
	lines := slices.Concat(b.decl.only, b.decl.exclude)
	for _, w := range b.decl.when {
		lines = append(lines, w.line)
	}
	for _, line := range lines {
		for _, c := range line.conds {
			if hasAxis(b.axes, c.axis) {
				continue
			}
			line.bad = true
			if b.broken {
				continue
			}
			hint := "it has no axes"
			if len(b.axes) > 0 {
				hint = "its axes: " + strings.Join(axisNames(b.axes), ", ")
			}
			if hasAxis(b.collapsed, c.axis) {
				hint = "over takes it away"
			}
			x.at(c.key, hint, "the stage "+strconv.Quote(b.decl.name)+" has no axis "+strconv.Quote(c.axis.name))
		}
	}
}

// inputRelation returns the combinations that an input has on the axes that its
// step keeps.
func (x *expander) inputRelation(b *stepBuild, d *inputDecl) relation {
	var codes []uint64
	axes := x.steps[d.wires[0].from].axes
	if d.stack != nil {
		axes = unionAxes(axes, []*axisDecl{d.stack})
	}
	axes = withoutAxes(axes, b.collapsed)
	w, _, _ := strides(axes)
	for _, wire := range d.wires {
		if d.stack != nil && !d.stack.allowed[wire.id] {
			continue
		}
		from := &x.steps[wire.from].relation
		p, add := from.projection(axes), uint64(0)
		if k := slices.Index(axes, d.stack); k >= 0 {
			add = w[k] * uint64(wire.id)
		}
		for _, c := range from.codes {
			codes = append(codes, from.project(c, p)+add)
		}
	}
	return newRelation(axes, codes)
}

// combinations finds which combinations of its axes a step has.
func (x *expander) combinations(b *stepBuild) relation {
	r, fits := oneCombination(), true
	for _, d := range b.decl.inputs {
		if d.bad || !fits {
			continue
		}
		in := x.inputRelation(b, d)
		r, fits = r.joined(&in, x.budget)
	}
	for _, a := range b.axes {
		if hasAxis(r.axes, a) || !fits {
			continue
		}
		var ids []uint64
		for i := range a.ids {
			if a.allowed[i] {
				ids = append(ids, uint64(i))
			}
		}
		m := newRelation([]*axisDecl{a}, ids)
		r, fits = r.joined(&m, x.budget)
	}
	if !fits {
		if x.budget > 0 { // one complaint is enough
			x.at(b.decl.key, "", "the experiment has more than "+strconv.Itoa(x.limit)+" cells")
		}
		x.budget = 0
		return relation{axes: b.axes}
	}
	if len(b.decl.only) > 0 || len(b.decl.exclude) > 0 {
		kept := r.codes[:0]
		for _, c := range r.codes {
			if x.selected(b.decl, &r, c) {
				kept = append(kept, c)
			}
		}
		r.codes = kept
	}
	x.budget -= len(r.codes)
	return r
}

// selected reports whether a combination matches a line of only, if there are
// any, and no line of exclude.
func (x *expander) selected(s *stageDecl, r *relation, code uint64) bool {
	in := len(s.only) == 0
	for _, line := range s.only {
		in = line.matches(r, code) || in
	}
	for _, line := range s.exclude {
		in = (line.bad || !line.matches(r, code)) && in
	}
	return in
}

// matches reports whether the line matches a combination, and remembers that it
// matched one.
func (d *lineDecl) matches(r *relation, code uint64) bool {
	if d.bad {
		return true // what it means is unknown
	}
	for i := range d.conds {
		k := slices.Index(r.axes, d.conds[i].axis)
		if !d.conds[i].ids[r.digit(code, k)] {
			return false
		}
	}
	d.matched = true
	return true
}

// cells makes the cells of a step.
func (x *expander) cells(b *stepBuild) {
	s, r := b.decl, &b.relation
	gathers := make([]*gather, len(s.inputs))
	for i, d := range s.inputs {
		if !d.bad {
			gathers[i] = x.gather(b, d)
		}
	}
	choice := slices.Index(b.axes, s.choice)
	b.step.Cells = make([]*Cell, len(r.codes))
	at := combination{b.axes, make([]int32, len(b.axes))}
	var use yamlNode
	for i, code := range r.codes {
		for k := range at.ids {
			at.ids[k] = r.digit(code, k)
		}
		rec := b.recipes[0]
		if s.choice != nil && choice >= 0 {
			rec = b.recipes[at.ids[choice]]
		}
		c := &x.cellSlab.take(1)[0]
		b.step.Cells[i] = c
		*c = Cell{Step: b.step, Stage: rec.stage, Coord: x.coord(at)}
		good := x.params(c, rec, r, code, at, &use)
		c.Inputs = x.inputSlab.take(len(rec.stage.Inputs))
		for k, which := range rec.input {
			if which >= 0 && gathers[which] != nil {
				c.Inputs[k].Edges = x.edges(b, gathers[which], r, code, rec, k)
			}
		}
		if rec.unknown {
			continue
		}
		x.noteFiles(c, rec, r, code, at)
		// Check asks for what is wired, so nothing may be implied yet.
		if !good || x.checkCell(b, c, rec, r, code, at) {
			x.complete(b, c)
		}
	}
}

// coord copies a combination for a cell.
func (x *expander) coord(at combination) []stages.Coord {
	coord := x.coordSlab.take(len(at.axes))
	for k, a := range at.axes {
		coord[k] = stages.Coord{Axis: a.name, ID: a.ids[at.ids[k]]}
	}
	return coord
}

// params decodes the parameters of a cell, layer by layer, later ones winning.
func (x *expander) params(c *Cell, rec *recipe, r *relation, code uint64, at combination, use *yamlNode) bool {
	c.Params = rec.stage.NewParams()
	v := reflect.ValueOf(c.Params).Elem()
	good := x.assign(v, rec.assigns, at, use)
	for i, w := range rec.decl.when {
		if w.line.matches(r, code) && !w.line.bad {
			good = x.assign(v, x.when(rec, i, at), at, use) && good
		}
	}
	return x.assign(v, rec.set, at, use) && good
}

func (x *expander) assign(v reflect.Value, list []paramAssign, at combination, use *yamlNode) bool {
	good := true
	for i := range list {
		a := &list[i]
		n := x.value(a.value, at, use)
		good = n != nil && x.decode(a.field, v, n, decoding{a.value, at}) && good
	}
	return good
}
