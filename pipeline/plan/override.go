package plan

import (
	"path/filepath"
	"strconv"
	"strings"
)

// A setDecl is an assignment to a stage's parameter on the command line.
type setDecl struct{ key, value *yamlNode }

// override applies --set. Assignments to parameters of stages are returned by
// stage, because they win over what the stage's axes say; all others replace
// what stands in the file.
func (l *loader) override(root *yamlNode) (*yamlNode, map[string][]setDecl) {
	params := map[string][]setDecl{}
	for _, text := range l.o.Set {
		src := &sourceText{name: "--set " + text, dir: l.o.Dir, flag: true}
		path, value, ok := strings.Cut(text, "=")
		if !ok || path == "" {
			src.complain(&l.complaints, 0, 0, "write --set maps.with.steps=64", "an assignment is a path, = and a value")
			continue
		}
		v := &yamlNode{kind: yamlText, quoted: true, src: src, name: path}
		if src.data = []byte(value); value != "" {
			if !src.checkText(&l.complaints) {
				continue
			}
			if v = parseYAML(src, &l.complaints); v == nil {
				continue
			}
			v.name = path
		}
		key := &yamlNode{kind: yamlText, src: src, name: path}
		switch {
		case path == "seed" || path == "title":
			key.text = path
			root = root.with(key, v)
		case strings.HasPrefix(path, "axes."):
			root = l.setAxis(root, strings.TrimPrefix(path, "axes."), key, v)
		default:
			root = l.setStage(root, strings.TrimPrefix(path, "stages."), key, v, params)
		}
	}
	return root, params
}

// cutKey takes the longest key of n off the front of a dotted path.
func cutKey(n *yamlNode, path string) (key, rest string, value *yamlNode) {
	if n == nil || n.kind != yamlMap {
		return "", "", nil
	}
	for i, k := range n.keys {
		if len(k.text) > len(key) && (path == k.text || strings.HasPrefix(path, k.text+".")) {
			key, value = k.text, n.vals[i]
			rest = strings.TrimPrefix(path[len(key):], ".")
		}
	}
	return key, rest, value
}

func (n *yamlNode) keyTexts() []string {
	var names []string
	if n != nil && n.kind == yamlMap {
		for _, k := range n.keys {
			names = append(names, k.text)
		}
	}
	return names
}

// setAxis assigns to axis.id.field or axis.id.with.parameter.
func (l *loader) setAxis(root *yamlNode, path string, key, v *yamlNode) *yamlNode {
	axes := root.get("axes")
	axis, rest, ids := cutKey(axes, path)
	if axis == "" {
		l.at(key, didYouMean(firstName(path), "axes", axes.keyTexts()), "no axis is called "+strconv.Quote(firstName(path)))
		return root
	}
	id, field, fields := cutKey(ids, rest)
	if id == "" {
		l.at(key, didYouMean(firstName(rest), "ids of "+axis, ids.keyTexts()),
			"the axis "+strconv.Quote(axis)+" has no id "+strconv.Quote(firstName(rest))+" with fields")
		return root
	}
	if field == "" {
		l.at(key, "write --set axes."+axis+"."+id+".field=value", "an id of an axis stands for a map of fields")
		return root
	}
	if fields.kind != yamlMap {
		fields = &yamlNode{kind: yamlMap, src: v.src, name: key.name}
	}
	if param, ok := strings.CutPrefix(field, "with."); ok && param != "" {
		with := fields.get("with")
		if with == nil || with.kind != yamlMap {
			with = &yamlNode{kind: yamlMap, src: v.src, name: key.name}
		}
		fields = fields.with(key.called("with"), with.with(key.called(param), v))
	} else {
		fields = fields.with(key.called(field), v)
	}
	return root.with(key.called("axes"), axes.with(key.called(axis), ids.with(key.called(id), fields)))
}

// called returns a copy of a key with another text.
func (n *yamlNode) called(text string) *yamlNode {
	c := *n
	c.text = text
	return &c
}

// setStage assigns to stage.with.parameter, stage.store or stage.missing.
func (l *loader) setStage(root *yamlNode, path string, key, v *yamlNode, params map[string][]setDecl) *yamlNode {
	all := root.get("stages")
	stage, rest, body := cutKey(all, path)
	if stage == "" {
		l.at(key, didYouMean(firstName(path), "stages", all.keyTexts()), "no stage is called "+strconv.Quote(firstName(path)))
		return root
	}
	if param, ok := strings.CutPrefix(rest, "with."); ok && param != "" {
		params[stage] = append(params[stage], setDecl{key.called(param), v})
		return root
	}
	if rest != "store" && rest != "missing" || body.kind != yamlMap {
		l.at(key, "write --set "+stage+".with.parameter=value", strconv.Quote(rest)+" of a stage can't be set from the command line")
		return root
	}
	return root.with(key.called("stages"), all.with(key.called(stage), body.with(key.called(rest), v)))
}

func firstName(path string) string {
	name, _, _ := strings.Cut(path, ".")
	return name
}

// sets gives a stage its assignments from the command line.
func (l *loader) sets(s *stageDecl, sets []setDecl) {
	for _, d := range sets {
		if v := l.paramValue(d.value); v != nil {
			s.set = append(s.set, paramDecl{d.key, v})
		}
	}
}

// only applies --only, and says in words what the command line narrowed.
func (l *loader) only() {
	for _, text := range l.o.Set {
		path, value, _ := strings.Cut(text, "=")
		if filepath.IsAbs(value) {
			value = "…/" + filepath.Base(value) // where things lie on a machine is nobody's business
		}
		l.exp.narrowed = append(l.exp.narrowed, path+" set to "+value)
	}
	chosen := map[*axisDecl][]bool{}
	for _, text := range l.o.Only {
		src := &sourceText{name: "--only " + text, flag: true}
		name, ids, ok := strings.Cut(text, "=")
		a := l.exp.axisOf[name]
		switch {
		case !ok || ids == "":
			src.complain(&l.complaints, 0, 0, "write --only method=ig,saliency", "a choice is an axis, = and ids")
			continue
		case a == nil:
			src.complain(&l.complaints, 0, 0, didYouMean(name, "axes", axisNames(l.exp.axes)), "no axis is called "+strconv.Quote(name))
			continue
		}
		if chosen[a] == nil {
			chosen[a] = make([]bool, len(a.ids))
		}
		for id := range strings.SplitSeq(ids, ",") {
			if at, ok := a.index[id]; ok {
				chosen[a][at] = true
			} else {
				src.complain(&l.complaints, 0, 0, didYouMean(id, "ids of "+name, a.ids),
					"the axis "+strconv.Quote(name)+" has no id "+strconv.Quote(id))
			}
		}
	}
	for _, a := range l.exp.axes {
		if chosen[a] == nil {
			continue
		}
		a.allowed = chosen[a]
		var ids []string
		for i, id := range a.ids {
			if a.allowed[i] {
				ids = append(ids, id)
			}
		}
		l.exp.narrowed = append(l.exp.narrowed, "only "+a.name+" "+strings.Join(ids, ", ")+
			" ("+strconv.Itoa(len(ids))+" of "+strconv.Itoa(len(a.ids))+")")
	}
	if n := l.o.Limit; n > 0 {
		l.exp.narrowed = append(l.exp.narrowed, "at most "+strconv.Itoa(n)+plural(n, " item", " items")+" from each source")
	}
}
