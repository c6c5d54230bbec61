package pipeline

import (
	"encoding"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// Written returns a path that a file parameter holds as the experiment has it:
// relative to the experiment's folder, and of an absolute one only the last part.
func (p *Plan) Written(path string) string {
	if text, ok := p.written[path]; ok {
		return text
	}
	if filepath.IsAbs(path) {
		return filepath.Base(path)
	}
	return filepath.ToSlash(path)
}

// Resolved returns the experiment with everything filled in, as an experiment: all
// parameters with their defaults, references and choices replaced by what they
// stand for, ports named. Read back, it gives the same cells. It holds no absolute
// paths, and equal plans give equal bytes.
func (p *Plan) Resolved() []byte {
	w := &resolvedWriter{plan: p, fields: map[*stages.Stage][]stages.Field{}}
	w.b = append(w.b, "# The experiment as it ran, with everything filled in.\n"...)
	for _, s := range p.Narrowed {
		w.line("# narrowed: ", strings.ReplaceAll(s, "\n", " "))
	}
	w.line("name: ", yamlScalar(p.Name))
	if p.Title != "" {
		w.line("title: ", yamlScalar(p.Title))
	}
	w.line("seed: ", strconv.FormatUint(p.Seed, 10))
	w.axes()
	w.line("stages:")
	steps := map[string]*Step{}
	for _, s := range p.Steps {
		steps[s.Name] = s
	}
	for _, d := range p.decl.stages {
		if s := steps[d.name]; s != nil {
			w.step(s, d, steps)
		}
	}
	if len(p.Publish) > 0 {
		var names []string
		for _, s := range p.Publish {
			names = append(names, yamlScalar(s.Name))
		}
		w.line("publish: [", strings.Join(names, ", "), "]")
	}
	w.implied()
	return w.b
}

type resolvedWriter struct {
	plan   *Plan
	b      []byte
	fields map[*stages.Stage][]stages.Field // sorted by name
}

func (w *resolvedWriter) line(parts ...string) {
	for _, p := range parts {
		w.b = append(w.b, p...)
	}
	w.b = append(w.b, '\n')
}

func (w *resolvedWriter) axes() {
	choice := map[*axisDecl]bool{}
	for _, s := range w.plan.decl.stages {
		choice[s.choice] = true
	}
	head := "axes:"
	for _, a := range w.plan.decl.axes {
		if a.node == nil || !a.used {
			continue
		}
		if head != "" {
			w.line(head)
			head = ""
		}
		var ids []string
		for i, id := range a.ids {
			if a.allowed[i] {
				ids = append(ids, id)
			}
		}
		if !choice[a] {
			w.line("  ", yamlScalar(a.name), ": [", yamlIDs(ids), "]")
			continue
		}
		w.line("  ", yamlScalar(a.name), ":")
		for _, id := range ids {
			uses := a.values[a.index[id]].get("uses")
			if uses == nil {
				continue // it's in no cell
			}
			w.line("    ", yamlScalar(id), ": {uses: ", yamlScalar(uses.text), "}")
		}
	}
}

// yamlIDs writes ids for a list. Numbers stay plain: ids are compared as text.
func yamlIDs(ids []string) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteString(", ")
		}
		n := yamlNode{text: id}
		if n.classify(); n.kind == yamlNull {
			id = strconv.Quote(id)
		}
		b.WriteString(id)
	}
	return b.String()
}

// yamlScalar writes a text so that it's read back as the same text.
func yamlScalar(s string) string {
	plain := s != ""
	for i := range len(s) {
		switch b := s[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '_', b == '/', b == '.':
		case i > 0 && (b == '-' || b == '+'):
		default:
			plain = false
		}
	}
	if n := (yamlNode{text: s}); plain {
		if n.classify(); n.kind == yamlText {
			return s
		}
	}
	return string(appendText(nil, s))
}

// step writes one entry below stages.
func (w *resolvedWriter) step(s *Step, d *stageDecl, steps map[string]*Step) {
	w.line("  ", yamlScalar(s.Name), ":")
	w.line("    uses: ", yamlScalar(d.uses.text))
	if len(d.matrix) > 0 {
		w.line("    matrix: [", strings.Join(quoteAll(axisNames(d.matrix)), ", "), "]")
	}
	if len(d.inputs) > 0 {
		w.line("    in:")
		for _, in := range d.inputs {
			w.input(s, in, steps)
		}
	}
	if len(s.Over) > 0 {
		w.line("    over: [", strings.Join(quoteAll(s.Over), ", "), "]")
	}
	w.lines("only", d.only)
	w.lines("exclude", d.exclude)
	w.params(s)
	if !s.Keep {
		w.line("    store: none")
	}
	if s.Drop {
		w.line("    missing: drop")
	}
}

func quoteAll(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = yamlScalar(n)
	}
	return out
}

func (w *resolvedWriter) input(s *Step, in *inputDecl, steps map[string]*Step) {
	if in.stack == nil {
		w.line("      ", yamlScalar(in.port), ": ", yamlScalar(edgeText(s, in, in.wires[0], steps)))
		return
	}
	w.line("      ", yamlScalar(in.port), ":")
	w.line("        ", yamlScalar(in.stack.name), ":")
	for _, wire := range in.wires {
		if id := in.stack.ids[wire.id]; in.stack.allowed[wire.id] {
			w.line("          ", yamlScalar(id), ": ", yamlScalar(edgeText(s, in, wire, steps)))
		}
	}
}

// edgeText writes an edge with its port, unless that differs between choices.
func edgeText(s *Step, in *inputDecl, wire *wireDecl, steps map[string]*Step) string {
	name, port := wire.from.name, wire.port
	if port != "" || len(s.Cells) == 0 {
		return strings.TrimSuffix(name+"."+port, ".")
	}
	to := s.Cells[0].Stage.Input(in.port)
	for _, c := range steps[name].Cells {
		found := ""
		for _, o := range c.Stage.Outputs {
			if o.Name == in.port || found == "" && o.Type.Name == to.Wire().Name {
				found = o.Name
			}
		}
		if port != "" && port != found {
			return name
		}
		port = found
	}
	return strings.TrimSuffix(name+"."+port, ".")
}

// lines writes the lines of only or exclude, less the ids that were narrowed away.
func (w *resolvedWriter) lines(key string, lines []*lineDecl) {
	if len(lines) == 0 {
		return
	}
	w.line("    ", key, ":")
	for _, line := range lines {
		var conds []string
		for _, c := range line.conds {
			var ids []string
			for i, id := range c.axis.ids {
				if c.ids[i] {
					ids = append(ids, id)
				}
			}
			conds = append(conds, yamlScalar(c.axis.name)+": ["+yamlIDs(ids)+"]")
		}
		w.line("      - {", strings.Join(conds, ", "), "}")
	}
}

// A resolvedParam is a parameter of a step: its text for each cell.
type resolvedParam struct {
	name  string
	texts []string // each different one
	cell  []int32  // by cell, index of its text; -1 where the stage doesn't have it
	axes  []int    // of the step: those that decide

	byText map[string]int32
	byInt  map[int64]int32 // so that ten thousand numbers needn't be written out
}

// number returns the index of a value's text.
func (p *resolvedParam) number(w *resolvedWriter, f stages.Field, v reflect.Value) int32 {
	whole := v.Kind() == reflect.Int && !f.IsText()
	if whole {
		if at, ok := p.byInt[v.Int()]; ok {
			return at
		}
	}
	text := w.text(f, v)
	at, ok := p.byText[string(text)]
	if !ok {
		at = int32(len(p.texts))
		p.texts = append(p.texts, string(text))
		p.byText[string(text)] = at
	}
	if whole {
		p.byInt[v.Int()] = at
	}
	return at
}

// params writes with and when: parameters that are the same for all cells, and for
// the others the fewest axes that decide them.
func (w *resolvedWriter) params(s *Step) {
	if len(s.Cells) == 0 {
		return
	}
	ids := cellIDs(s)
	groups := map[string][]*resolvedParam{}
	var common []string
	for _, p := range w.paramsOf(s) {
		if len(p.texts) == 1 && !slices.Contains(p.cell, -1) {
			common = append(common, "      "+yamlScalar(p.name)+": "+p.texts[0])
			continue
		}
		p.axes = decidingAxes(p.cell, ids)
		key := ""
		for _, k := range p.axes {
			key += strconv.Itoa(k) + ","
		}
		groups[key] = append(groups[key], p)
	}
	if len(common) > 0 {
		w.line("    with:")
		for _, line := range common {
			w.line(line)
		}
	}
	var keys []string
	for k := range groups {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool {
		a, b := groups[keys[i]][0].axes, groups[keys[j]][0].axes
		return len(a) < len(b) || len(a) == len(b) && slices.Compare(a, b) < 0
	})
	if len(keys) > 0 {
		w.line("    when:")
	}
	for _, k := range keys {
		w.when(s, groups[k], ids)
	}
}

// cellIDs numbers the ids of a step's cells by axis.
func cellIDs(s *Step) [][]int32 {
	ids := make([][]int32, len(s.Axes))
	for k := range ids {
		ids[k] = make([]int32, len(s.Cells))
		index := map[string]int32{}
		for i, c := range s.Cells {
			id, ok := index[c.Coord[k].ID]
			if !ok {
				id = int32(len(index))
				index[c.Coord[k].ID] = id
			}
			ids[k][i] = id
		}
	}
	return ids
}

// paramsOf collects the parameters of a step's cells, sorted by name.
func (w *resolvedWriter) paramsOf(s *Step) []*resolvedParam {
	index := map[string]*resolvedParam{}
	byStage := map[*stages.Stage][]*resolvedParam{} // in the order of fieldsOf
	var list []*resolvedParam
	for i, c := range s.Cells {
		fields := w.fieldsOf(c.Stage)
		params, ok := byStage[c.Stage]
		if !ok {
			for _, f := range fields {
				p := index[f.Name]
				if p == nil {
					p = &resolvedParam{name: f.Name, cell: slices.Repeat([]int32{-1}, len(s.Cells)), byText: map[string]int32{}, byInt: map[int64]int32{}}
					index[f.Name] = p
					list = append(list, p)
				}
				params = append(params, p)
			}
			byStage[c.Stage] = params
		}
		v := reflect.ValueOf(c.Params).Elem()
		for k, f := range fields {
			params[k].cell[i] = params[k].number(w, f, v.FieldByIndex(f.Index))
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	return list
}

func (w *resolvedWriter) fieldsOf(s *stages.Stage) []stages.Field {
	f, ok := w.fields[s]
	if !ok {
		f = stages.Fields(s.NewParams())
		sort.Slice(f, func(i, j int) bool { return f[i].Name < f[j].Name })
		w.fields[s] = f
	}
	return f
}

// text writes a value of a parameter.
func (w *resolvedWriter) text(f stages.Field, v reflect.Value) []byte {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		if err != nil {
			text = []byte(err.Error())
		}
		return []byte(yamlScalar(string(text)))
	}
	switch v.Kind() {
	case reflect.String:
		if text := v.String(); f.File && text != "" {
			return []byte(yamlScalar(w.plan.Written(text)))
		}
		return []byte(yamlScalar(v.String()))
	case reflect.Slice:
		b := []byte{'['}
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(b, w.text(f, v.Index(i))...)
		}
		return append(b, ']')
	}
	return appendValue(nil, v)
}

// maxDeciding bounds the axes among which the deciding ones are looked for.
const maxDeciding = 8

// decidingAxes returns a smallest set of axes that decides the values.
func decidingAxes(values []int32, ids [][]int32) []int {
	n := len(ids)
	all := make([]int, n)
	for k := range all {
		all[k] = k
	}
	if n > maxDeciding {
		return all
	}
	sets := make([][]int, 0, 1<<n)
	for bits := range 1 << n {
		var set []int
		for k := range n {
			if bits&(1<<k) != 0 {
				set = append(set, k)
			}
		}
		sets = append(sets, set)
	}
	sort.SliceStable(sets, func(i, j int) bool { return len(sets[i]) < len(sets[j]) })
	for _, set := range sets {
		if len(set) == n || decides(set, values, ids) {
			return set
		}
	}
	return all
}

func decides(set []int, values []int32, ids [][]int32) bool {
	const unknown = -2
	at := places(set, ids, len(values))
	if top := slices.Max(at); top < uint64(4*len(values)+1024) {
		by := slices.Repeat([]int32{unknown}, int(top)+1)
		for i, place := range at {
			if by[place] != unknown && by[place] != values[i] {
				return false
			}
			by[place] = values[i]
		}
		return true
	}
	by := make(map[uint64]int32, len(values))
	for i, place := range at {
		was, ok := by[place]
		if ok && was != values[i] {
			return false
		}
		by[place] = values[i]
	}
	return true
}

// places numbers the combinations of some axes by cell. There are at most
// maxCombinations, so numbers don't overflow.
func places(set []int, ids [][]int32, cells int) []uint64 {
	out := make([]uint64, cells)
	for _, k := range set {
		size := uint64(slices.Max(ids[k])) + 1
		for i := range out {
			out[i] = out[i]*size + uint64(ids[k][i])
		}
	}
	return out
}

// when writes the lines for parameters that the same axes decide.
func (w *resolvedWriter) when(s *Step, params []*resolvedParam, ids [][]int32) {
	axes := params[0].axes
	at, done := places(axes, ids, len(s.Cells)), map[uint64]bool{}
	type line struct {
		coord []string // ids by axis
		with  string
	}
	var lines []line
	for i, c := range s.Cells {
		if done[at[i]] {
			continue
		}
		done[at[i]] = true
		var with []string
		for _, p := range params {
			if p.cell[i] >= 0 {
				with = append(with, yamlScalar(p.name)+": "+p.texts[p.cell[i]])
			}
		}
		if len(with) == 0 {
			continue
		}
		l := line{with: strings.Join(with, ", ")}
		for _, k := range axes {
			l.coord = append(l.coord, c.Coord[k].ID)
		}
		lines = append(lines, l)
	}
	if len(axes) == 1 { // ids with the same parameters share a line
		byWith := map[string][]string{}
		for _, l := range lines {
			byWith[l.with] = append(byWith[l.with], l.coord[0])
		}
		for _, l := range lines {
			if all := byWith[l.with]; len(all) > 1 && all[0] == l.coord[0] {
				w.line("      - {if: {", yamlScalar(s.Axes[axes[0]]), ": [", yamlIDs(all), "]}, with: {", l.with, "}}")
			} else if len(all) == 1 {
				w.line("      - {if: {", yamlScalar(s.Axes[axes[0]]), ": ", yamlIDs(all), "}, with: {", l.with, "}}")
			}
		}
		return
	}
	for _, l := range lines {
		var conds []string
		for i, k := range axes {
			conds = append(conds, yamlScalar(s.Axes[k])+": "+yamlIDs(l.coord[i:i+1]))
		}
		w.line("      - {if: {", strings.Join(conds, ", "), "}, with: {", l.with, "}}")
	}
}

// implied tells, as a comment, what the engine put in.
func (w *resolvedWriter) implied() {
	head := "# Put in by the engine:"
	for _, s := range w.plan.Steps {
		if !s.Implied || len(s.Cells) == 0 {
			continue
		}
		if head != "" {
			w.line(head)
			head = ""
		}
		c := s.Cells[0]
		v := reflect.ValueOf(c.Params).Elem()
		var with []string
		for _, f := range w.fieldsOf(c.Stage) {
			with = append(with, f.Name+": "+string(w.text(f, v.FieldByIndex(f.Index))))
		}
		w.line("#   ", strings.ReplaceAll(s.Name, "\n", " "), ": ", c.Stage.Name, " {", strings.Join(with, ", "), "}")
	}
}
