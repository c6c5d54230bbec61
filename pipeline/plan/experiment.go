package plan

import (
	"sort"
	"strconv"
	"strings"
)

// An experimentDecl is an experiment as it's written: names are looked up, but
// nothing is expanded.
type experimentDecl struct {
	root        *yamlNode // with extends and --set applied, but for parameters of stages
	name, title string
	seed        uint64
	axes        []*axisDecl // as written, then those that only stacks have
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
	bad   bool        // some wire leads nowhere
}

// A wireDecl is one edge.
type wireDecl struct {
	id   int32 // on the stack's axis
	node *yamlNode
	from *stageDecl
	port string // "" for the port of the input's name or type
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

// A lineDecl is a line of only, exclude or when's if. It matches a cell whose id
// is among the given ones on each of its axes.
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

// validName reports whether s can name an experiment, an axis, a stage or an id.
func validName(s string) bool {
	for i := range len(s) {
		switch b := s[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9':
		case i > 0 && (b == '.' || b == '_' || b == '-'):
		default:
			return false
		}
	}
	return s != "" && len(s) <= 100
}

const nameHint = "names are made of letters, digits, and after the first also . _ -"

// fields hands each entry of a map to the function that its key names, and
// complains about others.
func (l *loader) fields(n *yamlNode, what string, known map[string]func(key, value *yamlNode)) {
	for i, k := range n.keys {
		if f := known[k.text]; f != nil {
			f(k, n.vals[i])
			continue
		}
		var names []string
		for name := range known {
			names = append(names, name)
		}
		sort.Strings(names)
		l.at(k, didYouMean(k.text, "keys", names), "unknown key "+strconv.Quote(k.text)+" of "+what)
	}
}

func (l *loader) experiment(root *yamlNode, sets map[string][]setDecl) *experimentDecl {
	e := &experimentDecl{root: root, axisOf: map[string]*axisDecl{}, stageOf: map[string]*stageDecl{}}
	l.exp = e
	var axes, stageMap, publish *yamlNode
	l.fields(root, "an experiment", map[string]func(k, v *yamlNode){
		"name":    func(_, v *yamlNode) { e.name = l.plainName(v, "the name of the experiment") },
		"title":   func(_, v *yamlNode) { e.title = l.textOf(v) },
		"seed":    func(_, v *yamlNode) { e.seed = l.seedOf(v) },
		"extends": func(_, _ *yamlNode) {},
		"axes":    func(_, v *yamlNode) { axes = v },
		"stages":  func(_, v *yamlNode) { stageMap = v },
		"publish": func(_, v *yamlNode) { publish = v },
	})
	if root.get("name") == nil {
		l.at(root, "write name: as the first line", "the experiment has no name")
	}
	if axes != nil && axes.kind != yamlNull {
		l.axes(axes)
	}
	if stageMap == nil || stageMap.kind != yamlMap || len(stageMap.keys) == 0 {
		at := root
		if stageMap != nil {
			at = stageMap
		}
		l.at(at, "", "the experiment has no stages")
		return nil
	}
	for i, k := range stageMap.keys {
		s := &stageDecl{name: k.text, key: k, body: stageMap.vals[i]}
		if !validName(k.text) {
			l.at(k, nameHint, strconv.Quote(k.text)+" can't be the name of a stage")
		}
		e.stages = append(e.stages, s)
		e.stageOf[s.name] = s
	}
	for _, s := range e.stages {
		if i := strings.LastIndexByte(s.name, '.'); i > 0 && e.stageOf[s.name[:i]] != nil {
			l.at(s.key, "rename one of them", strconv.Quote(s.name)+" could also be the port "+
				strconv.Quote(s.name[i+1:])+" of the stage "+strconv.Quote(s.name[:i]))
		}
	}
	for _, s := range e.stages {
		l.stage(s)
	}
	for _, s := range e.stages {
		l.sets(s, sets[s.name])
	}
	l.stackAxes()
	// What lines and choices say about ids needs every stack's ids.
	for _, s := range e.stages {
		l.lines(s)
	}
	if publish != nil {
		l.publish(publish)
	}
	return e
}

// plainName reads a name.
func (l *loader) plainName(v *yamlNode, what string) string {
	if !v.scalar() || v.kind == yamlNull || !validName(v.text) {
		l.at(v, nameHint, v.String()+" can't be "+what)
		return ""
	}
	return v.text
}

func (l *loader) textOf(v *yamlNode) string {
	if !v.scalar() {
		l.at(v, "", v.String()+" is not a text")
	}
	return v.text
}

func (l *loader) seedOf(v *yamlNode) uint64 {
	if v.kind == yamlInt {
		if seed, err := strconv.ParseUint(v.text, 10, 64); err == nil {
			return seed
		}
	}
	l.at(v, "", v.String()+" is not a whole number from 0 to 2⁶⁴ − 1")
	return 0
}

func (l *loader) publish(n *yamlNode) {
	if n.kind != yamlList {
		l.at(n, "write [leaderboard, sheet]", n.String()+" is not a list of stages")
		return
	}
	seen := map[string]bool{}
	for _, v := range n.vals {
		s := l.exp.stageOf[v.text]
		switch {
		case !v.scalar() || s == nil:
			l.at(v, didYouMean(v.text, "stages", l.stageNames()), "no stage is called "+v.String())
		case seen[v.text]:
			l.at(v, "", "the stage "+v.String()+" is published twice")
		default:
			seen[v.text] = true
			s.consumed = true
			l.exp.publish = append(l.exp.publish, s)
		}
	}
}

func (l *loader) stageNames() []string {
	var names []string
	for _, s := range l.exp.stages {
		names = append(names, s.name)
	}
	return names
}
