package plan

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A gather finds the upstream cells that an input hands to a cell.
type gather struct {
	decl    *inputDecl
	from    []*stepBuild // by wire
	key     []*axisDecl  // the axes that cells and input share
	proj    projection   // of the cell's combination onto key
	axes    []*axisDecl  // the input's collapsed axes
	entries []gatherEntry
}

// A gatherEntry is an upstream cell: key says for which cells, order where among
// the edges of one input.
type gatherEntry struct {
	key, order uint64
	wire, row  int32
}

func (x *expander) gather(b *stepBuild, d *inputDecl) *gather {
	g := &gather{decl: d}
	own := x.steps[d.wires[0].from].axes
	if d.stack != nil {
		own = unionAxes(own, []*axisDecl{d.stack})
	}
	g.key = withoutAxes(own, b.collapsed)
	g.axes = withoutAxes(own, g.key)
	g.proj = b.relation.projection(g.key)
	keyWeights, _, _ := strides(g.key)
	orderWeights, _, fits := strides(g.axes)
	if !fits {
		return nil // complained about already
	}
	for i, w := range d.wires {
		from := x.steps[w.from]
		g.from = append(g.from, from)
		if d.stack != nil && !d.stack.allowed[w.id] {
			continue
		}
		r := &from.relation
		p := r.projection(g.key)
		var stackKey, stackOrder uint64
		if d.stack != nil {
			if k := slices.Index(g.key, d.stack); k >= 0 {
				stackKey = keyWeights[k] * uint64(w.id)
			} else {
				stackOrder = orderWeights[slices.Index(g.axes, d.stack)] * uint64(d.stack.rank[w.id])
			}
		}
		for row, code := range r.codes {
			order := stackOrder
			for k, a := range g.axes {
				if at := slices.Index(r.axes, a); at >= 0 {
					order += orderWeights[k] * uint64(a.rank[r.digit(code, at)])
				}
			}
			g.entries = append(g.entries, gatherEntry{r.project(code, p) + stackKey, order, int32(i), int32(row)})
		}
	}
	slices.SortFunc(g.entries, func(a, b gatherEntry) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Compare(a.order, b.order)
	})
	return g
}

// edges makes the edges of one input of a cell.
func (x *expander) edges(b *stepBuild, g *gather, r *relation, code uint64, rec *recipe, port int) []Edge {
	key := r.project(code, g.proj)
	from, _ := slices.BinarySearchFunc(g.entries, key, func(e gatherEntry, k uint64) int { return cmp.Compare(e.key, k) })
	to := from
	for to < len(g.entries) && g.entries[to].key == key {
		to++
	}
	if x.edgeBudget -= to - from; x.edgeBudget < 0 {
		if x.edgeBudget+to-from >= 0 {
			x.at(b.decl.key, "", "the experiment has more than "+strconv.Itoa(x.limit*edgesPerCell)+" edges")
		}
		return nil
	}
	edges := x.edgeSlab.take(to - from)
	for i, e := range g.entries[from:to] {
		source := g.from[e.wire]
		edge := &edges[i]
		edge.From = source.step.Cells[e.row]
		edge.Port = x.port(edge.From.Stage, g.decl.wires[e.wire], rec, port)
		if len(g.axes) == 0 {
			continue
		}
		edge.Coord = x.coordSlab.take(len(g.axes))
		for k, a := range g.axes {
			id := g.decl.wires[e.wire].id
			if at := slices.Index(source.axes, a); at >= 0 {
				id = source.relation.digit(source.relation.codes[e.row], at)
			}
			edge.Coord[k] = stages.Coord{Axis: a.name, ID: a.ids[id]}
		}
	}
	return edges
}

// A portQuery asks which output of a stage an edge takes.
type portQuery struct {
	from *stages.Stage
	wire *wireDecl
	to   *stages.Stage
	port int
}

// port returns the index of the output that an edge takes, -1 if it's unknown.
func (x *expander) port(from *stages.Stage, w *wireDecl, rec *recipe, port int) int {
	if x.standIns[from] {
		return -1
	}
	q := portQuery{from, w, rec.stage, port}
	at, ok := x.ports[q]
	if !ok {
		at = x.findPort(from, w, &rec.stage.Inputs[port], rec.unknown)
		x.ports[q] = at
	}
	return at
}

// findPort applies the rule of edges: the named port; else the one that is called
// like the input; else the only one of the input's type.
func (x *expander) findPort(from *stages.Stage, w *wireDecl, in *stages.Port, unknown bool) int {
	list := func() string {
		var ports []string
		for _, o := range from.Outputs {
			ports = append(ports, w.from.name+"."+o.Name+" ("+o.Type.Name+")")
		}
		if len(ports) == 0 {
			return from.Name + " has no outputs"
		}
		return "its outputs: " + strings.Join(ports, ", ")
	}
	name := w.port
	if name == "" {
		name = in.Name
	}
	at := slices.IndexFunc(from.Outputs, func(p stages.Port) bool { return p.Name == name })
	want := in.Wire()
	switch {
	case at < 0 && w.port != "":
		x.at(w.node, list(), from.Name+" has no output "+strconv.Quote(w.port))
		return -1
	case unknown:
		return at
	case at < 0:
		var fit []string
		for i, o := range from.Outputs {
			if o.Type.Name == want.Name {
				fit = append(fit, w.from.name+"."+o.Name)
				at = i
			}
		}
		if len(fit) > 1 {
			x.at(w.node, "write "+strings.Join(fit, " or "), from.Name+" has "+strconv.Itoa(len(fit))+" outputs of the type "+
				want.Name+", which the input "+strconv.Quote(in.Name)+" takes")
			return -1
		}
		if len(fit) == 0 {
			x.at(w.node, list(), from.Name+" has no output of the type "+want.Name+", which the input "+strconv.Quote(in.Name)+" takes")
			return -1
		}
	case from.Outputs[at].Type.Name != want.Name:
		x.at(w.node, list(), "the output "+strconv.Quote(name)+" of "+from.Name+" is of the type "+from.Outputs[at].Type.Name+
			", and the input "+strconv.Quote(in.Name)+" takes "+want.Name)
		return -1
	}
	return at
}

// checkCell asks the stage whether it likes its parameters and its inputs, and
// reports whether it does.
func (x *expander) checkCell(b *stepBuild, c *Cell, rec *recipe, r *relation, code uint64, at combination) bool {
	if c.Stage.Relation != stages.Whole {
		if p := c.Stage.Primary(); p >= 0 && len(c.Inputs[p].Edges) == 0 {
			return false // complained about already
		}
		for k := range c.Inputs {
			// One edge is as wrong as several: what's refused doesn't depend on how
			// many ids an axis happens to have.
			if e := c.Inputs[k].Edges; len(e) > 0 && len(e[0].Coord) > 0 && c.Stage.Inputs[k].Type.Items {
				node := b.decl.overNode
				if node == nil {
					node = b.decl.key
				}
				x.at(node, "over hands all cells to a stage at once, and some stages only take items one by one",
					"the input "+strconv.Quote(c.Stage.Inputs[k].Name)+" of "+c.Stage.Name+" takes the items of one cell")
				return false
			}
		}
	}
	bad := x.refusals(c)
	if len(bad) == 0 && !b.broken {
		bad = x.misnamedAxes(b, c)
	}
	for _, err := range bad {
		x.refused(rec, r, code, at, err)
	}
	return len(bad) == 0
}

// refusals returns what Validate says, and if it has nothing to say Check, and then
// Fits. What a stage that doesn't exist would hand over is unknown, and so is whether
// that would do: behind one, only Validate is asked.
func (x *expander) refusals(c *Cell) []error {
	if v, ok := c.Params.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return parts(err)
		}
	}
	if x.guessed(c) {
		return nil
	}
	if c.Stage.Check != nil {
		err := c.Stage.Check(c.Params, func(port string) bool {
			for k := range c.Stage.Inputs {
				if c.Stage.Inputs[k].Name == port {
					return len(c.Inputs[k].Edges) > 0
				}
			}
			return false
		})
		if err != nil {
			return parts(err)
		}
	}
	if x.o.Fits == nil {
		return nil
	}
	return parts(x.o.Fits(c))
}

// guessed reports whether an input of c comes from a stage that doesn't exist.
func (x *expander) guessed(c *Cell) bool {
	for _, in := range c.Inputs {
		for _, e := range in.Edges {
			if x.standIns[e.From.Stage] {
				return true
			}
		}
	}
	return false
}

// parts takes apart what errors.Join joined.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()
	}
	return []error{err}
}

// refused complains where the parameter stands that an error is about.
func (x *expander) refused(rec *recipe, r *relation, code uint64, at combination, err error) {
	var field *stages.FieldError
	if errors.As(err, &field) {
		hint := field.Hint
		if field.Names != nil {
			hint = didYouMean(field.Name, "there are", field.Names)
		}
		if a := x.assigned(rec, r, code, field.Field); a != nil {
			if n := x.value(a.value, at, new(yamlNode)); n != nil {
				text := err.Error()
				// It stands at an axis and not at the stage, or is shared by all that an axis names.
				if !a.value.plain() || rec.decl.choice != nil && !a.own {
					text = rec.stage.Name + ": " + text
				}
				x.bad(n.element(field.Name), decoding{a.value, at}, hint, text)
			}
			return
		}
		if hint == "" {
			hint = "it's a parameter of " + rec.stage.Name
		}
		x.at(rec.uses, hint, field.Field+": "+err.Error())
		return
	}
	x.at(rec.uses, "", rec.stage.Name+": "+err.Error())
}

// assigned returns what gives a parameter its value in a combination, nil for its default.
func (x *expander) assigned(rec *recipe, r *relation, code uint64, param string) *paramAssign {
	layers := [][]paramAssign{rec.assigns}
	for i, w := range rec.decl.when {
		if !w.line.bad && w.line.matches(r, code) {
			layers = append(layers, rec.whens[i])
		}
	}
	layers = append(layers, rec.set)
	for _, layer := range slices.Backward(layers) {
		for k := len(layer) - 1; k >= 0; k-- {
			if layer[k].field.Name == param {
				return &layer[k]
			}
		}
	}
	return nil
}
