package target

import (
	"cmp"
	"strings"
)

// An Entry is a function or a preset, as the reference lists it.
type Entry struct {
	Form string // how it is called
	Doc  string // its value; "" for a function of each element
	Is   string // of a preset, its expression
	// Derivative of a function is "yes", "0" of a value that is frozen by itself, or "none", so that the
	// value must be frozen.
	Derivative string
}

// Functions returns the functions of the language, in the order of their names.
func Functions() []Entry {
	var list []Entry
	for _, o := range functions {
		form, doc, _ := strings.Cut(o.form, "), ")
		derivative := "yes"
		switch {
		case o == &frozen || o == &other:
			derivative = "0"
		case o.emit == nil && o.made == nil:
			derivative = "none"
		}
		form = strings.TrimSuffix(form, ")") + ")"
		list = append(list, Entry{Form: form, Doc: doc, Derivative: derivative})
	}
	return list
}

// Presets returns the presets of the language, in the order of their names.
func Presets() []Entry {
	var list []Entry
	for k := range presets {
		p := &presets[k]
		list = append(list, Entry{Form: p.form(), Doc: p.doc, Is: p.is})
	}
	return list
}

// Reference returns the tables of functions and of presets, in Markdown.
func Reference() string {
	var b strings.Builder
	row := func(cells ...string) {
		for k, c := range cells {
			cells[k] = strings.ReplaceAll(c, "|", "\\|")
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	row("function", "value", "derivative")
	b.WriteString("|---|---|---|\n")
	for _, f := range Functions() {
		row("`"+f.Form+"`", cmp.Or(f.Doc, "of each element"), f.Derivative)
	}
	b.WriteString("\n")
	row("preset", "expression", "value")
	b.WriteString("|---|---|---|\n")
	for _, p := range Presets() {
		row("`"+p.Form+"`", "`"+p.Is+"`", p.Doc)
	}
	return b.String()
}
