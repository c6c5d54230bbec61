package plan

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// An experimentDecl is an experiment as written: names are resolved, nothing is expanded.
type experimentDecl struct {
	root        *yamlNode // with extends and --set applied, except for parameters of stages
	name, title string
	seed        uint64
	axes        []*axisDecl // as written, then the axes that only stacks have
	axisOf      map[string]*axisDecl
	stages      []*stageDecl
	stageOf     map[string]*stageDecl
	publish     []*stageDecl
	narrowed    []string // in words
}

// A stageDecl is one entry below stages.
type stageDecl struct {
	name     string
	key      *yamlNode // its name in the file
	body     *yamlNode
	uses     *yamlNode
	choice   *axisDecl // the axis of uses: ${axis}
	matrix   []*axisDecl
	inputs   []*inputDecl
	with     []paramDecl
	when     []*whenDecl
	set      []paramDecl // from --set
	seed     *paramValue // nil for the experiment's
	over     []*axisDecl
	overAll  bool
	overNode *yamlNode
	lost     bool        // an axis of matrix or over isn't known
	only     []*lineDecl // nil: no only; empty isn't allowed
	exclude  []*lineDecl
	none     bool // store: none
	drop     bool // missing: drop
	dropNode *yamlNode
	consumed bool
}

// An inputDecl is one entry below in: an edge, or a stack of edges.
type inputDecl struct {
	port  string
	key   *yamlNode
	stack *axisDecl
	wires []*wireDecl // one, or one for each id of the stack
	bad   bool        // some wire is invalid
}

// A wireDecl is one edge.
type wireDecl struct {
	id   int32 // on the stack's axis
	node *yamlNode
	from *stageDecl
	port string // "" for the port with the input's name or type
	at   string // the ids of the cells that it takes, as written: axis=id,axis=id
	// fixed are these ids, once the axes of from are known.
	fixed combination
}

// A paramDecl is one entry below with.
type paramDecl struct {
	key   *yamlNode
	value *paramValue
}

// A whenDecl is one entry below when.
type whenDecl struct {
	line *lineDecl
	with []paramDecl
}

// A lineDecl is a line of only, exclude or when's if. It matches a cell if for each of its axes it lists
// the cell's id.
type lineDecl struct {
	node    *yamlNode
	conds   []condDecl
	bad     bool
	matched bool
}

type condDecl struct {
	axis *axisDecl
	key  *yamlNode
	ids  []bool
}

// A validName can be the name of an experiment, an axis, a stage or an id.
var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`).MatchString

const nameHint = "names are made of letters, digits, and after the first also . _ -"

// keys calls, for each entry of a map, the function of its key, and reports unknown keys.
func (l *loader) keys(n *yamlNode, what string, known map[string]func(v *yamlNode)) {
	for i, k := range n.keys {
		if read := known[k.text]; read != nil {
			read(n.vals[i])
		} else {
			l.report(k, didYouMean(k.text, "keys", slices.Sorted(maps.Keys(known))),
				"unknown key %q of %s", k.text, what)
		}
	}
}

// experiment reads the whole tree into l.exp. It reads inputs after axes, since stacks add axes, and then
// the other keys of stages, which name axes and their ids.
func (l *loader) experiment(root *yamlNode) {
	e := &experimentDecl{root: root, axisOf: map[string]*axisDecl{}, stageOf: map[string]*stageDecl{}}
	l.exp = e
	var axes, stageMap, publish *yamlNode
	l.keys(root, "an experiment", map[string]func(v *yamlNode){
		"name": func(v *yamlNode) {
			if e.name = v.text; v.kind == yamlNull || !validName(v.text) {
				l.report(v, nameHint, "%v can't be the name of the experiment", v)
			}
		},
		"title": func(v *yamlNode) {
			if e.title = v.text; !v.scalar() {
				l.report(v, "", "%v is not a string", v)
			}
		},
		"seed": func(v *yamlNode) {
			if seed, ok := v.seed(); ok {
				e.seed = seed
			} else {
				l.report(v, "", notSeed, v)
			}
		},
		"extends": func(*yamlNode) {},
		"axes":    func(v *yamlNode) { axes = v },
		"stages":  func(v *yamlNode) { stageMap = v },
		"publish": func(v *yamlNode) { publish = v },
	})
	if root.get("name") == nil {
		l.report(root, "write name: as the first line", "the experiment has no name")
	}
	if axes != nil {
		l.axes(axes)
	}
	if stageMap == nil {
		stageMap = root
	}
	if stageMap == root || stageMap.kind != yamlMap || len(stageMap.keys) == 0 {
		l.report(stageMap, "", "the experiment has no stages")
		return
	}
	l.stageDecls(stageMap)
	for _, s := range e.stages {
		l.inputs(s, s.body.get("in"))
	}
	for _, a := range e.axes {
		a.finish()
	}
	for _, s := range e.stages {
		l.stage(s)
		s.set = l.paramDecls(l.sets[s.name])
	}
	e.readByChoices()
	if publish != nil {
		l.publish(publish)
	}
}

// stageDecls declares the stages by their names.
func (l *loader) stageDecls(n *yamlNode) {
	e := l.exp
	for i, k := range n.keys {
		s := &stageDecl{name: k.text, key: k, body: n.vals[i]}
		if !validName(k.text) {
			l.report(k, nameHint, "%q can't be the name of a stage", k.text)
		}
		e.stages = append(e.stages, s)
		e.stageOf[s.name] = s
	}
	for _, s := range e.stages {
		if i := strings.LastIndexByte(s.name, '.'); i > 0 && e.stageOf[s.name[:i]] != nil {
			l.report(s.key, "rename one of them",
				"%q could also be the port %q of the stage %q", s.name, s.name[i+1:], s.name[:i])
		}
	}
}

func (l *loader) publish(n *yamlNode) {
	if n.kind != yamlList {
		l.report(n, "write [leaderboard, sheet]", "%v is not a list of stages", n)
		return
	}
	for _, v := range n.vals {
		s := l.exp.stageOf[v.text]
		switch {
		case !v.scalar():
			l.report(v, "", "%v is not the name of a stage", v)
		case s == nil:
			l.unknownStage(v, v.text, l.stageNames())
		case slices.Contains(l.exp.publish, s):
			l.report(v, "", "the stage %v is published twice", v)
		default:
			s.consumed = true
			l.exp.publish = append(l.exp.publish, s)
		}
	}
}

func (l *loader) stageNames() (names []string) {
	for _, s := range l.exp.stages {
		names = append(names, s.name)
	}
	return names
}
