package plan

import (
	"slices"
	"strings"
)

// stage reads one entry below stages.
func (l *loader) stage(s *stageDecl) {
	if s.body.kind != yamlMap {
		l.report(s.body, "write {uses: family/name, in: {…}, with: {…}}", "a stage is a map")
		return
	}
	l.keys(s.body, "a stage", map[string]func(v *yamlNode){
		"uses":    func(v *yamlNode) { l.uses(s, v) },
		"matrix":  func(v *yamlNode) { s.matrix = l.axisList(s, v, false) },
		"in":      func(*yamlNode) {}, // read before, by inputs
		"with":    func(v *yamlNode) { s.with = l.paramDecls(v) },
		"when":    func(v *yamlNode) { l.whens(s, v) },
		"seed":    func(v *yamlNode) { s.seed = l.stageSeed(v) },
		"over":    func(v *yamlNode) { l.over(s, v) },
		"only":    func(v *yamlNode) { s.only = l.lineList(v, "only") },
		"exclude": func(v *yamlNode) { s.exclude = l.lineList(v, "exclude") },
		"store":   func(v *yamlNode) { s.none = l.oneOf(v, "keep", "none") == "none" },
		"missing": func(v *yamlNode) { s.drop, s.dropNode = l.oneOf(v, "block", "drop") == "drop", v },
	})
	if s.body.get("uses") == nil {
		l.report(s.key, "write uses: family/name", "the stage %q has no key uses", s.name)
	}
}

func (l *loader) oneOf(v *yamlNode, choices ...string) string {
	if v.scalar() && slices.Contains(choices, v.text) {
		return v.text
	}
	l.report(v, "", "%v is neither %s", v, strings.Join(choices, " nor "))
	return choices[0]
}

// uses reads the name of a stage, or ${axis} for the one that the axis chooses.
func (l *loader) uses(s *stageDecl, v *yamlNode) {
	if v.kind != yamlText || v.text == "" {
		l.report(v, "write uses: family/name", "%v is not the name of a stage", v)
		return
	}
	switch name := l.paramValue(v); {
	case name == nil: // reported already
	case name.parts == nil:
		s.uses = v
	case len(name.parts) > 1:
		l.report(v, "write ${axis}, where the axis has values with uses",
			"uses takes a whole reference to an axis, not a part of one")
	case name.parts[0].field != "":
		l.report(v, "write ${"+name.parts[0].axis.name+"}", "uses takes an axis, not a field of one")
	default:
		s.uses, s.choice = v, name.parts[0].axis
	}
}

// axisList reads a stage's list of axes; with stacks it also accepts axes that only stacks have.
func (l *loader) axisList(s *stageDecl, v *yamlNode, stacks bool) (axes []*axisDecl) {
	hint := "write a list of axes"
	if v.scalar() {
		hint = "write [" + v.text + "]"
	}
	if !l.is(v, yamlList, "a list of axes", hint) {
		s.lost = s.lost || v.kind != yamlNull
		return nil
	}
	for _, e := range v.vals {
		a := l.exp.axisOf[e.text]
		switch {
		case !e.scalar() || a == nil || a.node == nil && !stacks:
			l.unknownAxis(e, e.text, axisNames(l.exp.axes))
			s.lost = true
		case slices.Contains(axes, a):
			l.report(e, "", "duplicate axis %v", e)
		default:
			a.used = true
			axes = append(axes, a)
		}
	}
	return axes
}

// inputs reads the key in, whose stacks may add axes.
func (l *loader) inputs(s *stageDecl, n *yamlNode) {
	if n == nil || !l.is(n, yamlMap, "a map from inputs to stages", "write in: {images: images}") {
		return
	}
	for i, k := range n.keys {
		in := &inputDecl{port: k.text, key: k}
		if v := n.vals[i]; v.kind == yamlMap {
			l.stack(in, v)
		} else {
			in.wires = []*wireDecl{l.wire(v)}
		}
		nowhere := func(w *wireDecl) bool { return w.from == nil }
		in.bad = len(in.wires) == 0 || slices.ContainsFunc(in.wires, nowhere)
		s.inputs = append(s.inputs, in)
	}
}

// stack reads {axis: {id: edge, …}}.
func (l *loader) stack(in *inputDecl, v *yamlNode) {
	if len(v.keys) != 1 || v.vals[0].kind != yamlMap || len(v.vals[0].keys) == 0 {
		l.report(v, "write {metric: {auc: auc, mas: mas.difference}}",
			"a stack is a map from one axis to a map from ids to edges")
		return
	}
	k, edges := v.keys[0], v.vals[0]
	if !validName(k.text) || k.text == "item" {
		l.report(k, nameHint, "%q can't be the name of an axis", k.text)
		return
	}
	a := l.exp.axisOf[k.text]
	if a == nil {
		a = &axisDecl{name: k.text, index: map[string]int32{}, isList: true}
		l.exp.axes = append(l.exp.axes, a)
		l.exp.axisOf[a.name] = a
	}
	in.stack, a.used, a.read = a, true, true
	for i, id := range edges.keys {
		w := l.wire(edges.vals[i])
		_, known := a.index[id.text]
		switch {
		case !known && a.node != nil:
			l.report(id, "ids of "+a.name+": "+strings.Join(a.ids, ", "),
				"the axis %q is declared and has no id %q", a.name, id.text)
			continue
		case !known && !validName(id.text):
			l.report(id, nameHint, "%q can't be an id", id.text)
			continue
		case !known:
			a.add(id.text, id, id)
		}
		w.id = a.index[id.text]
		in.wires = append(in.wires, w)
	}
}

// wire reads an edge, stage or stage.port, or one of some cells: stage[axis=id].port. Names of stages may
// contain dots; experiment checks that a text has only one reading.
func (l *loader) wire(v *yamlNode) *wireDecl {
	w := &wireDecl{node: v}
	if v.kind == yamlNull || !v.scalar() {
		l.report(v, "write the name of a stage, or stage.port", "%v is not an edge", v)
		return w
	}
	text := v.text
	if name, rest, some := strings.Cut(text, "["); some {
		at, port, closed := strings.Cut(rest, "]")
		if !closed || at == "" || port != "" && (port[0] != '.' || len(port) == 1) {
			l.report(v, "write stage[axis=id], or stage[axis=id].port", "%v is not an edge", v)
			return w
		}
		text, w.at = name+port, at
	}
	w.from = l.exp.stageOf[text]
	for i := len(text) - 1; w.from == nil && i > 0; i-- {
		if text[i] == '.' {
			w.from, w.port = l.exp.stageOf[text[:i]], text[i+1:]
		}
	}
	switch {
	case w.from != nil:
		w.from.consumed = true
	case strings.Contains(text, "/"):
		l.report(v, "edges name stages, never files", "no stage is called %q", text)
	default:
		l.report(v, didYouMean(firstName(text), "stages", l.stageNames()), "no stage is called %q", text)
	}
	return w
}

// axes returns the axes that an edge from a step has: those that it doesn't fix.
func (w *wireDecl) axes(from *stepBuild) []*axisDecl { return withoutAxes(from.axes, w.fixed.axes) }

// takes reports whether an edge takes a cell of a step.
func (w *wireDecl) takes(r *relation, code uint64) bool {
	for k, a := range r.axes {
		if id := w.fixed.id(a); id >= 0 && id != r.digit(code, k) {
			return false
		}
	}
	return true
}

// fix resolves the ids that an edge fixes. It returns false, with a diagnostic, if the step doesn't have
// them.
func (x *expander) fix(w *wireDecl, from *stepBuild) bool {
	w.fixed = combination{}
	if w.at == "" || from.broken {
		return true
	}
	for part := range strings.SplitSeq(w.at, ",") {
		name, id, ok := strings.Cut(part, "=")
		k := slices.IndexFunc(from.axes, func(a *axisDecl) bool { return a.name == name })
		switch {
		case !ok:
			x.report(w.node, "write "+w.from.name+"[axis=id]", "%q of the edge isn't axis=id", part)
			return false
		case k < 0 && len(from.axes) == 0:
			x.report(w.node, "write "+w.from.name, "the stage %q has no axes", w.from.name)
			return false
		case k < 0:
			x.report(w.node, didYouMean(name, "its axes", axisNames(from.axes)),
				"the stage %q has no axis %q", w.from.name, name)
			return false
		}
		a := from.axes[k]
		at, known := a.index[id]
		switch {
		case !known:
			x.unknownID(w.node, id, a.name, a.ids)
			return false
		case w.fixed.id(a) >= 0:
			x.report(w.node, "an edge takes the cells of one id", "the axis %q is fixed twice", a.name)
			return false
		}
		w.fixed = combination{append(w.fixed.axes, a), append(w.fixed.ids, at)}
	}
	return true
}

// paramDecls reads a map of parameters, nil if there is none.
func (l *loader) paramDecls(n *yamlNode) (with []paramDecl) {
	if n == nil || !l.is(n, yamlMap, "a map of parameters", "write with: {steps: 32}") {
		return nil
	}
	for i, k := range n.keys {
		if v := l.paramValue(n.vals[i]); v != nil {
			with = append(with, paramDecl{k, v})
		}
	}
	return with
}

func (l *loader) whens(s *stageDecl, n *yamlNode) {
	if !l.is(n, yamlList, "a list", "write when: [{if: {axis: id}, with: {…}}]") {
		return
	}
	for _, e := range n.vals {
		if e.kind != yamlMap {
			l.report(e, "write {if: {axis: id}, with: {…}}", "%v is not a line of when", e)
			continue
		}
		w := &whenDecl{}
		l.keys(e, "a line of when", map[string]func(v *yamlNode){
			"if":   func(v *yamlNode) { w.line = l.line(v).read() },
			"with": func(v *yamlNode) { w.with = l.paramDecls(v) },
		})
		if w.line == nil || e.get("with") == nil {
			l.report(e, "write {if: {axis: id}, with: {…}}", "a line of when has both an if and a with")
			continue
		}
		s.when = append(s.when, w)
	}
}

// over reads the axes that a stage collapses, which may include those of stacks.
func (l *loader) over(s *stageDecl, v *yamlNode) {
	switch s.overNode = v; {
	case v.scalar() && v.text == "all":
		s.overAll = true
	case v.scalar() && v.kind != yamlNull:
		l.report(v, "write ["+v.text+"], or all", "%v is neither a list of axes nor all", v)
	default:
		s.over = l.axisList(s, v, true)
	}
}

func (l *loader) lineList(n *yamlNode, what string) (lines []*lineDecl) {
	if n.kind != yamlList || len(n.vals) == 0 {
		l.report(n, "write "+what+": [{axis: id}]", "%s is a list of lines such as {axis: [ids]}", what)
		return nil
	}
	for _, v := range n.vals {
		lines = append(lines, l.line(v))
	}
	return lines
}

func (l *loader) line(n *yamlNode) *lineDecl {
	line := &lineDecl{node: n}
	if n.kind != yamlMap || len(n.keys) == 0 {
		l.report(n, "write {axis: id} or {axis: [ids]}", "%v is not a line of axes and ids", n)
		line.bad = true
		return line
	}
	for i, k := range n.keys {
		a := l.exp.axisOf[k.text]
		if a == nil {
			l.unknownAxis(k, k.text, axisNames(l.exp.axes))
			line.bad = true
			continue
		}
		c := condDecl{axis: a, key: k, ids: make([]bool, len(a.ids))}
		ids := []*yamlNode{n.vals[i]}
		if ids[0].kind == yamlList {
			ids = ids[0].vals
		}
		if len(ids) == 0 {
			l.report(n.vals[i], "", "a list of no ids matches nothing")
			line.bad = true
		}
		for _, id := range ids {
			at, ok := a.index[id.text]
			if !ok || !id.scalar() {
				l.unknownID(id, id.text, a.name, a.ids)
				line.bad = true
				continue
			}
			c.ids[at] = true
		}
		line.conds = append(line.conds, c)
	}
	return line
}
