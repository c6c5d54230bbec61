package plan

import (
	"strconv"
	"strings"
)

// A paramValue is a value below with: plain data, or data with references in it.
type paramValue struct {
	node  *yamlNode
	parts []valuePart   // of a text with references
	list  []*paramValue // of a list with references
}

// A valuePart is a piece of a text: plain text, or a reference to an axis.
type valuePart struct {
	text  string
	axis  *axisDecl
	field string // "" for ${axis}
}

// plain reports whether the value is the same for every cell.
func (v *paramValue) plain() bool { return v.parts == nil && v.list == nil }

// references calls f with each reference in v.
func (v *paramValue) references(f func(p *valuePart)) {
	for i := range v.parts {
		if v.parts[i].axis != nil {
			f(&v.parts[i])
		}
	}
	for _, e := range v.list {
		e.references(f)
	}
}

// paramValue finds the references in a value. It returns nil, and complains, when
// one is malformed or names no axis.
func (l *loader) paramValue(n *yamlNode) *paramValue {
	v := &paramValue{node: n}
	switch n.kind {
	case yamlText:
		if !strings.Contains(n.text, "${") {
			return v
		}
		var ok bool
		if v.parts, ok = l.parts(n); !ok {
			return nil
		}
	case yamlList:
		var list []*paramValue
		refs := false
		for _, e := range n.vals {
			ev := l.paramValue(e)
			if ev == nil {
				return nil
			}
			refs = refs || !ev.plain()
			list = append(list, ev)
		}
		if refs {
			v.list = list
		}
	}
	return v
}

func (l *loader) parts(n *yamlNode) (parts []valuePart, ok bool) {
	rest := n.text
	for {
		i := strings.Index(rest, "${")
		if i < 0 {
			break
		}
		end := strings.IndexByte(rest[i:], '}')
		if end < 0 {
			l.at(n, "write ${axis} or ${axis.field}", "the reference "+strconv.Quote(rest[i:])+" isn't closed")
			return nil, false
		}
		if i > 0 {
			parts = append(parts, valuePart{text: rest[:i]})
		}
		name := rest[i+2 : i+end]
		p := valuePart{axis: l.exp.axisOf[name]}
		for j := len(name) - 1; p.axis == nil && j > 0; j-- {
			if name[j] == '.' {
				p.axis, p.field = l.exp.axisOf[name[:j]], name[j+1:]
			}
		}
		if p.axis == nil {
			first, _, _ := strings.Cut(name, ".")
			l.at(n, didYouMean(first, "axes", axisNames(l.exp.axes)), "no axis is called "+strconv.Quote(first))
			return nil, false
		}
		p.axis.used = true
		parts = append(parts, p)
		rest = rest[i+end+1:]
	}
	if rest != "" {
		parts = append(parts, valuePart{text: rest})
	}
	return parts, true
}

// A combination is the ids of a cell on the axes of its step.
type combination struct {
	axes []*axisDecl
	ids  []int32
}

func (c combination) id(a *axisDecl) int32 {
	for i, b := range c.axes {
		if a == b {
			return c.ids[i]
		}
	}
	return -1
}

// String writes the combination as a cell's name has it.
func (c combination) String() string {
	var b strings.Builder
	for i, a := range c.axes {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(a.name + "=" + a.ids[c.ids[i]])
	}
	return b.String()
}

// only returns the part of the combination that v refers to.
func (c combination) only(v *paramValue) combination {
	var out combination
	for i, a := range c.axes {
		used := false
		v.references(func(p *valuePart) { used = used || p.axis == a })
		if used {
			out.axes, out.ids = append(out.axes, a), append(out.ids, c.ids[i])
		}
	}
	return out
}

// value resolves the references of v for one cell; use is scratch for a result
// that isn't in any file. It returns nil, and complains, when a field is missing.
func (l *loader) value(v *paramValue, at combination, use *yamlNode) *yamlNode {
	if v.plain() {
		return v.node
	}
	if v.list != nil {
		out := &yamlNode{kind: yamlList, src: v.node.src, line: v.node.line, col: v.node.col, up: v.node.up, name: v.node.name}
		for _, e := range v.list {
			n := l.value(e, at, new(yamlNode))
			if n == nil {
				return nil
			}
			out.vals = append(out.vals, n)
		}
		return out
	}
	if len(v.parts) == 1 {
		return l.referent(v, &v.parts[0], at)
	}
	*use = yamlNode{kind: yamlText, quoted: true, src: v.node.src, line: v.node.line, col: v.node.col, up: v.node.up, name: v.node.name}
	size := 0
	var pieces [8]string
	texts := pieces[:0]
	for i := range v.parts {
		p := &v.parts[i]
		text := p.text
		if p.axis != nil {
			n := l.referent(v, p, at)
			if n == nil {
				return nil
			}
			if !n.scalar() || n.kind == yamlNull {
				l.at(v.node, "", n.String()+" can't stand inside a text"+inCell(at.only(v)))
				return nil
			}
			text = n.text
			if i == 0 {
				use.src = n.src // a path that begins with it is relative to where it stands
			}
		}
		size += len(text)
		texts = append(texts, text)
	}
	if size > maxYAMLScalar {
		l.at(v.node, "", "a text of "+strconv.Itoa(size)+" bytes, more than "+strconv.Itoa(maxYAMLScalar))
		return nil
	}
	use.text = strings.Join(texts, "")
	return use
}

// referent finds what one reference means in a cell.
func (l *loader) referent(v *paramValue, p *valuePart, at combination) *yamlNode {
	id := at.id(p.axis)
	if id < 0 {
		return nil // complained about when the stage was looked at
	}
	if p.field == "" {
		return p.axis.texts[id]
	}
	n := p.axis.values[id].get(p.field)
	if n == nil {
		l.at(v.node, didYouMean(p.field, "fields", p.axis.fieldNames()),
			"the axis "+strconv.Quote(p.axis.name)+" has no field "+strconv.Quote(p.field)+" for the id "+strconv.Quote(p.axis.ids[id]))
	}
	return n
}

func (a *axisDecl) fieldNames() []string {
	seen := map[string]bool{}
	var names []string
	for _, v := range a.values {
		if v == nil || v.kind != yamlMap {
			continue
		}
		for _, k := range v.keys {
			if k.text != "uses" && k.text != "with" && !seen[k.text] {
				seen[k.text] = true
				names = append(names, k.text)
			}
		}
	}
	return sortedCopy(names)
}

func inCell(at combination) string {
	if len(at.axes) == 0 {
		return ""
	}
	return " (where " + at.String() + ")"
}
