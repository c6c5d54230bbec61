package registry

import (
	"cmp"
	_ "embed"
	"encoding"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
)

var relations = map[stages.Relation]string{
	stages.Each:   "each: one item in, one item out",
	stages.Expand: "expand: one item in, any number out",
	stages.Whole:  "whole: sees everything at once",
}

// Markdown returns the README's table: a row for each family, with the names of its stages.
func (s *Set) Markdown() string {
	families := map[string][]string{}
	for _, full := range s.Names() {
		family, name, _ := strings.Cut(full, "/")
		families[family] = append(families[family], name)
	}
	var b strings.Builder
	b.WriteString("| family | stages |\n|---|---|\n")
	for _, family := range slices.Sorted(maps.Keys(families)) {
		fmt.Fprintf(&b, "| [%s](stages/%[1]s) | %s |\n", family, strings.Join(families[family], ", "))
	}
	return b.String()
}

// List writes a line for each stage: its name and title.
func List(w io.Writer, list []*stages.Stage) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range list {
		title, _, _ := strings.Cut(s.Doc, "\n")
		fmt.Fprintf(t, "%s\t%s\n", s.Name, title)
	}
	return t.Flush()
}

// Variants writes the table of all places where papers and official code differ.
func Variants(w io.Writer, list []*stages.Stage) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "stage\titem\tdefault\tgolden\twhat differs\n")
	for _, s := range list {
		for _, v := range s.Variants {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", s.Name, v.Item, v.Default, v.Golden, v.Differs)
		}
	}
	return t.Flush()
}

//go:embed describe.tmpl
var describeText string

// describePage fills the reference page of a stage, with tabs between columns.
var describePage = template.Must(template.New("describe").Funcs(template.FuncMap{
	"inputDoc": inputDoc, "kind": parameter.kind, "standard": parameter.written, "wrapped": wrapped,
}).Parse(describeText))

// Describe writes the reference page of a stage: its description, its ports, its parameters with defaults
// and ranges, and where paper and code differ.
func Describe(w io.Writer, s *stages.Stage) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer t.Flush()
	title, prose, _ := strings.Cut(s.Doc, "\n")
	return describePage.Execute(t, struct {
		*stages.Stage
		Title, Prose, Relation, Declared string
		Parameters                       []parameter
		Scores                           map[string]string
	}{s, title, strings.TrimSpace(prose), relations[s.Relation], declares(s), parameters(s), scoreTexts(s)})
}

// wrapped breaks the text of a second column into lines of at most 80 letters.
func wrapped(text string) string {
	var b strings.Builder
	n := 0
	for _, word := range strings.Fields(text) {
		letters := utf8.RuneCountInString(word)
		switch {
		case n == 0:
		case n+1+letters > 80:
			b.WriteString("\n  \t")
			n = 0
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += letters
	}
	return b.String()
}

// declares lists what a stage declares by default, or that it passes on what another one does: "map
// contribution, output logit".
func declares(s *stages.Stage) string {
	if s.Declares == nil {
		return ""
	}
	in := map[string]stages.Declared{}
	for _, p := range s.Inputs {
		if !p.Optional {
			in[p.Name] = stages.Declared{"the same as": "on the port " + p.Name}
		}
	}
	var parts []string
	d := s.Declares(s.NewParams(), in)
	for _, name := range slices.Sorted(maps.Keys(d)) {
		parts = append(parts, name+" "+d[name])
	}
	return cmp.Or(strings.Join(parts, ", "), "by default nothing")
}

func inputDoc(p stages.Port) string {
	var parts []string
	if p.Doc != "" {
		parts = append(parts, p.Doc)
	}
	switch {
	case p.Else != "":
		parts = append(parts, "unwired: taken from "+p.Else)
	case p.Beside != "":
		parts = append(parts, "unwired: taken from the stage that feeds "+p.Beside)
	case p.Optional:
		parts = append(parts, "optional")
	}
	if p.Over {
		parts = append(parts, "over collapses axes on it")
	}
	if p.Averages {
		parts = append(parts, "averaged over seeds, item by item")
	}
	if p.Via != "" {
		parts = append(parts, "passes through "+p.Via)
	}
	return strings.Join(parts, "; ")
}

// A parameter is a field of a stage's parameter struct with its default.
type parameter struct {
	stages.Field
	Value reflect.Value
}

func parameters(s *stages.Stage) []parameter {
	p := s.NewParams()
	var list []parameter
	for _, f := range stages.Fields(p) {
		list = append(list, parameter{f, reflect.ValueOf(p).Elem().FieldByIndex(f.Index)})
	}
	return list
}

// kinds names the kinds of values: for people, and in a JSON schema.
var kinds = map[reflect.Kind]struct{ name, schema string }{
	reflect.Bool: {"true | false", "boolean"}, reflect.Int: {"int", "integer"},
	reflect.Float64: {"number", "number"}, reflect.String: {"text", "string"},
}

// element returns the kind of the parameter, or of its elements if it's a list.
func (p parameter) element() (k reflect.Kind, list bool) {
	if k = p.Type.Kind(); k == reflect.Slice && !p.IsText() {
		return p.Type.Elem().Kind(), true
	}
	return k, false
}

// kind describes the valid values of the parameter: "int, 1 … 1000", "paper | official".
func (p parameter) kind() string {
	k, list := p.element()
	one, several := kinds[k].name, kinds[k].name
	switch {
	case len(p.Choices) > 0:
		one = strings.Join(p.Choices, " | ")
		several = one
	case p.File:
		one, several = "path or address", "paths or addresses"
	case p.Axis != "":
		one, several = "axis", "axes"
	case p.IsText():
		one = "text"
	}
	if list {
		one = "list of " + several
	}
	switch {
	case p.Min != "" && p.Max != "":
		return one + ", " + p.Min + " … " + p.Max
	case p.Min != "":
		return one + ", ≥ " + p.Min
	case p.Max != "":
		return one + ", ≤ " + p.Max
	}
	return one
}

// written is the default as in an experiment.
func (p parameter) written() string { return p.Written(plain(p.Value)) }

// plain writes a value as in an experiment.
func plain(v reflect.Value) string {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		b, _ := m.MarshalText() // an error leaves the text empty
		return string(b)
	}
	switch {
	case v.Kind() == reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = plain(v.Index(i))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case v.Kind() == reflect.String && v.Len() == 0:
		return `""`
	}
	return fmt.Sprint(v)
}
