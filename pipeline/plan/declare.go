package plan

import (
	"slices"
	"strconv"
	"strings"
)

// stage reads one entry below stages.
func (l *loader) stage(s *stageDecl) {
	if s.body.kind != yamlMap {
		l.at(s.body, "write {uses: family/name, in: {…}, with: {…}}", "a stage is a map")
		return
	}
	l.fields(s.body, "a stage", map[string]func(k, v *yamlNode){
		"uses":    func(_, v *yamlNode) { l.uses(s, v) },
		"matrix":  func(_, v *yamlNode) { s.matrix = l.axisList(s, v, false) },
		"in":      func(_, v *yamlNode) { l.inputs(s, v) },
		"with":    func(_, v *yamlNode) { s.with = l.params(v) },
		"when":    func(_, v *yamlNode) { l.whens(s, v) },
		"over":    func(_, v *yamlNode) { l.over(s, v) },
		"only":    func(_, v *yamlNode) {}, // by lines, once all axes are known
		"exclude": func(_, v *yamlNode) {},
		"store":   func(_, v *yamlNode) { s.none = l.oneOf(v, "keep", "none") == "none" },
		"missing": func(_, v *yamlNode) { s.drop, s.dropNode = l.oneOf(v, "block", "drop") == "drop", v },
	})
	if s.body.get("uses") == nil {
		l.at(s.key, "write uses: family/name", "the stage "+strconv.Quote(s.name)+" doesn't say what it uses")
	}
}

func (l *loader) oneOf(v *yamlNode, choices ...string) string {
	if v.scalar() {
		for _, c := range choices {
			if v.text == c {
				return c
			}
		}
	}
	l.at(v, "", v.String()+" is neither "+strings.Join(choices, " nor "))
	return choices[0]
}

// uses reads the name of a stage, or ${axis} for the one that the axis chooses.
func (l *loader) uses(s *stageDecl, v *yamlNode) {
	if v.kind != yamlText || v.text == "" {
		l.at(v, "write uses: family/name", v.String()+" is not the name of a stage")
		return
	}
	if !strings.Contains(v.text, "${") {
		s.uses = v
		return
	}
	name, ok := strings.CutPrefix(v.text, "${")
	name, closed := strings.CutSuffix(name, "}")
	if !ok || !closed || strings.Contains(name, "${") {
		l.at(v, "write ${axis}, where the axis has values with uses", "uses takes a whole reference to an axis, not a part of one")
		return
	}
	a := l.exp.axisOf[name]
	if a == nil {
		if i := strings.LastIndexByte(name, '.'); i > 0 && l.exp.axisOf[name[:i]] != nil {
			l.at(v, "write ${"+name[:i]+"}", "uses takes an axis, not a field of one")
			return
		}
		l.at(v, didYouMean(name, "axes", axisNames(l.exp.axes)), "no axis is called "+strconv.Quote(name))
		return
	}
	a.used = true
	s.uses, s.choice = v, a
}

// axisList reads a stage's list of declared axes; with stacks also of those that only
// stacks have.
func (l *loader) axisList(s *stageDecl, v *yamlNode, stacks bool) (axes []*axisDecl) {
	if v.kind == yamlNull {
		return nil
	}
	if v.kind != yamlList {
		hint := "write a list of axes"
		if v.scalar() {
			hint = "write [" + v.text + "]"
		}
		l.at(v, hint, v.String()+" is not a list of axes")
		s.lost = true
		return nil
	}
	seen := map[string]bool{}
	for _, e := range v.vals {
		a := l.exp.axisOf[e.text]
		switch {
		case !e.scalar() || a == nil || a.node == nil && !stacks:
			l.at(e, didYouMean(e.text, "axes", axisNames(l.exp.axes)), "no axis is called "+e.String())
			s.lost = true
		case seen[e.text]:
			l.at(e, "", "the axis "+e.String()+" stands here twice")
		default:
			seen[e.text] = true
			a.used = true
			axes = append(axes, a)
		}
	}
	return axes
}

// inputs reads the key in.
func (l *loader) inputs(s *stageDecl, n *yamlNode) {
	if n.kind == yamlNull {
		return
	}
	if n.kind != yamlMap {
		l.at(n, "write in: {images: images}", n.String()+" is not a map from inputs to stages")
		return
	}
	for i, k := range n.keys {
		v := n.vals[i]
		in := &inputDecl{port: k.text, key: k}
		s.inputs = append(s.inputs, in)
		if v.kind == yamlMap {
			l.stack(s, in, v)
		} else if w := l.wire(v); w != nil {
			in.wires = append(in.wires, w)
		}
		in.bad = len(in.wires) == 0
		for _, w := range in.wires {
			in.bad = in.bad || w.from == nil
		}
	}
}

// stack reads {axis: {id: edge, …}}.
func (l *loader) stack(s *stageDecl, in *inputDecl, v *yamlNode) {
	if len(v.keys) != 1 || v.vals[0].kind != yamlMap || len(v.vals[0].keys) == 0 {
		l.at(v, "write {metric: {auc: auc, mas: mas.difference}}", "a stack is a map from one axis to a map from ids to edges")
		return
	}
	k, edges := v.keys[0], v.vals[0]
	if !validName(k.text) || k.text == "item" {
		l.at(k, nameHint, strconv.Quote(k.text)+" can't be the name of an axis")
		return
	}
	a := l.exp.axisOf[k.text]
	if a == nil {
		a = &axisDecl{name: k.text, index: map[string]int32{}, isList: true, used: true}
		l.exp.axes = append(l.exp.axes, a)
		l.exp.axisOf[a.name] = a
	}
	in.stack = a
	for i, id := range edges.keys {
		w := l.wire(edges.vals[i])
		if w == nil {
			in.bad = true
			w = &wireDecl{node: edges.vals[i]}
		}
		at, known := a.index[id.text]
		switch {
		case !known && a.node != nil:
			l.at(id, "ids of "+a.name+": "+strings.Join(a.ids, ", "),
				"the axis "+strconv.Quote(a.name)+" is declared and has no id "+strconv.Quote(id.text))
			in.bad = true
			continue
		case !known && !validName(id.text):
			l.at(id, nameHint, strconv.Quote(id.text)+" can't be an id")
			in.bad = true
			continue
		case !known:
			at = int32(len(a.ids))
			a.add(id.text, id, id)
		}
		w.id = at
		in.wires = append(in.wires, w)
	}
}

// wire reads an edge, stage or stage.port. Stage names may hold dots; no two
// readings of one text are possible, see the check in experiment.
func (l *loader) wire(v *yamlNode) *wireDecl {
	if v.kind == yamlNull || !v.scalar() {
		l.at(v, "write the name of a stage, or stage.port", v.String()+" is not an edge")
		return nil
	}
	w := &wireDecl{node: v, from: l.exp.stageOf[v.text]}
	for i := len(v.text) - 1; w.from == nil && i > 0; i-- {
		if v.text[i] == '.' {
			w.from, w.port = l.exp.stageOf[v.text[:i]], v.text[i+1:]
		}
	}
	if w.from == nil {
		name, _, _ := strings.Cut(v.text, ".")
		hint := "edges name stages, never files"
		if !strings.Contains(v.text, "/") {
			hint = didYouMean(name, "stages", l.stageNames())
		}
		l.at(v, hint, "no stage is called "+strconv.Quote(v.text))
		return w
	}
	w.from.consumed = true
	return w
}

// params reads a map below with.
func (l *loader) params(n *yamlNode) (with []paramDecl) {
	if n.kind == yamlNull {
		return nil
	}
	if n.kind != yamlMap {
		l.at(n, "write with: {steps: 32}", n.String()+" is not a map of parameters")
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
	if n.kind != yamlList {
		l.at(n, "write when: [{if: {axis: id}, with: {…}}]", n.String()+" is not a list")
		return
	}
	for _, e := range n.vals {
		if e.kind != yamlMap {
			l.at(e, "write {if: {axis: id}, with: {…}}", e.String()+" is not a line of when")
			continue
		}
		w := &whenDecl{}
		l.fields(e, "a line of when", map[string]func(k, v *yamlNode){
			"if":   func(_, v *yamlNode) { w.line = &lineDecl{node: v} },
			"with": func(_, v *yamlNode) { w.with = l.params(v) },
		})
		if w.line == nil || e.get("with") == nil {
			l.at(e, "write {if: {axis: id}, with: {…}}", "a line of when has both an if and a with")
			continue
		}
		s.when = append(s.when, w)
	}
}

func (l *loader) over(s *stageDecl, v *yamlNode) {
	s.overNode = v
	if v.scalar() && v.text == "all" {
		s.overAll = true
		return
	}
	if v.scalar() && v.kind != yamlNull {
		l.at(v, "write ["+v.text+"], or all", v.String()+" is neither a list of axes nor all")
		return
	}
	// Stacks further down may bring axes that aren't known yet: see lines.
}

// lines reads only, exclude, over and the ifs of when, which may name the axes
// of stacks.
func (l *loader) lines(s *stageDecl) {
	if s.overNode != nil && !s.overNode.scalar() {
		s.over = l.axisList(s, s.overNode, true)
	}
	for _, a := range s.matrix {
		if slices.Contains(s.over, a) {
			l.at(s.overNode, "over takes an axis of the inputs away, matrix adds one",
				"the axis "+strconv.Quote(a.name)+" is both in over and in matrix")
		}
	}
	for _, w := range s.when {
		l.line(w.line)
	}
	s.only = l.lineList(s.body.get("only"), "only")
	s.exclude = l.lineList(s.body.get("exclude"), "exclude")
}

func (l *loader) lineList(n *yamlNode, what string) (lines []*lineDecl) {
	if n == nil {
		return nil
	}
	if n.kind != yamlList || len(n.vals) == 0 {
		l.at(n, "write "+what+": [{axis: id}]", what+" is a list of lines such as {axis: [ids]}")
		return nil
	}
	for _, v := range n.vals {
		line := &lineDecl{node: v}
		l.line(line)
		lines = append(lines, line)
	}
	return lines
}

func (l *loader) line(line *lineDecl) {
	n := line.node
	if n.kind != yamlMap || len(n.keys) == 0 {
		l.at(n, "write {axis: id} or {axis: [ids]}", n.String()+" is not a line of axes and ids")
		line.bad = true
		return
	}
	for i, k := range n.keys {
		a := l.exp.axisOf[k.text]
		if a == nil {
			l.at(k, didYouMean(k.text, "axes", axisNames(l.exp.axes)), "no axis is called "+strconv.Quote(k.text))
			line.bad = true
			continue
		}
		c := condDecl{axis: a, key: k, ids: make([]bool, len(a.ids))}
		ids := []*yamlNode{n.vals[i]}
		if ids[0].kind == yamlList {
			ids = ids[0].vals
		}
		if len(ids) == 0 {
			l.at(n.vals[i], "", "a list of no ids matches nothing")
			line.bad = true
		}
		for _, id := range ids {
			at, ok := a.index[id.text]
			if !ok || !id.scalar() {
				l.at(id, didYouMean(id.text, "ids of "+a.name, a.ids), "the axis "+strconv.Quote(a.name)+" has no id "+id.String())
				line.bad = true
				continue
			}
			c.ids[at] = true
		}
		line.conds = append(line.conds, c)
	}
}
