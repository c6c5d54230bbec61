package stages

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A Field describes one parameter, parsed from a struct field such as
//
//	Steps int `yaml:"steps" doc:"how many steps" min:"1" max:"1000"`
//
// Tags: yaml, the parameter's name in an experiment (required); doc, one line (required); choices:"a|b=c",
// the only strings allowed, where c is the former name of the choice b; min and max, the closed range of a
// number; file:"read", a path relative to the experiment file, whose file's digest enters the key instead
// of the path, or an address, in place of which the stage gets the path of the file that was fetched;
// key:"-", a parameter that only selects items and is therefore not part of a key; key:"added", a parameter
// that is part of it unless it has the default, so that results made before the parameter was added keep
// their keys; axis:"scores", the name of an axis, or a list of them, that over collapses on the input
// scores: if empty, it defaults to the only collapsed axis, and axis:"maps,optional" also allows none;
// declared:"maps", a choice, or a text, whose value [AsDeclared] is replaced, before the experiment is run,
// by what the stage on the input maps declares under the name of the parameter; declared:"maps,targets"
// leaves it where the input targets is wired.
//
// Types: bool, int, float64, string, slices of these, and types that implement encoding.TextMarshaler and, by
// pointer, encoding.TextUnmarshaler (in YAML a plain scalar, or a list or a mapping of scalars, which they
// parse as "[a, b]" or "{a: b, c: d}").
type Field struct {
	Name     string
	Doc      string
	Type     reflect.Type
	Choices  []string // the allowed strings, by their present names
	Min      string
	Max      string
	File     bool
	Keyed    bool
	Added    bool              // keyed unless it has the default
	Axis     string            // the input whose collapsed axes the parameter names, or ""
	NoAxis   bool              // that input may have no collapsed axis
	Declared string            // the input whose stage may declare the value, or ""
	Unless   string            // the wired input with which the value needn't be declared, or ""
	Index    []int             // for reflect.Value.FieldByIndex
	former   map[string]string // the former names of renamed choices
}

// Stored returns the value of the parameter for a choice in an experiment, and whether it is allowed. A
// renamed choice keeps its former name in the stage's parameters and in keys, so that earlier results are
// found again; experiments may write either name.
func (f Field) Stored(choice string) (value string, ok bool) {
	if former := f.former[choice]; former != "" {
		return former, true
	}
	return choice, slices.Contains(f.Choices, f.Written(choice))
}

// Former returns the former names of renamed choices.
func (f Field) Former() []string { return slices.Sorted(maps.Values(f.former)) }

// Written returns the present name of the choice with this value.
func (f Field) Written(value string) string {
	for name, former := range f.former {
		if value == former {
			return name
		}
	}
	return value
}

// A Knower is a parameter struct that names ids of axes which over collapses. Known is called before the
// experiment is run, with all ids of these axes, also of those that this run doesn't have; its error is a
// [FieldError].
type Knower interface {
	Known(ids map[string][]string) error
}

var textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()

// IsText reports whether the parameter's type parses itself from a scalar.
func (f Field) IsText() bool { return f.Type.Implements(textMarshaler) }

// Fields describes the parameters in the struct that params is or points to, embedded structs included, in
// order of declaration. It panics on a malformed declaration, which is a bug in this program.
func Fields(params any) []Field {
	t := reflect.TypeOf(params)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return fields(t, nil)
}

func fields(t reflect.Type, prefix []int) []Field {
	var out []Field
	for i := range t.NumField() {
		sf := t.Field(i)
		index := append(append([]int(nil), prefix...), i)
		if sf.Anonymous {
			out = append(out, fields(sf.Type, index)...)
			continue
		}
		f := Field{
			Name: sf.Tag.Get("yaml"), Doc: sf.Tag.Get("doc"), Type: sf.Type,
			Min: sf.Tag.Get("min"), Max: sf.Tag.Get("max"),
			File:  sf.Tag.Get("file") != "",
			Keyed: sf.Tag.Get("file") == "" && sf.Tag.Get("key") != "-",
			Added: sf.Tag.Get("key") == "added",
			Index: index,
		}
		f.Declared, f.Unless, _ = strings.Cut(sf.Tag.Get("declared"), ",")
		var option string
		f.Axis, option, _ = strings.Cut(sf.Tag.Get("axis"), ",")
		f.NoAxis = option == "optional"
		if c := sf.Tag.Get("choices"); c != "" {
			for choice := range strings.SplitSeq(c, "|") {
				name, former, renamed := strings.Cut(choice, "=")
				f.Choices = append(f.Choices, name)
				if renamed && f.former == nil {
					f.former = map[string]string{}
				}
				if renamed {
					f.former[name] = former
				}
			}
		}
		if f.Name == "" || f.Doc == "" {
			panic(fmt.Sprintf("parameter %s.%s has no yaml or no doc tag", t, sf.Name))
		}
		if f.Axis != "" && sf.Type != reflect.TypeFor[string]() && sf.Type != reflect.TypeFor[[]string]() {
			panic(fmt.Sprintf("parameter %s.%s names an axis and has the type %s", t, sf.Name, sf.Type))
		}
		if f.Declared != "" && (sf.Type.Kind() != reflect.String ||
			f.Choices != nil && !slices.Contains(f.Choices, AsDeclared)) {
			panic(fmt.Sprintf("parameter %s.%s may be declared and has no choice %q", t, sf.Name, AsDeclared))
		}
		if !supported(sf.Type) {
			panic(fmt.Sprintf("parameter %s.%s has the unsupported type %s", t, sf.Name, sf.Type))
		}
		out = append(out, f)
	}
	return out
}

func supported(t reflect.Type) bool {
	if t.Implements(textMarshaler) {
		return true
	}
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Float64, reflect.String:
		return true
	case reflect.Slice:
		return t.Elem().Kind() != reflect.Slice && supported(t.Elem())
	}
	return false
}
