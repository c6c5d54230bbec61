package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
)

// An axisDecl is an axis with its ids, and for each id its value.
type axisDecl struct {
	name    string
	node    *yamlNode // nil for the axis of a stack
	isList  bool
	ids     []string
	values  []*yamlNode // by id: the map of fields, or a list axis's scalar
	texts   []*yamlNode // by id: the value of ${axis}
	index   map[string]int32
	rank    []int32 // by id: its place among the ids sorted as text
	allowed []bool  // by id: not taken away by --only
	used    bool
	seeds   bool // a seed refers to it
	read    bool // something else does
}

func (a *axisDecl) add(id string, value, text *yamlNode) {
	a.index[id] = int32(len(a.ids))
	a.ids = append(a.ids, id)
	a.values = append(a.values, value)
	a.texts = append(a.texts, text)
}

// finish derives the fields that depend on all ids.
func (a *axisDecl) finish() {
	a.rank, a.allowed = make([]int32, len(a.ids)), slices.Repeat([]bool{true}, len(a.ids))
	for at, id := range slices.Sorted(slices.Values(a.ids)) {
		a.rank[a.index[id]] = int32(at)
	}
}

func (l *loader) axes(n *yamlNode) {
	if !l.is(n, yamlMap, "a map of axes", "write one axis a line, model: {vgg: {path: vgg.onnx}}") {
		return
	}
	for i, k := range n.keys {
		v := n.vals[i]
		a := &axisDecl{name: k.text, node: k, index: map[string]int32{}, isList: v.kind == yamlList}
		switch {
		case !validName(k.text):
			l.report(k, nameHint, "%q can't be the name of an axis", k.text)
		case k.text == "item":
			l.report(k, "", `an axis can't be called "item": tables call the items so`)
		}
		if v.scalar() || len(v.vals) == 0 {
			l.report(v, "give it a list of ids, or a map from ids to fields",
				"the axis %q has no ids", k.text)
		}
		for j, e := range v.vals {
			if a.isList {
				l.axisID(a, e, e)
			} else {
				l.axisID(a, v.keys[j], e)
			}
		}
		l.exp.axes = append(l.exp.axes, a)
		l.exp.axisOf[a.name] = a
	}
	for _, a := range l.exp.axes {
		if i := strings.LastIndexByte(a.name, '.'); i > 0 && l.exp.axisOf[a.name[:i]] != nil {
			l.report(a.node, "rename one of them",
				"%q could also be the field %q of the axis %q", a.name, a.name[i+1:], a.name[:i])
		}
	}
}

// axisID adds an id with its value to an axis.
func (l *loader) axisID(a *axisDecl, n, v *yamlNode) {
	if !n.scalar() || n.kind == yamlNull || !validName(n.text) {
		hint := nameHint
		switch {
		case n.kind == yamlInt || n.kind == yamlFloat:
			hint = "write a map from ids to fields, minus1: {value: -1}, and use ${" + a.name + ".value}"
		case a.isList && n.kind == yamlText && n.text != "":
			hint = fmt.Sprintf("give it an id: %s: {first: {at: %q}}, and use ${%[1]s.at}", a.name, n.text)
		}
		l.report(n, hint, "%v can't be an id", n)
		return
	}
	if i, ok := a.index[n.text]; ok {
		l.report(n, "", "duplicate id %q; the first is on line %d", n.text, a.texts[i].line)
		return
	}
	switch {
	case a.isList:
	case v.kind == yamlMap:
		l.fields(v)
	default:
		if v.kind != yamlNull {
			l.report(v, "write {value: …} and use it as ${"+a.name+".value}",
				"the value of an id is a map of fields")
		}
		v = nil
	}
	a.add(n.text, v, n)
}

// fields reports what the fields of an id can't be.
func (l *loader) fields(id *yamlNode) {
	for i, k := range id.keys { // references in the with of a choice are resolved
		f := id.vals[i]
		switch {
		case k.text != "with" && f.kind == yamlText && strings.Contains(f.text, "${"):
			l.report(f, "references are only for values below with",
				"a reference in a field of an axis isn't resolved")
		case k.text == "in" && f.kind == yamlMap && id.get("uses") != nil:
			l.report(k, "give it a stage of its own, whose in wires them",
				"a choice can't wire inputs: a stage has the same ones for all its choices")
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

// longestName is how many letters a label or a family may have.
const longestName = 80

// names returns, for each axis, the names that its ids have for people in a field. If distinct is set, the
// names must differ from each other and from the ids without a name.
func (l *loader) names(field string, distinct bool) stages.Names {
	out := stages.Names{}
	for _, a := range l.exp.axes {
		shown := map[string]string{} // the id with this name
		for i, id := range a.ids {
			if a.values[i].get(field) == nil {
				shown[id] = id
			}
		}
		for i, id := range a.ids {
			n := a.values[i].get(field)
			if n == nil {
				continue
			}
			ungraphic := func(r rune) bool { return !unicode.IsGraphic(r) }
			switch other, taken := shown[n.text]; {
			case n.kind != yamlText:
				hint := ""
				if n.scalar() && n.kind != yamlNull {
					hint = "write " + field + ": " + strconv.Quote(n.text)
				}
				l.report(n, hint, "%v is not a text, which a %s is", n, field)
			case strings.TrimSpace(n.text) != n.text || n.text == "" ||
				strings.ContainsFunc(n.text, ungraphic):
				l.report(n, "", "a %s is a line of text without spaces around it", field)
			case utf8.RuneCountInString(n.text) > longestName:
				l.report(n, "", "a %s has at most %d letters", field, longestName)
			case taken && distinct:
				l.report(n, "", "the ids %q and %q of the axis %q are both shown as %v", other, id, a.name, n)
			default:
				shown[n.text] = id
				if out[a.name] == nil {
					out[a.name] = map[string]string{}
				}
				out[a.name][id] = n.text
			}
		}
	}
	return out
}
