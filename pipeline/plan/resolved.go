package plan

import (
	"bytes"
	"encoding"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/runexp/runexp/stages"
)

// Resolved returns the experiment as one file: the source with extends and --set applied, without comments
// and in one layout, so that equal experiments give equal bytes. Parsed again, under the same --only and
// --limit, it gives the same plan. Paths stay as written, but of absolute ones only the last element is
// shown.
func (p *Plan) Resolved() []byte {
	var b bytes.Buffer
	b.WriteString("# The experiment as it ran, with extends and --set applied. cells/ has every parameter.\n")
	for _, s := range p.Narrowed {
		b.WriteString("# narrowed: " + strings.Join(strings.Fields(s), " ") + "\n")
	}
	root := p.decl.root
	for _, s := range p.Steps {
		if d := p.decl.stageOf[s.Name]; d != nil && len(d.set) > 0 {
			root = root.set(d.key, d.withSet(s), "stages", s.Name)
		}
	}
	out := &yamlNode{kind: yamlMap}
	for i, k := range root.keys {
		if k.text != "extends" {
			out = out.with(k, root.vals[i])
		}
	}
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	node, _, _ := out.encoded(0)
	if err := e.Encode(node); err != nil {
		panic(err) // everything that was parsed can be written
	}
	return b.Bytes()
}

// withSet returns the body of a stage with the parameters in --set. They win over a choice and over when,
// so they become the last lines of when, for the ids whose implementation has the parameter.
func (d *stageDecl) withSet(s *Step) *yamlNode {
	body := d.body
	for _, p := range d.set {
		if len(s.Axes) == 0 {
			body = body.set(p.key, p.value.node, "with", p.key.text)
			continue
		}
		axis := 0
		if d.choice != nil {
			axis = slices.Index(s.Axes, d.choice.name)
		}
		ids := &yamlNode{kind: yamlList}
		for _, c := range s.Cells {
			id := &yamlNode{kind: yamlText, text: c.Coord[axis].ID}
			has := func(f stages.Field) bool { return f.Name == p.key.text }
			if ids.element(id.text) == ids && slices.ContainsFunc(stages.Fields(c.Params), has) {
				ids.vals = append(ids.vals, id)
			}
		}
		var when *yamlNode
		when = when.set(p.key, ids, "if", s.Axes[axis]).set(p.key, p.value.node, "with", p.key.text)
		lines := &yamlNode{kind: yamlList}
		if w := body.get("when"); w != nil {
			lines.vals = slices.Clone(w.vals)
		}
		if lines.vals = append(lines.vals, when); len(ids.vals) > 0 {
			body = body.set(p.key, lines, "when")
		}
	}
	return body
}

// flowWidth is the widest map or list that is written on one line.
const flowWidth = 100

// encoded returns n for yaml.v3, the number of its levels, and its approximate width on one line. A map or
// list is written on one line if it fits and has fewer levels than there are above it: so each stage, and
// each id of an axis, has its own lines.
func (n *yamlNode) encoded(depth int) (y *yaml.Node, height, width int) {
	if n.scalar() {
		y = &yaml.Node{Kind: yaml.ScalarNode, Value: n.text}
		switch n.kind {
		case yamlNull:
			y.Value = "null"
		case yamlText:
			y.Tag = "!!str"
			if filepath.IsAbs(n.text) {
				y.Value = filepath.Base(n.text) // folders differ between machines
			}
			plain := yamlNode{text: y.Value}
			plain.classify()
			unprintable := func(r rune) bool { return !unicode.IsGraphic(r) }
			if plain.kind != yamlText || strings.ContainsFunc(y.Value, unprintable) {
				y.Style = yaml.DoubleQuotedStyle
			}
		}
		return y, 0, len(y.Value) + 2
	}
	y = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if n.kind == yamlMap {
		y.Kind, y.Tag = yaml.MappingNode, "!!map"
	}
	for i, v := range n.vals {
		if n.kind == yamlMap {
			key, _, w := n.keys[i].encoded(depth + 1)
			y.Content, width = append(y.Content, key), width+w
		}
		value, h, w := v.encoded(depth + 1)
		y.Content, height, width = append(y.Content, value), max(height, h), width+w+2
	}
	if height++; depth > height && width <= flowWidth {
		y.Style = yaml.FlowStyle
	}
	return y, height, width
}

// AppendValue appends the canonical form of a parameter's value, JSON, which keys digest and by which two
// values are compared.
func AppendValue(b []byte, v reflect.Value) []byte {
	if v.Type().Implements(textMarshaler) {
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			panic(err) // a decoded value can be written
		}
		return AppendText(b, string(text))
	}
	switch v.Kind() {
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case reflect.Int:
		return strconv.AppendInt(b, v.Int(), 10)
	case reflect.Float64:
		return strconv.AppendFloat(b, v.Float(), 'g', -1, 64)
	case reflect.String:
		return AppendText(b, v.String())
	}
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendValue(b, v.Index(i))
	}
	return append(b, ']')
}

// AppendText quotes s as JSON does, escaping no more than necessary.
func AppendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
