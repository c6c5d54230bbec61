package plan

import (
	"slices"
	"strconv"
	"strings"
)

// An axisDecl is an axis with its ids, and for each id its value.
type axisDecl struct {
	name    string
	node    *yamlNode // nil for the axis of a stack
	isList  bool
	ids     []string
	values  []*yamlNode // by id: the map of fields, or a list axis's scalar
	texts   []*yamlNode // by id: what ${axis} means
	index   map[string]int32
	rank    []int32 // by id: its place among the ids sorted as text
	allowed []bool  // by id: not taken away by --only
	used    bool
}

// add gives the axis another id.
func (a *axisDecl) add(id string, value, text *yamlNode) {
	a.index[id] = int32(len(a.ids))
	a.ids = append(a.ids, id)
	a.values = append(a.values, value)
	a.texts = append(a.texts, text)
}

// axes reads the key axes.
func (l *loader) axes(n *yamlNode) {
	if n.kind != yamlMap {
		l.at(n, "write one axis a line, model: {vgg: {path: vgg.onnx}}", n.String()+" is not a map of axes")
		return
	}
	for i, k := range n.keys {
		v := n.vals[i]
		a := &axisDecl{name: k.text, node: k, index: map[string]int32{}}
		switch {
		case !validName(k.text):
			l.at(k, nameHint, strconv.Quote(k.text)+" can't be the name of an axis")
		case k.text == "item":
			l.at(k, "", `an axis can't be called "item": tables call the items so`)
		}
		switch {
		case v.kind == yamlList && len(v.vals) > 0:
			l.listAxis(a, v)
		case v.kind == yamlMap && len(v.keys) > 0:
			l.mapAxis(a, v)
		default:
			l.at(v, "give it a list of ids, or a map from ids to fields", "the axis "+strconv.Quote(k.text)+" has no ids")
		}
		l.exp.axes = append(l.exp.axes, a)
		l.exp.axisOf[a.name] = a
	}
	for _, a := range l.exp.axes {
		if i := strings.LastIndexByte(a.name, '.'); i > 0 && l.exp.axisOf[a.name[:i]] != nil {
			l.at(a.node, "rename one of them", strconv.Quote(a.name)+" could also be the field "+
				strconv.Quote(a.name[i+1:])+" of the axis "+strconv.Quote(a.name[:i]))
		}
		a.finish()
	}
}

func (l *loader) listAxis(a *axisDecl, v *yamlNode) {
	a.isList = true
	for _, e := range v.vals {
		if !l.axisID(e, a) {
			continue
		}
		a.add(e.text, e, e)
	}
}

func (l *loader) mapAxis(a *axisDecl, v *yamlNode) {
	for i, k := range v.keys {
		f := v.vals[i]
		if !l.axisID(k, a) {
			continue
		}
		switch f.kind {
		case yamlMap:
			l.noReferences(f)
		case yamlNull:
			f = nil
		default:
			l.at(f, "write {value: …} and use it as ${"+a.name+".value}", "an id of an axis stands for a map of fields")
			f = nil
		}
		a.add(k.text, f, k)
	}
}

// noReferences complains about references where they aren't resolved, in the
// fields of an axis. In the with of a choice they are.
func (l *loader) noReferences(f *yamlNode) {
	for i, k := range f.keys {
		if v := f.vals[i]; k.text != "with" && v.kind == yamlText && strings.Contains(v.text, "${") {
			l.at(v, "references stand in the values of with", "a reference in a field of an axis isn't resolved")
		}
	}
}

func (l *loader) axisID(n *yamlNode, a *axisDecl) bool {
	if !n.scalar() || n.kind == yamlNull || !validName(n.text) {
		hint := nameHint
		switch {
		case n.kind == yamlInt || n.kind == yamlFloat:
			hint = "write a map from ids to fields, minus1: {value: -1}, and use ${" + a.name + ".value}"
		case a.isList && n.kind == yamlText && n.text != "":
			hint = "give it an id: " + a.name + ": {first: {at: " + strconv.Quote(n.text) + "}}, and use ${" + a.name + ".at}"
		}
		l.at(n, hint, n.String()+" can't be an id")
		return false
	}
	if i, ok := a.index[n.text]; ok {
		l.at(n, "", "the id "+strconv.Quote(n.text)+" stands here again; the first is on line "+strconv.Itoa(a.texts[i].line))
		return false
	}
	return true
}

// finish derives what needs all ids.
func (a *axisDecl) finish() {
	order := make([]int32, len(a.ids))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int { return strings.Compare(a.ids[i], a.ids[j]) })
	a.rank = make([]int32, len(a.ids))
	for at, i := range order {
		a.rank[i] = int32(at)
	}
	for len(a.allowed) < len(a.ids) {
		a.allowed = append(a.allowed, true)
	}
}

// stackAxes completes the axes that only stacks have.
func (l *loader) stackAxes() {
	for _, a := range l.exp.axes {
		if a.node == nil {
			a.finish()
		}
	}
}

func axisNames(axes []*axisDecl) []string {
	var names []string
	for _, a := range axes {
		names = append(names, a.name)
	}
	return names
}
