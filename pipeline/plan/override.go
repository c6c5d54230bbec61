package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// override applies --set. Parameters of stages are kept in l.sets, because they win over the stage's
// choices and when; all other assignments replace values of the file.
func (l *loader) override(root *yamlNode) *yamlNode {
	l.setPrecision(root)
	for _, text := range l.o.Set {
		src := &sourceText{name: "--set " + text, flag: true}
		path, value, ok := strings.Cut(text, "=")
		if !ok || path == "" {
			l.report(src.at(0, 0), "write --set maps.with.steps=64", "an assignment is a path, = and a value")
			continue
		}
		src.data = []byte(value)
		key := &yamlNode{kind: yamlText, place: place{src: src, name: path}}
		v := key
		if value != "" {
			if v = parseYAML(src, &l.diagnostics); v == nil {
				continue
			}
			v.name = path
		}
		switch {
		case path == "seed" || path == "title":
			root = root.set(key, v, path)
		case strings.HasPrefix(path, "axes."):
			root = l.setAxis(root, strings.TrimPrefix(path, "axes."), key, v)
		default:
			root = l.setStage(root, strings.TrimPrefix(path, "stages."), key, v)
		}
	}
	return root
}

// Perturbing is the family of stages that make curves, of which --precision sets the precision: methods and
// predictions keep float32 unless the experiment says otherwise.
const Perturbing = "perturb/"

// setPrecision turns --precision into assignments, before those of --set, which win.
func (l *loader) setPrecision(root *yamlNode) {
	if l.o.Precision == "" {
		return
	}
	flag := (&sourceText{name: "--precision " + l.o.Precision, flag: true}).at(0, 0)
	if !slices.Contains(stages.Precisions, l.o.Precision) {
		l.report(flag, "write "+strings.Join(stages.Precisions, ", "), "%q is no precision", l.o.Precision)
		return
	}
	var set []string
	list := root.get("stages")
	for i, name := range list.keyTexts() {
		if slices.ContainsFunc(usedBy(root, list.vals[i]), l.perturbs) {
			set = append(set, name+".with.precision="+l.o.Precision)
		}
	}
	if l.o.Set = slices.Concat(set, l.o.Set); set == nil {
		l.report(flag, "write --set STAGE.with.precision="+l.o.Precision,
			"no stage of the experiment uses one of "+Perturbing+" that runs the model")
	}
}

// perturbs reports whether a stage of this name is one of [Perturbing] with a precision.
func (l *loader) perturbs(name string) bool {
	s, ok := l.catalog.Lookup(name)
	return ok && strings.HasPrefix(name, Perturbing) && stages.HasPrecision(s.NewParams())
}

// usedBy returns the names of the stages that a stage of an experiment may be: the one that it uses, or those
// of the axis that it names.
func usedBy(root, stage *yamlNode) (names []string) {
	uses := stage.get("uses")
	if uses == nil {
		return nil
	}
	axis, isAxis := strings.CutPrefix(strings.TrimSuffix(uses.text, "}"), "${")
	if !isAxis {
		return []string{uses.text}
	}
	if ids := root.get("axes").get(axis); ids != nil {
		for _, id := range ids.vals {
			if uses := id.get("uses"); uses != nil {
				names = append(names, uses.text)
			}
		}
	}
	return names
}

// cutKey cuts the longest key of n off the beginning of a dotted path.
func cutKey(n *yamlNode, path string) (key, rest string, value *yamlNode) {
	for i, k := range n.keyTexts() {
		if len(k) > len(key) && (path == k || strings.HasPrefix(path, k+".")) {
			key, value, rest = k, n.vals[i], strings.TrimPrefix(path[len(k):], ".")
		}
	}
	return key, rest, value
}

// set returns a copy of n with v at a path of keys. Values on the path that aren't maps become maps. New keys
// and maps have the place of key.
func (n *yamlNode) set(key, v *yamlNode, path ...string) *yamlNode {
	if len(path) == 0 {
		return v
	}
	if n == nil || n.kind != yamlMap {
		n = &yamlNode{kind: yamlMap, place: key.place}
	}
	at := &yamlNode{kind: yamlText, text: path[0], place: key.place}
	return n.with(at, n.get(path[0]).set(key, v, path[1:]...))
}

// setAxis assigns to axis.id.field or axis.id.with.parameter, or a map of fields to axis.id; if the ids of
// the axis have fields, the id may be new.
func (l *loader) setAxis(root *yamlNode, path string, key, v *yamlNode) *yamlNode {
	axes := root.get("axes")
	axis, rest, ids := cutKey(axes, path)
	id, field, _ := cutKey(ids, rest)
	switch {
	case axis == "":
		l.unknownAxis(key, firstName(path), axes.keyTexts())
		return root
	case id == "" && addable.MatchString(rest) && v.kind == yamlMap && ids.kind == yamlMap:
		return root.set(key, v, "axes", axis, rest)
	case id == "":
		l.report(key, didYouMean(firstName(rest), "ids of "+axis, ids.keyTexts()),
			"the axis %q has no id %q with fields", axis, firstName(rest))
		return root
	case field == "" && v.kind == yamlMap:
		return root.set(key, v, "axes", axis, id)
	case field == "":
		l.report(key, "write --set axes."+axis+"."+id+".field=value", "the value of an id is a map of fields")
		return root
	}
	if param, ok := strings.CutPrefix(field, "with."); ok && param != "" {
		return root.set(key, v, "axes", axis, id, "with", param)
	}
	return root.set(key, v, "axes", axis, id, field)
}

// addable matches the ids that --set can add to an axis: a dot would begin a field.
var addable = regexp.MustCompile(`^[^.]+$`)

// setStage assigns to stage.with.parameter, or to one of setKeys.
func (l *loader) setStage(root *yamlNode, path string, key, v *yamlNode) *yamlNode {
	all := root.get("stages")
	stage, rest, body := cutKey(all, path)
	if stage == "" {
		l.unknownStage(key, firstName(path), all.keyTexts())
		return root
	}
	if param, ok := strings.CutPrefix(rest, "with."); ok && param != "" {
		l.sets[stage] = l.sets[stage].set(key, v, param)
		return root
	}
	if !slices.Contains(setKeys, rest) || body.kind != yamlMap {
		l.report(key, "write --set "+stage+".with.parameter=value",
			"%q of a stage can't be set from the command line", rest)
		return root
	}
	return root.set(key, v, "stages", stage, rest)
}

// setKeys are the keys of a stage to which --set may assign.
var setKeys = []string{"exclude", "missing", "only", "seed", "store"}

func firstName(path string) string {
	name, _, _ := strings.Cut(path, ".")
	return name
}

// absolute matches each address in a value, and the folder of each absolute path.
var absolute = regexp.MustCompile(`\w+://[^\s,\]}"']+|(?:^|[\s\[{,:"'])/(?:[^/\s,\]}"']+/)*`)

// withoutFolders keeps only the last element of absolute paths: folders differ between machines.
func withoutFolders(value string) string {
	return absolute.ReplaceAllStringFunc(value, func(found string) string {
		if isAddress(found) {
			return found
		}
		before, _, _ := strings.Cut(found, "/")
		return before + "…/"
	})
}

// narrow applies --only, and describes in words what the flags changed.
func (l *loader) narrow() {
	narrowed := func(format string, args ...any) {
		l.exp.narrowed = append(l.exp.narrowed, fmt.Sprintf(format, args...))
	}
	for _, text := range l.o.Set {
		path, value, _ := strings.Cut(text, "=")
		narrowed("%s set to %s", path, withoutFolders(value))
	}
	chosen := map[*axisDecl][]bool{}
	for _, text := range l.o.Only {
		flag := (&sourceText{name: "--only " + text, flag: true}).at(0, 0)
		name, ids, ok := strings.Cut(text, "=")
		a := l.exp.axisOf[name]
		switch {
		case !ok || ids == "":
			l.report(flag, "write --only method=ig,saliency", "a choice is an axis, = and ids")
			continue
		case a == nil:
			l.unknownAxis(flag, name, axisNames(l.exp.axes))
			continue
		case chosen[a] == nil:
			chosen[a] = make([]bool, len(a.ids))
		}
		for id := range strings.SplitSeq(ids, ",") {
			if at, ok := a.index[id]; ok {
				chosen[a][at] = true
			} else {
				l.unknownID(flag, id, name, a.ids)
			}
		}
	}
	for _, a := range l.exp.axes {
		if chosen[a] != nil {
			a.allowed = chosen[a]
			narrowedAway := func(id string) bool { return !a.allowed[a.index[id]] }
			ids := slices.DeleteFunc(slices.Clone(a.ids), narrowedAway)
			narrowed("only %s %s (%d of %d)", a.name, strings.Join(ids, ", "), len(ids), len(a.ids))
		}
	}
	switch n := l.o.Limit; {
	case n < 0:
		l.add(Diag{File: fmt.Sprintf("--limit %d", n), Msg: "a limit is a positive number"})
	case n > 0:
		narrowed("at most %d %s from each source", n, plural(n, "item"))
	}
}
