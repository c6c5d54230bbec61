package plan

import (
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A binding is common to all cells of a step with the same choice: the implementation, the ports of the
// inputs, and the assignments of the parameters.
type binding struct {
	uses    *yamlNode // where the implementation is named
	id      int32     // of the choice
	stage   *stages.Stage
	unknown bool // the catalog doesn't have the stage, which is a stand-in
	params  *paramType
	input   []int // by input port of the stage: the index of the declared input, or -1
	assigns []paramAssign
	whens   [][]paramAssign // by line of when, once a cell matches it
	set     []paramAssign
}

// A paramAssign gives a value to a parameter.
type paramAssign struct {
	field  *paramField
	value  *paramValue
	atAxis bool // it is written next to the implementation, at an axis
}

// bind makes the bindings of a step, by id of the choice; a step without a choice has one.
func (x *expander) bind(b *stepBuild) {
	s := b.decl
	switch {
	case s.choice == nil && s.uses != nil:
		b.bindings = []*binding{x.binding(b, 0, s.uses, nil)}
		return
	case s.choice == nil || !slices.Contains(b.axes, s.choice):
		if s.choice != nil {
			x.lacksAxis(b, s.uses, s.choice)
		}
		b.bindings = []*binding{x.standIn(b, 0, "")}
		return
	}
	b.bindings = make([]*binding, len(s.choice.ids))
	for i, v := range s.choice.values {
		if !s.choice.allowed[i] {
			continue
		}
		uses := v.get("uses")
		if uses != nil && uses.kind == yamlText && !strings.Contains(uses.text, "${") {
			b.bindings[i] = x.binding(b, int32(i), uses, v.get("with"))
			continue
		}
		if uses == nil {
			uses = s.choice.texts[i]
		}
		x.report(uses, "write "+s.choice.ids[i]+": {uses: family/name}",
			"the id %q of the axis %q doesn't name a stage to use", s.choice.ids[i], s.choice.name)
		b.bindings[i] = x.standIn(b, int32(i), "")
	}
}

// standIn makes a binding that accepts everything, for a stage that doesn't exist.
func (x *expander) standIn(b *stepBuild, id int32, name string) *binding {
	st := stages.New(stages.Def[struct{}]{Name: name, Relation: stages.Whole})
	r := &binding{id: id, stage: &st, unknown: true, whens: make([][]paramAssign, len(b.decl.when))}
	for i, in := range b.decl.inputs {
		st.Inputs = append(st.Inputs, stages.Port{Name: in.port})
		r.input = append(r.input, i)
	}
	x.standIns[&st] = true
	return r
}

// binding makes the binding to a named implementation. choice is the with of an axis value, or nil.
func (x *expander) binding(b *stepBuild, id int32, uses, choice *yamlNode) *binding {
	own := x.paramDecls(choice)
	stage, ok := x.stageCalled(uses)
	if !ok {
		for _, p := range own {
			x.checkReferences(b, p.value)
		}
		return x.standIn(b, id, uses.text)
	}
	r := &binding{uses: uses, id: id, stage: stage, params: x.types.of(stage)}
	r.whens = make([][]paramAssign, len(b.decl.when))
	x.connect(b, r)
	r.assigns = r.assignments(b.decl.with)
	for _, p := range own {
		if f := r.params.byName[p.key.text]; f == nil {
			x.unknownParam(p.key, r, "")
		} else if x.checkReferences(b, p.value) {
			r.assigns = append(r.assigns, paramAssign{f, p.value, true})
		}
	}
	r.set = r.assignments(b.decl.set)
	return r
}

// stageCalled returns the stage of a name: of the catalog, or a function in a file beside the experiment.
func (x *expander) stageCalled(uses *yamlNode) (*stages.Stage, bool) {
	if path, name, ok := strings.Cut(uses.text, ".py:"); ok {
		return x.function(uses, path+".py", name)
	}
	s, ok := x.catalog.Lookup(uses.text)
	if !ok {
		x.report(uses, SuggestStage(uses.text, x.catalog), "unknown stage %q", uses.text)
	}
	return s, ok
}

// function returns the stage that a function is. Its file is imported once.
func (x *expander) function(uses *yamlNode, file, name string) (*stages.Stage, bool) {
	path := resolvePath(uses.src, file)
	key := path + ":" + name // the same text in a file that extends another may be another function
	if s, ok := x.functions[key]; ok {
		return s, s != nil
	}
	var s *stages.Stage
	switch {
	case file == ".py" || name == "":
		x.report(uses, "write uses: FILE.py:NAME", "%q names no function", uses.text)
	default:
		allowed, how := x.allowed(path)
		if !allowed {
			x.report(uses, how, "%s wants to run code in Python", uses.text)
			break
		}
		var err error
		if s, err = x.o.Function(uses.text, path); err != nil {
			x.report(uses, "", "%v", err)
		}
	}
	x.functions[key] = s
	return s, s != nil
}

// allowed reports whether the functions of a file may run, and otherwise how the user can allow it.
func (x *expander) allowed(file string) (allowed bool, how string) {
	how = "read the file, and allow it by --allow-python"
	switch {
	case x.o.Function == nil:
		return false, how
	case x.o.Python:
		return true, ""
	case x.o.Allows != nil:
		return x.o.Allows(file)
	}
	return false, how
}

// assignments returns the assignments to parameters of the implementation, never nil. commonParams reports
// the others.
func (r *binding) assignments(list []paramDecl) []paramAssign {
	assigns := []paramAssign{}
	for _, p := range list {
		if f := r.params.byName[p.key.text]; f != nil {
			assigns = append(assigns, paramAssign{field: f, value: p.value})
		}
	}
	return assigns
}

func (x *expander) unknownParam(key *yamlNode, r *binding, where string) {
	x.report(key, didYouMean(key.text, "parameters", r.params.names()),
		"unknown parameter %q of %s%s", key.text, r.stage.Name, where)
}

// commonParams reports parameters in the stage's with that not every choice has, and parameters in --set
// that no choice has.
func (x *expander) commonParams(b *stepBuild) {
	for _, p := range slices.Concat(b.decl.with, b.decl.set) {
		known, standIn := false, false
		var unknown []*binding
		var ids []string
		for _, r := range b.bindings {
			switch {
			case r == nil:
			case r.unknown:
				standIn = true
			case r.params.byName[p.key.text] != nil:
				known = true
			default:
				unknown = append(unknown, r)
				if b.decl.choice != nil {
					ids = append(ids, b.decl.choice.ids[r.id])
				}
			}
		}
		switch {
		case len(unknown) == 0 || p.key.src.flag && (known || standIn):
		case !known && !standIn:
			x.unknownParam(p.key, unknown[0], "")
		default:
			x.report(p.key, "write it into the with of the choices that know it, or under when",
				"the parameter %q isn't known to %s", p.key.text, strings.Join(ids, ", "))
		}
		x.checkReferences(b, p.value)
	}
	for _, w := range b.decl.when {
		for _, p := range w.with {
			x.checkReferences(b, p.value)
		}
	}
}

// when returns the assignments of a line of when in a cell that it matches.
func (x *expander) when(m *cellBuild, line int) []paramAssign {
	r, with := m.binding, m.decl.when[line].with
	if r.whens[line] == nil && !r.unknown {
		r.whens[line] = r.assignments(with)
		for _, p := range with {
			if r.params.byName[p.key.text] == nil {
				x.unknownParam(p.key, r, m.at.where(m.axes))
			}
		}
	}
	return r.whens[line]
}

// checkReferences reports references to axes that a step doesn't have.
func (x *expander) checkReferences(b *stepBuild, v *paramValue) (ok bool) {
	ok = true
	for _, a := range v.axes() {
		if !slices.Contains(b.axes, a) {
			ok = false
			x.lacksAxis(b, v.node, a)
		}
	}
	return ok
}

// connect matches the declared inputs with the stage's ports.
func (x *expander) connect(b *stepBuild, r *binding) {
	r.input = slices.Repeat([]int{-1}, len(r.stage.Inputs))
	var names []string
	for _, p := range r.stage.Inputs {
		names = append(names, p.Name)
		if p.Texts {
			names = append(names, stages.TextsName)
		}
	}
	for i, in := range b.decl.inputs {
		k := slices.IndexFunc(r.stage.Inputs, func(p stages.Port) bool { return p.Called(in.port) })
		if k >= 0 && r.input[k] < 0 {
			r.input[k] = i
			continue
		}
		if k >= 0 {
			x.report(in.key, "leave one out", "%q and %q are one input of %s", b.decl.inputs[r.input[k]].port,
				in.port, r.stage.Name)
			continue
		}
		hint := r.stage.Name + " takes no inputs"
		if len(names) > 0 {
			hint = didYouMean(in.port, "inputs", names)
		}
		if other := x.ofTexts(r.stage); other != "" && (in.port == stages.TextsName || in.port == "words") {
			hint += "; " + other + " takes texts"
		}
		x.report(in.key, hint, "%s has no input %q", r.stage.Name, in.port)
	}
	for k := range r.stage.Inputs {
		p := &r.stage.Inputs[k]
		if r.input[k] < 0 && p.Else == "" && p.Beside == "" && (!p.Optional || k == r.stage.Primary()) {
			x.unconnected(b, r.stage, p)
		}
	}
}

// unconnected reports an input without an edge, and suggests the outputs that fit it, or else the stages that
// have some.
func (x *expander) unconnected(b *stepBuild, stage *stages.Stage, p *stages.Port) {
	var from []string
	for _, s := range x.order[:slices.Index(x.order, b.decl)] {
		if of := x.steps[s].bindings; len(of) > 0 && of[0] != nil {
			for _, out := range of[0].stage.Outputs {
				if p.Takes(out.Type) {
					from = append(from, s.name+"."+out.Name)
				}
			}
		}
	}
	hint := "it takes " + p.TypeText()
	if len(from) > 0 {
		hint += "; there are " + strings.Join(from, ", ")
	} else if makers := x.makers(p.Wire().Name); 0 < len(makers) && len(makers) <= 3 {
		hint += ", which " + strings.Join(makers, " or ") + " makes"
	}
	x.report(b.decl.key, hint, "the input %q of %s, %s, isn't connected", p.Name, b.decl.name, stage.Name)
}

// makers returns the names of the stages that have an output of a type.
func (x *expander) makers(of string) (names []string) {
	for _, name := range x.catalog.Names() {
		stage, _ := x.catalog.Lookup(name)
		if slices.ContainsFunc(stage.Outputs, func(p stages.Port) bool { return p.Type.Name == of }) {
			names = append(names, name)
		}
	}
	return names
}
