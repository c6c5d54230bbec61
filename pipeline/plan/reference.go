package plan

import (
	"slices"
	"strings"
)

// A paramValue is a value in with: plain data, or data that contains references.
type paramValue struct {
	node  *yamlNode
	parts []valuePart   // of a text with references
	list  []*paramValue // of a list or mapping with references
}

// A valuePart is a piece of a text: plain text, or a reference to an axis.
type valuePart struct {
	text  string
	axis  *axisDecl
	field string // "" for ${axis}
}

// plain reports whether the value is the same for every cell.
func (v *paramValue) plain() bool { return v.parts == nil && v.list == nil }

// axes returns the axes to which v refers.
func (v *paramValue) axes() (axes []*axisDecl) {
	for _, p := range v.parts {
		if p.axis != nil {
			axes = append(axes, p.axis)
		}
	}
	for _, e := range v.list {
		axes = append(axes, e.axes()...)
	}
	return axes
}

// paramValue finds the references in a value. It returns nil, with a diagnostic, if one is malformed or
// names no axis.
func (l *loader) paramValue(n *yamlNode) *paramValue {
	v := &paramValue{node: n}
	switch n.kind {
	case yamlText:
		if strings.Contains(n.text, "${") && !l.splitText(v) {
			return nil
		}
		for _, a := range v.axes() {
			a.read = true
		}
	case yamlList, yamlMap:
		references := false
		list := make([]*paramValue, len(n.vals))
		for i, e := range n.vals {
			if list[i] = l.paramValue(e); list[i] == nil {
				return nil
			}
			references = references || !list[i].plain()
		}
		if references {
			v.list = list
		}
	}
	return v
}

// splitText splits the text of v at its references.
func (l *loader) splitText(v *paramValue) bool {
	rest := v.node.text
	for {
		before, after, found := strings.Cut(rest, "${")
		if before != "" {
			v.parts = append(v.parts, valuePart{text: before})
		}
		if !found {
			return true
		}
		name, behind, closed := strings.Cut(after, "}")
		if !closed {
			l.report(v.node, "write ${axis} or ${axis.field}", "the reference %q isn't closed", "${"+after)
			return false
		}
		p := valuePart{axis: l.exp.axisOf[name]}
		for j := len(name) - 1; p.axis == nil && j > 0; j-- {
			if name[j] == '.' {
				p.axis, p.field = l.exp.axisOf[name[:j]], name[j+1:]
			}
		}
		if p.axis == nil {
			l.unknownAxis(v.node, firstName(name), axisNames(l.exp.axes))
			return false
		}
		p.axis.used = true
		v.parts, rest = append(v.parts, p), behind
	}
}

// A combination is the ids of a cell on the axes of its step.
type combination struct {
	axes []*axisDecl
	ids  []int32
}

// id returns the id on an axis, -1 if the combination has none.
func (c combination) id(a *axisDecl) int32 {
	if k := slices.Index(c.axes, a); k >= 0 {
		return c.ids[k]
	}
	return -1
}

// where returns the ids on some axes as the end of a message.
func (c combination) where(axes []*axisDecl) string {
	var ids []string
	for i, a := range c.axes {
		if slices.Contains(axes, a) {
			ids = append(ids, a.name+"="+a.ids[c.ids[i]])
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return " (where " + strings.Join(ids, ",") + ")"
}

// value resolves the references of v for one cell. It returns nil, with a diagnostic, if a field is
// missing.
func (l *loader) value(v *paramValue, at combination) *yamlNode {
	switch {
	case v.list != nil:
		out := &yamlNode{kind: v.node.kind, keys: v.node.keys, place: v.node.place}
		for _, e := range v.list {
			n := l.value(e, at)
			if n == nil {
				return nil
			}
			out.vals = append(out.vals, n)
		}
		return out
	case v.parts == nil:
		return v.node
	case len(v.parts) == 1:
		return l.referent(v, &v.parts[0], at)
	}
	out, size := &yamlNode{kind: yamlText, quoted: true, place: v.node.place}, 0
	texts := make([]string, len(v.parts))
	for i := range v.parts {
		p := &v.parts[i]
		if texts[i] = p.text; p.axis != nil {
			n := l.referent(v, p, at)
			if n == nil {
				return nil
			}
			if !n.scalar() || n.kind == yamlNull {
				l.report(v.node, "", "%v can't be part of a string%s", n, at.where(v.axes()))
				return nil
			}
			if texts[i] = n.text; i == 0 {
				out.src = n.src // a path that begins with it is relative to its file
			}
		}
		if size += len(texts[i]); size > maxYAMLScalar {
			l.report(v.node, "", "a string of more than %d bytes", maxYAMLScalar)
			return nil
		}
	}
	out.text = strings.Join(texts, "")
	return out
}

// referent finds the value of one reference in a cell.
func (l *loader) referent(v *paramValue, p *valuePart, at combination) *yamlNode {
	id := at.id(p.axis)
	if id < 0 {
		return nil // reported with the stage
	}
	if p.field == "" {
		return p.axis.texts[id]
	}
	n := p.axis.values[id].get(p.field)
	if n == nil {
		l.report(v.node, didYouMean(p.field, "fields", p.axis.fieldNames()),
			"the axis %q has no field %q for the id %q", p.axis.name, p.field, p.axis.ids[id])
	}
	return n
}

// fieldNames returns the fields that at least one id of the axis has.
func (a *axisDecl) fieldNames() (names []string) {
	for _, v := range a.values {
		names = append(names, v.keyTexts()...)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(k string) bool { return k == "uses" || k == "with" })
}
