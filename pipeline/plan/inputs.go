package plan

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// An inputIndex finds the upstream cells that are the input of a cell.
type inputIndex struct {
	decl      *inputDecl
	from      []*stepBuild // by wire
	kept      []*axisDecl  // the input's axes that the step keeps
	collapsed []*axisDecl  // its other axes
	weights   []uint64     // from the step's codes to keys
	entries   []inputEntry // sorted by key, then order
}

// An inputEntry is an upstream cell. Its key is the code of its ids on the kept axes, its order the code of
// its ranks on the collapsed ones.
type inputEntry struct {
	key, order uint64
	wire, row  int32
}

// index makes the index of an input, nil for an invalid one.
func (x *expander) index(b *stepBuild, d *inputDecl) *inputIndex {
	if d.bad {
		return nil
	}
	own := d.wires[0].axes(x.steps[d.wires[0].from])
	if d.stack != nil {
		own = unionAxes(own, []*axisDecl{d.stack})
	}
	in := &inputIndex{decl: d, kept: withoutAxes(own, b.collapsed)}
	in.collapsed = withoutAxes(own, in.kept)
	keyWeights, _, _ := weightsOf(in.kept)
	orderWeights, _, _ := weightsOf(in.collapsed)
	for i, w := range d.wires {
		from := x.steps[w.from]
		in.from = append(in.from, from)
		var stackKey, stackOrder uint64
		if d.stack != nil {
			if !d.stack.allowed[w.id] {
				continue
			}
			if k := slices.Index(in.kept, d.stack); k >= 0 {
				stackKey = keyWeights[k] * uint64(w.id)
			} else {
				stackOrder = orderWeights[slices.Index(in.collapsed, d.stack)] * uint64(d.stack.rank[w.id])
			}
		}
		r := &from.relation
		toKey, toOrder := r.onto(in.kept), r.onto(in.collapsed)
		for k, a := range r.axes {
			if w.fixed.id(a) >= 0 { // a stack may have an axis of this name
				toKey[k], toOrder[k] = 0, 0
			}
		}
		for row, code := range r.codes {
			if !w.takes(r, code) {
				continue
			}
			e := inputEntry{r.project(code, toKey) + stackKey, stackOrder, int32(i), int32(row)}
			for k, w := range toOrder {
				if w != 0 {
					e.order += w * uint64(r.axes[k].rank[r.digit(code, k)])
				}
			}
			in.entries = append(in.entries, e)
		}
	}
	slices.SortFunc(in.entries, func(a, b inputEntry) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.order, b.order))
	})
	return in
}

// relation returns the combinations of the input on the axes that its step keeps.
func (in *inputIndex) relation() relation {
	codes := make([]uint64, len(in.entries))
	for i, e := range in.entries {
		codes[i] = e.key
	}
	return newRelation(in.kept, codes)
}

// edges makes the edges of one input of a cell.
func (x *expander) edges(m *cellBuild, in *inputIndex, port int) []Edge {
	key := m.relation.project(m.code, in.weights)
	byKey := func(e inputEntry, k uint64) int { return cmp.Compare(e.key, k) }
	from, _ := slices.BinarySearchFunc(in.entries, key, byKey)
	to := from
	for to < len(in.entries) && in.entries[to].key == key {
		to++
	}
	if x.edgeBudget -= to - from; x.edgeBudget < 0 {
		if x.edgeBudget+to-from >= 0 {
			x.report(m.decl.key, "", "the experiment has more than %d edges", x.limit*edgesPerCell)
		}
		return nil
	}
	edges := make([]Edge, to-from)
	for i, e := range in.entries[from:to] {
		source, w := in.from[e.wire], in.decl.wires[e.wire]
		c := source.step.Cells[e.row]
		edges[i] = Edge{From: c, Port: x.port(c.Stage, w, m, port)}
		for _, a := range in.collapsed {
			id := w.id
			if k := slices.Index(source.axes, a); k >= 0 && w.fixed.id(a) < 0 {
				id = source.relation.digit(source.relation.codes[e.row], k)
			}
			edges[i].Coord = append(edges[i].Coord, stages.Coord{Axis: a.name, ID: a.ids[id]})
		}
	}
	return edges
}

// port returns the index of the output of an edge, -1 if it is unknown: the named port; or else the one
// with the input's name; or else the only one of the input's type.
func (x *expander) port(from *stages.Stage, w *wireDecl, m *cellBuild, port int) int {
	in := &m.stage.Inputs[port]
	takes := in.TypeText()
	at := portNamed(from.Outputs, cmp.Or(w.port, in.Name))
	switch {
	case x.standIns[from]:
		return -1
	case m.unknown && (at >= 0 || w.port == ""), at >= 0 && in.Takes(from.Outputs[at].Type):
		return at
	}
	var all, fit []string
	fitting := -1
	for i, o := range from.Outputs {
		name := w.from.name + "." + o.Name
		all = append(all, name+" ("+o.Type.Name+")")
		if in.Takes(o.Type) {
			fit, fitting = append(fit, name), i
		}
	}
	hint := "its outputs: " + strings.Join(all, ", ")
	if len(all) == 0 {
		hint = from.Name + " has no outputs"
	}
	if other := x.ofTexts(m.stage); other != "" && takes == stages.Images.Name &&
		slices.ContainsFunc(from.Outputs, isTokens) {
		hint += "; " + other + " takes texts"
	}
	switch {
	case len(fit) == 0 && in.NotTexts != "" && leadsToTexts(from, w, at):
		x.report(w.node, "", "%s takes no texts: %s", m.stage.Name, in.NotTexts)
	case at >= 0:
		x.report(w.node, hint, "the output %q of %s is of the type %s, and the input %q takes %s",
			from.Outputs[at].Name, from.Name, from.Outputs[at].Type.Name, in.Name, takes)
	case w.port != "":
		x.report(w.node, hint, "%s has no output %q", from.Name, w.port)
	case len(fit) == 1:
		return fitting
	case len(fit) == 0:
		x.report(w.node, hint,
			"%s has no output of the type %s, which the input %q takes", from.Name, takes, in.Name)
	default:
		x.report(w.node, "write "+strings.Join(fit, " or "),
			"%s has %d outputs of the type %s, which the input %q takes", from.Name, len(fit), takes, in.Name)
	}
	return -1
}

func isTokens(p stages.Port) bool { return p.Type.Name == stages.Tokens.Name }

// leadsToTexts reports whether an edge reads texts: by the output at the index at, or, if it names none,
// by any.
func leadsToTexts(from *stages.Stage, w *wireDecl, at int) bool {
	if at >= 0 {
		return isTokens(from.Outputs[at])
	}
	return w.port == "" && slices.ContainsFunc(from.Outputs, isTokens)
}

// ofTexts returns the stage that does for texts what a stage does for images, "" if there is none: another
// one of its family, with the same outputs, that takes words.
func (x *expander) ofTexts(stage *stages.Stage) string {
	family, _, _ := strings.Cut(stage.Name, "/")
	for _, name := range x.catalog.Names() {
		other, _ := x.catalog.Lookup(name)
		reads := func(s *stages.Stage) bool { return portOfType(s.Inputs, stages.WordsType) >= 0 }
		if of, _, _ := strings.Cut(name, "/"); of == family && reads(other) && !reads(stage) &&
			len(stage.Outputs) > 0 && stage.Outputs[0].Type == other.Outputs[0].Type {
			return name
		}
	}
	return ""
}

func portNamed(ports []stages.Port, name string) int {
	return slices.IndexFunc(ports, func(p stages.Port) bool { return p.Name == name })
}

func portOfType(ports []stages.Port, t stages.Type) int {
	return slices.IndexFunc(ports, func(p stages.Port) bool { return p.Type.Name == t.Name })
}

// takeDeclared replaces the value "declared" of a cell's parameters by what the stages on their inputs
// declare. It returns false, with a diagnostic, where they declare nothing that the parameter accepts.
func (x *expander) takeDeclared(m *cellBuild) (good bool) {
	v := reflect.ValueOf(m.cell.Params).Elem()
	good = true
	for i := range m.params.fields {
		f := &m.params.fields[i]
		k := portNamed(m.stage.Inputs, f.Declared)
		if k < 0 || v.FieldByIndex(f.Index).String() != stages.AsDeclared {
			continue
		}
		unless := portNamed(m.stage.Inputs, f.Unless)
		if unless >= 0 && len(m.cell.Inputs[unless].Edges) > 0 {
			continue
		}
		edges := m.cell.Inputs[k].Edges
		unknown := func(e Edge) bool { return x.standIns[e.From.Stage] }
		if len(edges) == 0 || slices.ContainsFunc(edges, unknown) {
			return false // reported already
		}
		value, err := declaredValue(f, edges)
		if err != nil {
			others := slices.DeleteFunc(slices.Clone(f.Choices),
				func(choice string) bool { return choice == stages.AsDeclared })
			hint := fmt.Sprintf("if you know it, write %s: %s, or leave such cells out with exclude", f.Name,
				strings.Join(others, " or "))
			if unless >= 0 {
				hint = fmt.Sprintf("wire the input %s, too, as the method has it, or write %s", f.Unless,
					f.Name)
			}
			if with := edges[0].From.declaresWith(f.Name, others); with != "" {
				hint = with + "; " + hint
			}
			x.refused(m, &stages.FieldError{Field: f.Name, Err: err, Hint: hint})
			good = false
			continue
		}
		v.FieldByIndex(f.Index).SetString(value)
	}
	return good
}

// declaredValue returns the value of a parameter that all stages on an input declare.
func declaredValue(f *paramField, edges []Edge) (string, error) {
	first := edges[0].From
	value := first.declares()[f.Name]
	for _, e := range edges[1:] {
		if other := e.From.declares()[f.Name]; other != value {
			return "", fmt.Errorf("%s is %q for %s and %q for %s", f.Name, value, first, other, e.From)
		}
	}
	switch {
	case value == "":
		return "", fmt.Errorf("%s is what its method declares, and %s with these parameters declares none",
			f.Name, first.Stage.Name)
	case f.Choices != nil && !slices.Contains(f.Choices, value):
		return "", fmt.Errorf("%s is to be what %s declares, and %q is none of %s", f.Name, first.Stage.Name,
			value, strings.Join(f.Choices, ", "))
	}
	return value, nil
}

// declares returns what the stage of a cell declares.
func (c *Cell) declares() stages.Declared {
	if c.Stage.Declares == nil {
		return nil
	}
	in := map[string]stages.Declared{}
	for k := range c.Inputs {
		if edges := c.Inputs[k].Edges; len(edges) > 0 {
			all := declaredByAll(edges)
			if step := edges[0].From.Step; len(all) > 0 || step == nil || !step.Implied {
				in[c.Stage.Inputs[k].Name] = all
			}
		}
	}
	return c.Stage.Declares(c.Params, in)
}

// declaresWith returns a clause on a parameter by whose change alone the stage of a cell, which declares
// none, would declare one of some values; "" if there is none.
func (c *Cell) declaresWith(name string, values []string) string {
	if c.Stage.Declares == nil || c.declares()[name] != "" {
		return ""
	}
	was := reflect.ValueOf(c.Params).Elem()
	for _, f := range stages.Fields(c.Params) {
		var others []reflect.Value
		if f.Type.Kind() == reflect.Bool {
			others = append(others, reflect.ValueOf(!was.FieldByIndex(f.Index).Bool()))
		}
		for _, choice := range f.Choices {
			if choice != "images" && f.Type.Kind() == reflect.String { // which takes a port, too
				others = append(others, reflect.ValueOf(choice).Convert(f.Type))
			}
		}
		for _, v := range others {
			changed := reflect.New(was.Type())
			changed.Elem().Set(was)
			changed.Elem().FieldByIndex(f.Index).Set(v)
			other := *c
			other.Params = changed.Interface()
			if value := other.declares()[name]; slices.Contains(values, value) {
				return fmt.Sprintf("with %s: %v it declares %s", f.Name, v, value)
			}
		}
	}
	return ""
}

// sameTargets refuses a cell whose inputs are of different explained classes, if the stages there declare
// them.
func (x *expander) sameTargets(m *cellBuild) (good bool) {
	for k, p := range m.stage.Inputs {
		other := portNamed(m.stage.Inputs, p.SameTarget)
		if other < 0 || len(m.cell.Inputs[k].Edges) == 0 || len(m.cell.Inputs[other].Edges) == 0 {
			continue
		}
		edges, explained := m.cell.Inputs[k].Edges, m.cell.Inputs[other].Edges
		a, b := declaredByAll(edges)["target"], declaredByAll(explained)["target"]
		if a != "" && b != "" && a != b {
			x.report(m.uses, fmt.Sprintf("write target: %s for %s, too", b, edges[0].From.Step.Name),
				"%s: %s is of the class %q, and %s of %q", m.stage.Name, edges[0].From, a,
				explained[0].From, b)
			return false
		}
	}
	return true
}

// declaredByAll returns what all stages on an input declare alike.
func declaredByAll(edges []Edge) stages.Declared {
	all := maps.Clone(edges[0].From.declares())
	for _, e := range edges[1:] {
		other := e.From.declares()
		maps.DeleteFunc(all, func(name, value string) bool { return other[name] != value })
	}
	return all
}
