package plan

import (
	"path/filepath"
	"reflect"
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
	return string(AppendText(nil, s))
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
