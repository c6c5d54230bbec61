package plan

import (
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A recipe is what all cells of a step with the same choice have in common: the
// implementation, which inputs go where, and where its parameters come from.
type recipe struct {
	decl    *stageDecl
	uses    *yamlNode // where the implementation is named
	id      int32     // of the choice
	stage   *stages.Stage
	unknown bool // the catalog doesn't have it, and stage is a stand-in
	params  *paramType
	input   []int // by input port of the stage: which of decl.inputs, or -1
	assigns []paramAssign
	whens   [][]paramAssign // by line of when, once a cell matches it
	set     []paramAssign
}

// A paramAssign gives a value to a parameter.
type paramAssign struct {
	field *paramField
	key   *yamlNode
	value *paramValue
	own   bool // it stands beside the implementation, at an axis
}

// recipes makes the recipes of a step, by id of the choice; of a step without a
// choice there's one.
func (x *expander) recipes(b *stepBuild) []*recipe {
	s := b.decl
	if s.uses == nil {
		return []*recipe{x.standIn(b, 0, "")}
	}
	if s.choice == nil {
		return []*recipe{x.recipe(b, 0, s.uses, nil)}
	}
	if !hasAxis(b.axes, s.choice) {
		if b.broken {
			return []*recipe{x.standIn(b, 0, "")}
		}
		hint := "write matrix: [" + s.choice.name + "]"
		if hasAxis(b.collapsed, s.choice) {
			hint = "over takes it away"
		}
		x.at(s.uses, hint, "the stage "+strconv.Quote(s.name)+" has no axis "+strconv.Quote(s.choice.name))
		return []*recipe{x.standIn(b, 0, "")}
	}
	list := make([]*recipe, len(s.choice.ids))
	for i, v := range s.choice.values {
		if !s.choice.allowed[i] {
			continue
		}
		uses := v.get("uses")
		if uses == nil || uses.kind != yamlText || strings.Contains(uses.text, "${") {
			at := uses
			if at == nil {
				at = s.choice.texts[i]
			}
			x.at(at, "write "+s.choice.ids[i]+": {uses: family/name}",
				"the id "+strconv.Quote(s.choice.ids[i])+" of the axis "+strconv.Quote(s.choice.name)+" doesn't name a stage to use")
			list[i] = x.standIn(b, int32(i), "")
			continue
		}
		list[i] = x.recipe(b, int32(i), uses, v.get("with"))
	}
	return list
}

func hasAxis(axes []*axisDecl, a *axisDecl) bool {
	for _, b := range axes {
		if a == b {
			return true
		}
	}
	return false
}

// standIn makes a recipe that takes anything, for a stage that doesn't exist.
func (x *expander) standIn(b *stepBuild, id int32, name string) *recipe {
	st := &stages.Stage{Name: name, Relation: stages.Whole, NewParams: func() any { return new(struct{}) }}
	r := &recipe{decl: b.decl, id: id, stage: st, unknown: true, whens: make([][]paramAssign, len(b.decl.when))}
	for i, in := range b.decl.inputs {
		st.Inputs = append(st.Inputs, stages.Port{Name: in.port})
		r.input = append(r.input, i)
	}
	x.standIns[st] = true
	return r
}

// recipe makes the recipe for a named implementation. choice is the with of an
// axis value, nil if there's none.
func (x *expander) recipe(b *stepBuild, id int32, uses, choice *yamlNode) *recipe {
	var own []paramDecl
	if choice != nil {
		own = x.choiceParams(choice)
	}
	stage, ok := x.catalog.Lookup(uses.text)
	if !ok {
		x.at(uses, x.suggestStage(uses.text), "unknown stage "+strconv.Quote(uses.text))
		r := x.standIn(b, id, uses.text)
		for _, p := range own {
			x.checkReferences(b, p.value)
		}
		return r
	}
	r := &recipe{decl: b.decl, uses: uses, id: id, stage: stage, params: x.types.of(stage), whens: make([][]paramAssign, len(b.decl.when))}
	x.connect(b, r)
	for _, p := range b.decl.with {
		if f := r.params.byName[p.key.text]; f != nil {
			r.assigns = append(r.assigns, paramAssign{field: f, key: p.key, value: p.value})
		} // if not, see commonParams
	}
	for _, p := range own {
		f := r.params.byName[p.key.text]
		if f == nil {
			x.unknownParam(p.key, r, "")
			continue
		}
		if x.checkReferences(b, p.value) {
			r.assigns = append(r.assigns, paramAssign{f, p.key, p.value, true})
		}
	}
	for _, p := range b.decl.set {
		if f := r.params.byName[p.key.text]; f != nil {
			r.set = append(r.set, paramAssign{field: f, key: p.key, value: p.value})
		}
	}
	return r
}

// choiceParams reads the with of an axis value, once.
func (x *expander) choiceParams(n *yamlNode) []paramDecl {
	with, ok := x.choiceWith[n]
	if !ok {
		with = x.loader.params(n)
		x.choiceWith[n] = with
	}
	return with
}

func (x *expander) unknownParam(key *yamlNode, r *recipe, where string) {
	x.at(key, didYouMean(key.text, "parameters", r.params.names()),
		"unknown parameter "+strconv.Quote(key.text)+" of "+r.stage.Name+where)
}

// commonParams complains about parameters of the stage's with, and of --set,
// that not every choice knows, and that none knows.
func (x *expander) commonParams(b *stepBuild) {
	for _, list := range [][]paramDecl{b.decl.with, b.decl.set} {
		for _, p := range list {
			var known, unknown []*recipe
			standIn := false
			for _, r := range b.recipes {
				switch {
				case r == nil:
				case r.unknown:
					standIn = true
				case r.params.byName[p.key.text] != nil:
					known = append(known, r)
				default:
					unknown = append(unknown, r)
				}
			}
			set := p.key.src.flag
			switch {
			case len(unknown) == 0 || set && (len(known) > 0 || standIn):
			case len(known) == 0 && !standIn:
				x.unknownParam(p.key, unknown[0], "")
			default:
				var ids []string
				for _, r := range unknown {
					ids = append(ids, b.decl.choice.ids[r.id])
				}
				x.at(p.key, "write it into the with of those that know it, or under when",
					"the parameter "+strconv.Quote(p.key.text)+" isn't known to "+strings.Join(ids, ", "))
			}
		}
		for _, p := range list {
			x.checkReferences(b, p.value)
		}
	}
	for _, w := range b.decl.when {
		for _, p := range w.with {
			x.checkReferences(b, p.value)
		}
	}
}

// when returns what a line of when gives to the cells of a recipe.
func (x *expander) when(r *recipe, line int, at combination) []paramAssign {
	if r.whens[line] != nil || r.unknown {
		return r.whens[line]
	}
	assigns := []paramAssign{}
	for _, p := range r.decl.when[line].with {
		if f := r.params.byName[p.key.text]; f != nil {
			assigns = append(assigns, paramAssign{field: f, key: p.key, value: p.value})
		} else {
			x.unknownParam(p.key, r, inCell(at))
		}
	}
	r.whens[line] = assigns
	return assigns
}

// checkReferences complains about references to axes that a step doesn't have.
func (x *expander) checkReferences(b *stepBuild, v *paramValue) (ok bool) {
	ok = true
	v.references(func(p *valuePart) {
		if hasAxis(b.axes, p.axis) {
			return
		}
		ok = false
		if b.broken {
			return // some of its axes may be unknown
		}
		hint := "its axes: " + strings.Join(axisNames(b.axes), ", ")
		if len(b.axes) == 0 {
			hint = "write matrix: [" + p.axis.name + "]"
		}
		if hasAxis(b.collapsed, p.axis) {
			hint = "over takes it away"
		}
		x.at(v.node, hint, "the stage "+strconv.Quote(b.decl.name)+" has no axis "+strconv.Quote(p.axis.name))
	})
	return ok
}

// connect matches the declared inputs with the stage's ports.
func (x *expander) connect(b *stepBuild, r *recipe) {
	r.input = make([]int, len(r.stage.Inputs))
	for i := range r.input {
		r.input[i] = -1
	}
	for i, in := range b.decl.inputs {
		at := -1
		var names []string
		for k := range r.stage.Inputs {
			names = append(names, r.stage.Inputs[k].Name)
			if r.stage.Inputs[k].Name == in.port {
				at = k
			}
		}
		if at < 0 {
			hint := r.stage.Name + " takes no inputs"
			if len(names) > 0 {
				hint = didYouMean(in.port, "inputs", names)
			}
			x.at(in.key, hint, r.stage.Name+" has no input "+strconv.Quote(in.port))
			continue
		}
		r.input[at] = i
	}
	for k := range r.stage.Inputs {
		if p := &r.stage.Inputs[k]; r.input[k] < 0 && (!p.Optional && p.Else == "" || k == r.stage.Primary() && p.Else == "") {
			x.unconnected(b, r.stage, p)
		}
	}
}

func (x *expander) unconnected(b *stepBuild, stage *stages.Stage, p *stages.Port) {
	want := p.Wire()
	var from []string
	for _, s := range x.order {
		if s == b.decl {
			break
		}
		if o := x.steps[s]; o != nil && len(o.recipes) > 0 && o.recipes[0] != nil {
			for _, out := range o.recipes[0].stage.Outputs {
				if out.Type.Name == want.Name {
					from = append(from, s.name+"."+out.Name)
				}
			}
		}
	}
	hint := "it takes " + want.Name
	if len(from) > 0 {
		hint += "; there are " + strings.Join(from, ", ")
	}
	x.at(b.decl.key, hint, "the input "+strconv.Quote(p.Name)+" of "+stage.Name+" isn't connected")
}
