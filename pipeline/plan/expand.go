package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
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
	standIns   map[*stages.Stage]bool   // for stages that don't exist
	functions  map[string]*stages.Stage // in files of Python, by the file and their names
	implied    impliedCells
	illegible  map[*Cell]bool // a parameter is an error, and has its default
	copied     bool           // there are cells that are computed again: see [expander.again]
	warnings   diagnostics
	budget     int // how many more cells are allowed
	edgeBudget int
}

// A stepBuild is a step in the making.
type stepBuild struct {
	decl       *stageDecl
	step       *Step
	axes       []*axisDecl // sorted by name
	collapsed  []*axisDecl
	broken     bool // some input or axis is unknown, and perhaps others because of that
	inputs     []*inputIndex
	relation   relation       // its combinations, in the order of the cells
	bindings   []*binding     // by id of the choice; one if there is none
	each, one  map[trace]bool // each of whose cells it reads along the axis, and of which the cell of one id
	contrasted []*axisDecl    // along which its results compare all cells of a stage with one of them
}

// A cellBuild is a cell in the making.
type cellBuild struct {
	*stepBuild
	*binding
	cell *Cell
	code uint64      // in the relation of its step
	at   combination // the same as ids
}

// edgesPerCell bounds the edges of a plan: cells that collapse axes have many.
const edgesPerCell = 20

// expand makes the plan. It reports errors of the experiment and goes on as well as it can.
func (l *loader) expand() *Plan {
	x := &expander{
		loader: l, types: paramTypes{}, steps: map[*stageDecl]*stepBuild{},
		standIns: map[*stages.Stage]bool{}, illegible: map[*Cell]bool{},
		functions: map[string]*stages.Stage{},
		implied:   impliedCells{map[string]*Cell{}, map[string]*Step{}, map[string]int{}, map[*Cell]uint64{}},
		budget:    l.limit, edgeBudget: l.limit * edgesPerCell,
	}
	x.plan = &Plan{remarks: &remarks{}, counts: &counts{known: map[*Cell]int{}},
		Name: l.exp.name, Title: l.exp.title, Seed: l.exp.seed, Limit: l.o.Limit, Narrowed: l.exp.narrowed,
		Order: stages.Order{}, decl: l.exp, files: map[string]Diag{},
	}
	for _, a := range l.exp.axes {
		x.plan.Order[a.name] = a.ids
	}
	x.plan.Labels, x.plan.Families = l.names("label", true), l.names("family", false)
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
	x.warnMixed()
	x.warn()
	return x.plan
}

// number numbers the cells of the plan.
func (x *expander) number() {
	if x.copied {
		x.sortSteps()
	}
	for _, s := range x.plan.Steps {
		if s.Implied {
			slices.SortFunc(s.Cells, func(a, b *Cell) int { return compareCoord(a.Coord, b.Coord) })
		}
		for _, c := range s.Cells {
			c.Index = len(x.plan.Cells)
			x.plan.Cells = append(x.plan.Cells, c)
		}
	}
	if len(x.plan.Cells) == 0 && len(x.all) == 0 {
		x.report(x.exp.stages[0].key, "look at only, exclude and --only", "no combination of axes is left")
	}
}

func compareCoord(a, b []stages.Coord) int {
	return slices.CompareFunc(a, b, func(a, b stages.Coord) int {
		return cmp.Or(strings.Compare(a.Axis, b.Axis), strings.Compare(a.ID, b.ID))
	})
}

// stage expands one stage; the stages that it reads are expanded already.
func (x *expander) stage(s *stageDecl) {
	b := &stepBuild{decl: s, step: &Step{Name: s.name, Keep: !s.none, Drop: s.drop}}
	x.steps[s] = b
	x.axesOf(b)
	b.step.Axes = axisNames(b.axes)
	x.bind(b)
	x.commonParams(b)
	x.checkSeed(b)
	x.checkLines(b)
	_, size, _ := weightsOf(b.axes)
	if _, _, ok := weightsOf(unionAxes(b.axes, b.collapsed)); !ok {
		x.report(s.key, "", "the stage %q has too many combinations to count", s.name)
		b.relation = newRelation(b.axes, nil)
	} else {
		b.step.Possible = int(size)
		for _, d := range s.inputs {
			b.inputs = append(b.inputs, x.index(b, d))
		}
		b.relation = x.combinations(b)
	}
	x.cells(b)
	x.plan.Steps = append(x.plan.Steps, b.step)
}

// axesOf finds the axes of a step: the axes of its inputs, without over, and matrix.
func (x *expander) axesOf(b *stepBuild) {
	s := b.decl
	b.broken = s.lost
	var in []*axisDecl
	for _, d := range s.inputs {
		if d.bad {
			b.broken = true
			continue
		}
		var first *stepBuild
		var axes []*axisDecl // of the first edge
		for _, w := range d.wires {
			from := x.steps[w.from]
			if from == nil { // on a cycle
				b.broken, d.bad = true, true
				continue
			}
			b.broken = b.broken || from.broken
			if !x.fix(w, from) {
				b.broken, d.bad = true, true
				continue
			}
			own := w.axes(from)
			if first == nil {
				first, axes = from, own
			} else if !slices.Equal(axes, own) {
				if !b.broken {
					hint := fmt.Sprintf("%q has the axes [%s], %q [%s]",
						first.decl.name, axisList(axes), from.decl.name, axisList(own))
					x.report(w.node, hint, "the edges of a stack have different axes")
				}
				d.bad, b.broken = true, true
			}
			in = unionAxes(in, own)
		}
		if d.stack != nil && !d.bad {
			if slices.Contains(axes, d.stack) {
				x.report(d.key, "a stack adds an axis",
					"the stage %q has the axis %q already", first.decl.name, d.stack.name)
				d.bad, b.broken = true, true
			}
			in = unionAxes(in, []*axisDecl{d.stack})
		}
	}
	x.setTraces(b)
	b.collapsed = unionAxes(s.over)
	if s.overAll {
		b.collapsed = in
	}
	for _, a := range s.matrix {
		if slices.Contains(b.collapsed, a) {
			x.report(s.overNode, "over collapses an axis of the inputs, matrix adds one",
				"the axis %q is both in over and in matrix", a.name)
		}
	}
	for _, a := range s.over {
		if !slices.Contains(in, a) && !b.broken {
			hint := "they have no axes"
			if len(in) > 0 {
				hint = "their axes: " + axisList(in)
			}
			x.report(s.overNode, hint, "the inputs of %q have no axis %q", s.name, a.name)
			b.broken = true
		}
	}
	b.axes = unionAxes(withoutAxes(in, b.collapsed), s.matrix)
}

func axisList(axes []*axisDecl) string { return strings.Join(axisNames(axes), ", ") }

// lacksAxis reports that n names an axis which the step doesn't have.
func (x *expander) lacksAxis(b *stepBuild, n *yamlNode, a *axisDecl) {
	hint := "write matrix: [" + a.name + "]"
	switch {
	case b.broken:
		return // some of its axes may be unknown
	case slices.Contains(b.collapsed, a):
		hint = "over collapses it"
	case len(b.axes) > 0:
		hint = "its axes: " + axisList(b.axes) + "; matrix: [" + a.name + "] adds one"
	}
	x.report(n, hint, "the stage %q has no axis %q", b.decl.name, a.name)
}

// allLines returns the lines of only, exclude and when.
func (s *stageDecl) allLines() []*lineDecl {
	lines := slices.Concat(s.only, s.exclude)
	for _, w := range s.when {
		lines = append(lines, w.line)
	}
	return lines
}

// checkLines reports lines that name axes which the step doesn't have.
func (x *expander) checkLines(b *stepBuild) {
	for _, line := range b.decl.allLines() {
		for _, c := range line.conds {
			if !slices.Contains(b.axes, c.axis) {
				line.bad = true
				x.lacksAxis(b, c.key, c.axis)
			}
		}
	}
}

// combinations finds which combinations of its axes a step has.
func (x *expander) combinations(b *stepBuild) relation {
	r, fits := relation{codes: []uint64{0}}, true // the single combination of no axes
	join := func(s relation) {
		if fits {
			r, fits = r.joined(&s, x.budget)
		}
	}
	for _, in := range b.inputs {
		if in != nil {
			join(in.relation())
		}
	}
	for _, a := range b.axes {
		if !slices.Contains(r.axes, a) {
			join(allowedIDs(a))
		}
	}
	if !fits {
		if x.budget > 0 { // one diagnostic is enough
			x.report(b.decl.key, "", "the experiment has more than %d cells", x.limit)
		}
		x.budget = 0
		return newRelation(b.axes, nil)
	}
	if len(b.decl.only) > 0 || len(b.decl.exclude) > 0 {
		at := combination{r.axes, make([]int32, len(r.axes))}
		r.codes = slices.DeleteFunc(r.codes, func(code uint64) bool {
			r.read(code, at)
			return !b.decl.selects(at)
		})
	}
	x.budget -= len(r.codes)
	return r
}

// selects reports whether a combination matches a line of only, if there are any, and no line of exclude.
func (s *stageDecl) selects(at combination) bool {
	in := len(s.only) == 0
	for _, line := range s.only {
		in = line.matches(at) || in
	}
	for _, line := range s.exclude {
		in = (line.bad || !line.matches(at)) && in
	}
	return in
}

// matches reports whether the line matches a combination, and records a match.
func (d *lineDecl) matches(at combination) bool {
	if d.bad {
		return true // its meaning is unknown
	}
	for i := range d.conds {
		if !d.conds[i].ids[at.id(d.conds[i].axis)] {
			return false
		}
	}
	d.matched = true
	return true
}

func (x *expander) cells(b *stepBuild) {
	r := &b.relation
	for _, in := range b.inputs {
		if in != nil {
			in.weights = r.onto(in.kept)
		}
	}
	choice := slices.Index(b.axes, b.decl.choice)
	cells := make([]Cell, len(r.codes))
	b.step.Cells = make([]*Cell, len(r.codes))
	at := combination{b.axes, make([]int32, len(b.axes))}
	for i, code := range r.codes {
		r.read(code, at)
		c := &cells[i]
		m := &cellBuild{stepBuild: b, binding: b.bindings[0], cell: c, code: code, at: at}
		if choice >= 0 {
			m.binding = b.bindings[at.ids[choice]]
		}
		b.step.Cells[i] = c
		*c = Cell{Step: b.step, Stage: m.stage, Params: m.stage.NewParams()}
		c.Inputs = make([]Input, len(m.stage.Inputs))
		c.Coord = make([]stages.Coord, len(at.axes))
		for k, a := range at.axes {
			c.Coord[k] = stages.Coord{Axis: a.name, ID: a.ids[at.ids[k]]}
		}
		good := x.params(m)
		if !good {
			x.illegible[c] = true
		}
		good = good && x.seed(m)
		for k, which := range m.input {
			if which >= 0 && b.inputs[which] != nil {
				c.Inputs[k].Edges = x.edges(m, b.inputs[which], k)
			}
		}
		if m.unknown {
			continue
		}
		c.Replicates = m.replicates()
		x.noteFiles(m)
		good = x.takeDeclared(m) && x.sameTargets(m) && good
		// Check sees the inputs as they are wired, so it comes before implied ones.
		if !good || x.checkCell(m) {
			x.complete(consumer{stepBuild: b, cell: c})
			x.again(m)
		}
	}
}

// eachAssign calls do with the assignments of a cell's parameters, layer by layer: later ones win.
func (x *expander) eachAssign(m *cellBuild, do func(a *paramAssign)) {
	layer := func(list []paramAssign) {
		for i := range list {
			do(&list[i])
		}
	}
	layer(m.assigns)
	for i, w := range m.decl.when {
		if w.line.matches(m.at) && !w.line.bad {
			layer(x.when(m, i))
		}
	}
	layer(m.set)
}

// params decodes the parameters of a cell.
func (x *expander) params(m *cellBuild) (good bool) {
	v := reflect.ValueOf(m.cell.Params).Elem()
	good = true
	x.eachAssign(m, func(a *paramAssign) {
		n := x.value(a.value, m.at)
		d := decoder{x.loader, a.field, a.value, m.at}
		good = n != nil && d.decode(v, n) && good
	})
	return good
}
